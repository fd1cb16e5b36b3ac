/*
 * The choice of another model after an error (AOP §9), by the triggers of
 * execution_policy.alternative_models. Pure functions: the caller remembers which models it tried.
 */
#ifndef AMP_MESSAGE_PROTOCOL_AOP_FALLBACK_H
#define AMP_MESSAGE_PROTOCOL_AOP_FALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* Alternatives of a TASK that are considered: the bits of `tried`. */
#define AMP_AOP_MODELS_MOST 32

/* The error that ended the run of a model. */
struct amp_aop_run_error {
    const char *code; /* of AOP §12 */
    bool is_critical; /* the agent says so: extensions.x_critical. A critical code always is */
    bool is_first;    /* of the model in the TASK's target, before any alternative */
};

/* Whether an error with this code is critical: the run cannot be repaired by going on. The codes
 * are E_PROCESS_CRASH, E_MODEL_UNAVAILABLE, E_HEARTBEAT_FAILURE, E_PERMISSION_DENIED,
 * E_ROLLBACK_FAILED and E_COST_LIMIT_EXCEEDED. NULL: no. */
bool amp_aop_is_critical(const char *code);

/* The index of the alternative to try next, -1: none. It is the first of the list that was not
 * tried (bit i of `tried`: alternative i was) and whose fallback_trigger (default: ALL_ERRORS) the
 * error sets off. So ALL_ERRORS comes after all models before it, which were tried or whose trigger
 * it is not. `alternatives`: the array of the TASK, or NULL. */
int amp_aop_fallback_next(const json_t *alternatives, uint32_t tried,
                          const struct amp_aop_run_error *e);

/* The code of a TASK whose last model failed with `code`: E_ALL_MODELS_EXHAUSTED if the TASK has
 * alternatives, else `code`. */
const char *amp_aop_exhausted(const json_t *alternatives, const char *code);

#endif

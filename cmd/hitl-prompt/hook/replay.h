/* hook --replay: the decisions of the rules about the calls of a recording. */
#ifndef HITL_PROMPT_REPLAY_H
#define HITL_PROMPT_REPLAY_H

#include "people/question/hook/rules.h"

struct replay_spec {
    const char *path;      /* of the recording; "-": standard input */
    enum amp_call_cli cli; /* whose it is, or AMP_CLI_NONE: recognised */
    const struct amp_hook_rules *rules;
    bool refuses; /* calls that no rule decides are denied, not asked */
    bool json;
};

/* Prints the calls that are asked or denied, and the sums. *calls: how many were found. INTERRUPTED
 * after a signal. */
int replay_run(const struct replay_spec *spec, uint64_t *calls, struct amp_error *err);

#endif

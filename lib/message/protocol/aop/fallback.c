/* AOP: the choice of another model after an error (§9). */
#include "message/protocol/aop/fallback.h"

#include <string.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/protocol/compose/json.h"

#define AMP_AOP_TRIGGER_LIST(X)                                                                    \
    X(TIMEOUT) X(FIRST_ERROR) X(CRITICAL_ERROR) X(ALL_ERRORS) X(COST_LIMIT_EXCEEDED)
enum amp_aop_trigger {
#define X(id) AMP_AOP_ON_##id,
    AMP_AOP_TRIGGER_LIST(X)
#undef X
};

AMP_WORDS_OF_NAMES(trigger_names, AMP_AOP_TRIGGER_LIST);

bool amp_aop_is_critical(const char *code)
{
    static const char *const critical[] = {
        AMP_CODE(E_PROCESS_CRASH),     AMP_CODE(E_MODEL_UNAVAILABLE),
        AMP_CODE(E_HEARTBEAT_FAILURE), AMP_CODE(E_PERMISSION_DENIED),
        AMP_CODE(E_ROLLBACK_FAILED),   AMP_CODE(E_COST_LIMIT_EXCEEDED),
    };
    for (size_t i = 0; code && i < sizeof(critical) / sizeof(critical[0]); i++)
        if (strcmp(code, critical[i]) == 0)
            return true;
    return false;
}

/* Whether the error sets off the trigger. */
static bool trigger_fires(enum amp_aop_trigger t, const struct amp_aop_run_error *e)
{
    switch (t) {
    case AMP_AOP_ON_TIMEOUT:
        return amp_code_is(e->code, E_TIMEOUT);
    case AMP_AOP_ON_FIRST_ERROR:
        return e->is_first;
    case AMP_AOP_ON_CRITICAL_ERROR:
        return e->is_critical || amp_aop_is_critical(e->code);
    case AMP_AOP_ON_ALL_ERRORS:
        return true;
    case AMP_AOP_ON_COST_LIMIT_EXCEEDED:
        return amp_code_is(e->code, E_COST_LIMIT_EXCEEDED);
    }
    return false;
}

static enum amp_aop_trigger trigger_of(const json_t *alternative)
{
    struct amp_span name = amp_span_str(amp_json_str(alternative, "fallback_trigger"));
    int found = amp_word_find(trigger_names, name);
    return found < 0 ? AMP_AOP_ON_ALL_ERRORS : (enum amp_aop_trigger)found;
}

int amp_aop_fallback_next(const json_t *alternatives, uint32_t tried,
                          const struct amp_aop_run_error *e)
{
    size_t n = json_array_size(alternatives);
    for (size_t i = 0; i < n && i < AMP_AOP_MODELS_MOST; i++)
        if (!(tried & UINT32_C(1) << i) &&
            trigger_fires(trigger_of(json_array_get(alternatives, i)), e))
            return (int)i;
    return -1;
}

const char *amp_aop_exhausted(const json_t *alternatives, const char *code)
{
    return json_array_size(alternatives) > 0 ? AMP_CODE(E_ALL_MODELS_EXHAUSTED) : code;
}

/* AOF/1: the terms of delivery. What cannot be delivered is a line of the event log. */
#include <string.h>

#include "protocol/aof/aof.h"
#include "protocol/terms.h"

/* One of the five messages; files and lines of the log are not answered. */
static bool is_message(const struct amp_view *v)
{
    return amp_span_starts(v->type, "handoff.") || amp_span_is(v->type, "status.update") ||
           amp_span_is(v->type, "completion.report");
}

static int answer_write(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                        struct amp_error *err)
{
    if (!amp_stage_refuses(a->stage))
        return amp_terms_record(of, a, out, err);
    if (!is_message(of))
        return 0;
    const char *code = a->code && *a->code ? a->code : "rejected";
    const struct amp_aof_event e = {.type = strcmp(code, "no_route") == 0 ? "dispatch.no-match"
                                                                          : "dispatch.error",
                                    .actor = a->by,
                                    .reason = code,
                                    .what = a->note,
                                    .to = of->n_to > 0 ? of->to[0] : (struct amp_span){"", 0}};
    return amp_aof_event(&e, of, a->now_ms, out, err);
}

/* A task's dueBy is a wish: the protocol does not say what happens afterwards. */
const struct amp_terms amp_terms_aof = {
    .expiry_is_wish = true,
    .to_holds = true,
    .not_holder = "unauthorized_agent",
    .retries = {.base_ms = 1000, .cap_ms = 300000, .steady = true},
    .answer = answer_write,
};

/* agent-handoff pending: the handoffs that wait for an answer, and others. */
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "cli/list.h"
#include "handoff.h"
#include "shared/work/tool.h"

static const char *agent, *from;
static bool all;

static const struct amp_opt handoff_pending_opts[] = {
    {0, "agent", AMP_OPT_STRING, &agent, "NAME", "only those offered to this agent",
     .values = "agent"},
    {0, "from", AMP_OPT_STRING, &from, "NAME", "only those of this origin", .values = "agent"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, "in all states"},
    AMP_OPT_JSON("print one JSON object per handoff"),
    AMP_OPT_END,
};

static int handoff_print(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_handoff *r = rec;

    if ((agent && !amp_span_is(r->to, agent)) || (from && !amp_span_is(r->from, from)))
        return 0;
    return amp_listing_row(ctx, r, err);
}

static int handoff_pending(struct amp_command *c, struct amp_error *err)
{
    if (all)
        c->none = "no handoffs";
    return amp_subject_each(&amp_handoff_subject, c->store,
                            all ? NULL : amp_handoff_fsm.states[AMP_HANDOFF_PENDING].name,
                            handoff_print, c->list, err);
}

const struct amp_verb handoff_pending_verbs[] = {
    {"pending", "", "list the handoffs that wait for an answer", handoff_pending_opts,
     handoff_pending, .opens = AMP_OPENS_READ, .lists = amp_handoff_columns,
     .none = "no pending handoffs (--all also lists those that have an answer)",
     .finds_state = true},
    {0},
};

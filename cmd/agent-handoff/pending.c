/* agent-handoff pending: the handoffs that wait for an answer, and others. */
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "cli/list.h"
#include "handoff.h"
#include "shared/work/tool.h"

static const char *agent, *from;
static bool all, json;

static const struct amp_opt handoff_pending_opts[] = {
    {0, "agent", AMP_OPT_STRING, &agent, "NAME", "only those offered to this agent",
     .values = "agent"},
    {0, "from", AMP_OPT_STRING, &from, "NAME", "only those of this origin", .values = "agent"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, "in all states"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, "print one JSON object per handoff"},
    AMP_OPT_END,
};

struct listing {
    struct amp_listing list;
    struct amp_buf line;
};

static int handoff_print(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_handoff *r = rec;
    struct listing *l = ctx;

    if ((agent && !amp_span_is(r->to, agent)) || (from && !amp_span_is(r->from, from)))
        return 0;
    if (!json)
        return amp_listing_row(&l->list, r, err);
    amp_buf_reset(&l->line);
    return amp_handoff_write(r, &l->line, err) < 0 || amp_buf_str(&l->line, "\n", err) < 0
               ? -1
               : amp_out(amp_buf_span(&l->line), err);
}

static int handoff_pending(struct amp_command *c, struct amp_error *err)
{
    struct listing l = {.line = {.max = 1 << 20}};

    amp_listing_init(&l.list, amp_handoff_columns, json);
    int rc = amp_subject_each(&amp_handoff_subject, c->store,
                              all ? NULL : amp_handoff_fsm.states[AMP_HANDOFF_PENDING].name,
                              handoff_print, &l, err);
    rc = amp_listing_end(&l.list, rc, err);
    if (rc == 0 && !json && l.list.rows == 0)
        amp_note("no %shandoffs%s", all ? "" : "pending ",
                 all ? "" : " (--all also lists those that have an answer)");
    amp_buf_release(&l.line);
    return rc;
}

const struct amp_verb handoff_pending_verbs[] = {
    {"pending", "", "list the handoffs that wait for an answer", handoff_pending_opts,
     handoff_pending, .opens = AMP_OPENS_READ, .finds_state = true},
    {0},
};

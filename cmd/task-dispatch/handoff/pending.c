/* task-dispatch handoff pending: the handoffs that wait for an answer, and others. */
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "../tasks/tasks.h"
#include "../verbs.h"
#include "cli/table.h"
#include "cli/time.h"
#include "handoff.h"

static const char *agent, *from;
static bool all, json;

const struct amp_opt handoff_pending_opts[] = {
    {0, "agent", AMP_OPT_STRING, &agent, "NAME", "only those offered to this agent",
     .values = "agent"},
    {0, "from", AMP_OPT_STRING, &from, "NAME", "only those of this origin", .values = "agent"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, "in all states"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, "print one JSON object per handoff"},
    AMP_OPT_END,
};

struct listing {
    struct amp_store *store;
    struct amp_table table;
    struct amp_buf line;
    int64_t now_ms;
};

static int handoff_row(struct listing *l, const struct amp_handoff *r, struct amp_error *err)
{
    char age[AMP_AGE_MAX], left[AMP_AGE_MAX];
    const struct amp_span cells[] = {r->id,
                                     amp_span_str(amp_handoff_fsm.states[r->state].name),
                                     r->from,
                                     r->to,
                                     amp_age_text(l->now_ms - r->requested_ms, age),
                                     r->due_ms > 0 ? amp_age_text(r->due_ms - l->now_ms, left)
                                                   : AMP_SPAN("-"),
                                     r->task,
                                     r->reason};
    return amp_table_row(&l->table, cells, 8, err);
}

static int handoff_print(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_handoff *r = rec;
    struct listing *l = ctx;

    if ((agent && !amp_span_is(r->to, agent)) || (from && !amp_span_is(r->from, from)))
        return 0;
    if (!json)
        return handoff_row(l, r, err);
    amp_buf_reset(&l->line);
    return amp_handoff_write(r, &l->line, err) < 0 || amp_buf_str(&l->line, "\n", err) < 0
               ? -1
               : amp_out(amp_buf_span(&l->line), err);
}

int handoff_pending(int argc, char **argv)
{
    static const char *const head[] = {"ID",  "STATE", "FROM", "TO",
                                       "AGE", "LEFT",  "TASK", "REASON"};
    struct listing l = {.line = {.max = 1 << 20}, .now_ms = amp_now_ms()};
    struct amp_error err;

    (void)argc, (void)argv;
    amp_table_init(&l.table, head, 8);
    l.table.fit = amp_page_columns(STDOUT_FILENO);
    l.table.color = amp_color_of(STDOUT_FILENO);
    for (int i = 0; i < 8; i++)
        amp_table_tint(&l.table, i, AMP_TINT_HEAD);
    int rc = tasks_look(&l.store, &err);
    if (rc == 0)
        rc = amp_subject_each(&amp_handoff_subject, l.store,
                              all ? NULL : amp_handoff_fsm.states[AMP_HANDOFF_PENDING].name,
                              handoff_print, &l, &err);
    if (rc == 0 && !json && l.table.rows > 1)
        rc = amp_table_print(&l.table, &err);
    else if (rc == 0 && !json)
        amp_note("no %shandoffs%s", all ? "" : "pending ",
                 all ? "" : " (--all also lists those that have an answer)");
    amp_table_release(&l.table);
    amp_buf_release(&l.line);
    amp_store_close(l.store);
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}

/*
 * The rules of retention for the kinds of all subjects. A record of a task stays as long as the
 * task, so that its story and the proof of its approval are complete while it can be landed. Kinds
 * whose records the sweep removes after a time of their own (people/deadlines.c) have no rule.
 */
#include "people/keep.h"

#include "message/delivery/cursor/cursors.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/record/record.h"
#include "message/delivery/settle/cost.h"
#include "people/question/escalation.h"
#include "work/git/binding.h"
#include "work/item/queue.h"
#include "work/task/landing/landing.h"
#include "work/task/record.h"

/* The text at a member; empty: it has none, or one that cannot be an id of ours. */
static struct amp_span member_of(const struct amp_tape *t, uint32_t object, const char *name)
{
    uint32_t tok = amp_tape_get(t, object, amp_span_str(name));
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING ||
        t->tok[tok].flags & AMP_TOK_ESCAPED)
        return (struct amp_span){"", 0};
    return amp_tok_raw(t, tok);
}

static struct amp_keep_other other_of(const char *kind, struct amp_span id)
{
    return (struct amp_keep_other){kind, id, false};
}

/* The record whose key has a part of this record's key. */
static struct amp_keep_other same_of(const char *kind, struct amp_span part)
{
    return (struct amp_keep_other){kind, part, true};
}

/* Gives the one record that needs this one. */
static bool only(uint32_t i, struct amp_keep_other other, struct amp_keep_other *out)
{
    *out = other;
    return i == 0;
}

static bool of_task(const struct amp_span parts[], const struct amp_tape *t, uint32_t i,
                    struct amp_keep_other *out)
{
    (void)parts;
    return only(i, other_of(AMP_TASK_KIND, member_of(t, 0, "task")), out);
}

static bool of_message(const struct amp_span parts[], const struct amp_tape *t, uint32_t i,
                       struct amp_keep_other *out)
{
    if (i == 1) /* a person may send it again */
        *out = same_of(AMP_DEAD_KIND, parts[0]);
    else if (i == 2) /* the next attempt at it */
        *out = other_of(AMP_MESSAGE_KIND, member_of(t, 0, "next"));
    else
        return of_task(parts, t, i, out);
    return true;
}

static bool of_letter(const struct amp_span parts[], const struct amp_tape *t, uint32_t i,
                      struct amp_keep_other *out)
{
    (void)t;
    return only(i, same_of(AMP_MESSAGE_KIND, parts[0]), out);
}

static bool of_delivery(const struct amp_span parts[], const struct amp_tape *t, uint32_t i,
                        struct amp_keep_other *out)
{
    const struct amp_span id = member_of(t, 0, "msg_id");
    return only(i, id.n ? other_of(AMP_MESSAGE_KIND, id) : same_of(AMP_MESSAGE_KIND, parts[1]),
                out);
}

static bool of_job(const struct amp_span parts[], const struct amp_tape *t, uint32_t i,
                   struct amp_keep_other *out)
{
    if (i != 1)
        return of_task(parts, t, i, out);
    *out = same_of(AMP_MESSAGE_KIND, parts[1]);
    return true;
}

/* Keys that begin with the task's id. */
static bool of_part(const struct amp_span parts[], const struct amp_tape *t, uint32_t i,
                    struct amp_keep_other *out)
{
    (void)t;
    return only(i, same_of(AMP_TASK_KIND, parts[0]), out);
}

#define EXPENSE "expense" /* work/loop/pool/budget.h */

/* True for what a task has cost; the other expenses are of an agent or of a day. */
static bool of_expense(const struct amp_span parts[], const struct amp_tape *t, uint32_t i,
                       struct amp_keep_other *out)
{
    (void)t;
    *out = same_of(AMP_TASK_KIND, parts[1]);
    return i == 0 && amp_span_is(parts[0], "task");
}

static bool of_verdicts(const struct amp_span parts[], const struct amp_tape *t, uint32_t i,
                        struct amp_keep_other *out)
{
    uint32_t list = amp_tape_get(t, 0, AMP_SPAN("verdicts")), at = list + 1;
    (void)parts;
    if (list == AMP_TOK_NONE || t->tok[list].type != AMP_JSON_ARRAY || i >= t->tok[list].count)
        return false;
    while (i--)
        at = t->tok[at].next;
    *out = other_of(AMP_TASK_KIND, member_of(t, at, "task"));
    return true;
}

/* Work that its own supervisor watches has no deadline, but goes on. */
static bool is_settled(const struct amp_tape *t)
{
    uint32_t tok = amp_tape_get(t, 0, AMP_SPAN("supervised"));
    return tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_TRUE;
}

/* The jobs that agents of a pool take are forgotten by the queue. */
static bool is_own(const struct amp_tape *t)
{
    return amp_tape_get(t, 0, AMP_SPAN("owner")) != AMP_TOK_NONE;
}

#define RULE(kind_, group_, ...)                                                                   \
    {                                                                                              \
        .kind = (kind_), .group = AMP_KEEP_##group_, __VA_ARGS__                                   \
    }

const struct amp_keep amp_keep_all[] = {
    RULE(AMP_MESSAGE_KIND, messages, .states = "FULFILLED REJECTED FAILED TIMED_OUT RETRYING",
         .remembered = true, .needed_by = of_message),
    /* Without a deadline they wait for nothing. */
    RULE(AMP_MESSAGE_KIND, messages, .states = "SENT RECEIVED READ", .is_final = is_settled,
         .remembered = true, .needed_by = of_message),
    RULE(AMP_INBOX_KIND, messages, .states = "READ FAILED", .remembered = true,
         .needed_by = of_delivery),
    RULE(AMP_DEAD_KIND, messages, .states = "REQUEUED WITHDRAWN", .needed_by = of_letter),
    RULE(AMP_CURSOR_KIND, messages, .states = "RETIRED"),
    RULE(AMP_COST_KIND, messages, .needed_by = of_task),
    RULE(AMP_TASK_KIND, tasks, .states = "done failed terminated", .remembered = true),
    RULE(AMP_LANDING_KIND, tasks, .states = "none landed", .needed_by = of_part),
    RULE("base", tasks, .needed_by = of_part),
    RULE("approval", tasks, .needed_by = of_verdicts),
    RULE(EXPENSE, tasks, .needed_by = of_expense),
    RULE(AMP_QUEUE_KIND, jobs, .states = "DONE FAILED CANCELLED", .is_final = is_own,
         .remembered = true, .needed_by = of_job),
    RULE(AMP_ESCALATION_KIND, questions, .states = "DECIDED NOTED ENDED", .remembered = true,
         .needed_by = of_task),
    RULE(AMP_BINDING_KIND, bindings, .states = "UNBOUND"),
    {0},
};

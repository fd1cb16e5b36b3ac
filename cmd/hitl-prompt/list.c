/* hitl-prompt list: the open questions, the most severe and oldest first. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "cli/list.h"
#include "hitl.h"
#include "message/pause/pause.h"
#include "people/answer/offer.h"

static const char *protocol, *reason, *task, *severity;

static const struct amp_opt list_opts[] = {
    AMP_OPT_JSON("print one JSON object per question"),
    {0, "protocol", AMP_OPT_STRING, &protocol, "NAME", "only questions of this protocol"},
    {0, "reason", AMP_OPT_STRING, &reason, "REASON", "only questions with this reason"},
    {0, "severity", AMP_OPT_STRING, &severity, "WORD", "only questions of this severity"},
    {0, "task", AMP_OPT_STRING, &task, "TASK", "only questions about this task", .values = "task"},
    AMP_OPT_END,
};

static bool is_listed(const struct amp_question *q)
{
    return (!protocol || strcmp(protocol, amp_protocol_name(q->protocol)) == 0) &&
           (!reason || strcmp(reason, q->reason) == 0) &&
           (!severity || strcmp(severity, q->severity) == 0) &&
           (!task || strcmp(task, q->about.task) == 0);
}

struct listing {
    struct amp_listing *list;
    struct amp_error *err;
};

static int question_list(void *ctx, const struct amp_question *q)
{
    struct listing *l = ctx;
    struct question_row row;

    question_row(q, &row);
    return is_listed(q) ? amp_listing_row(l->list, &row, l->err) : 0;
}

/* Open questions are only a part of why work stands still. */
static int pauses_say(struct amp_store *s, struct amp_error *err)
{
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses now = {0};

    amp_pauses_init(&now);
    if (amp_pauses_read(s, &now, err) < 0)
        return -1;
    if (now.n_v > 0)
        amp_note("%u suspension%s by people %s in force: hitl-prompt suspend --list shows %s",
                 now.n_v, now.n_v == 1 ? "" : "s", now.n_v == 1 ? "is" : "are",
                 now.n_v == 1 ? "it" : "them");
    return 0;
}

static int hitl_list(struct amp_command *c, struct amp_error *err)
{
    struct hitl *h = c->own;
    struct listing l = {c->list, err};

    return amp_question_all(&h->d.hitl, question_list, &l, err) < 0 ? -1
                                                                    : pauses_say(c->store, err);
}

const struct amp_verb list_verbs[] = {
    {"list", "", "list the open questions", list_opts, hitl_list, .opens = HITL_OPENS_QUESTIONS,
     .act = "read questions", .lists = question_columns, .none = "no open questions",
     .signals = true, .finds_state = true, .who = AMP_WHO_PERSON},
    {0},
};

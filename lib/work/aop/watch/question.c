/*
 * Questions of the agent to a person while it works on a TASK (people/answer/ask/ask.h). It gets
 * the decision in the answer to its line; its work goes on meanwhile, and so does its time. A
 * question without a decision ends with the run that asked it.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "people/answer/ask/ask.h"
#include "work/aop/run/private.h"

enum { CONTEXT_MAX = 64 << 10 };
#define DAY_MS INT64_C(86400000)

static int context_make(const struct amp_tasking *t, const char *text, struct amp_buf *out,
                        struct amp_error *err)
{
    json_auto_t *context =
        json_pack("{s:s, s:s, s:o, s:s}", "session_id", t->session, "agent", t->agent, "objective",
                  amp_tasking_objective(t), "question", text);
    return context ? amp_json_dump(context, out, err) : amp_fail_memory(err);
}

/* The end of the work, as far as it has one. */
static int64_t until_of(const struct amp_tasking *t)
{
    int64_t now = amp_now_ms();
    bool ends = t->limit_mono_ms && t->policy.auto_terminate_on_timeout.value;
    int64_t left = ends ? t->limit_mono_ms - amp_mono_ms() : DAY_MS;
    return now + (left < 1000 ? 1000 : left > DAY_MS ? DAY_MS : left);
}

int amp_tasking_ask(struct amp_worker *w, struct amp_assignment *k, const char *text,
                    const char *const *suggested, char ref[AMP_MSG_ID_MAX], struct amp_error *err)
{
    const struct amp_tasking *t = (const struct amp_tasking *)k; /* `of` is its first member */
    AMP_BUF struct amp_buf context = {.max = CONTEXT_MAX};
    struct amp_asking a;
    char from[300];
    if (context_make(t, text, &context, err) < 0)
        return -1;
    snprintf(from, sizeof from, "%s/%s", w->opt->role, w->opt->agent);
    const struct amp_ask q = {.from = from,
                              .reason = "TASK_ESCALATION",
                              .task = k->task,
                              .context = amp_buf_span(&context),
                              .proposed = suggested,
                              .until_ms = until_of(t),
                              .ids = w->opt->ids};
    int rc = amp_asking_open(&a, w->store, w->opt->consumer, w->opt->stop, w->opt->note, err);
    if (rc == 0)
        rc = amp_asking_record(&a, &q, err);
    if (rc == 0)
        snprintf(ref, AMP_MSG_ID_MAX, "%.255s", a.key);
    amp_asking_close(&a);
    return rc;
}

int amp_tasking_unask(struct amp_worker *w, const char *ref, const char *why, struct amp_error *err)
{
    struct amp_asking a;
    int rc = amp_asking_open(&a, w->store, w->opt->consumer, w->opt->stop, w->opt->note, err);
    amp_asking_name(&a, amp_span_str(ref));
    if (rc == 0)
        rc = amp_asking_end(&a, AMP_CODE(withdrawn), why, err);
    amp_asking_close(&a);
    return rc;
}

int amp_tasking_unask_all(struct amp_tasking *t, struct amp_error *err)
{
    struct amp_words *said = &t->of.words;
    for (uint32_t i = 0; i < said->n_questions; i++) {
        struct amp_agent_question *q = &said->questions[i];
        if (!q->answered && !q->withdrawn &&
            amp_tasking_unask(t->w, q->escalation, "the command that asked has ended", err) < 0)
            return -1;
        q->withdrawn = true;
    }
    return 0;
}

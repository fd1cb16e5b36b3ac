/* Priorities of TASKs that change. */
#include "work/aop/account/escalate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/aop/event.h"
#include "work/aop/account/jobs.h"
#include "work/aop/session/private.h"
#include "work/item/priority.h"
#include "json/record.h"

static int jobs_rank(const struct amp_session_voice *v, const struct amp_session_rank *r,
                     char job[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    struct amp_session_jobs jobs = {0};
    struct amp_queue_step st = {.event = AMP_QUEUE_EV_RANK, .actor = v->actor, .now_ms = v->now_ms};
    struct amp_error why = {0};

    int rc = amp_priority_of_word(r->priority, &st.priority, err) < 0
                 ? -1
                 : amp_session_jobs_find(v->store, r->session, r->task, &jobs, err);
    for (size_t i = 0; rc == 0 && i < jobs.n; i++) {
        st.id = amp_span_str(jobs.ids[i]);
        if (amp_queue_step(v->store, &st, NULL, NULL, &why) == 0)
            memcpy(job, jobs.ids[i], AMP_QUEUE_ID_MAX);
        else if (why.status != AMP_NO) {
            *err = why;
            rc = -1;
        }
    }
    free(jobs.ids);
    return rc;
}

/* ---- another priority ---- */

/* Its name has the revision of the TASK, which the change itself raises: so the same change is
 * noted once, also after a crash between the two. */
static int event_note(const struct amp_session_voice *v, const struct amp_session_rank *r,
                      const struct amp_session_task *t, struct amp_span line, struct amp_error *err)
{
    const struct amp_session_entry e = {.type = AMP_SESSION_ENTRY_EVENT,
                                        .session = r->session,
                                        .task = r->task,
                                        .attempt = t->attempt,
                                        .event = AMP_SPAN("PRIORITY_ESCALATION"),
                                        .json = line};
    char name[AMP_SESSION_NAME_MAX], more[48];

    snprintf(more, sizeof more, "%.*s.%llu", AMP_CLIP(r->priority, 20), (unsigned long long)t->rev);
    amp_session_entry_label(name, t->attempt, "priority", more);
    return amp_session_entry_add(v, &e, name, NULL, 0, err) < 0 ? -1 : 0;
}

static int escalate(const struct amp_session_voice *v, const struct amp_session_rank *r,
                    struct amp_buf *out, char job[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, line = {.max = AMP_REC_MAX};
    struct amp_session_task t;
    const struct amp_aop_about about = {r->session, r->task, v->now_ms};

    int found = amp_session_task_find(v->store, r->session, r->task, &mem, &t, err);
    if (found <= 0)
        return found < 0 ? -1
                         : amp_fail(err, AMP_NO, unknown_ref, "session %.*s has no TASK %.*s",
                                    AMP_CLIP(r->session, 200), AMP_CLIP(r->task, 200));
    if (amp_session_task_ended(t.state))
        return amp_fail(err, AMP_NO, task_ended, "the TASK %.*s is %s", AMP_CLIP(r->task, 200),
                        amp_session_task_fsm.states[t.state].name);
    const struct amp_aop_escalation e = {t.priority, r->priority, r->reason, r->by};
    if (amp_aop_priority_escalation(&about, &e, &line, err) < 0)
        return -1;
    if (amp_span_eq(t.priority, r->priority))
        return AMP_RANK_SAME;
    struct amp_span said = {line.data, line.len - 1};
    const struct amp_session_step step = {.event = AMP_SESSION_TASK_EV_RANK,
                                          .session = r->session,
                                          .task = r->task,
                                          .priority = r->priority};
    /* The TASK last: after a crash before that, the same change is made again. */
    return event_note(v, r, &t, r->line.n > 0 ? r->line : said, err) < 0 ||
                   jobs_rank(v, r, job, err) < 0 ||
                   amp_session_task_step(v, &step, NULL, NULL, err) < 0 ||
                   (r->line.n == 0 && amp_buf_add(out, line.data, line.len, err) < 0)
               ? -1
               : AMP_RANK_DONE;
}

enum amp_session_ranked amp_session_escalate(const struct amp_session_voice *v,
                                             const struct amp_session_rank *r, struct amp_buf *out,
                                             char job[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    bool own = !amp_store_in_batch(v->store);

    *job = '\0';
    if (own && amp_store_begin(v->store, err) < 0)
        return AMP_RANK_FAILED;
    int rc = escalate(v, r, out, job, err);
    if (own)
        amp_store_end(v->store);
    return (enum amp_session_ranked)rc;
}

/* ---- messages ---- */

static struct amp_span member_of(const struct amp_view *v, const char *key, struct amp_buf *mem)
{
    uint32_t tok = amp_tape_get(v->tape, 0, amp_span_str(key));
    struct amp_span out;
    struct amp_error e;

    if (tok == AMP_TOK_NONE || v->tape->tok[tok].type != AMP_JSON_STRING ||
        amp_tok_text(v->tape, tok, mem, &out, &e) < 0)
        return AMP_SPAN("");
    return out;
}

bool amp_session_is_escalation(const struct amp_view *v)
{
    return v->kind == AMP_KIND_ESCALATION && v->session.n > 0 && v->task.n > 0 && v->tape &&
           amp_tape_get(v->tape, 0, AMP_SPAN("new_priority")) != AMP_TOK_NONE;
}

/* Whether this state has the session. NO E_PERMISSION_DENIED: the sender is neither a person nor
 * the orchestrator. */
static int sender_check(const struct amp_session_voice *v, struct amp_identities *ids,
                        const struct amp_view *event, bool trusted, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session x;
    struct amp_said said;
    struct amp_error why = {0};
    char name[256];

    int found = amp_session_find(v->store, event->session, &mem, &x, err);
    if (found <= 0)
        return found;
    int who = amp_identities_who(ids, event, trusted, &said, &why, err);
    if (who < 0)
        return -1;
    if (who == 0)
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED, "%s: %s", why.code, why.what);
    bool may = said.how != AMP_SAID_SIGNED || said.is_operator ||
               (amp_span_copy(x.orchestrator, name, sizeof name) && amp_said_by(ids, &said, name));
    return may ? 1
               : amp_fail(err, AMP_NO, E_PERMISSION_DENIED,
                          "only a person or the orchestrator changes the priority of a TASK");
}

int amp_session_escalation_take(const struct amp_session_voice *v, struct amp_identities *ids,
                                const struct amp_view *event, bool trusted,
                                char job[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, none = {.max = 16};

    *job = '\0';
    if (!amp_session_is_escalation(event))
        return 0;
    int rc = sender_check(v, ids, event, trusted, err);
    if (rc <= 0)
        return rc;
    if (amp_buf_reserve(&mem, event->text.n, err) < 0)
        return -1;
    const struct amp_session_rank r = {.session = event->session,
                                       .task = event->task,
                                       .priority = member_of(event, "new_priority", &mem),
                                       .reason = member_of(event, "reason", &mem),
                                       .by = member_of(event, "escalated_by", &mem),
                                       .line = event->message};
    rc = amp_session_escalate(v, &r, &none, job, err);
    if (rc < 0 && err->status == AMP_NO && amp_code_is(err->code, unknown_ref))
        return 0;
    return rc < 0 ? -1 : 1;
}

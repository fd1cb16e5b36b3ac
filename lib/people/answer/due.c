/* Deadlines of questions, and the signatures of decisions. */
#include "people/answer/due.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/delivery/sender/identity.h"
#include "work/task/record.h"
#include "work/task/task.h"

/* ---- signatures ---- */

static struct amp_signer *signer_of(struct amp_decision_signer *s, const char *op,
                                    struct amp_error *err)
{
    char principal[sizeof s->other_name];
    struct amp_error why;
    struct amp_signer *own = amp_identities_signer(s->ids), *made = NULL;

    if (s->own && strcmp(op, s->own) == 0)
        return own;
    snprintf(principal, sizeof principal, AMP_OPERATOR_ROLE "/%.100s", op);
    if (s->other && strcmp(principal, s->other_name) == 0)
        return s->other;
    if (amp_state_signer(s->state, principal, &made, &why) < 0) {
        /* A name that cannot be a principal: the process vouches for it. */
        if (why.status == AMP_USAGE && own)
            return own;
        *err = why;
        return NULL;
    }
    amp_signer_free(s->other);
    memcpy(s->other_name, principal, sizeof principal);
    return s->other = made;
}

int amp_decision_sign(struct amp_decision_signer *s, const char *op, struct amp_span line,
                      struct amp_buf *out, char key[AMP_FINGERPRINT_MAX], struct amp_error *err)
{
    *key = '\0';
    if (!s->ids)
        return amp_buf_add(out, line.p, line.n, err);
    struct amp_signer *by = signer_of(s, op, err);
    if (!by || amp_signer_line(by, line, amp_now_ms(), out, err) < 0)
        return -1;
    snprintf(key, AMP_FINGERPRINT_MAX, "%s", amp_signer_public(by)->fingerprint);
    return 0;
}

void amp_decision_signer_release(struct amp_decision_signer *s)
{
    amp_signer_free(s->other);
    s->other = NULL;
}

/* ---- tasks ---- */

int amp_decision_task_ended(struct amp_store *s, struct amp_span task, bool *ended,
                            struct amp_error *err)
{
    struct amp_task_status st;

    if (amp_task_status(s, task, &st, err) < 0)
        return -1;
    *ended = st.terminal;
    return 0;
}

int amp_decision_task_facts(struct amp_store *s, struct amp_span task, struct amp_span ref,
                            char risk[16], char why[AMP_WHY_MAX], struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    bool found = false;
    const json_t *e;
    size_t i;

    risk[0] = why[0] = '\0';
    if (amp_task_load(s, task, &t, &found, err) < 0)
        return -1;
    if (found && t.n_parts > 0) /* else only an escalation about it is known */
        snprintf(risk, 16, "%s", amp_risk_name(t.risk));
    json_array_foreach (t.open, i, e)
        if (amp_span_is(ref, amp_json_str(e, "ref")))
            snprintf(why, AMP_WHY_MAX, "%s", amp_json_str(e, "why"));
    return 0;
}

/* ---- the row ---- */

struct due {
    struct amp_store *store;
    struct amp_decision_signer signer;
};

static int due_task_ended(void *ctx, struct amp_span task, bool *ended, struct amp_error *err)
{
    const struct due *d = ctx;
    return amp_decision_task_ended(d->store, task, ended, err);
}

static int due_sign(void *ctx, const char *op, struct amp_span line, struct amp_buf *out,
                    char key[AMP_FINGERPRINT_MAX], struct amp_error *err)
{
    struct due *d = ctx;
    return amp_decision_sign(&d->signer, op, line, out, key, err);
}

__attribute__((format(printf, 1, 2))) static void due_quiet(const char *fmt, ...)
{
    (void)fmt;
}

int amp_decision_due_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                         uint32_t *done, struct amp_error *err)
{
    struct due d = {.store = s, .signer = {.state = amp_store_dir(s)}};
    struct amp_question_swept swept = {0};
    bool dirty = false;
    struct amp_hitl h = {.store = s,
                         .actor = c->actor,
                         .dirty = &dirty,
                         .note = c->note ? c->note : due_quiet,
                         .ctx = &d,
                         .task_ended = due_task_ended,
                         .sign = due_sign};
    int rc = c->identities ? c->identities(&d.signer.ids, err) : 0;

    if (rc == 0)
        rc = amp_question_sweep(&h, now_ms, &swept, err);
    *done += swept.asked_again + swept.decided + swept.extended + swept.expired;
    amp_decision_signer_release(&d.signer);
    amp_identities_close(d.signer.ids);
    return rc;
}

/* What a person answers: the words, whether it can be carried out, the decision that leaves. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <amp/base/clock.h>

#include "flow/work/decider.h"
#include "message/dead/dead.h"
#include "message/ledger/ledger.h"
#include "message/record/sequence.h"
#include "message/settle/answer.h"
#include "protocol/amp/compose.h"
#include "protocol/sw4rm/answer.h"
#include "task/record.h"
#include "worktree/git.h"

/* ---- words ---- */

static const char space[] = " \t\r\n";

const char *amp_question_invocation(const struct amp_question *q)
{
    const char *id = amp_json_str(json_object_get(q->message, "payload"), "invocation_id");
    return *id ? id : q->id;
}

const char *amp_answer_words(const struct amp_question *q)
{
    if (q->protocol == AMP_PROTO_SW4RM)
        return "approve, deny, modify, defer or a proposed action";
    return q->about.kind == AMP_SUBJECT_TASK ? "resume, redispatch, rollback COMMIT or terminate"
                                             : "resume, redispatch or terminate";
}

static bool trim(char *p)
{
    for (size_t len = strlen(p); len && strchr(space, p[len - 1]);)
        p[--len] = 0;
    return true;
}

/* Whether the line begins with this action; the longer of two that fit is meant. */
static void fit(const char *line, const char *action, size_t *n, const char **found)
{
    size_t len = strlen(action);
    if (len > *n && !strncasecmp(line, action, len) && (!line[len] || strchr(space, line[len]))) {
        *n = len;
        *found = action;
    }
}

/* §15: approve, deny, modify, defer; and what the question itself proposes. */
static bool parse_action(const struct amp_question *q, char *p, struct amp_operator_answer *out)
{
    static const char *const known[] = {"approve", "deny", "modify", "defer"};
    const json_t *payload = json_object_get(q->message, "payload");
    const char *found = NULL;
    size_t i, n = 0;
    json_t *v;

    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        fit(p, known[i], &n, &found);
    fit(p, amp_json_str(payload, "suggested_action"), &n, &found);
    json_array_foreach(json_object_get(payload, "proposed_actions"), i, v)
    {
        if (json_is_string(v))
            fit(p, json_string_value(v), &n, &found);
    }
    if (!found)
        return false;
    out->action = found;
    p += n;
    p += strspn(p, space);
    trim(p);
    out->note = p;
    return true;
}

bool amp_answer_parse(const struct amp_question *q, char *line, struct amp_operator_answer *out)
{
    static const char *const words[] = {
#define X(id, name) [AMP_DO_##id] = name,
        AMP_DO_LIST(X)
#undef X
    };
    struct amp_operator_answer a = {0};
    char *p = line + strspn(line, space);
    size_t n = strcspn(p, space);
    int word = -1;

    if (q->protocol == AMP_PROTO_SW4RM) {
        if (!parse_action(q, p, &a))
            return false;
        *out = a;
        return true;
    }
    for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++)
        if (strlen(words[i]) == n && !strncasecmp(p, words[i], n))
            word = i;
    if (word < 0)
        return false;
    a.word = (enum amp_operator_word)word;
    a.action = words[word];
    p += n;
    p += strspn(p, space);
    if (a.word == AMP_DO_ROLLBACK) {
        a.commit = p;
        p += strcspn(p, space);
        if (*p)
            *p++ = 0;
        p += strspn(p, space);
    }
    trim(p);
    a.note = p;
    *out = a;
    return true;
}

/* ---- whether it can be carried out ---- */

/* The form that every protocol message requires of a commit: 4 to 64 hexadecimal digits. */
static bool is_commit_id(const char *commit)
{
    size_t n = strspn(commit, "0123456789abcdefABCDEF");
    return !commit[n] && n >= 4 && n <= 64;
}

/* The commit of a rollback as the task's repository knows it, into oid; where the state does not
 * know the task, the id that was typed. 1: it is refused, err says why. */
static int resolve(struct amp_decider *d, const struct amp_question *q, const char *commit,
                   char oid[AMP_OID_MAX], struct amp_error *err)
{
    struct amp_span id = amp_span_str(q->about.task);
    struct amp_task t;
    int rc = 0;

    if (q->about.kind != AMP_SUBJECT_TASK) {
        amp_fail(err, AMP_DATAERR, "no_task",
                 "rollback is for tasks of AMP; this question has no branch to put back");
        return 1;
    }
    if (!commit || !*commit) {
        amp_fail(err, AMP_DATAERR, "missing_commit",
                 "rollback needs the commit to go back to (rollback COMMIT [NOTE])");
        return 1;
    }
    if (amp_task_load(d->w.store, id, &t, NULL, err) < 0)
        return -1;
    const struct amp_git_options git = {.stop = d->opt.stop};
    if (!*t.repo && is_commit_id(commit)) {
        snprintf(oid, AMP_OID_MAX, "%s", commit);
    } else if (!*t.repo) {
        rc = 1;
        amp_fail(
            err, AMP_DATAERR, "unknown_revision",
            "this state does not know the task, so \"%.100s\" cannot be looked up; give the id "
            "of the commit (4 to 64 hexadecimal digits)",
            commit);
    } else if (!d->w.git && amp_git_open(&git, &d->w.git, err)) {
        rc = -1;
    } else if (amp_git_resolve(d->w.git, t.repo, commit, oid, err)) {
        rc = err->status == AMP_INTERRUPTED ? -1 : 1;
        if (err->status == AMP_NO)
            err->status = AMP_DATAERR;
    }
    amp_task_release(&t);
    return rc;
}

static int letter_fn(void *ctx, struct amp_span dead_id, const struct amp_dead_letter *l,
                     struct amp_span json)
{
    *(bool *)ctx = l->open;
    return 0;
}

/* Work of another protocol is sent again from the dead letters. 1: there is no letter of it. */
static int find_letter(struct amp_decider *d, const struct amp_question *q, struct amp_error *err)
{
    bool open = false;
    struct amp_error e;

    if (q->about.kind == AMP_SUBJECT_TASK)
        return 0;
    if (q->about.kind == AMP_SUBJECT_MESSAGE &&
        amp_dead_find(d->w.store, amp_span_str(q->about.id), letter_fn, &open, &e) &&
        e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    if (open)
        return 0;
    amp_fail(
        err, AMP_DATAERR, "no_letter",
        "redispatch sends a dead letter again, and there is none of %s; send it again yourself",
        q->name);
    return 1;
}

/* ---- the decision ---- */

/* Work of another protocol is sent again here, for no coordinator leads it. */
static int send_again(struct amp_decider *d, const struct amp_question *q, int64_t now,
                      struct amp_error *err)
{
    struct amp_error e = {0};

    if (!amp_dead_requeue(d->w.store, amp_span_str(q->about.id), 0, d->opt.consumer, now, &e))
        return 0;
    if (e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    d->opt.note("%s: not sent again: %s", q->name, e.what);
    return 0;
}

static int compose_amp(struct amp_decider *d, const struct amp_question *q,
                       const struct amp_operator_answer *a, int64_t now, struct amp_buf *line,
                       struct amp_error *err)
{
    char oid[AMP_OID_MAX] = "";
    int rc = a->word == AMP_DO_ROLLBACK     ? resolve(d, q, a->commit, oid, err)
             : a->word == AMP_DO_REDISPATCH ? find_letter(d, q, err)
                                            : 0;

    if (rc)
        return rc;
    return amp_compose_decision(q->id, amp_json_str(q->message, "task_id"), a->word, a->note, oid,
                                a->op, now, line, err);
}

static int compose_sw4rm(struct amp_decider *d, const struct amp_question *q,
                         const struct amp_operator_answer *a, int64_t now, struct amp_buf *line,
                         struct amp_error *err)
{
    struct amp_answered of = {.id = amp_span_str(q->id),
                              .producer = amp_span_str(amp_json_str(q->message, "producer_id")),
                              .correlation =
                                  amp_span_str(amp_json_str(q->message, "correlation_id"))};
    const struct amp_sw4rm_decided what = {.invocation = amp_question_invocation(q),
                                           .action = a->action,
                                           .rationale = a->note ? a->note : "",
                                           .patch = a->patch,
                                           .op = a->op};

    if (amp_sequence_rise(d->w.store, amp_span_str(d->opt.consumer), now, d->opt.consumer,
                          &of.sequence, err))
        return -1;
    return amp_sw4rm_decision(&of, &what, d->opt.consumer, now, line, err);
}

int amp_decider_decide(struct amp_decider *d, const struct amp_question *q,
                       const struct amp_operator_answer *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    char id[AMP_QUESTION_KEY_MAX + 16];
    int64_t now = amp_now_ms();
    bool late, sw4rm = q->protocol == AMP_PROTO_SW4RM;
    struct amp_error e = {0};

    amp_buf_init(&line, AMP_QUESTION_BYTES);
    int rc =
        sw4rm ? compose_sw4rm(d, q, a, now, &line, err) : compose_amp(d, q, a, now, &line, err);
    if (rc)
        return rc > 0 || err->status == AMP_DATAERR ? 1 : -1;
    snprintf(id, sizeof id, "decision/%s", q->key);
    struct amp_question_update u = {
        .event = AMP_ESC_EV_DECIDE,
        .set = {.decision = amp_span_str(a->action),
                .operator= amp_span_str(a->op),
                .decided_ms = now,
                .note = amp_span_str(a->note)},
        .emit = {amp_span_str(id), {line.data, line.len - 1}, false},
    };
    if (amp_question_step(d, q->key, &u, err))
        return -1;
    if (!sw4rm)
        return q->about.kind == AMP_SUBJECT_MESSAGE && a->word == AMP_DO_REDISPATCH
                   ? send_again(d, q, now, err)
                   : 0;
    /* The decision is the answer: the ledger waits for nothing more. */
    if (amp_settle_ack(d->w.store, amp_span_str(q->id), AMP_STAGE_FULFILLED, "admin",
                       (struct amp_span){NULL, 0}, now, &late, &e) &&
        e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    return 0;
}

/* A pair of jobs and a person: the question with its evidence, the decision, and the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/grow.h"
#include "base/words.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/sender/identity.h"
#include "people/answer/ask/ask.h"
#include "work/git/paths/glob.h"
#include "work/item/judge/private.h"
#include "work/item/scope.h"
#include "json/record.h"

#define ASKER       "scheduler"
#define LINE_MOST   (64u << 10) /* of a submitted message that is passed on */
#define DEADLINE_MS INT64_C(86400000)

/* ---- the two jobs ---- */

void amp_conflict_jobs_init(struct amp_conflict_jobs *p)
{
    *p = (struct amp_conflict_jobs){0};
    amp_buf_init(&p->mem[0], AMP_REC_MAX);
    amp_buf_init(&p->mem[1], AMP_REC_MAX);
    amp_buf_init(&p->overlap, AMP_ASK_LINE_MAX);
}

void amp_conflict_jobs_release(struct amp_conflict_jobs *p)
{
    amp_buf_release(&p->mem[0]);
    amp_buf_release(&p->mem[1]);
    amp_buf_release(&p->overlap);
}

static int overlap_find(struct amp_conflict_jobs *p, struct amp_error *err)
{
    AMP_BUF struct amp_buf a_mem = {0}, b_mem = {0};
    const bool same_type = amp_span_eq(p->running.type, p->waiting.type);
    struct amp_scope a, b;

    amp_buf_init(&a_mem, AMP_REC_MAX);
    amp_buf_init(&b_mem, AMP_REC_MAX);
    amp_buf_reset(&p->overlap);
    return amp_scope_parse(p->running.scope, &a_mem, &a, err) < 0 ||
                   amp_scope_parse(p->waiting.scope, &b_mem, &b, err) < 0 ||
                   amp_scope_common(&a, &b, same_type, amp_glob_overlap, &p->overlap, err) < 0
               ? -1
               : 0;
}

int amp_conflict_jobs_read(struct amp_conflict_jobs *p, struct amp_store *s,
                           struct amp_span running, struct amp_span waiting, struct amp_error *err)
{
    int rc = amp_queue_read(s, running, &p->mem[0], &p->running, err);

    if (rc > 0 && !amp_queue_ended(p->running.state))
        rc = amp_queue_read(s, waiting, &p->mem[1], &p->waiting, err);
    else if (rc > 0)
        rc = 0;
    if (rc <= 0 || amp_queue_ended(p->waiting.state))
        return rc < 0 ? -1 : 0;
    return overlap_find(p, err) < 0 ? -1 : 1;
}

/* The message that asked for the job, from the ledger. */
static int line_put(struct amp_store *s, struct amp_span message, struct amp_jw *w,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_message_rec rec;

    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_message_find(s, message, &mem, &rec, err) < 0)
        return -1;
    if (rec.found && rec.line.n && rec.line.n <= LINE_MOST)
        amp_jw_member_raw(w, "submission", rec.line);
    return 0;
}

static int job_put(struct amp_store *s, const char *key, const struct amp_queue_job *j, bool lines,
                   struct amp_jw *w, struct amp_error *err)
{

    amp_jw_member_open(w, key, '{');
    amp_jw_member_str(w, "id", j->id);
    amp_jw_member_str(w, "type", j->type);
    amp_jw_member_str(w, "protocol", j->protocol);
    amp_jw_member_text(w, "state", amp_queue_fsm.states[j->state].name);
    amp_jw_member_int(w, "priority", j->priority);
    amp_jw_some_str(w, "message", j->message);
    amp_jw_some_str(w, "from", j->from);
    amp_jw_some_str(w, "by", j->by);
    amp_jw_some_str(w, "task", j->task);
    amp_jw_some_str(w, "worker", j->worker);
    amp_jw_member_raw(w, "scope", j->scope.n ? j->scope : AMP_SPAN("{}"));
    amp_rec_time(w, "submitted", j->submitted_ms);
    if (lines && line_put(s, j->message, w, err) < 0)
        return -1;
    amp_jw_close(w, '}');
    return 0;
}

int amp_conflict_jobs_put(struct amp_conflict_jobs *p, struct amp_store *s, bool lines,
                          struct amp_jw *w, struct amp_error *err)
{
    if (job_put(s, "running", &p->running, lines, w, err) < 0 ||
        job_put(s, "waiting", &p->waiting, lines, w, err) < 0)
        return -1;
    amp_jw_member_raw(w, "overlap", amp_buf_span(&p->overlap));
    return 0;
}

void amp_conflict_number(struct amp_jw *w, const char *key, int64_t ppm)
{
    char text[32];

    snprintf(text, sizeof text, "%.6g", (double)ppm / AMP_CONFLICT_PPM);
    amp_jw_member_raw(w, key, amp_span_str(text));
}

/* ---- steps ---- */

int amp_conflict_try(const struct amp_conflict_desk *d, struct amp_conflict_step *st,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};

    amp_buf_init(&mem, AMP_REC_MAX);
    st->actor = d->actor;
    st->now_ms = d->now_ms;
    if (amp_conflict_step(d->store, st, &mem, NULL, err) == 0)
        return 1;
    return amp_code_is(err->code, illegal_transition) ? 0 : -1;
}

/* ---- the question ---- */

/* The answers, with what they do. */
#define ANSWERS(X)                                                                                 \
    X(PARALLEL, "parallel", "both run side by side")                                               \
    X(RUNNING_FIRST, "running_first", "the waiting job starts after the end of the running one")   \
    X(WAITING_FIRST, "waiting_first",                                                              \
      "the running job stops at its next safe point, and goes on "                                 \
      "after the end of the waiting one")                                                          \
    X(CANCEL_RUNNING, "cancel_running", "the running job is cancelled")                            \
    X(CANCEL_WAITING, "cancel_waiting", "the waiting job is cancelled")
enum answer {
#define X(id, word, doc) ANSWER_##id,
    ANSWERS(X)
#undef X
};
AMP_WORDS(answer_words, ANSWERS);
static const char *const answer_docs[] = {
#define X(id, word, doc) doc,
    ANSWERS(X)
#undef X
};

static int context_make(const struct amp_conflict_desk *d, struct amp_conflict_jobs *p,
                        const struct amp_conflict *c, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;

    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    if (amp_conflict_jobs_put(p, d->store, false, &w, err) < 0)
        return -1;
    if (c->judged)
        amp_conflict_number(&w, "confidence_score", c->confidence);
    amp_jw_some_str(&w, "judgement", c->reason);
    amp_jw_some_str(&w, "unavailable", c->code);
    amp_jw_member_open(&w, "answers", '{');
    for (int i = 0; answer_words[i]; i++)
        amp_jw_member_text(&w, answer_words[i], answer_docs[i]);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

static int asking_make(const struct amp_conflict_desk *d, struct amp_conflict_jobs *p,
                       const struct amp_conflict *c, struct amp_asking *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf context = {0};
    struct amp_identities *ids = NULL;
    char task[256] = "";

    amp_buf_init(&context, AMP_ASK_LINE_MAX);
    amp_span_copy(p->waiting.task, task, sizeof task);
    if (context_make(d, p, c, &context, err) < 0 ||
        (d->identify && d->identify(d->identify_ctx, ASKER, &ids, err) < 0))
        return -1;
    const struct amp_ask ask = {.from = ASKER,
                                .reason = "CONFLICT",
                                .task = task,
                                .context = amp_buf_span(&context),
                                .proposed = answer_words,
                                .until_ms = d->now_ms + DEADLINE_MS,
                                .ids = ids};
    int rc = amp_asking_make(a, &ask, err);
    amp_identities_close(ids);
    return rc;
}

/* c: the pair as it will be. step NULL: the pair is ASKED, and its question is completed. */
static int question_make(const struct amp_conflict_desk *d, struct amp_conflict_jobs *p,
                         const struct amp_conflict *c, struct amp_conflict_step *st,
                         struct amp_error *err)
{
    struct amp_conflict set = *c;
    struct amp_asking a;
    int done = 1;
    int rc = amp_asking_open(&a, d->store, d->actor, d->stop, d->note, err);

    if (!st) /* the ids are the same in each try */
        amp_span_copy(c->message, a.id, sizeof a.id);
    memcpy(a.invocation, a.id, sizeof a.id);
    if (rc == 0)
        rc = asking_make(d, p, c, &a, err);
    if (rc == 0 && st) {
        set.question = amp_span_str(a.key);
        set.message = amp_span_str(a.id);
        st->set = &set;
        done = amp_conflict_try(d, st, err);
    }
    if (rc == 0 && done > 0)
        rc = amp_asking_commit(&a, err);
    /* The record is the question; the line is for those who have no access to it. */
    if (rc == 0 && done > 0 && d->say)
        rc = d->say(d->say_ctx, amp_buf_span(&a.line), err);
    if (rc == 0 && done > 0)
        d->note("conflict: %.*s waits for %.*s: a person is asked (%s)",
                AMP_CLIP(p->waiting.id, 40), AMP_CLIP(p->running.id, 40), a.key);
    amp_asking_close(&a);
    return rc < 0 || done < 0 ? -1 : done;
}

int amp_conflict_ask(const struct amp_conflict_desk *d, struct amp_conflict_jobs *p, uint8_t event,
                     const struct amp_conflict *set, struct amp_error *err)
{
    struct amp_conflict now = *set;
    struct amp_conflict_step st = {
        .x = p->running.id, .y = p->waiting.id, .event = event, .worker = d->actor};

    now.judged |= event == AMP_CONFLICT_EV_UNSURE;
    now.running = p->running.id;
    now.waiting = p->waiting.id;
    now.overlap = amp_buf_span(&p->overlap);
    return question_make(d, p, &now, &st, err);
}

int amp_conflict_unask(const struct amp_conflict_desk *d, struct amp_span question, const char *why,
                       struct amp_error *err)
{
    struct amp_asking a;
    int rc = amp_asking_open(&a, d->store, d->actor, d->stop, d->note, err);

    amp_asking_name(&a, question);
    if (rc == 0)
        rc = amp_asking_end(&a, AMP_CODE(withdrawn), why, err);
    amp_asking_close(&a);
    return rc < 0 ? -1 : 0;
}

/* ---- the decision ---- */

/* QUEUE_TASKS is the word of an example of SW4RM. Everything that allows nothing serialises. */
static int answer_find(struct amp_span word)
{
    int found = amp_word_find(answer_words, word);
    return found >= 0                         ? found
           : amp_span_is(word, "approve")     ? ANSWER_PARALLEL
           : amp_span_is(word, "QUEUE_TASKS") ? ANSWER_RUNNING_FIRST
                                              : -1;
}

static int job_step(const struct amp_conflict_desk *d, struct amp_span id, uint8_t event,
                    const char *by, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    const struct amp_queue_step st = {.id = id,
                                      .event = event,
                                      .by = by,
                                      .why = "decided about a conflict",
                                      .actor = d->actor,
                                      .now_ms = d->now_ms};

    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_queue_step(d->store, &st, &mem, NULL, err) == 0)
        return 0;
    return err->status == AMP_NO || amp_code_is(err->code, illegal_transition) ? 0 : -1;
}

/* The steps of the jobs come first: after a crash between them all are made again. */
static int decision_carry(const struct amp_conflict_desk *d, const struct amp_conflict_jobs *p,
                          const struct amp_question_rec *r, struct amp_error *err)
{
    char person[256] = "", first[AMP_QUEUE_ID_MAX] = "", other[AMP_QUEUE_ID_MAX] = "";
    struct amp_span who = r->policy.n ? r->policy : r->operator;
    struct amp_conflict_step st = {
        .x = p->running.id, .y = p->waiting.id, .event = AMP_CONFLICT_EV_ORDER};
    const int answer = answer_find(r->decision);
    int rc = 0;

    amp_span_copy(who, person, sizeof person);
    switch (answer) {
    case ANSWER_PARALLEL:
        st.event = AMP_CONFLICT_EV_ALLOW;
        break;
    case ANSWER_RUNNING_FIRST:
        amp_span_copy(p->running.id, first, sizeof first);
        break;
    case ANSWER_WAITING_FIRST:
        amp_span_copy(p->waiting.id, first, sizeof first);
        amp_span_copy(p->waiting.id, other, sizeof other);
        if (amp_queue_held(p->running.state))
            rc = job_step(d, p->running.id, AMP_QUEUE_EV_PREEMPT, other, err);
        break;
    case ANSWER_CANCEL_RUNNING:
        rc = job_step(d, p->running.id, AMP_QUEUE_EV_CANCEL, person, err);
        break;
    case ANSWER_CANCEL_WAITING:
        rc = job_step(d, p->waiting.id, AMP_QUEUE_EV_CANCEL, person, err);
        break;
    default:
        break;
    }
    const struct amp_conflict set = {.decision = r->decision,
                                     .person = who,
                                     .by = r->policy.n ? AMP_SPAN("policy") : r->method,
                                     .why = r->note,
                                     .first = amp_span_str(first)};
    st.set = &set;
    if (rc < 0 || (rc = amp_conflict_try(d, &st, err)) < 0)
        return -1;
    if (rc > 0)
        d->note("conflict: %.*s and %.*s: %s: %.*s", AMP_CLIP(p->running.id, 40),
                AMP_CLIP(p->waiting.id, 40), person, AMP_CLIP(r->decision, 40));
    return rc;
}

static int question_tend(const struct amp_conflict_desk *d, const struct amp_conflict *c,
                         struct amp_conflict_jobs *p, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_asking a = {.store = d->store};
    struct amp_question_rec r;
    struct amp_conflict_step st = {.x = c->a, .y = c->b, .event = AMP_CONFLICT_EV_ORDER};

    amp_buf_init(&mem, AMP_REC_MAX);
    amp_span_copy(c->question, a.key, sizeof a.key);
    switch (amp_asking_look(&a, &mem, &r, err)) {
    case AMP_ASKING_OPEN:
        return 0;
    case AMP_ASKING_DECIDED:
        return decision_carry(d, p, &r, err);
    case AMP_ASKING_ENDED: /* nobody decides it any more */
        return amp_conflict_try(d, &st, err);
    case AMP_ASKING_FAILED:
        break;
    }
    /* The process that asks was killed before there was a question. */
    return amp_code_is(err->code, unknown_question) ? question_make(d, p, c, NULL, err) : -1;
}

/* ---- a pair ---- */

static int pair_end(const struct amp_conflict_desk *d, const struct amp_conflict *c,
                    struct amp_error *err)
{
    struct amp_conflict_step st = {.x = c->a, .y = c->b, .event = AMP_CONFLICT_EV_END};

    if (c->question.n && amp_conflict_unask(d, c->question, "one of the jobs has ended", err) < 0)
        return -1;
    return amp_conflict_try(d, &st, err);
}

int amp_conflict_tend(const struct amp_conflict_desk *d, struct amp_span x, struct amp_span y,
                      struct amp_error *err)
{
    AMP_CLEANUP(amp_conflict_jobs_release) struct amp_conflict_jobs p = {0};
    AMP_BUF struct amp_buf mem = {0};
    const struct amp_conflict lost = {.code = AMP_CODE_SPAN(worker_lost),
                                      .reason = AMP_SPAN("its worker did not answer")};
    struct amp_conflict c;

    amp_conflict_jobs_init(&p);
    amp_buf_init(&mem, AMP_REC_MAX);
    int rc = amp_conflict_read(d->store, x, y, &mem, &c, err);
    if (rc <= 0)
        return rc;
    bool known = c.running.n && c.waiting.n;
    rc =
        amp_conflict_jobs_read(&p, d->store, known ? c.running : c.a, known ? c.waiting : c.b, err);
    if (rc <= 0)
        return rc < 0 ? -1 : pair_end(d, &c, err);
    struct amp_conflict_step st = {.x = c.a, .y = c.b, .set = &lost};
    bool late = c.until_ms > 0 && c.until_ms <= d->now_ms;
    switch (c.state) {
    case AMP_CONFLICT_ASKED:
        return question_tend(d, &c, &p, err);
    case AMP_CONFLICT_CHECKING:
        st.event = AMP_CONFLICT_EV_UNAVAILABLE;
        return late ? amp_conflict_try(d, &st, err) : 0;
    case AMP_CONFLICT_PARALLEL:
        st.event = AMP_CONFLICT_EV_EXPIRE;
        if (!late || (rc = amp_conflict_try(d, &st, err)) <= 0)
            return late ? rc : 0;
        d->note("conflict: %.*s and %.*s: the permission to run side by side has expired",
                AMP_CLIP(c.a, 40), AMP_CLIP(c.b, 40));
        return 1;
    default:
        return 0;
    }
}

struct pairs {
    char (*v)[2][AMP_QUEUE_ID_MAX];
    size_t n, cap;
};

static int pair_note(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_conflict *c = rec;
    struct pairs *p = ctx;

    if (amp_grow(&p->v, &p->cap, p->n, sizeof *p->v, err) < 0)
        return -1;
    amp_span_copy(c->a, p->v[p->n][0], AMP_QUEUE_ID_MAX);
    amp_span_copy(c->b, p->v[p->n++][1], AMP_QUEUE_ID_MAX);
    return 0;
}

__attribute__((format(printf, 1, 2))) static void note_quiet(const char *fmt, ...)
{
    (void)fmt;
}

int amp_conflicts_tend(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                       struct amp_error *err)
{
    const struct amp_conflict_desk d = {
        .store = s, .actor = actor, .now_ms = now_ms, .note = note_quiet};
    struct pairs p = {0};
    int rc = amp_subject_each(&amp_conflict_subject, s, NULL, pair_note, &p, err);

    for (size_t i = 0; i < p.n && rc >= 0; i++) {
        rc = amp_conflict_tend(&d, amp_span_str(p.v[i][0]), amp_span_str(p.v[i][1]), err);
        *done += rc > 0;
    }
    free(p.v);
    return rc < 0 ? -1 : 0;
}

/* Rows of questions, and questions as they are recorded. */
#include "questions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/delivery/record/record.h"
#include "read.h"

static const struct {
    uint8_t state;
    const char *name;
} waiting[] = {{AMP_ESC_OPEN, "OPEN"}, {AMP_ESC_ASKED, "ASKED"}, {AMP_ESC_DEFERRED, "DEFERRED"}};
#define N_WAITING (sizeof waiting / sizeof *waiting)

void top_question_release(struct top_question *q)
{
    amp_question_release(&q->q);
    amp_buf_release(&q->mem);
}

/* The message that asks; an empty object if it is not recorded any more. */
static json_t *message_load(struct amp_store *s, const char *id, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_message_rec m;
    if (amp_message_find(s, amp_span_str(id), &mem, &m, err) < 0)
        return NULL;
    json_t *j = m.found ? amp_question_load(m.line, err) : json_object();
    if (!j && !m.found)
        amp_fail_memory(err);
    return j;
}

static void question_fill(const struct amp_question_rec *r, const char *key, struct amp_question *q)
{
    int fallback = amp_fallback_find(r->fallback);
    q->protocol = amp_question_protocol(r);
    snprintf(q->key, sizeof q->key, "%s", key);
    snprintf(q->id, sizeof q->id, "%s", amp_question_key_id(q->protocol, key));
    q->about = r->about;
    if (!*q->about.task && !*q->about.id)
        amp_span_copy(r->task, q->about.task, sizeof q->about.task);
    snprintf(q->name, sizeof q->name, "%s",
             *q->about.task ? q->about.task
             : *q->about.id ? q->about.id
                            : q->id);
    q->arrived_ms = r->arrived_ms;
    q->deadline_ms = r->deadline_ms;
    q->until_ms = r->until_ms;
    amp_span_copy(r->refused, q->refused, sizeof q->refused);
    amp_span_copy(r->severity, q->severity, sizeof q->severity);
    amp_span_copy(r->reason, q->reason, sizeof q->reason);
    amp_span_copy(r->risk, q->risk, sizeof q->risk);
    amp_span_copy(r->why, q->why, sizeof q->why);
    q->fallback = fallback < 0 ? AMP_FALLBACK_NONE : (enum amp_fallback)fallback;
    q->extensions = r->extensions;
}

int top_question_load(struct amp_store *s, const char *key, struct top_question *out,
                      struct amp_error *err)
{
    struct top_question t = {.mem = {.max = AMP_RECORD_MAX}};
    struct amp_store_rec rec;
    size_t i = 0;

    if (amp_store_get(s, AMP_KEY_NAMED(AMP_ESCALATION_KIND, amp_span_str(key)), &rec, err) < 0)
        return -1;
    while (rec.found && i < N_WAITING && !amp_span_is(rec.state, waiting[i].name))
        i++;
    if (!rec.found || i == N_WAITING)
        return 0;
    t.q.state = waiting[i].state;
    if (amp_question_rec_read(rec.json, &t.mem, &t.rec, err) < 0) {
        top_question_release(&t);
        return -1;
    }
    question_fill(&t.rec, key, &t.q);
    if (!(t.q.message = message_load(s, t.q.id, err))) {
        top_question_release(&t);
        return -1;
    }
    *out = t;
    return 1;
}

const json_t *top_member_at(const json_t *j, const char *path)
{
    char key[64];
    while (j && *path) {
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)(n < 63 ? n : 63), path);
        j = json_object_get(j, key);
        path += n + (path[n] == '.');
    }
    return j;
}

/* ---- rows ---- */

/* The longest text among the fields of the question is what is asked. */
static const char *question_text(const struct amp_question *q)
{
    const char *best = "";
    const struct amp_question_field *f = amp_question_terms(q)->fields;
    for (; f && f->label; f++) {
        const char *text =
            *f->path && !f->list ? json_string_value(top_member_at(q->message, f->path)) : NULL;
        if (text && strlen(text) > strlen(best))
            best = text;
    }
    return best;
}

static int question_put(struct top_source *src, const struct top_question *t, struct amp_error *err)
{
    const struct amp_question *q = &t->q;
    struct top_draft d;
    char votes[32] = "";
    bool critical = strcmp(q->severity, "critical") == 0;

    if (t->rec.need > 1)
        snprintf(votes, sizeof votes, "%u/%lld", t->rec.n_votes, (long long)t->rec.need);
    top_draft_begin(&d, amp_span_str(q->key), amp_span_str(q->about.task));
    top_draft_text(&d, 0, TOP_STRONG, amp_span_str(q->name));
    top_draft_text(&d, 1, TOP_WARN,
                   t->rec.why.n    ? t->rec.why
                   : t->rec.type.n ? t->rec.type
                                   : t->rec.reason);
    top_draft_text(&d, 2, critical ? TOP_BAD : TOP_PLAIN, amp_span_str(q->severity));
    top_draft_number(&d, 3, TOP_DIM, TOP_AGE, q->arrived_ms, 0);
    top_draft_number(&d, 4, TOP_WARN, TOP_UNTIL, q->until_ms ? q->until_ms : q->deadline_ms, 0);
    top_draft_text(&d, 5, TOP_PLAIN, amp_span_str(votes));
    top_draft_text(&d, 6, TOP_PLAIN, amp_span_str(question_text(q)));
    d.rank = q->state == AMP_ESC_DEFERRED ? 0 : critical ? 2 : 1;
    return top_draft_end(&d, &src->m->list[TOP_QUESTIONS], !src->loaded, err);
}

static int record_put(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    char key[AMP_QUESTION_KEY_MAX];
    (void)rec;
    return amp_span_copy(id, key, sizeof key) ? top_questions_read(ctx, key, err) : 0;
}

int top_questions_read(struct top_source *src, const char *key, struct amp_error *err)
{
    TOP_QUESTION t = {.mem = {0}};
    int rc = 0;
    for (size_t i = 0; !key && rc == 0 && i < N_WAITING; i++)
        rc = amp_store_each(src->store, AMP_ESCALATION_KIND, waiting[i].name, record_put, src, err);
    if (!key)
        return rc;
    if ((rc = top_question_load(src->store, key, &t, err)) < 0)
        return -1;
    if (rc == 1)
        return question_put(src, &t, err);
    top_list_remove(&src->m->list[TOP_QUESTIONS], key);
    return 0;
}

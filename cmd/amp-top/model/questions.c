/* Rows of questions, and questions as they are recorded. */
#include "questions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/delivery/record/record.h"
#include "read.h"

void top_question_release(struct top_question *q)
{
    amp_question_release(&q->q);
    amp_buf_release(&q->mem);
}

int top_question_load(struct amp_store *s, const char *key, struct top_question *out,
                      struct amp_error *err)
{
    *out = (struct top_question){.mem = {.max = AMP_RECORD_MAX}};
    int found = amp_question_peek(s, key, &out->mem, &out->rec, &out->q, err);
    if (found > 0 && out->q.state <= AMP_ESC_DEFERRED)
        return 1;
    top_question_release(out);
    *out = (struct top_question){0};
    return found < 0 ? -1 : 0;
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
    top_draft_text(&d, 0, TOP_STRONG,
                   amp_span_str(*q->about.task ? q->about.task
                                : *q->about.id ? q->about.id
                                               : q->id));
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
    for (uint8_t i = AMP_ESC_OPEN; !key && rc == 0 && i <= AMP_ESC_DEFERRED; i++)
        rc = amp_store_each(src->store, AMP_ESCALATION_KIND, amp_escalation_fsm.states[i].name,
                            record_put, src, err);
    if (!key)
        return rc;
    if ((rc = top_question_load(src->store, key, &t, err)) < 0)
        return -1;
    if (rc == 1)
        return question_put(src, &t, err);
    top_list_remove(&src->m->list[TOP_QUESTIONS], key);
    return 0;
}

/* The question that a person names. */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "people/question/question.h"

#define SHOWN_MAX 3 /* candidates in the error about an ambiguous name */

/* Only the records are read, so that many open questions cost little. */
struct search {
    struct amp_span name;
    char key[AMP_QUESTION_KEY_MAX]; /* of the last candidate */
    char shown[SHOWN_MAX][128];
    size_t n_exact, n;
};

static int search_add(void *ctx, struct amp_span key, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct search *s = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_question_rec r;
    char text[AMP_QUESTION_KEY_MAX];
    bool exact = false, begins = false;

    if (amp_question_rec_read(rec->json, &mem, &r, err) < 0)
        return -1;
    amp_span_copy(key, text, sizeof text);
    const char *id = amp_question_key_id(amp_question_protocol(&r), text);
    const struct amp_span names[] = {key, amp_span_str(id), r.invocation, r.task};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        exact |= amp_span_eq(s->name, names[i]);
        begins |= names[i].n >= s->name.n && memcmp(names[i].p, s->name.p, s->name.n) == 0;
    }
    if (!begins || (s->n_exact && !exact))
        return 0;
    if (exact && !s->n_exact) /* better than the prefixes before it */
        s->n = 0;
    s->n_exact += exact;
    if (s->n < SHOWN_MAX)
        snprintf(s->shown[s->n], sizeof s->shown[0], "%s", id);
    s->n++;
    memcpy(s->key, text, sizeof text);
    return 0;
}

int amp_question_named(struct amp_hitl *h, const char *name, struct amp_question *q,
                       struct amp_error *err)
{
    struct search s = {.name = amp_span_str(name)};

    *q = (struct amp_question){0};
    for (uint8_t i = AMP_ESC_OPEN; i <= AMP_ESC_DEFERRED; i++)
        if (amp_store_each(h->store, AMP_ESCALATION_KIND, amp_escalation_fsm.states[i].name,
                           search_add, &s, err) < 0)
            return -1;
    /* The name of a closed question is not a prefix of another one: an answer that comes second
     * must not decide something else. */
    if (!s.n_exact && amp_question_closed(h->store, s.name, err) < 0)
        return -1;
    if (s.n > 1)
        return amp_fail(err, AMP_NO, ambiguous_question,
                        "\"%.80s\" names %zu questions: %s, %s%s%s", name, s.n, s.shown[0],
                        s.shown[1], s.n > 2 ? ", " : "", s.shown[2]);
    if (s.n == 1) {
        int open = amp_question_load_key(h, s.key, q, err);
        if (open)
            return open < 0 ? -1 : 0;
        return amp_fail(err, AMP_NO, ended, "its subject has ended");
    }
    return amp_fail(err, AMP_NO, unknown_question, "no open question has the name \"%.200s\"",
                    name);
}

/* Sequence numbers. Each reservation is one commit. */
#include "message/delivery/record/sequence.h"
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/record/record.h"
#include "message/protocol/answers.h"
#include "message/record/subject.h"

struct taking {
    uint32_t n;
    int64_t least;
    int64_t first;
    amp_sequence_compose compose; /* NULL: no line */
    void *ctx;
    struct amp_store_emit emit;
};

struct sequence {
    int64_t last;
};
static const struct amp_rec_field fields[] = {AMP_REC_EVER(INT, struct sequence, "last", last)};
AMP_REC_TABLE(sequence_rec, "the record of a sequence", struct sequence, fields);

static int numbers_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    struct taking *const *with = t->step->with;
    struct taking *w = *with;
    struct sequence *r = rec;

    if (r->last > INT64_MAX - w->n)
        return amp_fail(err, AMP_NO, sequence_exhausted, "no sequence numbers are left");
    w->first = r->last < w->least ? w->least : r->last + 1;
    r->last = w->first + w->n - 1;
    t->change->event = "assign";
    return w->compose ? w->compose(w->ctx, w->first, &w->emit, err) : 0;
}

static const char *const states[] = {"OPEN", NULL};
static const struct amp_subject sequences = {
    .kind = "sequence", .table = &sequence_rec, .states = states, .carry = numbers_carry};

static int numbers_take(struct amp_store *s, struct amp_key key, struct taking *w,
                        const char *actor, int64_t *first, struct amp_error *err)
{
    const struct amp_subject_step step = {
        .key = key, .with = &w, .actor = actor, .emits = &w->emit, .n_emits = w->compose != NULL};
    int rc = amp_subject_step(&sequences, s, &step, NULL, NULL, NULL, err);

    if (rc == 0)
        *first = w->first;
    return rc;
}

int amp_sequence_next(struct amp_store *s, struct amp_span source, uint32_t n, const char *actor,
                      int64_t *first, struct amp_error *err)
{
    struct taking w = {.n = n};
    return numbers_take(s, AMP_KEY(sequences.kind, source), &w, actor, first, err);
}

int amp_sequence_emit(struct amp_store *s, struct amp_span source, const char *actor,
                      amp_sequence_compose compose, void *ctx, struct amp_error *err)
{
    struct taking w = {.n = 1, .compose = compose, .ctx = ctx};
    int64_t number;
    return numbers_take(s, AMP_KEY(sequences.kind, source), &w, actor, &number, err);
}

int amp_sequence_rise(struct amp_store *s, struct amp_span producer, uint32_t n, int64_t now_ms,
                      const char *actor, int64_t *first, struct amp_error *err)
{
    struct taking w = {.n = n, .least = amp_id_number(now_ms)};
    return numbers_take(s, AMP_KEY(sequences.kind, AMP_SPAN("sw4rm"), producer), &w, actor, first,
                        err);
}

int amp_sequence_answer(struct amp_store *s, const struct amp_view *of, const char *actor,
                        struct amp_answer *a, struct amp_error *err)
{
    const struct amp_answer_terms *t = amp_answers_of(of->protocol);
    if (!s || t->numbering == AMP_NUMBERED_NOT || (t->answers && !t->answers(of)))
        return 0;
    if (t->numbering == AMP_NUMBERED_BY_PRODUCER)
        return amp_sequence_rise(s, amp_span_str(a->by), 1, a->now_ms, actor, &a->sequence, err);
    return amp_sequence_next(s, amp_span_str(a->node ? a->node : a->by), 1, actor, &a->sequence,
                             err);
}

/* Sequence numbers. Each reservation is one commit. */
#include "message/record/sequence.h"
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/record/record.h"

#define KIND "sequence"

struct taking {
    uint32_t n;
    int64_t least;
    const char *actor;
    int64_t first;
    struct amp_buf json;
    amp_sequence_compose compose; /* NULL: no line */
    void *ctx;
    struct amp_store_emit emit;
};

struct sequence {
    int64_t last;
};
static const struct amp_rec_field fields[] = {AMP_REC_EVER(INT, struct sequence, "last", last)};
AMP_REC_TABLE(sequence_rec, "the record of a sequence", struct sequence, fields);

static int take_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                   struct amp_error *err)
{
    struct taking *w = ctx;
    struct sequence r = {0};
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (now->found && amp_rec_parse(&sequence_rec, now->json, &mem, &r, err) < 0)
        return -1;
    if (r.last > INT64_MAX - w->n)
        return amp_fail(err, AMP_NO, sequence_exhausted, "no sequence numbers are left");
    w->first = r.last < w->least ? w->least : r.last + 1;
    r.last = w->first + w->n - 1;
    amp_buf_reset(&w->json);
    if (amp_rec_write(&sequence_rec, &r, &w->json, err) < 0)
        return -1;
    change->event = "assign";
    change->to = "OPEN";
    change->json = amp_buf_span(&w->json);
    change->actor = w->actor;
    if (!w->compose)
        return 0;
    change->emits = &w->emit;
    change->n_emits = 1;
    return w->compose(w->ctx, w->first, &w->emit, err);
}

static int numbers_take(struct amp_store *s, struct amp_key key, struct taking *w, int64_t *first,
                        struct amp_error *err)
{
    amp_buf_init(&w->json, AMP_RECORD_MAX);
    int rc = amp_store_update(s, key, NULL, take_fn, w, NULL, err);
    amp_buf_release(&w->json);
    if (rc == 0)
        *first = w->first;
    return rc;
}

int amp_sequence_next(struct amp_store *s, struct amp_span source, uint32_t n, const char *actor,
                      int64_t *first, struct amp_error *err)
{
    struct taking w = {.n = n, .actor = actor};
    return numbers_take(s, AMP_KEY(KIND, source), &w, first, err);
}

int amp_sequence_emit(struct amp_store *s, struct amp_span source, const char *actor,
                      amp_sequence_compose compose, void *ctx, struct amp_error *err)
{
    struct taking w = {.n = 1, .actor = actor, .compose = compose, .ctx = ctx};
    int64_t number;
    return numbers_take(s, AMP_KEY(KIND, source), &w, &number, err);
}

int amp_sequence_rise(struct amp_store *s, struct amp_span producer, uint32_t n, int64_t now_ms,
                      const char *actor, int64_t *first, struct amp_error *err)
{
    struct taking w = {.n = n, .least = amp_id_number(now_ms), .actor = actor};
    return numbers_take(s, AMP_KEY(KIND, AMP_SPAN("sw4rm"), producer), &w, first, err);
}

int amp_sequence_answer(struct amp_store *s, const struct amp_view *of, const char *actor,
                        struct amp_answer *a, struct amp_error *err)
{
    const struct amp_terms *t = amp_terms_of(of->protocol);
    if (!s || t->numbering == AMP_NUMBERED_NOT || (t->answers && !t->answers(of)))
        return 0;
    if (t->numbering == AMP_NUMBERED_BY_PRODUCER)
        return amp_sequence_rise(s, amp_span_str(a->by), 1, a->now_ms, actor, &a->sequence, err);
    return amp_sequence_next(s, amp_span_str(a->node ? a->node : a->by), 1, actor, &a->sequence,
                             err);
}

/* Records which channel was sent which question. */
#include "flow/decide/answer/told.h"

#include <sodium.h>

#include "json/record.h"

#define RECORD_MAX (64u << 10)
#define KIND       "told"
#define STATE      "TOLD"

static const struct amp_rec_field told_fields[] = {
    AMP_REC_EVER(TEXT, struct amp_told, "question", question),
    AMP_REC_EVER(TEXT, struct amp_told, "channel", channel),
    AMP_REC_EVER(TEXT, struct amp_told, "title", title),
    AMP_REC_EVER(INT, struct amp_told, "at", at_ms),
    AMP_REC(TEXT, struct amp_told, "shown", shown),
};
AMP_REC_TABLE(told_rec, "the record of a channel", struct amp_told, told_fields);

struct change {
    const struct amp_told *told;
    bool remove;
    const char *actor;
    struct amp_buf json;
};

static int change_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct change *c = ctx;

    if (c->remove && !now->found)
        return 1;
    amp_buf_reset(&c->json);
    if (!c->remove && amp_rec_write(&told_rec, c->told, &c->json, err) < 0)
        return -1;
    change->event = c->remove ? "SETTLE" : "TELL";
    change->to = c->remove ? "GONE" : STATE;
    change->remove = c->remove;
    change->json = amp_buf_span(&c->json);
    change->actor = c->actor;
    return 0;
}

int amp_told_write(struct amp_store *s, const struct amp_told *t, bool told, const char *actor,
                   struct amp_error *err)
{
    struct change c = {.told = t, .remove = !told, .actor = actor};

    amp_buf_init(&c.json, RECORD_MAX);
    int rc =
        amp_store_update(s, AMP_KEY(KIND, t->question, t->channel), NULL, change_fn, &c, NULL, err);
    amp_buf_release(&c.json);
    return rc;
}

struct walk {
    amp_told_fn fn;
    void *ctx;
};

static int on_record(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                     struct amp_error *err)
{
    const struct walk *w = ctx;
    struct amp_told t;
    AMP_BUF struct amp_buf mem = {0};

    (void)id;
    amp_buf_init(&mem, RECORD_MAX);
    return amp_rec_parse(&told_rec, rec->json, &mem, &t, err) < 0 ? -1 : w->fn(w->ctx, &t, err);
}

int amp_told_each(struct amp_store *s, amp_told_fn fn, void *ctx, struct amp_error *err)
{
    struct walk w = {fn, ctx};

    return amp_store_each(s, KIND, NULL, on_record, &w, err);
}

void amp_shown_digest(struct amp_span text, char out[AMP_SHOWN_MAX])
{
    unsigned char sum[32];

    crypto_generichash(sum, sizeof sum, (const unsigned char *)(text.n ? text.p : ""), text.n, NULL,
                       0);
    sodium_bin2hex(out, AMP_SHOWN_MAX, sum, sizeof sum);
}

int amp_told_shown(struct amp_store *s, const char *question, const char *channel,
                   char out[AMP_SHOWN_MAX], struct amp_error *err)
{
    struct amp_store_rec rec;
    struct amp_told t;
    AMP_BUF struct amp_buf mem = {0};

    out[0] = '\0';
    if (amp_store_get(s, AMP_KEY(KIND, amp_span_str(question), amp_span_str(channel)), &rec, err) <
        0)
        return -1;
    if (!rec.found)
        return 0;
    amp_buf_init(&mem, RECORD_MAX);
    if (amp_rec_parse(&told_rec, rec.json, &mem, &t, err) < 0)
        return -1;
    if (!amp_span_copy(t.shown, out, AMP_SHOWN_MAX))
        out[0] = '\0';
    return 0;
}

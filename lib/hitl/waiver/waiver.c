/* The records of overrides. */
#include "hitl/waiver/waiver.h"

#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "json/record.h"

#define RECORD_MAX  ((size_t)64 << 10)
#define FORGET_MOST 256 /* records that one sweep removes */

static const char *const names[] = {
#define X(id, word, doc) [AMP_WAIVER_##id] = word,
    AMP_WAIVERS(X)
#undef X
};

const char *amp_waiver_name(int of)
{
    return names[of];
}

static int name_find(struct amp_span word)
{
    int i = AMP_WAIVER_COUNT - 1;
    while (i >= 0 && !amp_span_is(word, names[i]))
        i--;
    return i;
}

static const struct amp_rec_words of_words = {name_find, amp_waiver_name};

#define EVER(as, key_, member) AMP_REC_EVER(as, struct amp_waiver, key_, member)
#define SOME(as, key_, member) AMP_REC(as, struct amp_waiver, key_, member)
static const struct amp_rec_field fields[] = {
    AMP_REC_ENUM(struct amp_waiver, "override", of, &of_words),
    EVER(TEXT, "id", id),
    EVER(TEXT, "job", job),
    SOME(TEXT, "other", other),
    EVER(TEXT, "operator", person),
    EVER(TEXT, "by", by),
    SOME(TEXT, "key", key),
    EVER(TEXT, "reason", why),
    EVER(TEXT, "changed", changed),
    EVER(TIME, "since", since_ms),
    SOME(TIME, "until", until_ms),
    SOME(TEXT, "alg", alg),
    SOME(TEXT, "signature", signature),
};
AMP_REC_TABLE(waiver_rec, "an override", struct amp_waiver, fields);

int amp_waiver_text(const struct amp_waiver *o, struct amp_buf *out, struct amp_error *err)
{
    char since[AMP_TIME_MAX], until[AMP_TIME_MAX] = "";
    struct amp_jw w;

    amp_time_format(o->since_ms, since);
    if (o->until_ms)
        amp_time_format(o->until_ms, until);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "override", amp_waiver_name((int)o->of));
    amp_jw_member_str(&w, "id", o->id);
    amp_jw_member_str(&w, "job", o->job);
    amp_jw_member_str(&w, "other", o->other);
    amp_jw_member_str(&w, "operator", o->person);
    amp_jw_member_str(&w, "by", o->by);
    amp_jw_member_str(&w, "reason", o->why);
    amp_jw_member_str(&w, "changed", o->changed);
    amp_jw_member_text(&w, "since", since);
    amp_jw_member_text(&w, "until", until);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int amp_waiver_parse(struct amp_span json, struct amp_buf *mem, struct amp_waiver *out,
                     struct amp_error *err)
{
    return amp_rec_parse(&waiver_rec, json, mem, out, err);
}

/* ---- recording ---- */

struct change {
    const struct amp_waiver *o;
    const char *actor;
    int64_t keep_ms;
    struct amp_buf json;
};

static int on_record(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                     struct amp_error *err)
{
    struct change *u = ctx;
    const struct amp_waiver *o = u->o;

    if (now->found)
        return amp_fail(err, AMP_NO, "already_decided", "the override %.*s was given before",
                        AMP_CLIP(o->id, 40));
    amp_buf_reset(&u->json);
    int rc = amp_rec_write(&waiver_rec, o, &u->json, err);
    c->event = "override";
    c->to = "GIVEN";
    c->json = amp_buf_span(&u->json);
    c->due_ms = (o->until_ms > o->since_ms ? o->until_ms : o->since_ms) + u->keep_ms;
    c->actor = u->actor;
    return rc;
}

int amp_waiver_record(struct amp_store *s, const struct amp_waiver *o, int64_t keep_ms,
                      const char *actor, struct amp_error *err)
{
    struct change u = {.o = o, .actor = actor, .keep_ms = keep_ms};

    if (o->why.n == 0 || o->why.n > AMP_WAIVER_TEXT_MAX)
        return amp_fail(err, AMP_DATAERR, "buffer_full", "the reason has %zu bytes (1 to %d)",
                        o->why.n, AMP_WAIVER_TEXT_MAX);
    if (o->until_ms && o->until_ms <= amp_now_ms())
        return amp_fail(err, AMP_NO, "expired", "the time until which it permits has passed");
    amp_buf_init(&u.json, RECORD_MAX);
    int rc = amp_store_update(s, AMP_KEY(AMP_WAIVER_KIND, o->id), NULL, on_record, &u, NULL, err);
    amp_buf_release(&u.json);
    return rc;
}

/* ---- reading ---- */

struct each {
    struct amp_span job;
    amp_waiver_fn fn;
    void *ctx;
    struct amp_buf mem;
};

static int on_each(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    struct each *e = ctx;
    struct amp_waiver o;

    (void)id;
    if (amp_waiver_parse(rec->json, &e->mem, &o, err) < 0)
        return -1;
    bool about = amp_span_eq(o.job, e->job) || amp_span_eq(o.other, e->job);
    return about ? e->fn(e->ctx, &o, err) : 0;
}

int amp_waiver_each(struct amp_store *s, struct amp_span job, amp_waiver_fn fn, void *ctx,
                    struct amp_error *err)
{
    struct each e = {job, fn, ctx, {.max = AMP_REC_MAX}};
    int rc = amp_store_each(s, AMP_WAIVER_KIND, NULL, on_each, &e, err);

    amp_buf_release(&e.mem);
    return rc;
}

/* ---- removal ---- */

struct old {
    char id[FORGET_MOST][AMP_UUID_MAX];
    uint32_t n;
};

static int on_old(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                  struct amp_error *err)
{
    struct old *o = ctx;

    (void)rec, (void)err;
    if (amp_span_copy(id, o->id[o->n], sizeof o->id[0]))
        o->n++;
    return o->n == FORGET_MOST;
}

static int on_drop(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *err)
{
    (void)err;
    if (!now->found)
        return 1;
    c->event = "forget";
    c->to = "GONE";
    c->remove = true;
    c->json = now->json;
    c->actor = ctx;
    return 0;
}

int amp_waivers_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                       struct amp_error *err)
{
    struct old o = {.n = 0};
    char by[128];

    if (amp_store_due(s, AMP_WAIVER_KIND, now_ms, on_old, &o, err) < 0)
        return -1;
    amp_span_copy(amp_span_str(actor), by, sizeof by);
    for (uint32_t i = 0; i < o.n; i++) {
        if (amp_store_update(s, AMP_KEY(AMP_WAIVER_KIND, amp_span_str(o.id[i])), NULL, on_drop, by,
                             NULL, err) < 0)
            return -1;
        ++*done;
    }
    return 0;
}

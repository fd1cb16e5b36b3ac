/* The usage limits of accounts. */
#include "flow/queue/account.h"

#include <string.h>

#include "json/record.h"

#define KIND "account"

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(CSTR, struct amp_account, "agent", agent),
    AMP_REC_EVER(TIME, struct amp_account, "since", since_ms),
    AMP_REC_EVER(TIME, struct amp_account, "until", until_ms),
};
AMP_REC_TABLE(account_rec, "the record of an account's limit", struct amp_account, fields);

struct amp_span amp_account_of(const struct amp_queue_settings *s, struct amp_span type)
{
    const json_t *t = json_object_getn(s->types, type.p, type.n);
    const char *own = json_string_value(json_object_get(t, "account"));

    return own ? amp_span_str(own) : type;
}

struct change {
    const struct amp_account *limit; /* NULL: lifts it */
    const char *actor;
    int64_t now_ms;
    struct amp_buf mem, json;
    bool changed;
};

static int on_change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                     struct amp_error *err)
{
    struct change *x = ctx;
    struct amp_account a = {.agent = ""};

    if (now->found && amp_rec_parse(&account_rec, now->json, &x->mem, &a, err) < 0)
        return -1;
    x->changed = x->limit ? x->limit->until_ms > a.until_ms : a.until_ms > x->now_ms;
    if (!x->changed)
        return 1;
    if (x->limit)
        a = *x->limit;
    else
        a.until_ms = x->now_ms;
    amp_buf_reset(&x->json);
    int rc = amp_rec_write(&account_rec, &a, &x->json, err);
    c->event = x->limit ? "limit" : "lift";
    c->to = x->limit ? "LIMITED" : "OPEN";
    c->json = amp_buf_span(&x->json);
    c->actor = x->actor;
    return rc;
}

static int change_run(struct amp_store *s, const char *name, struct change *x,
                      struct amp_error *err)
{
    amp_buf_init(&x->mem, AMP_REC_MAX);
    amp_buf_init(&x->json, AMP_REC_MAX);
    int rc = amp_store_update(s, AMP_KEY(KIND, amp_span_str(name)), NULL, on_change, x, NULL, err);
    amp_buf_release(&x->mem);
    amp_buf_release(&x->json);
    return rc < 0 ? -1 : x->changed;
}

int amp_account_limit(struct amp_store *s, const struct amp_account *a, struct amp_error *err)
{
    struct change x = {.limit = a, .actor = a->agent};
    return change_run(s, a->name, &x, err);
}

/* The jobs that an account's limit parked. */
struct waking {
    const struct amp_queue_settings *set;
    struct amp_span name;
    struct amp_buf ids; /* AMP_QUEUE_ID_MAX bytes each */
};

static int on_parked(void *ctx, const struct amp_queue_job *job, struct amp_error *err)
{
    struct waking *w = ctx;
    char id[AMP_QUEUE_ID_MAX] = "";

    if (!amp_span_is(job->code, "usage_limit") ||
        !amp_span_eq(amp_account_of(w->set, job->type), w->name))
        return 0;
    amp_span_copy(job->id, id, sizeof id);
    return amp_buf_add(&w->ids, id, sizeof id, err);
}

static int jobs_wake(struct amp_store *s, struct waking *w, const char *by, int64_t now_ms,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};

    if (amp_queue_each(s, amp_queue_fsm.states[AMP_QUEUE_PARKED].name, on_parked, w, err) < 0)
        return -1;
    for (size_t i = 0; i < w->ids.len; i += AMP_QUEUE_ID_MAX) {
        const struct amp_queue_step st = {.id = amp_span_str(w->ids.data + i),
                                          .event = AMP_QUEUE_EV_WAKE,
                                          .why = "the usage limit was lifted",
                                          .actor = by,
                                          .now_ms = now_ms};
        if (amp_queue_step(s, &st, &mem, NULL, err) < 0 &&
            strcmp(err->code, "illegal_transition") != 0 && strcmp(err->code, "unknown_job") != 0)
            return -1;
    }
    return 0;
}

int amp_account_lift(struct amp_store *s, const struct amp_queue_settings *set, const char *name,
                     const char *by, int64_t now_ms, struct amp_error *err)
{
    struct change x = {.actor = by, .now_ms = now_ms};
    struct waking w = {.set = set, .name = amp_span_str(name), .ids = {.max = 64 << 20}};
    int rc = change_run(s, name, &x, err);

    if (rc > 0 && jobs_wake(s, &w, by, now_ms, err) < 0)
        rc = -1;
    amp_buf_release(&w.ids);
    return rc;
}

int amp_account_until(struct amp_store *s, struct amp_span name, int64_t now_ms, int64_t *until_ms,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_account a = {.agent = ""};
    struct amp_store_rec rec;

    if (amp_store_get(s, AMP_KEY(KIND, name), &rec, err) < 0 ||
        (rec.found && amp_rec_parse(&account_rec, rec.json, &mem, &a, err) < 0))
        return -1;
    *until_ms = a.until_ms > now_ms ? a.until_ms : 0;
    return 0;
}

struct each {
    amp_account_fn fn;
    void *ctx;
    int64_t now_ms;
    struct amp_buf mem;
};

static int on_account(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct each *e = ctx;
    struct amp_account a = {.agent = ""};
    char name[AMP_QUEUE_TYPE_MAX];

    if (amp_rec_parse(&account_rec, rec->json, &e->mem, &a, err) < 0)
        return -1;
    if (a.until_ms <= e->now_ms || !amp_span_copy(id, name, sizeof name))
        return 0;
    a.name = name;
    return e->fn(e->ctx, &a, err);
}

int amp_accounts_each(struct amp_store *s, int64_t now_ms, amp_account_fn fn, void *ctx,
                      struct amp_error *err)
{
    struct each e = {.fn = fn, .ctx = ctx, .now_ms = now_ms};

    amp_buf_init(&e.mem, AMP_REC_MAX);
    int rc = amp_store_each(s, KIND, NULL, on_account, &e, err);
    amp_buf_release(&e.mem);
    return rc;
}

static int account_add(void *ctx, const struct amp_account *a, struct amp_error *err)
{
    struct amp_accounts *all = ctx;

    (void)err;
    amp_span_copy(amp_span_str(a->name), all->v[all->n].name, sizeof all->v[0].name);
    all->v[all->n++].until_ms = a->until_ms;
    return all->n == AMP_ACCOUNTS_MAX;
}

int amp_accounts_load(struct amp_accounts *a, struct amp_store *s, int64_t now_ms,
                      struct amp_error *err)
{
    a->n = 0;
    return amp_accounts_each(s, now_ms, account_add, a, err) < 0 ? -1 : 0;
}

int64_t amp_accounts_closed(const void *ctx, struct amp_span type)
{
    const struct amp_accounts *a = ctx;
    const struct amp_span name = amp_account_of(a->set, type);

    for (uint32_t i = 0; i < a->n; i++)
        if (amp_span_is(name, a->v[i].name))
            return a->v[i].until_ms;
    return 0;
}

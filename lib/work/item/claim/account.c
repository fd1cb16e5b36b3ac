/* The usage limits of accounts. */
#include "work/item/claim/account.h"

#include <string.h>

#include "base/codes.h"

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(CSTR, struct amp_account, "name", name),
    AMP_REC_EVER(CSTR, struct amp_account, "agent", agent),
    AMP_REC_EVER(TIME, struct amp_account, "since", since_ms),
    AMP_REC_EVER(TIME, struct amp_account, "until", until_ms),
};
AMP_REC_TABLE(account_rec, "the record of an account's limit", struct amp_account, fields);

/* with: a limit; NULL: the limit is lifted. */
static int account_set(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    struct amp_account *a = rec;
    const struct amp_account *limit = t->step->with;

    (void)err;
    if (limit ? limit->until_ms <= a->until_ms : a->until_ms <= t->step->now_ms)
        return 1;
    if (limit)
        *a = *limit;
    else
        a->until_ms = t->step->now_ms;
    t->change->event = limit ? "limit" : "lift";
    a->state = limit ? AMP_ACCOUNT_LIMITED : AMP_ACCOUNT_OPEN;
    return 0;
}

static const char *const states[] = {"OPEN", "LIMITED", NULL};
static const struct amp_subject accounts = {.kind = "account",
                                            .table = &account_rec,
                                            .states = states,
                                            .state = AMP_SUBJECT_AT(struct amp_account, state),
                                            .carry = account_set};

static struct amp_key key_of(struct amp_span name)
{
    return AMP_KEY(accounts.kind, name);
}

struct amp_span amp_account_of(const struct amp_queue_settings *s, struct amp_span type)
{
    const json_t *t = json_object_getn(s->types, type.p, type.n);
    const char *own = json_string_value(json_object_get(t, "account"));

    return own ? amp_span_str(own) : type;
}

static int account_step(struct amp_store *s, const struct amp_subject_step *step,
                        struct amp_error *err)
{
    enum amp_store_outcome how;

    return amp_subject_step(&accounts, s, step, NULL, NULL, &how, err) < 0
               ? -1
               : how == AMP_STORE_COMMITTED;
}

int amp_account_limit(struct amp_store *s, const struct amp_account *a, struct amp_error *err)
{
    const struct amp_subject_step step = {
        .key = key_of(amp_span_str(a->name)), .with = a, .actor = a->agent};

    return account_step(s, &step, err);
}

/* The jobs that an account's limit parked. */
struct waking {
    const struct amp_queue_settings *set;
    struct amp_span name;
    struct amp_buf ids; /* AMP_QUEUE_ID_MAX bytes each */
};

static int on_parked(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *job = rec;
    struct waking *w = ctx;
    char id[AMP_QUEUE_ID_MAX] = "";

    if (!amp_span_is(job->code, AMP_CODE(usage_limit)) ||
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
            !amp_code_is(err->code, illegal_transition) && !amp_code_is(err->code, unknown_job))
            return -1;
    }
    return 0;
}

int amp_account_lift(struct amp_store *s, const struct amp_queue_settings *set, const char *name,
                     const char *by, int64_t now_ms, struct amp_error *err)
{
    const struct amp_subject_step step = {
        .key = key_of(amp_span_str(name)), .actor = by, .now_ms = now_ms};
    struct waking w = {.set = set, .name = amp_span_str(name), .ids = {.max = 64 << 20}};
    int rc = account_step(s, &step, err);

    if (rc > 0 && jobs_wake(s, &w, by, now_ms, err) < 0)
        rc = -1;
    amp_buf_release(&w.ids);
    return rc;
}

int amp_account_until(struct amp_store *s, struct amp_span name, int64_t now_ms, int64_t *until_ms,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_account a;

    if (amp_subject_find(&accounts, s, key_of(name), &mem, &a, err) < 0)
        return -1;
    *until_ms = a.until_ms > now_ms ? a.until_ms : 0;
    return 0;
}

struct limited {
    amp_subject_each_fn fn;
    void *ctx;
    int64_t now_ms;
};

static int limited_visit(void *ctx, const void *rec, struct amp_error *err)
{
    const struct limited *l = ctx;
    const struct amp_account *a = rec;

    return a->until_ms > l->now_ms ? l->fn(l->ctx, a, err) : 0;
}

int amp_accounts_each(struct amp_store *s, int64_t now_ms, amp_subject_each_fn fn, void *ctx,
                      struct amp_error *err)
{
    struct limited l = {fn, ctx, now_ms};

    return amp_subject_each(&accounts, s, NULL, limited_visit, &l, err);
}

static int account_add(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_account *a = rec;
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

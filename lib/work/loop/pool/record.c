/* The records of the pools of a state. */
#include "work/loop/pool/record.h"

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(CSTR, struct amp_pool_rec, "name", name),
    AMP_REC_EVER(CSTR, struct amp_pool_rec, "types", types),
    AMP_REC_EVER(INT, struct amp_pool_rec, "pid", pid),
    AMP_REC_EVER(TIME, struct amp_pool_rec, "since", since_ms),
    AMP_REC(CSTR, struct amp_pool_rec, "by", by),
    AMP_REC(TIME, struct amp_pool_rec, "asked", asked_ms),
};
AMP_REC_TABLE(pool_rec, "the record of a pool", struct amp_pool_rec, fields);

/* with: the record of a pool that begins; NULL: the pool is asked to shut down. */
static int pool_set(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    struct amp_pool_rec *r = rec;
    const struct amp_pool_rec *begins = t->step->with;

    (void)err;
    if (!begins && (!t->now->found || r->state == AMP_POOL_STOPPING))
        return 1;
    t->change->event = begins ? "begin" : "shutdown";
    if (begins) {
        *r = *begins;
        return 0;
    }
    r->state = AMP_POOL_STOPPING;
    r->by = t->step->actor;
    r->asked_ms = t->step->now_ms;
    return 0;
}

static const char *const states[] = {"WORKING", "STOPPING", NULL};
const struct amp_subject amp_pool_subject = {.kind = "pool",
                                             .table = &pool_rec,
                                             .states = states,
                                             .state = AMP_SUBJECT_AT(struct amp_pool_rec, state),
                                             .carry = pool_set};

static struct amp_key key_of(const char *name)
{
    return AMP_KEY(amp_pool_subject.kind, amp_span_str(name));
}

int amp_pool_rec_begin(struct amp_store *s, const struct amp_pool_rec *r, struct amp_error *err)
{
    const struct amp_subject_step step = {.key = key_of(r->name), .with = r};

    return amp_subject_step(&amp_pool_subject, s, &step, NULL, NULL, NULL, err);
}

int amp_pool_rec_end(struct amp_store *s, const char *name, struct amp_error *err)
{
    return amp_subject_forget(&amp_pool_subject, s, key_of(name), 0, NULL, err) < 0 ? -1 : 0;
}

int amp_pool_rec_ask(struct amp_store *s, const char *name, const char *by, int64_t now_ms,
                     struct amp_error *err)
{
    const struct amp_subject_step step = {.key = key_of(name), .actor = by, .now_ms = now_ms};

    return amp_subject_step(&amp_pool_subject, s, &step, NULL, NULL, NULL, err);
}

int amp_pool_rec_asked(struct amp_store *s, const char *name, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_pool_rec r;
    int found = amp_subject_find(&amp_pool_subject, s, key_of(name), &mem, &r, err);

    return found < 0 ? -1 : r.state == AMP_POOL_STOPPING;
}

/*
 * Removes sessions whose retention is over: their entries, their TASKs, then the session, so that a
 * crash leaves a session that is due again. A session with a TASK that has not ended stays.
 */
#include "work/aop/entry.h"
#include "work/aop/private.h"
#include "json/record.h"

struct due {
    struct amp_buf mem; /* texts of keys, each with a NUL */
    bool open;          /* a TASK has not ended */
    const char *actor;
    struct amp_store *store;
    struct amp_span session;
};

static int id_note(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    struct due *d = ctx;

    char text[AMP_KEY_MAX];
    struct amp_span key;

    (void)id;
    if (amp_key_text(rec->key, text, &key, err) < 0)
        return -1;
    return amp_buf_add(&d->mem, key.p, key.n + 1, err);
}

static int open_note(void *ctx, const struct amp_session_task *t, struct amp_error *err)
{
    struct due *d = ctx;

    (void)err;
    d->open = !amp_session_task_ended(t->state);
    return d->open;
}

static int on_remove(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                     struct amp_error *err)
{
    const struct due *d = ctx;

    (void)err;
    if (!now->found)
        return 1;
    c->event = "forget";
    c->to = "REMOVED";
    c->json = AMP_SPAN("{}");
    c->actor = d->actor;
    c->remove = true;
    return 0;
}

/* Removes the records whose keys are in d->mem. */
static int keys_remove(struct due *d, struct amp_error *err)
{
    size_t at = 0;

    while (at < d->mem.len) {
        const struct amp_span key = amp_span_str(d->mem.data + at);
        if (amp_store_update(d->store, AMP_KEY_TEXT(key), NULL, on_remove, d, NULL, err) < 0)
            return -1;
        at += key.n + 1;
    }
    amp_buf_reset(&d->mem);
    return 0;
}

static int entry_note(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    const struct due *d = ctx;
    char part[AMP_KEY_PART_MAX + 1];
    return amp_span_eq(id, amp_key_part_name(d->session, part)) ? id_note(ctx, id, rec, err) : 0;
}

static int session_remove(struct due *d, struct amp_error *err)
{
    static const char *const kinds[] = {AMP_SESSION_ENTRY_KIND, AMP_SESSION_TASK_KIND};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (amp_session_each_part(d->store, kinds[i], d->session, entry_note, d, err) < 0 ||
            keys_remove(d, err) < 0)
            return -1;
    return amp_store_update(d->store, AMP_KEY(AMP_SESSION_KIND, d->session), NULL, on_remove, d,
                            NULL, err) < 0
               ? -1
               : 0;
}

struct sweep {
    struct amp_store *store;
    int64_t now_ms;
    const char *actor;
    uint32_t *done;
};

static int session_due(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct sweep *w = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct due d = {.mem = {.max = AMP_REC_MAX}, .actor = w->actor, .store = w->store};
    struct amp_session x;

    (void)id;
    if (amp_session_read(rec, &mem, &x, err) < 0)
        return -1;
    d.session = x.id;
    int rc = amp_session_each_task(w->store, x.id, open_note, &d, err);
    if (rc < 0)
        return -1;
    if (d.open) {
        const struct amp_session_voice v = {w->store, w->actor, w->now_ms};
        const struct amp_session_change c = {.event = AMP_SESSION_EV_STAY, .session = x.id};
        return amp_session_step(&v, &c, err) < 0 ? -1 : 0;
    }
    rc = session_remove(&d, err);
    amp_buf_release(&d.mem);
    *w->done += rc == 0;
    return rc;
}

int amp_session_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                      struct amp_error *err)
{
    struct sweep w = {s, now_ms, actor, done};

    return amp_store_due(s, AMP_SESSION_KIND, now_ms, session_due, &w, err);
}

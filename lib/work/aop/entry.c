/*
 * The entries of a session. An entry's time of the index is its number, so that the window over due
 * records reads the entries after a number in their order: the audit trail is caught up without
 * reading the older ones again.
 */
#include "work/aop/entry.h"

#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "base/words.h"
#include "work/aop/private.h"
#include "json/record.h"

AMP_WORDS_OF_NAMES(names, AMP_SESSION_ENTRIES);

enum { WINDOW = 64 };

const char *amp_session_entry_name(enum amp_session_entry_type t)
{
    return t < AMP_SESSION_ENTRY_COUNT ? names[t] : "unknown";
}

static int type_find(struct amp_span name)
{
    return amp_word_find(names, name);
}

struct record {
    int64_t seq, attempt, at_ms;
    struct amp_span type, id, session, task, event, json;
};
#define SOME(as, key, member) AMP_REC(as, struct record, key, member)
#define EVER(as, key, member) AMP_REC_EVER(as, struct record, key, member)
static const struct amp_rec_field fields[] = {
    EVER(INT, "seq", seq),          EVER(TEXT, "type", type),   EVER(TEXT, "id", id),
    EVER(TEXT, "session", session), SOME(TEXT, "task", task),   SOME(INT, "attempt", attempt),
    EVER(TIME, "at", at_ms),        SOME(TEXT, "event", event), EVER(RAW, "entry", json),
};
AMP_REC_TABLE(entry_rec, "an entry of a session", struct record, fields);

static int record_read(const struct amp_store_rec *rec, struct amp_buf *mem,
                       struct amp_session_entry *out, struct amp_error *err)
{
    struct record r;

    if (amp_rec_parse(&entry_rec, rec->json, mem, &r, err) < 0)
        return -1;
    int type = type_find(r.type);
    if (type < 0)
        return amp_fail(err, AMP_DATAERR, bad_record, "an entry has the unknown type %.*s",
                        AMP_CLIP(r.type, 40));
    *out = (struct amp_session_entry){.seq = (uint64_t)r.seq,
                                      .type = (enum amp_session_entry_type)type,
                                      .id = r.id,
                                      .session = r.session,
                                      .task = r.task,
                                      .attempt = r.attempt,
                                      .at_ms = r.at_ms,
                                      .event = r.event,
                                      .json = r.json};
    return 0;
}

/* ---- writing ---- */

struct addition {
    const struct amp_session_voice *v;
    const struct amp_session_entry *e;
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    const char *id;
    struct amp_buf json;
};

static int on_add(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *err)
{
    struct addition *a = ctx;
    const struct amp_session_entry *e = a->e;
    const struct record r = {.seq = (int64_t)now->next,
                             .type = amp_span_str(amp_session_entry_name(e->type)),
                             .id = amp_span_str(a->id),
                             .session = e->session,
                             .task = e->task,
                             .attempt = e->attempt,
                             .at_ms = e->at_ms > 0 ? e->at_ms : a->v->now_ms,
                             .event = e->event,
                             .json = e->json};

    if (now->found)
        return 1;
    amp_buf_reset(&a->json);
    if (amp_rec_write(&entry_rec, &r, &a->json, err) < 0)
        return -1;
    c->event = "note";
    c->to = "NOTED";
    c->json = amp_buf_span(&a->json);
    c->due_ms = (int64_t)now->next;
    c->actor = a->v->actor;
    c->emits = a->emits;
    c->n_emits = a->n_emits;
    return 0;
}

/* The key of an entry of the session itself has its task empty. */
static struct amp_key key_of(struct amp_span session, struct amp_span task, struct amp_span name)
{
    return AMP_KEY(AMP_SESSION_ENTRY_KIND, session, task, name);
}

int amp_session_entry_add(const struct amp_session_voice *v, const struct amp_session_entry *e,
                          const char *name, const struct amp_store_emit *emits, uint32_t n_emits,
                          struct amp_error *err)
{
    char id[AMP_UUID_MAX];
    struct addition a = {v, e, emits, n_emits, id, {.max = AMP_REC_MAX}};

    amp_uuid4(id);
    int rc = amp_store_update(v->store, key_of(e->session, e->task, amp_span_str(name ? name : id)),
                              NULL, on_add, &a, NULL, err);
    amp_buf_release(&a.json);
    return rc;
}

/* ---- reading ---- */

struct walk {
    struct amp_span session;
    uint64_t after;
    amp_session_entry_fn fn;
    void *ctx;
    struct amp_buf mem;
    uint32_t n;
    bool stopped;
    uint64_t last;
};

static int entry_visit(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct walk *w = ctx;
    struct amp_session_entry e;
    char part[AMP_KEY_PART_MAX + 1];

    w->n++;
    w->last = (uint64_t)rec->due_ms;
    if (!amp_span_eq(id, amp_key_part_name(w->session, part)))
        return 0;
    if (record_read(rec, &w->mem, &e, err) < 0)
        return -1;
    if (!amp_span_eq(e.session, w->session) || e.seq <= w->after)
        return 0;
    int rc = w->fn(w->ctx, &e, err);
    w->stopped = rc > 0;
    return rc;
}

int amp_session_entries(struct amp_store *s, struct amp_span session, uint64_t after,
                        amp_session_entry_fn fn, void *ctx, struct amp_error *err)
{
    struct walk w = {session, after, fn, ctx, {.max = AMP_REC_MAX}, 0, false, after};
    int rc;

    do {
        /* Entries have different numbers: the place is before all keys of the next one. */
        const struct amp_store_window window = {
            .kind = AMP_SESSION_ENTRY_KIND, .due_ms = (int64_t)w.last + 1, .most = WINDOW};
        w.n = 0;
        rc = amp_store_due_window(s, &window, entry_visit, &w, err);
    } while (rc == 0 && !w.stopped && w.n == WINDOW);
    amp_buf_release(&w.mem);
    return rc < 0 ? -1 : 0;
}

int amp_session_entry_get(struct amp_store *s, struct amp_span session, struct amp_span task,
                          const char *name, struct amp_buf *mem, struct amp_session_entry *out,
                          struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(s, key_of(session, task, amp_span_str(name)), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    return record_read(&rec, mem, out, err) < 0 ? -1 : 1;
}

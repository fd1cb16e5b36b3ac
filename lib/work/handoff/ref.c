/*
 * Finds what an agent handed over, and the handoff that a message is about. A handoff is found by
 * its task and by the ids of its offers: a record of its own for each of these (key
 * "handoff_ref.<name>.<request>"), which is written before the step that needs it. A record without
 * its step leads to nothing.
 */
#include "work/handoff/handoff.h"

#include <string.h>

#include <amp/base/id.h>

struct ref {
    struct amp_span id;
    uint8_t state;
};
static const struct amp_rec_field fields[] = {AMP_REC_EVER(TEXT, struct ref, "id", id)};
AMP_REC_TABLE(ref_rec, "the reference to a handoff", struct ref, fields);

static int ref_set(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    (void)err;
    if (t->now->found)
        return 1;
    ((struct ref *)rec)->id = *(const struct amp_span *)t->step->with;
    t->change->event = "refer";
    return 0;
}

static const char *const states[] = {"OPEN", NULL};
static const struct amp_subject refs = {.kind = "handoff_ref",
                                        .table = &ref_rec,
                                        .states = states,
                                        .state = AMP_SUBJECT_AT(struct ref, state),
                                        .carry = ref_set};

/* A name that its key would have as a digest is one from here on. */
static struct amp_span name_of(struct amp_span name, char mem[AMP_SHA256_MAX])
{
    bool plain = name.n <= AMP_KEY_PART_MAX;

    for (size_t i = 0; plain && i < name.n; i++)
        plain = (unsigned char)name.p[i] >= ' ' && name.p[i] != 0x7f;
    if (plain)
        return name;
    amp_sha256_hex(name, mem);
    return amp_span_str(mem);
}

static int ref_change(struct amp_store *s, struct amp_span name, struct amp_span id, bool remove,
                      struct amp_error *err)
{
    char mem[AMP_SHA256_MAX];
    const struct amp_subject_step step = {.key = AMP_KEY(refs.kind, name_of(name, mem), id),
                                          .with = &id};

    if (name.n == 0)
        return 0;
    return remove ? amp_subject_forget(&refs, s, step.key, 0, NULL, err)
                  : amp_subject_step(&refs, s, &step, NULL, NULL, NULL, err);
}

int amp_handoff_refer(struct amp_store *s, struct amp_span name, struct amp_span id,
                      struct amp_error *err)
{
    return ref_change(s, name, id, false, err);
}

int amp_handoff_unrefer(struct amp_store *s, const struct amp_handoff *h, struct amp_error *err)
{
    for (uint32_t i = 0; i < h->n_offers; i++)
        if (ref_change(s, h->offers[i], h->id, true, err) < 0)
            return -1;
    return ref_change(s, h->task, h->id, true, err);
}

/* ---- finding ---- */

struct search {
    struct amp_store *store;
    amp_subject_each_fn fn;
    void *ctx;
};

static int on_ref(void *ctx, const void *rec, struct amp_error *err)
{
    const struct search *f = ctx;
    const struct ref *r = rec;
    struct amp_handoff h;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};

    int found = amp_handoff_find(f->store, r->id, &mem, &h, err);
    return found <= 0 ? found : f->fn(f->ctx, &h, err);
}

int amp_handoff_each_of(struct amp_store *s, struct amp_span name, amp_subject_each_fn fn,
                        void *ctx, struct amp_error *err)
{
    char mem[AMP_SHA256_MAX];
    struct search f = {s, fn, ctx};
    uint64_t any;

    if (name.n == 0)
        return 0;
    if (amp_store_count(s, refs.kind, &any, err) < 0)
        return -1;
    if (any == 0)
        return 0;
    return amp_subject_of(&refs, s, name_of(name, mem), on_ref, &f, err);
}

/* ---- who owns what ---- */

struct owning {
    struct amp_span agent, task;
    int64_t gave_ms, got_ms;   /* the last time that it handed the task over, and got it */
    int64_t owned_ms;          /* when any agent got it last */
    char gave_to[256], *owner; /* owner: 256 bytes */
    int64_t depth;
    bool is_parent;
};

static int owning_look(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_handoff *h = rec;
    struct owning *o = ctx;
    (void)err;
    if (!amp_span_eq(h->task, o->task))
        return 0;
    if ((o->is_parent || (h->accepted_ms > 0 && amp_span_eq(h->to, o->agent))) &&
        h->depth > o->depth)
        o->depth = h->depth;
    if (h->accepted_ms == 0)
        return 0;
    if (amp_span_eq(h->from, o->agent) && h->accepted_ms >= o->gave_ms) {
        o->gave_ms = h->accepted_ms;
        amp_span_copy(h->to, o->gave_to, sizeof o->gave_to);
    }
    if (amp_span_eq(h->to, o->agent) && h->accepted_ms >= o->got_ms)
        o->got_ms = h->accepted_ms;
    if (h->accepted_ms >= o->owned_ms) {
        o->owned_ms = h->accepted_ms;
        amp_span_copy(h->to, o->owner, 256);
    }
    return 0;
}

int amp_handoff_given(struct amp_store *s, struct amp_span agent, struct amp_span task,
                      char owner[256], struct amp_error *err)
{
    struct owning o = {.agent = agent, .task = task, .owner = owner};

    *owner = '\0';
    if (amp_handoff_each_of(s, task, owning_look, &o, err) < 0)
        return -1;
    /* A parent's task and its child's differ: handing over a child is not giving the parent away.
     */
    if (o.gave_ms == 0 || o.gave_ms < o.got_ms)
        return 0;
    memcpy(owner, o.gave_to, sizeof o.gave_to);
    return 1;
}

int amp_handoff_depth(struct amp_store *s, struct amp_span from, struct amp_span task,
                      struct amp_span parent, int64_t *depth, struct amp_error *err)
{
    char owner[256] = "";
    struct owning own = {.agent = from, .task = task, .owner = owner};
    struct owning up = {.agent = from, .task = parent, .owner = owner, .is_parent = true};

    if (amp_handoff_each_of(s, task, owning_look, &own, err) < 0 ||
        amp_handoff_each_of(s, parent, owning_look, &up, err) < 0)
        return -1;
    *depth = own.depth > up.depth ? own.depth : up.depth;
    return 0;
}

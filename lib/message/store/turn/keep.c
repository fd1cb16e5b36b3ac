/* Whether a record is final and old, and its removal from the live set. */
#include "message/store/store_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/grow.h"

static struct amp_span kind_of(struct amp_span key)
{
    const char *dot = memchr(key.p, '.', key.n);
    return (struct amp_span){key.p, dot ? (size_t)(dot - key.p) : key.n};
}

static bool has_word(const char *words, struct amp_span word)
{
    for (const char *p = words, *end; p && *p; p = *end ? end + 1 : end) {
        end = strchrnul(p, ' ');
        if (amp_span_eq((struct amp_span){p, (size_t)(end - p)}, word))
            return true;
    }
    return false;
}

/* state NULL: the first rule of the kind. */
static const struct amp_keep *rule_find(const struct amp_store *s, struct amp_span key,
                                        const char *state)
{
    for (const struct amp_keep *k = key.n ? s->opt.keep : NULL; k && k->kind; k++)
        if (amp_span_is(kind_of(key), k->kind) &&
            (!state || !k->states || has_word(k->states, amp_span_str(state))))
            return k;
    return NULL;
}

static bool is_past(int64_t since, uint64_t ms)
{
    int64_t now = amp_now_ms();
    return ms && now > since && (uint64_t)(now - since) > ms;
}

bool amp_keep_remembers(const struct amp_store *s, int64_t since)
{
    return since && !is_past(since, s->opt.keep_for[AMP_KEEP_duplicates]);
}

/* A record that may leave, as the rules see it. */
struct looked {
    const struct amp_keep *rule; /* NULL: it is not final, or not old */
    int64_t since;
    struct amp_tape tape;
    struct amp_buf json;
};

static void looked_release(struct looked *l)
{
    amp_tape_release(&l->tape);
    amp_buf_release(&l->json);
}

/* Reads the record of a row, unless the row shows that it is not final. */
static int look_at(struct amp_store *s, struct amp_span key, const struct amp_index_rec *row,
                   struct looked *l, struct amp_error *err)
{
    struct amp_span frame;
    struct amp_frame_head head;
    struct amp_frame f;
    struct amp_json_fault fault;
    const struct amp_keep *rule = row->due ? NULL : rule_find(s, key, row->state);
    if (!rule || !s->opt.keep_for[rule->group])
        return 0;
    if (amp_log_frame(&s->log, row->at, &frame, &head, err) < 0 ||
        amp_frame_decode(frame, &head, &s->check, &f, err) < 0)
        return -1;
    if (!amp_span_eq(f.key, key))
        return amp_index_wrong(&s->index, "a row leads to the frame of another key", err);
    l->since = f.since ? f.since : f.at;
    if (!is_past(l->since, s->opt.keep_for[rule->group]))
        return 0;
    if ((f.state_blob.n ? amp_blob_get(s, f.state_blob, &l->json, err)
                        : amp_buf_add(&l->json, f.state.p, f.state.n, err)) < 0)
        return -1;
    if (amp_tape_scan(&l->tape, l->json.data, l->json.len, &fault) < 0)
        return amp_json_fail(err, AMP_IOERR, AMP_CODE(bad_record), "a record is not JSON", &fault);
    if (!rule->is_final || rule->is_final(&l->tape))
        l->rule = rule;
    return 0;
}

/* Whether there is such a record that is not final and old: 1, 0, -1. */
static int is_live(struct amp_store *s, const struct amp_keep_other *other, struct amp_error *err)
{
    char text[AMP_KEY_MAX];
    struct amp_span key;
    struct amp_index_rec row;
    if (!other->part.n)
        return 0;
    if (other->encoded) {
        int n =
            snprintf(text, sizeof text, "%s.%.*s", other->kind, (int)other->part.n, other->part.p);
        key = (struct amp_span){text, (size_t)n};
    } else if (amp_key_text(&AMP_KEY(other->kind, other->part), text, &key, NULL) < 0) {
        return 0;
    }
    int rc = amp_cache_find(&s->cache, key, &row);
    if (rc < 0)
        rc = amp_index_rec(&s->index, key, &row, err);
    if (rc <= 0)
        return rc;
    struct looked l = {.json = {.max = 64 * AMP_FRAME_MAX}};
    amp_tape_init(&l.tape, NULL);
    rc = look_at(s, key, &row, &l, err);
    looked_release(&l);
    return rc < 0 ? -1 : !l.rule;
}

/* Whether a record that still lives needs this one: 1, 0, -1. */
static int is_needed(struct amp_store *s, struct amp_span key, const struct looked *l,
                     struct amp_error *err)
{
    struct amp_span parts[AMP_KEY_PARTS] = {{0}};
    struct amp_span rest = {key.p + strlen(l->rule->kind), key.n - strlen(l->rule->kind)};
    struct amp_keep_other other = {0};
    int rc = 0;
    for (uint32_t i = 0; rest.n && i < AMP_KEY_PARTS; i++) {
        const char *p = rest.p + 1, *end = memchr(p, '.', rest.n - 1);
        parts[i] = (struct amp_span){p, end ? (size_t)(end - p) : rest.n - 1};
        rest = (struct amp_span){p + parts[i].n, rest.n - 1 - parts[i].n};
    }
    for (uint32_t i = 0;
         rc == 0 && l->rule->needed_by && l->rule->needed_by(parts, &l->tape, i, &other); i++)
        rc = is_live(s, &other, err);
    return rc;
}

int amp_keep_is_over(struct amp_store *s, struct amp_span key, const struct amp_index_rec *row,
                     int64_t *since, bool *remembered, struct amp_error *err)
{
    struct looked l = {.json = {.max = 64 * AMP_FRAME_MAX}};
    amp_tape_init(&l.tape, NULL);
    int rc = look_at(s, key, row, &l, err);
    if (rc == 0 && l.rule)
        rc = is_needed(s, key, &l, err);
    bool over = rc == 0 && l.rule;
    *since = l.since;
    *remembered = over && l.rule->remembered;
    looked_release(&l);
    return rc < 0 ? -1 : over;
}

/* Whether no key is remembered at all. The index is asked once for the frames up to cache.from; the
 * cache has the later ones. */
static bool nothing_is_past(struct amp_store *s)
{
    struct amp_cache *c = &s->cache;
    if (c->past == AMP_CACHE_PAST_UNKNOWN) {
        int rc = amp_index_any_past(&s->index, NULL);
        if (rc >= 0)
            c->past = rc ? AMP_CACHE_PAST_SOME : AMP_CACHE_PAST_NONE;
    }
    return c->past == AMP_CACHE_PAST_NONE && !c->incomplete;
}

int amp_keep_is_forgotten(struct amp_store *s, struct amp_span key, struct amp_error *err)
{
    struct amp_place at;
    const struct amp_span none = {0};
    if (!s->opt.keep || nothing_is_past(s))
        return 0;
    const struct amp_keep *rule = rule_find(s, key, NULL);
    if (!rule || !rule->remembered)
        return 0;
    if (amp_cache_seen(&s->cache, none, key, &at))
        return amp_keep_remembers(s, (int64_t)at.off);
    int rc = amp_index_seen(&s->index, none, key, &at, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = amp_index_seen(&s->index, none, key, &at, err);
    return rc == 1 ? amp_keep_remembers(s, (int64_t)at.off) : rc;
}

/* ---- leaving ---- */

static int text_add(struct amp_leaving *l, struct amp_span v, uint32_t *at, uint32_t *n,
                    struct amp_error *err)
{
    *at = (uint32_t)l->text.len;
    *n = (uint32_t)v.n;
    return amp_buf_add(&l->text, v.p, v.n, err);
}

int amp_keep_leave(struct amp_leaving *l, struct amp_span key, const struct amp_index_rec *row,
                   int64_t since, struct amp_error *err)
{
    if (amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, err) < 0)
        return -1;
    struct amp_leaver *v = &l->v[l->n];
    *v = (struct amp_leaver){.at = row->at, .since = since};
    if (text_add(l, key, &v->key, &v->n_key, err) < 0 ||
        text_add(l, amp_span_str(row->state), &v->state, &v->n_state, err) < 0)
        return -1;
    l->n++;
    return 0;
}

/* Whether the record is still the one that was noted: 1, 0, -1. */
static int is_unchanged(struct amp_store *s, struct amp_span key, const struct amp_leaver *v,
                        struct amp_error *err)
{
    struct amp_index_rec row;
    int rc = amp_cache_find(&s->cache, key, &row);
    if (rc < 0)
        rc = amp_index_rec(&s->index, key, &row, err);
    return rc <= 0 ? rc : row.at.seg == v->at.seg && row.at.off == v->at.off;
}

int amp_keep_forget(struct amp_store *s, struct amp_leaving *l, struct amp_error *err)
{
    AMP_FREE struct amp_frame_past *past = l->n ? calloc(l->n, sizeof *past) : NULL;
    struct amp_pos at;
    uint32_t n = 0;
    if (!l->n)
        return 0;
    if (!past)
        return amp_fail_memory(err);
    for (size_t i = 0; i < l->n; i++) {
        const struct amp_leaver *v = &l->v[i];
        const struct amp_span key = {l->text.data + v->key, v->n_key};
        int rc = is_unchanged(s, key, v, err);
        if (rc < 0)
            return -1;
        if (rc == 1)
            past[n++] =
                (struct amp_frame_past){key, {l->text.data + v->state, v->n_state}, v->since};
    }
    struct amp_frame f = {.head.log = AMP_FRAME_stand, .past = past, .n_past = n, .forgets = true};
    int rc = n ? amp_turn_append(s, &f, &at, err) : 0;
    l->n = 0;
    amp_buf_reset(&l->text);
    return rc;
}

/* Reservations in the store, and the file for the hooks. */
#include "work/git/paths/reserve.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "message/record/subject.h"
#include "work/git/binding.h"

struct record {
    char holder[128], task[128], pattern[AMP_GLOB_MAX + 1];
    bool person;
    int64_t since_ms;
    const struct amp_key *key;
};

#define MEMBER(as, key, member) AMP_REC_EVER(as, struct record, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(CHARS, "holder", holder),   MEMBER(CHARS, "task", task),
    MEMBER(CHARS, "pattern", pattern), MEMBER(BOOL, "person", person),
    MEMBER(INT, "since_ms", since_ms),
};
AMP_REC_TABLE(reservation_rec, "a reservation's record", struct record, fields);

static const char *const states[] = {"RESERVED", NULL};
static const struct amp_subject reservations = {.kind = AMP_RESERVATION_KIND,
                                                .table = &reservation_rec,
                                                .states = states,
                                                .key = AMP_SUBJECT_AT(struct record, key)};

/* ---- reading ---- */

struct walk {
    struct amp_store *store;
    int (*fn)(void *ctx, const struct record *r, struct amp_error *err);
    void *ctx;
    char agent[128]; /* the last one whose binding was read */
    bool is_bound;
};

static int record_visit(void *ctx, const void *rec, struct amp_error *err)
{
    const struct record *r = rec;
    struct walk *w = ctx;
    struct amp_binding b;

    if (!r->person && strcmp(w->agent, r->holder) != 0) {
        if (amp_binding_get(w->store, r->holder, &b, err) < 0)
            return -1;
        memcpy(w->agent, r->holder, sizeof w->agent);
        w->is_bound = amp_binding_is_bound(&b);
    }
    return r->person || w->is_bound ? w->fn(w->ctx, r, err) : 0;
}

/* Visits the reservations in effect: those of an agent end with its binding. */
static int records_visit(struct amp_store *s,
                         int (*fn)(void *ctx, const struct record *r, struct amp_error *err),
                         void *ctx, struct amp_error *err)
{
    struct walk w = {.store = s, .fn = fn, .ctx = ctx};
    return amp_subject_each(&reservations, s, NULL, record_visit, &w, err);
}

struct each {
    amp_reserve_fn fn;
    void *ctx;
};

static int each_one(void *ctx, const struct record *r, struct amp_error *err)
{
    struct each *e = ctx;
    const struct amp_reservation out = {amp_span_str(r->holder), amp_span_str(r->task),
                                        amp_span_str(r->pattern)};
    return e->fn(e->ctx, &out, r->since_ms, err);
}

int amp_reserve_each(struct amp_store *s, amp_reserve_fn fn, void *ctx, struct amp_error *err)
{
    struct each e = {fn, ctx};
    return records_visit(s, each_one, &e, err);
}

struct search {
    const char *agent;
    char *const *files;
    uint32_t n, at;
    char *by;
    size_t size;
    bool found;
};

static int covers_file(void *ctx, const struct record *r, struct amp_error *err)
{
    struct search *s = ctx;
    (void)err;
    for (s->at = 0; s->at < s->n && strcmp(r->holder, s->agent) != 0; s->at++)
        if (amp_glob_match(amp_span_str(r->pattern), amp_span_str(s->files[s->at]))) {
            snprintf(s->by, s->size, "%s%s%s%s: %s", r->holder, *r->task ? " (" : "", r->task,
                     *r->task ? ")" : "", r->pattern);
            s->found = true;
            return 1;
        }
    return 0;
}

int amp_reserve_holds(struct amp_store *s, const char *agent, char *const *files, uint32_t n,
                      uint32_t *file, char *by, size_t size, struct amp_error *err)
{
    struct search all = {.agent = agent, .files = files, .n = n, .by = by, .size = size};
    if (records_visit(s, covers_file, &all, err) < 0)
        return -1;
    *file = all.at;
    return all.found;
}

/* ---- changing ---- */

static int record_overlaps(void *ctx, const struct record *r, struct amp_error *err)
{
    const struct amp_reserve_spec *spec = *(const struct amp_reserve_spec **)ctx;
    if (strcmp(r->holder, spec->holder) == 0)
        return 0;
    for (int i = 0; i < spec->n; i++)
        if (amp_glob_overlap(amp_span_str(spec->patterns[i]), amp_span_str(r->pattern)))
            return amp_fail(err, AMP_NO, path_reserved, "%s overlaps %s, which %s reserved%s%s",
                            spec->patterns[i], r->pattern, r->holder, *r->task ? " for " : "",
                            r->task);
    return 0;
}

static int spec_check(struct amp_store *s, const struct amp_reserve_spec *spec,
                      struct amp_error *err)
{
    struct amp_binding b;
    if (spec->n > AMP_RESERVE_MOST)
        return amp_fail(err, AMP_USAGE, too_many, "at most %d patterns", AMP_RESERVE_MOST);
    if (!amp_id_is_safe(amp_span_str(spec->holder)) ||
        (spec->task && !amp_id_is_safe(amp_span_str(spec->task))))
        return amp_fail(err, AMP_USAGE, bad_value, "%s, %s: not names", spec->holder,
                        spec->task ? spec->task : "-");
    for (int i = 0; i < spec->n; i++)
        if (amp_glob_check(amp_span_str(spec->patterns[i]), err) < 0)
            return -1;
    if (spec->person)
        return 0;
    if (amp_binding_get(s, spec->holder, &b, err) < 0)
        return -1;
    return amp_binding_is_bound(&b)
               ? 0
               : amp_fail(err, AMP_NO, worktree_not_bound,
                          "%s: not bound to a worktree: bind it first", spec->holder);
}

static int patterns_put(struct amp_store *s, const struct amp_reserve_spec *spec,
                        struct amp_error *err)
{
    struct record r = {.person = spec->person, .since_ms = spec->now_ms};
    int rc = 0;
    amp_span_copy(amp_span_str(spec->holder), r.holder, sizeof r.holder);
    amp_span_copy(amp_span_str(spec->task), r.task, sizeof r.task);
    for (int i = 0; i < spec->n && rc == 0; i++) {
        struct amp_span pattern = amp_span_str(spec->patterns[i]);
        amp_span_copy(pattern, r.pattern, sizeof r.pattern);
        rc = amp_subject_put(&reservations, s,
                             AMP_KEY(AMP_RESERVATION_KIND, amp_span_str(spec->holder), pattern), &r,
                             false, "RESERVE", NULL, err);
    }
    return rc;
}

int amp_reserve(struct amp_store *s, const struct amp_reserve_spec *spec, struct amp_error *err)
{
    /* One turn for the checks and the records. */
    if (amp_store_begin(s, err) < 0)
        return -1;
    int rc = spec_check(s, spec, err);
    if (rc == 0)
        rc = records_visit(s, record_overlaps, &spec, err);
    if (rc == 0)
        rc = patterns_put(s, spec, err);
    amp_store_end(s);
    return rc;
}

struct release {
    struct amp_store *store;
    const struct amp_reserve_spec *spec;
    uint32_t n;
};

static int release_one(void *ctx, const void *rec, struct amp_error *err)
{
    const struct record *r = rec;
    struct release *x = ctx;
    bool named = x->spec->n == 0;
    for (int i = 0; i < x->spec->n; i++)
        named = named || strcmp(r->pattern, x->spec->patterns[i]) == 0;
    if (!named)
        return 0;
    x->n++;
    return amp_subject_remove(&reservations, x->store, *r->key, 0, "RELEASE", NULL, err) < 0 ? -1
                                                                                             : 0;
}

int amp_reserve_release(struct amp_store *s, const struct amp_reserve_spec *spec,
                        uint32_t *n_released, struct amp_error *err)
{
    struct release r = {.store = s, .spec = spec};
    if (amp_subject_of(&reservations, s, amp_span_str(spec->holder), release_one, &r, err) < 0)
        return -1;
    if (n_released)
        *n_released = r.n;
    return 0;
}

/* ---- the file for the hooks ---- */

static int line_add(void *ctx, const struct amp_reservation *r, int64_t since_ms,
                    struct amp_error *err)
{
    struct amp_buf *out = ctx;
    (void)since_ms;
    return amp_buf_fmt(out, err, "%.*s %.*s %.*s\n", (int)r->holder.n, r->holder.p,
                       r->task.n ? (int)r->task.n : 1, r->task.n ? r->task.p : "-",
                       (int)r->pattern.n, r->pattern.p);
}

int amp_reserve_publish(struct amp_store *s, const char *common, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_CLOSE int fd = -1, lock = -1;
    /* The list is read under the lock, so that the last writer has the newest. */
    if (amp_repository_lock(common, AMP_RESERVED_FILE ".lock", 10000, &fd, &lock, err) < 0)
        return -1;
    amp_buf_init(&text, AMP_RESERVED_MAX);
    if (amp_buf_str(&text, "amp-reservations 1\n", err) < 0)
        return -1;
    size_t head = text.len;
    if (amp_reserve_each(s, line_add, &text, err) < 0)
        return -1;
    if (text.len == head && faccessat(fd, AMP_RESERVED_FILE, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    return amp_file_write_atomic(fd, AMP_RESERVED_FILE, 0644, amp_buf_span(&text), err);
}

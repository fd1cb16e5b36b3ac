/* The files of trusted keys and their principals, parsed once and read again after a change. */
#include "message/identity/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "message/identity/signature.h"
#include "message/identity/trust/line.h"

enum { FILES_MAX = 8, ENTRIES_MAX = 1 << 17 };

/* The version of a file that was read. */
struct version {
    bool exists;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec time;
};

struct source {
    char *path, *revoked;
    bool local, required;
    struct version version[2]; /* of path, of revoked */
};

struct entry {
    struct amp_trust_entry e;
    struct amp_pubkey key;
    uint32_t next; /* with the same hash, + 1 */
};

struct revoked {
    char fingerprint[AMP_FINGERPRINT_MAX];
    int64_t from_ms;
};

/* The contents of all files. */
struct contents {
    struct amp_buf text[FILES_MAX]; /* the entries refer to it */
    struct entry *entry;
    struct revoked *revoked;
    uint32_t n, cap, n_revoked, cap_revoked;
    uint32_t *bucket; /* the first entry + 1 */
    uint32_t buckets; /* a power of 2 */
};

struct amp_trust {
    amp_trust_finding_fn finding;
    void *ctx;
    struct source source[FILES_MAX];
    uint32_t n;
    struct contents now;
};

bool amp_principal_is(struct amp_span text)
{
    size_t parts = 1, start = 0;
    bool dot = false;
    if (text.n == 0 || text.n >= AMP_PRINCIPAL_MAX)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '@' || c == '+';
        if (c == '/') {
            if (dot || i == start || ++parts > 2)
                return false;
            start = i + 1;
        } else if (!letter && ((c != '.' && c != '-') || i == start)) {
            return false;
        }
        dot = dot || c == '.';
    }
    return start < text.n && (parts == 2 || !dot);
}

static void contents_release(struct contents *c)
{
    for (size_t i = 0; i < FILES_MAX; i++)
        amp_buf_release(&c->text[i]);
    free(c->entry);
    free(c->revoked);
    free(c->bucket);
    *c = (struct contents){0};
}

int amp_trust_new(amp_trust_finding_fn finding, void *ctx, struct amp_trust **out,
                  struct amp_error *err)
{
    struct amp_trust *t = calloc(1, sizeof *t);
    if (!t)
        return amp_fail_memory(err);
    t->finding = finding;
    t->ctx = ctx;
    *out = t;
    return 0;
}

void amp_trust_free(struct amp_trust *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n; i++) {
        free(t->source[i].path);
        free(t->source[i].revoked);
    }
    contents_release(&t->now);
    free(t);
}

void amp_auto_trust(struct amp_trust **t)
{
    amp_trust_free(*t);
}

static void finding_report(const struct amp_trust *t, const char *path, uint32_t line,
                           const char *code, const char *what)
{
    if (t->finding)
        t->finding(t->ctx, &(struct amp_trust_finding){
                               .path = path, .code = code, .what = what, .line = line});
}

/* Reading */

static struct version version_of(const struct stat *st)
{
    return (struct version){.exists = true,
                            .dev = st->st_dev,
                            .ino = st->st_ino,
                            .size = st->st_size,
                            .time = st->st_mtim};
}

static bool version_same(const struct version *a, const struct version *b)
{
    return a->exists == b->exists && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->time.tv_sec == b->time.tv_sec && a->time.tv_nsec == b->time.tv_nsec;
}

/* Reads a file into an empty buffer; a missing one has no bytes. A file of a state is not read
 * through a symbolic link. */
static int file_text(const struct source *s, const char *path, bool required, struct amp_buf *out,
                     struct version *version, struct amp_error *err)
{
    struct stat st;
    *version = (struct version){0};
    AMP_CLOSE int fd =
        open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | (s->local ? O_NOFOLLOW : 0));
    if (fd < 0 && errno == ENOENT && !required)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return amp_fail_errno(err, AMP_CONFIG, "cannot read %s", path);
    if (!S_ISREG(st.st_mode))
        return amp_fail(err, AMP_CONFIG, not_a_file, "%s is not a regular file", path);
    if (st.st_mode & S_IWOTH)
        return amp_fail(err, AMP_NOPERM, trust_permissions,
                        "any user may write %s (mode %04o): chmod o-w", path,
                        (unsigned)st.st_mode & 07777);
    if (st.st_size > AMP_TRUST_FILE_MAX)
        return amp_fail(err, AMP_CONFIG, file_too_large, "%s is larger than 16 MiB", path);
    enum amp_read got;
    while ((got = amp_read_more(fd, out, 64 << 10, path, err)) == AMP_READ_BYTES)
        ;
    if (got == AMP_READ_FAILED)
        return -1;
    *version = version_of(&st);
    return 0;
}

static int revocation_add(struct contents *c, const struct revocation *r, struct amp_error *err)
{
    if (c->n_revoked == c->cap_revoked) {
        uint32_t cap = c->cap_revoked ? 2 * c->cap_revoked : 16;
        struct revoked *v = realloc(c->revoked, cap * sizeof *v);
        if (!v)
            return amp_fail_memory(err);
        c->revoked = v;
        c->cap_revoked = cap;
    }
    struct revoked *to = &c->revoked[c->n_revoked++];
    amp_span_copy(r->fingerprint, to->fingerprint, sizeof to->fingerprint);
    to->from_ms = r->from_ms;
    return 0;
}

static int revocations_read(struct amp_trust *t, struct contents *c, const char *path,
                            struct amp_span text, struct amp_error *err)
{
    struct amp_span line;
    struct revocation r;
    for (uint32_t n = 1; identity_line_cut(&text, &line); n++) {
        switch (identity_revocation_line(line, &r)) {
        case TRUST_LINE_EMPTY:
            break;
        case TRUST_LINE_ENTRY:
            if (revocation_add(c, &r, err) < 0)
                return -1;
            break;
        case TRUST_LINE_BAD:
            /* Ignoring it could accept a key that was revoked. */
            finding_report(t, path, n, AMP_CODE(bad_revocation),
                           "expected: FINGERPRINT TIME [REASON]");
            return amp_fail(err, AMP_CONFIG, bad_revocation,
                            "%s:%u: malformed revocation (expected: FINGERPRINT TIME [REASON])",
                            path, n);
        }
    }
    return 0;
}

static int entry_add(struct contents *c, const struct source *s, const struct trust_line *l,
                     uint32_t number, struct amp_error *err)
{
    if (c->n == c->cap) {
        uint32_t cap = c->cap ? 2 * c->cap : 16;
        struct entry *v = cap <= ENTRIES_MAX ? realloc(c->entry, cap * sizeof *v) : NULL;
        if (!v)
            return cap > ENTRIES_MAX
                       ? amp_fail(err, AMP_CONFIG, too_many, "%s: too many lines", s->path)
                       : amp_fail_memory(err);
        c->entry = v;
        c->cap = cap;
    }
    struct entry *e = &c->entry[c->n++];
    e->key = l->key;
    e->e = (struct amp_trust_entry){.principals = l->principals,
                                    .namespaces = l->namespaces,
                                    .valid_after_s = l->valid_after_s,
                                    .valid_before_s = l->valid_before_s,
                                    .path = s->path,
                                    .line = number,
                                    .local = s->local};
    return 0;
}

static int entries_read(struct amp_trust *t, struct contents *c, const struct source *s,
                        struct amp_span text, struct amp_error *err)
{
    struct amp_span line;
    struct trust_line l;
    for (uint32_t n = 1; identity_line_cut(&text, &line); n++) {
        switch (identity_trust_line(line, &l)) {
        case TRUST_LINE_EMPTY:
            break;
        case TRUST_LINE_ENTRY:
            if (entry_add(c, s, &l, n, err) < 0)
                return -1;
            break;
        case TRUST_LINE_BAD:
            finding_report(t, s->path, n, l.code, l.what);
            break;
        }
    }
    return 0;
}

/* A fingerprint is a digest; its letters are a hash. */
static uint32_t bucket_of(const struct contents *c, struct amp_span fingerprint)
{
    uint32_t h = 2166136261U;
    for (size_t i = 7; i < fingerprint.n; i++)
        h = (h ^ (unsigned char)fingerprint.p[i]) * 16777619U;
    return h & (c->buckets - 1);
}

/* Links the entries, after the last one was added and their places are final. */
static int entries_link(struct contents *c, struct amp_error *err)
{
    for (c->buckets = 16; c->buckets < 2 * c->n;)
        c->buckets *= 2;
    c->bucket = calloc(c->buckets, sizeof *c->bucket);
    if (!c->bucket)
        return amp_fail_memory(err);
    for (uint32_t i = c->n; i-- > 0;) {
        struct entry *e = &c->entry[i];
        e->e.key = &e->key;
        for (uint32_t r = 0; r < c->n_revoked; r++)
            if (!strcmp(c->revoked[r].fingerprint, e->key.fingerprint) &&
                (e->e.revoked_ms == 0 || c->revoked[r].from_ms < e->e.revoked_ms))
                e->e.revoked_ms = c->revoked[r].from_ms;
        uint32_t b = bucket_of(c, amp_span_str(e->key.fingerprint));
        e->next = c->bucket[b];
        c->bucket[b] = i + 1;
    }
    return 0;
}

static int contents_read(struct amp_trust *t, struct contents *c, struct amp_error *err)
{
    struct version version[FILES_MAX][2];
    for (uint32_t i = 0; i < t->n; i++) {
        struct source *s = &t->source[i];
        AMP_BUF struct amp_buf revoked = {0};
        amp_buf_init(&revoked, AMP_TRUST_FILE_MAX + (64 << 10) + 1);
        amp_buf_init(&c->text[i], AMP_TRUST_FILE_MAX + (64 << 10) + 1);
        if (file_text(s, s->path, s->required, &c->text[i], &version[i][0], err) < 0 ||
            file_text(s, s->revoked, false, &revoked, &version[i][1], err) < 0 ||
            revocations_read(t, c, s->revoked, amp_buf_span(&revoked), err) < 0 ||
            entries_read(t, c, s, amp_buf_span(&c->text[i]), err) < 0)
            return -1;
    }
    if (entries_link(c, err) < 0)
        return -1;
    for (uint32_t i = 0; i < t->n; i++)
        memcpy(t->source[i].version, version[i], sizeof version[i]);
    return 0;
}

static int trust_read(struct amp_trust *t, struct amp_error *err)
{
    struct contents c = {0};
    if (contents_read(t, &c, err) < 0) {
        contents_release(&c);
        return -1;
    }
    contents_release(&t->now);
    t->now = c;
    return 0;
}

int amp_trust_add(struct amp_trust *t, const char *path, bool local, bool required,
                  struct amp_error *err)
{
    if (t->n == FILES_MAX)
        return amp_fail(err, AMP_CONFIG, too_many, "more than 8 files of allowed signers");
    AMP_BUF struct amp_buf revoked = {0};
    amp_buf_init(&revoked, 8192);
    if (amp_buf_fmt(&revoked, err, "%s.revoked", path) < 0)
        return -1;
    struct source *s = &t->source[t->n];
    *s = (struct source){.path = strdup(path),
                         .revoked = amp_span_dup(amp_buf_span(&revoked)),
                         .local = local,
                         .required = required};
    t->n++;
    int rc = s->path && s->revoked ? trust_read(t, err) : amp_fail_memory(err);
    if (rc < 0) {
        t->n--;
        free(s->path);
        free(s->revoked);
        *s = (struct source){0};
    }
    return rc;
}

int amp_trust_refresh(struct amp_trust *t, struct amp_error *err)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const char *const path[] = {t->source[i].path, t->source[i].revoked};
        for (int k = 0; k < 2; k++) {
            struct stat st;
            struct version v = {0};
            if (stat(path[k], &st) == 0)
                v = version_of(&st);
            if (!version_same(&v, &t->source[i].version[k]))
                return trust_read(t, err);
        }
    }
    return 0;
}

/* Searching */

/* The key's principal by which it may speak for `who`; false: none. */
static bool principal_of(struct amp_span list, struct amp_span who, struct amp_span *out)
{
    struct amp_span p;
    enum identity_match match = who.n > 0 ? identity_patterns(who, list) : IDENTITY_NO_MATCH;
    /* A role with an empty name, such as "operator/", is not a principal. */
    if (who.n >= AMP_PRINCIPAL_MAX || (who.n > 0 && who.p[who.n - 1] == '/'))
        return false;
    if (match != IDENTITY_NO_MATCH) {
        *out = who;
        return match == IDENTITY_MATCH;
    }
    while (identity_pattern_cut(&list, &p)) {
        if (p.n == 0 || p.p[0] == '!')
            continue;
        *out = p;
        if (who.n == 0 || (p.n > who.n + 1 && memcmp(p.p, who.p, who.n) == 0 && p.p[who.n] == '/'))
            return true;
    }
    return false;
}

/* The obstacles to the use of an entry, the least specific first. */
enum obstacle { OTHER_KEY, OTHER_NAMESPACE, OTHER_SENDER, REVOKED, OUT_OF_TIME, NO_OBSTACLE };

static enum obstacle entry_check(const struct amp_trust_entry *e, const char *ns,
                                 struct amp_span who, int64_t time_ms, struct amp_span *principal)
{
    int64_t s = time_ms / 1000;
    if (e->namespaces.n > 0 && identity_patterns(amp_span_str(ns), e->namespaces) != IDENTITY_MATCH)
        return OTHER_NAMESPACE;
    if (!principal_of(e->principals, who, principal))
        return OTHER_SENDER;
    if (e->revoked_ms != 0 && time_ms >= e->revoked_ms)
        return REVOKED;
    if ((e->valid_after_s != 0 && s < e->valid_after_s) ||
        (e->valid_before_s != 0 && s > e->valid_before_s))
        return OUT_OF_TIME;
    return NO_OBSTACLE;
}

static int find_failed(enum obstacle o, const struct amp_trust_entry *e, struct amp_span key,
                       struct amp_span who, struct amp_error *err)
{
    char from[AMP_TIME_MAX];
    switch (o) {
    case REVOKED:
        amp_time_format(e->revoked_ms, from);
        return amp_fail(err, AMP_NO, key_revoked, "the key %s is revoked from %s on",
                        e->key->fingerprint, from);
    case OUT_OF_TIME:
        return amp_fail(err, AMP_NO, key_expired,
                        "the key %s was not valid at the time of the signature (%s:%u)",
                        e->key->fingerprint, e->path, e->line);
    case OTHER_SENDER:
        return amp_fail(err, AMP_NO, bad_sender, "the key %s of %.*s may not speak for \"%.*s\"",
                        e->key->fingerprint, AMP_CLIP(e->principals, 80), AMP_CLIP(who, 80));
    case OTHER_NAMESPACE:
        return amp_fail(err, AMP_NO, unknown_key, "the key %s is not for messages (%s:%u)",
                        e->key->fingerprint, e->path, e->line);
    default:
        return amp_fail(err, AMP_NO, unknown_key, "no trusted key has the fingerprint %.*s",
                        AMP_CLIP(key, 64));
    }
}

int amp_trust_find(const struct amp_trust *t, struct amp_span fingerprint, const char *ns,
                   struct amp_span who, int64_t time_ms, const struct amp_trust_entry **entry,
                   char principal[AMP_PRINCIPAL_MAX], struct amp_error *err)
{
    const struct contents *c = &t->now;
    const struct amp_trust_entry *best = NULL;
    enum obstacle least = OTHER_KEY;
    struct amp_span by = {"", 0}, first = {"", 0};
    if (fingerprint.n != AMP_FINGERPRINT_MAX - 1 || c->n == 0)
        return find_failed(OTHER_KEY, NULL, fingerprint, who, err);
    for (uint32_t i = c->bucket[bucket_of(c, fingerprint)]; i > 0; i = c->entry[i - 1].next) {
        const struct entry *e = &c->entry[i - 1];
        if (memcmp(fingerprint.p, e->key.fingerprint, fingerprint.n) != 0)
            continue;
        struct amp_span p = {"", 0};
        enum obstacle o = entry_check(&e->e, ns, who, time_ms, &p);
        if (o > least) {
            least = o;
            best = &e->e;
            by = p;
        }
        if (o == NO_OBSTACLE)
            break;
    }
    if (least == NO_OBSTACLE || least == OTHER_SENDER) {
        if (least == OTHER_SENDER && principal_of(best->principals, first, &first))
            by = first;
        *entry = best;
        amp_span_copy(by, principal, AMP_PRINCIPAL_MAX);
    }
    return least == NO_OBSTACLE ? 0 : find_failed(least, best, fingerprint, who, err);
}

bool amp_trust_is(const struct amp_trust *t, struct amp_span fingerprint, struct amp_span principal,
                  int64_t time_ms)
{
    const struct contents *c = &t->now;
    if (fingerprint.n != AMP_FINGERPRINT_MAX - 1 || c->n == 0 || principal.n == 0)
        return false;
    for (uint32_t i = c->bucket[bucket_of(c, fingerprint)]; i > 0; i = c->entry[i - 1].next) {
        const struct entry *e = &c->entry[i - 1];
        struct amp_span p;
        if (memcmp(fingerprint.p, e->key.fingerprint, fingerprint.n) == 0 &&
            entry_check(&e->e, AMP_SIGN_MESSAGES, principal, time_ms, &p) == NO_OBSTACLE &&
            amp_patterns_match(principal, e->e.principals))
            return true;
    }
    return false;
}

int amp_trust_each(const struct amp_trust *t, amp_trust_each_fn fn, void *ctx,
                   struct amp_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < t->now.n && rc == 0; i++)
        rc = fn(ctx, &t->now.entry[i].e, err);
    return rc;
}

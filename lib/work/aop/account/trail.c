/*
 * Writes the audit trail of a session.
 *
 * A record has the number of its entry, audit_sequence. Under the lock on the file, what follows
 * the last LF is cut off; the number of the last line says which entries are missing. They are
 * added by writes of complete lines, so a process that is killed leaves at most one incomplete
 * line.
 */
#include "work/aop/account/trail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "work/aop/session/private.h"
#include "json/record.h"

#define AUDIT_VERSION "1.0.0"
#define SOURCE_MAX    17
#define RECORD_MAX    ((size_t)16 << 20) /* bytes of a record */
#define FILE_MAX      ((size_t)1 << 30)
#define CHUNK         ((size_t)1 << 20)
#define LOCK_MS       10000
#define ROUNDS_MAX    16 /* another process may make the file again */

typedef void (*note_fn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Names the state directory that wrote a record: two of them may have TASKs of the same session,
 * and then each has a file of its own. */
static void source_of(struct amp_store *s, char out[SOURCE_MAX])
{
    char path[PATH_MAX], hex[AMP_SHA256_MAX];

    if (!realpath(amp_store_dir(s), path))
        snprintf(path, sizeof path, "%s", amp_store_dir(s));
    amp_sha256_hex(amp_span_str(path), hex);
    snprintf(out, SOURCE_MAX, "%.16s", hex);
}

/* ---- records ---- */

/* The payload of a rollback: the members of its EVENT that upstream's records have. */
static int rollback_write(struct amp_jw *w, const struct amp_session_entry *e,
                          struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    AMP_BUF struct amp_buf payload = {.max = RECORD_MAX};
    struct amp_jw p;
    bool failed = false;

    amp_rec_tape(&t);
    if (amp_rec_scan(&t, e->json, "an EVENT", err) < 0)
        return -1;
    uint32_t trigger = amp_tape_get(&t, 0, AMP_SPAN("trigger"));
    uint32_t files = amp_tape_get(&t, 0, AMP_SPAN("artifacts_rolled_back"));
    if (files != AMP_TOK_NONE && t.tok[files].type == AMP_JSON_ARRAY)
        for (uint32_t i = files + 1; i < t.tok[files].next; i = t.tok[i].next) {
            uint32_t status = amp_tape_get(&t, i, AMP_SPAN("status"));
            failed |= status != AMP_TOK_NONE && !amp_tok_is(&t, status, AMP_SPAN("SUCCESS"));
        }
    amp_jw_init(&p, &payload);
    amp_jw_open(&p, '{');
    amp_jw_member_raw(&p, "trigger",
                      trigger == AMP_TOK_NONE ? AMP_SPAN("null") : amp_tok_source(&t, trigger));
    amp_jw_member_raw(&p, "artifacts_rolled_back",
                      files == AMP_TOK_NONE ? AMP_SPAN("[]") : amp_tok_source(&t, files));
    amp_jw_member_text(&p, "status", failed ? "FAILED" : "SUCCESS");
    amp_jw_close(&p, '}');
    if (amp_jw_end(&p, err) < 0)
        return -1;
    const struct amp_session_audit a = {.session = e->session,
                                        .attempt = e->attempt,
                                        .role = "ORCHESTRATOR",
                                        .actor = AMP_SPAN("rollback"),
                                        .payload = amp_buf_span(&payload),
                                        .access = "N/A",
                                        .reason = failed ? AMP_CODE_SPAN(E_ROLLBACK_FAILED)
                                                         : AMP_SPAN("")};
    amp_session_audit_members(w, &a);
    return 0;
}

/* Appends the record of an entry, one line with LF; nothing for an EVENT. */
static int record_write(const struct amp_session_entry *e, const char *source, struct amp_buf *out,
                        struct amp_error *err)
{
    struct amp_jw w;

    if (e->type == AMP_SESSION_ENTRY_EVENT)
        return 0;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_uint(&w, "audit_sequence", e->seq);
    amp_jw_member_text(&w, "audit_source", source);
    amp_jw_member_str(&w, "audit_record_id", e->id);
    amp_jw_member_text(&w, "audit_version", AUDIT_VERSION);
    amp_rec_time(&w, "timestamp", e->at_ms);
    amp_jw_member_str(&w, "session_id", e->session);
    amp_jw_member_str(&w, "task_id", e->task.n > 0 ? e->task : AMP_SPAN("SESSION"));
    amp_jw_member_text(&w, "record_type", amp_session_entry_name(e->type));
    if (e->type == AMP_SESSION_ENTRY_ROLLBACK_EVENT) {
        if (rollback_write(&w, e, err) < 0)
            return -1;
    } else {
        AMP_TAPE struct amp_tape t = {0};
        amp_rec_tape(&t);
        if (amp_rec_scan(&t, e->json, "an audit record", err) < 0)
            return -1;
        for (uint32_t key = 1; key < t.tok[0].next; key = t.tok[key + 1].next) {
            char name[64];
            if (!amp_span_copy(amp_tok_raw(&t, key), name, sizeof name))
                return amp_fail(err, AMP_DATAERR, bad_record, "an audit record has a long key");
            amp_jw_member_raw(&w, name, amp_tok_source(&t, key + 1));
        }
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

/* ---- the place ---- */

int amp_trail_place(const struct amp_session_voice *v, struct amp_span session, const char *dir,
                    const char *storage, struct amp_error *err)
{
    bool absolute = storage[0] == '/';
    struct amp_span rest = amp_span_str(storage);

    while (rest.n > 0) {
        const char *slash = memchr(rest.p, '/', rest.n);
        struct amp_span part = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        if (amp_span_is(part, ".."))
            return amp_fail(err, AMP_USAGE, bad_path, "audit_trail.storage_path %s has \"..\"",
                            storage);
        rest.p += part.n + (slash ? 1 : 0);
        rest.n -= part.n + (slash ? 1 : 0);
    }
    if (!absolute && dir[0] != '/')
        return amp_fail(err, AMP_USAGE, bad_path, "%s is not an absolute path", dir);
    const struct amp_session_change c = {.event = AMP_SESSION_EV_PLACE,
                                         .session = session,
                                         .storage = amp_span_str(storage),
                                         .trail = amp_span_str(absolute ? storage : dir)};
    return amp_session_step(v, &c, err) < 0 ? -1 : 0;
}

/* Opens the directory of the trail and makes what is missing of it. */
static int dir_open(const struct amp_session *x, struct amp_error *err)
{
    char base[PATH_MAX], part[NAME_MAX + 1];
    struct amp_span rest = x->storage.n > 0 && x->storage.p[0] == '/' ? AMP_SPAN("") : x->storage;

    if (!amp_span_copy(x->trail, base, sizeof base))
        return amp_fail(err, AMP_USAGE, bad_path, "the path of the audit trail is too long");
    if (rest.n == 0 && amp_mkdirs(base, 0777, err) < 0)
        return -1;
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", base);
    while (rest.n > 0) {
        const char *slash = memchr(rest.p, '/', rest.n);
        struct amp_span name = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        rest.p += name.n + (slash ? 1 : 0);
        rest.n -= name.n + (slash ? 1 : 0);
        if (name.n == 0 || amp_span_is(name, "."))
            continue;
        bool fits = amp_span_copy(name, part, sizeof part);
        if (!fits)
            errno = ENAMETOOLONG;
        bool is = fits && (mkdirat(fd, part, 0777) == 0 || errno == EEXIST);
        int next =
            is ? amp_open_beneath(fd, part, O_RDONLY | O_DIRECTORY, 0, err)
               : amp_fail_errno(err, AMP_CANTCREAT, "%s/%.*s", base, AMP_CLIP(x->storage, 400));
        close(fd);
        if (next < 0)
            return -1;
        fd = next;
    }
    return fd;
}

/* ---- the file ---- */

struct trail {
    struct amp_store *store;
    struct amp_session x;
    char source[SOURCE_MAX], name[NAME_MAX + 1];
    int dir, fd;
    bool empty;           /* it has no complete line */
    uint64_t last;        /* the number of the last line; 0: it has none */
    struct amp_buf tail;  /* the last line, without LF; empty: not one of ours */
    struct amp_buf lines; /* not written yet */
};

static void trail_release(struct trail *t)
{
    amp_auto_close(&t->dir);
    amp_auto_close(&t->fd);
    amp_buf_release(&t->tail);
    amp_buf_release(&t->lines);
}

static void name_make(struct trail *t, bool own)
{
    char hex[AMP_SHA256_MAX] = "";
    struct amp_span id = t->x.id;

    if (!amp_id_is_safe(id)) {
        amp_sha256_hex(id, hex);
        id = amp_span_str(hex);
    }
    snprintf(t->name, sizeof t->name, "%.*s%s%s.ndjson", (int)id.n, id.p, own ? "." : "",
             own ? t->source : "");
}

static bool is_current(const struct trail *t)
{
    struct stat a, b;

    return fstat(t->fd, &a) == 0 && fstatat(t->dir, t->name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Opens and locks the file that has the name. */
static int file_open(struct trail *t, struct amp_error *err)
{
    struct stat st;

    for (int round = 0; round < ROUNDS_MAX; round++) {
        amp_auto_close(&t->fd);
        t->fd = amp_open_beneath(t->dir, t->name, O_RDWR | O_CREAT | O_NONBLOCK, 0666, err);
        if (t->fd < 0)
            return -1;
        if (fstat(t->fd, &st) < 0)
            return amp_fail_errno(err, AMP_IOERR, "%s", t->name);
        if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
            return amp_fail(err, AMP_NOPERM, not_a_file,
                            "%s is not a file, or has another name, too", t->name);
        if (amp_lock(t->fd, LOCK_MS, err) < 0)
            return -1;
        if (is_current(t))
            return 0;
    }
    return amp_fail(err, AMP_TEMPFAIL, lock_timeout, "%s: replaced again and again", t->name);
}

/* Cuts an incomplete line off, and reads the last complete one. */
static int tail_read(struct trail *t, struct amp_error *err)
{
    struct stat st;
    off_t end = -1, start = 0;
    char block[8192];

    amp_buf_reset(&t->tail);
    t->last = 0;
    if (fstat(t->fd, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", t->name);
    for (off_t at = st.st_size; at > 0 && (end < 0 || start == 0);) {
        size_t n = at < (off_t)sizeof block ? (size_t)at : sizeof block;
        at -= (off_t)n;
        if (pread(t->fd, block, n, at) != (ssize_t)n)
            return amp_fail_errno(err, AMP_IOERR, "%s", t->name);
        for (size_t i = n; i-- > 0 && start == 0;) {
            if (block[i] != '\n')
                continue;
            if (end < 0)
                end = at + (off_t)i;
            else
                start = at + (off_t)i + 1;
        }
        if (end >= 0 && end - at > (off_t)RECORD_MAX)
            break;
    }
    if (end + 1 != st.st_size && ftruncate(t->fd, end + 1) < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", t->name);
    t->empty = end < 0;
    size_t n = t->empty ? 0 : (size_t)(end - start);
    if (n == 0 || n > RECORD_MAX)
        return 0;
    if (amp_buf_reserve(&t->tail, n, err) < 0)
        return -1;
    if (pread(t->fd, t->tail.data, n, start) != (ssize_t)n)
        return amp_fail_errno(err, AMP_IOERR, "%s", t->name);
    t->tail.len = n;
    return 0;
}

enum whose { NOBODYS, OURS, ANOTHERS };

static enum whose tail_whose(struct trail *t)
{
    AMP_TAPE struct amp_tape tape = {0};
    struct amp_json_fault fault;
    int64_t n;

    amp_rec_tape(&tape);
    if (t->tail.len == 0 || amp_tape_scan(&tape, t->tail.data, t->tail.len, &fault) < 0)
        return NOBODYS;
    uint32_t seq = amp_tape_get(&tape, 0, AMP_SPAN("audit_sequence"));
    uint32_t source = amp_tape_get(&tape, 0, AMP_SPAN("audit_source"));
    if (seq == AMP_TOK_NONE || source == AMP_TOK_NONE || !amp_tok_int(&tape, seq, &n) || n <= 0)
        return NOBODYS;
    t->last = (uint64_t)n;
    return amp_tok_is(&tape, source, amp_span_str(t->source)) ? OURS : ANOTHERS;
}

struct expected {
    const struct trail *t;
    bool same;
};

static int tail_compare(void *ctx, const struct amp_session_entry *e, struct amp_error *err)
{
    struct expected *x = ctx;
    AMP_BUF struct amp_buf line = {.max = RECORD_MAX};

    if (e->seq != x->t->last)
        return 1;
    if (record_write(e, x->t->source, &line, err) < 0)
        return -1;
    x->same =
        line.len == x->t->tail.len + 1 && memcmp(line.data, x->t->tail.data, x->t->tail.len) == 0;
    return 1;
}

static int lines_write(struct trail *t, struct amp_error *err)
{
    if (t->lines.len == 0)
        return 0;
    if (amp_store_sync(t->store, err) < 0) /* what was read may be another process's */
        return -1;
    if (lseek(t->fd, 0, SEEK_END) < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", t->name);
    int rc = amp_write_all(t->fd, amp_buf_span(&t->lines), err);
    amp_buf_reset(&t->lines);
    return rc;
}

static int entry_append(void *ctx, const struct amp_session_entry *e, struct amp_error *err)
{
    struct trail *t = ctx;

    if (record_write(e, t->source, &t->lines, err) < 0)
        return -1;
    return t->lines.len < CHUNK ? 0 : lines_write(t, err);
}

static int entry_collect(void *ctx, const struct amp_session_entry *e, struct amp_error *err)
{
    struct trail *t = ctx;
    return record_write(e, t->source, &t->lines, err);
}

/* Makes the complete file again, if it is not what the store has. 1: another program has changed
 * it, not only cut it; 0. */
static int file_remake(struct trail *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf now = {.max = FILE_MAX};
    struct amp_error why;
    struct stat st;

    if (fstat(t->fd, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", t->name);
    amp_buf_reset(&t->lines);
    if (amp_session_entries(t->store, t->x.id, 0, entry_collect, t, err) < 0)
        return -1;
    struct amp_span made = amp_buf_span(&t->lines);
    if (amp_store_sync(t->store, err) < 0)
        return -1;
    bool begins = amp_file_read(t->dir, t->name, FILE_MAX, &now, &why) == 0 && now.len <= made.n &&
                  (now.len == 0 || memcmp(now.data, made.p, now.len) == 0);
    if (begins && now.len == made.n)
        return 0;
    return amp_file_write_atomic(t->dir, t->name, st.st_mode & 0666, made, err) < 0 ? -1 : !begins;
}

/* The default directory is not in the way of the repository's user: git does not list it. A
 * repository whose list cannot be written gets the trail nevertheless. */
static void dir_hide(const struct trail *t, note_fn note)
{
    char base[PATH_MAX];
    struct amp_repository repo;
    struct amp_error why = {0};

    if (!amp_span_is(t->x.storage, AMP_TRAIL_DEFAULT) ||
        faccessat(t->dir, t->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
        !amp_span_copy(t->x.trail, base, sizeof base) ||
        amp_repository_find(base, &repo, &why) < 0 || !repo.found || strcmp(repo.top, base) != 0)
        return;
    if (amp_repository_exclude(repo.common, "/" AMP_TRAIL_DEFAULT, &why) < 0 && note)
        note("git does not ignore the audit trail: %s", why.what);
}

static int trail_open(struct trail *t, bool *is_ours, note_fn note, struct amp_error *err)
{
    bool own = false;

    t->dir = dir_open(&t->x, err);
    if (t->dir < 0)
        return -1;
    name_make(t, own);
    dir_hide(t, note);
    for (;;) {
        name_make(t, own);
        if (file_open(t, err) < 0 || tail_read(t, err) < 0)
            return -1;
        enum whose whose = tail_whose(t);
        if (whose == ANOTHERS && !own) {
            own = true;
            continue;
        }
        *is_ours = whose == OURS || t->empty;
        return 0;
    }
}

static int trail_update(struct trail *t, bool verify, note_fn note, struct amp_error *err)
{
    bool ours;

    if (trail_open(t, &ours, note, err) < 0)
        return -1;
    struct expected x = {t, t->empty};
    if (ours && !t->empty &&
        amp_session_entries(t->store, t->x.id, t->last - 1, tail_compare, &x, err) < 0)
        return -1;
    if (verify || !ours || !x.same) {
        int changed = file_remake(t, err);
        if (changed > 0 && note)
            note("%s was changed by another program: made again", t->name);
        return changed < 0 ? -1 : 0;
    }
    return amp_session_entries(t->store, t->x.id, t->last, entry_append, t, err) < 0 ||
                   lines_write(t, err) < 0
               ? -1
               : 0;
}

static int trail_run(struct amp_store *s, struct amp_span session, bool verify, note_fn note,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct trail t = {.store = s, .dir = -1, .fd = -1};

    int found = amp_session_find(s, session, &mem, &t.x, err);
    if (found <= 0 || t.x.trail.n == 0)
        return found < 0 ? -1 : 1;
    if (amp_store_sync(s, err) < 0)
        return -1;
    amp_buf_init(&t.tail, RECORD_MAX);
    amp_buf_init(&t.lines, FILE_MAX);
    source_of(s, t.source);
    int rc = trail_update(&t, verify, note, err);
    trail_release(&t);
    return rc;
}

int amp_trail_write(struct amp_store *s, struct amp_span session, note_fn note,
                    struct amp_error *err)
{
    return trail_run(s, session, false, note, err);
}

int amp_trail_verify(struct amp_store *s, struct amp_span session, note_fn note,
                     struct amp_error *err)
{
    return trail_run(s, session, true, note, err);
}

/* Verifies the log with its key. */
#include "message/store/history/verify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codes.h"
#include "message/store/store_int.h"

struct verify {
    struct amp_store *s;
    const struct amp_store_verify *how;
    struct amp_store_verdict v;
    struct amp_pos was;   /* after the frame before */
    uint64_t next;        /* that a repair frame before names */
    bool was_keyed;       /* the frame before has an m */
    bool other_key;       /* a frame before the key's first one has an m, too */
    uint64_t first_noted; /* when the scan began */
    /* Bytes at the end of a segment that no reader uses; seg 0: none. After a failed write, a
     * repair writes the frames there again into the next segment, with a repair frame. */
    struct {
        uint32_t seg;
        uint64_t off, n;
    } unused;
    struct amp_frame_arena arena;
    struct amp_buf text;
};

static int log_tampered(struct verify *w, uint32_t seg, uint64_t off, uint64_t n,
                        struct amp_error *err, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

static int log_tampered(struct verify *w, uint32_t seg, uint64_t off, uint64_t n,
                        struct amp_error *err, const char *fmt, ...)
{
    char what[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    w->v.seg = seg;
    w->v.off = off;
    w->v.n = n;
    return amp_fail(err, AMP_NO, log_tampered, "log/%06u.ndjson, offset %" PRIu64 ": %s", seg, off,
                    what);
}

static void finding_note(const struct verify *w, uint32_t seg, uint64_t off, const char *what)
{
    if (w->how->note)
        w->how->note(w->how->ctx, seg, off, what);
}

static int seal_verify(struct verify *w, const struct amp_frame_head *h, struct amp_span frame,
                       struct amp_place at, struct amp_error *err)
{
    struct amp_span sig;
    struct amp_error why = {0};
    w->v.seals++;
    amp_buf_reset(&w->text);
    if (!amp_chain_head(&w->s->chain, h->n, frame, &w->text, &sig)) {
        finding_note(w, at.seg, at.off, "this seal has no signature");
        return 0;
    }
    w->v.signed_++;
    if (!w->how->check || w->how->check(w->how->ctx, amp_buf_span(&w->text), sig, &why) == 0)
        return 0;
    if (why.status != AMP_NO)
        return amp_fail_again(err, why.status, "a seal", &why);
    return log_tampered(w, at.seg, at.off, h->n, err, "the signature of the seal: %s", why.what);
}

static int repair_note(struct verify *w, const struct amp_frame_head *h, struct amp_span frame,
                       struct amp_place at, struct amp_error *err)
{
    struct amp_frame f;
    char text[160];
    if (amp_frame_decode(frame, h, &w->arena, &f, err) < 0)
        return -1;
    w->next = (uint64_t)f.next;
    if (w->unused.seg && w->unused.seg + 1 == at.seg) {
        finding_note(w, w->unused.seg, w->unused.off, "the rest of the segment was written again");
        w->unused.seg = 0;
    }
    w->v.repairs++;
    snprintf(text, sizeof text, "repaired: %.*s", (int)(f.note.n < 120 ? f.note.n : 120), f.note.p);
    finding_note(w, at.seg, at.off, text);
    return 0;
}

/* Whether the frame may follow the one before: scan.c checked that unless it is a repair frame. */
static int order_verify(struct verify *w, const struct amp_frame_head *h, struct amp_place at,
                        struct amp_error *err)
{
    const struct amp_pos *was = &w->was;
    if (!was->n) {
        if (w->first_noted && h->n > w->first_noted)
            return log_tampered(w, at.seg, at.off, h->n, err,
                                "the log begins with frame %" PRIu64 "; frames %" PRIu64
                                " to %" PRIu64 " were removed",
                                h->n, w->first_noted, h->n - 1);
        return 0;
    }
    if (!was->loose)
        return 0;
    bool follows = h->n == was->n + 1 && h->prev == was->sum;
    if (!follows && w->was_keyed && h->n != w->next)
        return log_tampered(w, at.seg, at.off, h->n, err,
                            "frame %" PRIu64 " does not follow the repair in frame %" PRIu64, h->n,
                            was->n);
    w->v.skipped += h->n - was->n - 1;
    return 0;
}

static int frame_verify(void *ctx, const struct amp_frame_head *h, struct amp_span frame,
                        const struct amp_pos *after, struct amp_error *err)
{
    struct verify *w = ctx;
    const struct amp_chain *chain = &w->s->chain;
    struct amp_place at = amp_pos_frame(after);
    if (w->how->progress)
        w->how->progress("lines of the log", h->n, 0);
    if (order_verify(w, h, at, err) < 0)
        return -1;
    w->next = 0;
    w->was_keyed = h->n >= chain->start;
    if (w->was_keyed && !amp_chain_holds(chain, frame))
        return log_tampered(w, at.seg, at.off, h->n, err,
                            amp_chain_has(frame) ? "the keyed hash of frame %" PRIu64
                                                   " does not match"
                                                 : "frame %" PRIu64 " has no keyed hash",
                            h->n);
    if (!w->was_keyed && !w->other_key && amp_chain_has(frame)) {
        w->other_key = true;
        finding_note(w, at.seg, at.off, "earlier frames have hashes of another key, which is gone");
    }
    if (w->was_keyed && h->log == AMP_FRAME_seal && seal_verify(w, h, frame, at, err) < 0)
        return -1;
    if (h->log == AMP_FRAME_repair && repair_note(w, h, frame, at, err) < 0)
        return -1;
    if (!w->v.first)
        w->v.first = h->n;
    w->v.last = h->n;
    w->v.bytes += h->size;
    w->was = *after;
    return 0;
}

/* Reports why the scan ended at pos. */
static int bad_explain(struct verify *w, const struct amp_pos *turn, struct amp_error *err)
{
    struct amp_log *l = &w->s->log;
    struct amp_pos place = *turn, *pos = &place;
    struct amp_span frame;
    struct amp_frame_head h;
    char prefix[AMP_FRAME_PREFIX];
    amp_log_bad_frame(l, pos);
    int fd = amp_log_fd(l, pos->seg, NULL);
    ssize_t got = fd < 0 ? -1 : pread(fd, prefix, sizeof prefix, (off_t)pos->off);
    if (got == 0)
        return log_tampered(w, pos->seg, pos->off, pos->n + 1, err,
                            "the segment ends with frame %" PRIu64 ", but frames are missing",
                            pos->n);
    if (got < 0 || !amp_frame_peek(prefix, (size_t)got, &h))
        return log_tampered(w, pos->seg, pos->off, pos->n + 1, err,
                            "frame %" PRIu64 " was changed: its beginning is not that of a frame",
                            pos->n + 1);
    struct amp_place at = {.seg = pos->seg, .len = h.size, .off = pos->off};
    if (amp_log_frame(l, at, &frame, &h, NULL) < 0)
        return log_tampered(w, pos->seg, pos->off, pos->n + 1, err,
                            "frame %" PRIu64 " was changed: its checksum does not match",
                            pos->n + 1);
    if (h.n != pos->n + 1)
        return log_tampered(w, pos->seg, pos->off, h.n, err,
                            "frame %" PRIu64 " follows frame %" PRIu64, h.n, pos->n);
    return log_tampered(w, pos->seg, pos->off, h.n, err,
                        "frame %" PRIu64 " is not linked to the frame before it", h.n);
}

static bool frame_is_intact(struct amp_log *l, const struct amp_pos *pos)
{
    char prefix[AMP_FRAME_PREFIX];
    struct amp_frame_head h;
    struct amp_span frame;
    int fd = amp_log_fd(l, pos->seg, NULL);
    ssize_t got = fd < 0 ? -1 : pread(fd, prefix, sizeof prefix, (off_t)pos->off);
    return got > 0 && amp_frame_peek(prefix, (size_t)got, &h) &&
           amp_log_frame(l, (struct amp_place){pos->seg, h.size, pos->off}, &frame, &h, NULL) == 0;
}

/* The last segment ended at pos with something that is not a complete turn. */
static int tail_judge(struct verify *w, const struct amp_pos *pos, uint64_t noted,
                      struct amp_error *err)
{
    struct amp_log *l = &w->s->log;
    struct amp_pos bad = *pos;
    uint64_t size = 0;
    char text[80];
    if (amp_log_size(l, &size, NULL, err) < 0)
        return -1;
    amp_log_bad_frame(l, &bad);
    /* The caller reports frames that are missing at the end. */
    if (bad.off == size && pos->n < noted)
        return 0;
    /* A crash may leave a part of the next turn, but no intact frame that does not follow. */
    if (pos->n < noted || frame_is_intact(l, &bad) || amp_log_judge(l, pos, NULL) < 0)
        return bad_explain(w, pos, err);
    snprintf(text, sizeof text, "%" PRIu64 " bytes at the end are not a complete %s",
             size - pos->off, bad.off == pos->off ? "frame" : "turn");
    finding_note(w, pos->seg, pos->off, text);
    return 0;
}

/* Notes unused bytes behind pos, a segment's end. Bytes noted for an earlier one were inserted. */
static int segment_end(struct verify *w, const struct amp_pos *pos, struct amp_error *err)
{
    struct stat st;
    int fd = amp_log_fd(&w->s->log, pos->seg, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot stat the log");
    if (w->unused.seg && w->unused.seg < pos->seg)
        return log_tampered(w, w->unused.seg, w->unused.off, w->unused.n, err,
                            "something was inserted after frame %" PRIu64, w->unused.n);
    if (pos->seg != w->s->log.last && (uint64_t)st.st_size > pos->off && w->was_keyed) {
        w->unused.seg = pos->seg;
        w->unused.off = pos->off;
        w->unused.n = pos->n;
    }
    return 0;
}

enum scanned { SCAN_DONE, SCAN_AGAIN, SCAN_FAILED = -1 };

/* SCAN_AGAIN: the oldest segments were removed meanwhile. */
static enum scanned log_scan(struct verify *w, struct amp_error *err)
{
    struct amp_log *l = &w->s->log;
    struct amp_chain *chain = &w->s->chain;
    char name[32];
    w->s->known = false; /* other segments are open afterwards */
    w->was = (struct amp_pos){0};
    w->unused.seg = 0;
    w->v = (struct amp_store_verdict){.from = chain->start};
    uint64_t noted = w->v.noted = amp_chain_end(chain);
    if (amp_log_list(l, err) < 0) {
        if (!amp_code_is(err->code, log_damaged))
            return SCAN_FAILED;
        struct amp_error why = *err;
        return log_tampered(w, l->first, 0, 0, err, "%s", why.what), SCAN_FAILED;
    }
    w->first_noted = amp_chain_first(chain);
    struct amp_pos pos = {.seg = l->first};
    for (; pos.seg && pos.seg <= l->last; amp_pos_next_segment(&pos)) {
        bool ends = true;
        if (amp_log_fd(l, pos.seg, err) < 0) {
            amp_log_name(pos.seg, name);
            bool gone = faccessat(l->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
            return gone && amp_chain_first(chain) > w->first_noted ? SCAN_AGAIN : SCAN_FAILED;
        }
        w->v.segments++;
        if (amp_log_scan_segment(l, &pos, &ends, frame_verify, w, err) < 0)
            return SCAN_FAILED;
        if (ends) {
            if (segment_end(w, &pos, err) < 0)
                return SCAN_FAILED;
            continue;
        }
        if ((pos.seg == l->last ? tail_judge(w, &pos, noted, err) : bad_explain(w, &pos, err)) < 0)
            return SCAN_FAILED;
    }
    if (chain->page_gone)
        return log_tampered(w, l->last ? l->last : 1, w->was.off, w->v.last + 1, err,
                            "keys/log.end was removed: frames after %" PRIu64 " may be missing",
                            w->v.last),
               SCAN_FAILED;
    if (noted > w->v.last)
        return log_tampered(w, l->last ? l->last : 1, w->was.off, w->v.last + 1, err,
                            "the log ends with frame %" PRIu64 "; frames up to %" PRIu64
                            " were on disk",
                            w->v.last, noted),
               SCAN_FAILED;
    return SCAN_DONE;
}

int amp_store_verify(struct amp_store *s, const struct amp_store_verify *how,
                     struct amp_store_verdict *out, struct amp_error *err)
{
    struct verify w = {.s = s, .how = how};
    enum scanned rc;
    *out = (struct amp_store_verdict){0};
    if (s->batch)
        return amp_fail(err, AMP_INTERNAL, nested_turn, "a log is verified outside of a batch");
    if (amp_chain_open(&s->chain, err) < 0)
        return -1;
    if (!s->chain.has_key)
        return amp_fail(err, AMP_CONFIG, log_no_key,
                        "the log has no key yet (keys/log): a tool makes it with the next change");
    amp_frame_arena_init(&w.arena);
    amp_buf_init(&w.text, 4096);
    do
        rc = log_scan(&w, err);
    while (rc == SCAN_AGAIN);
    amp_frame_arena_release(&w.arena);
    amp_buf_release(&w.text);
    *out = w.v;
    return rc == SCAN_DONE ? 0 : -1;
}

int amp_store_check_index(struct amp_store *s, struct amp_error *err)
{
    struct amp_index ix;
    amp_index_init(&ix, s->dirfd, s->real, true);
    if (amp_index_open(&ix, 0, err) == 0)
        amp_index_check(&ix, err);
    amp_index_close(&ix);
    return ix.corrupt ? -1 : 0;
}

struct blobs {
    struct amp_store *store;
    amp_store_blob_fn fn;
    void *ctx;
    struct amp_buf text;
};

static int blobs_read(struct blobs *b, struct amp_error *err)
{
    AMP_DIR DIR *d = NULL;
    int fd = openat(b->store->dirfd, "blob", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct amp_error why;
    struct dirent *e;
    if (fd < 0)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "cannot open blob");
    if (!(d = fdopendir(fd))) {
        close(fd);
        return amp_fail_memory(err);
    }
    while ((e = readdir(d))) {
        struct amp_span name = amp_span_str(e->d_name);
        amp_buf_reset(&b->text);
        /* It may be removed at this moment. */
        if (name.n == 64 && amp_blob_get(b->store, name, &b->text, &why) < 0 &&
            faccessat(fd, e->d_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            b->fn(b->ctx, e->d_name, false);
    }
    return 0;
}

static bool blob_missing(const struct amp_store *s, const char *name)
{
    char path[80];
    snprintf(path, sizeof path, "blob/%.64s", name);
    return faccessat(s->dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static int missing_find(struct blobs *b, struct amp_index *ix, struct amp_error *err)
{
    sqlite3_stmt *st = ix->db ? amp_index_stmt(ix, AMP_IX_BLOBS, err) : NULL;
    int rc = st || !ix->db ? 0 : -1;
    while (st && rc >= 0 && (rc = amp_index_next(ix, st, AMP_INDEX_BLOB, err)) == 1) {
        const char *name = (const char *)sqlite3_column_text(st, 0);
        if (strlen(name) == 64 && blob_missing(b->store, name) &&
            !(b->text.len && memmem(b->text.data, b->text.len, name, 64)))
            rc = amp_buf_add(&b->text, name, 65, err);
    }
    if (st)
        sqlite3_reset(st);
    return rc < 0 ? -1 : 0;
}

static bool index_names(struct amp_index *ix, const char *name)
{
    sqlite3_stmt *st = ix->db ? amp_index_stmt(ix, AMP_IX_BLOB, NULL) : NULL;
    if (!st)
        return false;
    sqlite3_bind_text(st, 1, name, 64, SQLITE_STATIC);
    bool found = amp_index_next(ix, st, AMP_INDEX_BLOB, NULL) == 1;
    sqlite3_reset(st);
    return found;
}

/* Reports missing blobs that the index's file or this handle's own index names. A writer removes a
 * blob after its name: a name that is still there is of a frame. */
static int missing_say(struct blobs *b, struct amp_index *file, struct amp_error *err)
{
    struct amp_index *own = &b->store->index;
    amp_buf_reset(&b->text);
    if (missing_find(b, file, err) < 0 || missing_find(b, own, err) < 0)
        return -1;
    for (size_t i = 0; i < b->text.len; i += 65) {
        const char *name = b->text.data + i;
        if (index_names(file, name) || ((own->overlay || own->memory) && index_names(own, name)))
            b->fn(b->ctx, name, true);
    }
    return 0;
}

int amp_store_check_blobs(struct amp_store *s, amp_store_blob_fn fn, void *ctx,
                          struct amp_error *err)
{
    struct blobs b = {s, fn, ctx, {.max = AMP_BLOB_MAX}};
    struct amp_index ix;
    bool own;
    /* The newest frames may be in the cache only. */
    if (amp_turn_enter(s, &own, err) < 0 || amp_turn_leave(s, own, amp_turn_index(s, err), err) < 0)
        return -1;
    int rc = blobs_read(&b, err);
    amp_index_init(&ix, s->dirfd, s->real, true);
    if (rc == 0 && amp_index_open(&ix, 0, NULL) < 0)
        amp_index_close(&ix);
    if (rc == 0)
        rc = missing_say(&b, &ix, err);
    amp_index_close(&ix);
    amp_buf_release(&b.text);
    return rc;
}

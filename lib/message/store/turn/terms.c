/* Making postings (store/terms/terms.h) of frames that have none, under main. */
#include "message/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = (64 << 10) - 1 }; /* bytes that are read at once: few, to stay in a cache */

struct filling {
    struct amp_store *s;
    struct amp_postings terms;
    uint64_t from, end; /* offsets in the segment; end: of the frames that exist */
    char newest[32];
};

int amp_terms_of_frame(struct amp_store *s, struct amp_postings *t, struct amp_span frame,
                       uint32_t off, char newest[32], struct amp_error *err)
{
    struct amp_postings_found found;
    if (amp_postings_scan(t, &s->names, frame, off, &found, err) < 0)
        return -1;
    if (newest && found.at.n && found.at.n < 32 && memcmp(found.at.p, newest, found.at.n) > 0) {
        memcpy(newest, found.at.p, found.at.n);
        newest[found.at.n] = '\0';
    }
    if (!found.blob.n)
        return 0;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 64 * AMP_FRAME_MAX);
    /* A missing blob is reported where the record is read. */
    return amp_blob_get(s, found.blob, &text, NULL) < 0
               ? 0
               : amp_postings_scan(t, &s->names, amp_buf_span(&text), off, &found, err);
}

static int fill_frame(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                      const struct amp_pos *after, struct amp_error *err)
{
    struct filling *f = ctx;
    if (amp_terms_of_frame(f->s, &f->terms, frame, (uint32_t)(after->off - after->len), f->newest,
                           err) < 0)
        return -1;
    return after->off - f->from >= AMP_TERMS_CHUNK || after->off >= f->end;
}

/* Opens STATE/terms, which may be missing. */
static int terms_dir(struct amp_store *s)
{
    if (s->termfd >= 0)
        return s->termfd;
    if (!s->opt.read_only && mkdirat(s->dirfd, "terms", 0700) != 0 && errno != EEXIST)
        return -1;
    s->termfd = openat(s->dirfd, "terms", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return s->termfd;
}

/* The file of the segment that is being filled; it is kept open from turn to turn. */
static struct amp_term_file *file_current(struct amp_store *s, uint32_t seg)
{
    struct amp_term_file *f = &s->terms;
    struct stat st;
    char name[32];
    snprintf(name, sizeof name, "%06u", seg);
    bool exists = fstatat(s->termfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (f->seg == seg && f->bytes == (exists ? (uint64_t)st.st_size : 0) &&
        (!f->end.len || amp_log_stands(&s->log, &f->end)))
        return f;
    amp_term_file_close(f);
    amp_term_file_open(f, s->termfd, &s->log, &s->names, seg);
    return f;
}

/* Whether the runs of a segment reach its end. */
static bool is_complete(struct amp_store *s, const struct amp_term_file *f)
{
    if (f->seg == s->log.last)
        return false;
    return f->end.sealed || amp_log_first_number(&s->log, f->seg + 1) == f->end.n + 1;
}

/* Calls fill_frame with the frames from *pos on, which were verified when they were written or
 * read; a frame that does not follow ends it. 1: it ended early, 0: at the end, -1. */
static int frames_walk(struct filling *f, int fd, struct amp_pos *pos)
{
    AMP_BUF struct amp_buf window = {0};
    struct amp_frame_head h;
    int rc = 0;
    size_t most = WINDOW;
    amp_buf_init(&window, 2 * AMP_FRAME_MAX);
    while (rc == 0 && pos->off < f->end) {
        size_t at = 0, want = f->end - pos->off < most ? (size_t)(f->end - pos->off) : most;
        if (amp_buf_reserve(&window, want, NULL) < 0)
            return -1;
        ssize_t got = pread(fd, window.data, want, (off_t)pos->off);
        if (got <= 0)
            return -1;
        while (rc == 0 && (size_t)got > at &&
               amp_frame_peek(window.data + at, (size_t)got - at, &h) &&
               h.size <= (size_t)got - at && amp_pos_precedes(pos, &h)) {
            amp_pos_advance(pos, &h);
            rc = fill_frame(f, &h, (struct amp_span){window.data + at, h.size}, pos, NULL);
            at += h.size;
        }
        if (at == 0 && most == AMP_FRAME_MAX)
            return -1;
        most = at == 0 ? AMP_FRAME_MAX : WINDOW; /* a frame that is longer than the window */
    }
    return rc;
}

/* Adds one run. 1: there may be more to add in this segment, 0: none, -1: that is not possible. */
static int run_make(struct amp_store *s, struct amp_term_file *f, uint64_t *done)
{
    struct filling fill = {.s = s, .from = f->end.off};
    struct amp_pos pos = f->end;
    struct stat st;
    int fd = amp_log_fd(&s->log, f->seg, NULL);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -1;
    fill.end = f->seg == s->log.last ? s->log.end.off : (uint64_t)st.st_size;
    if (f->seg == s->log.last && fill.end < f->end.off + AMP_TERMS_LAG)
        return 0;
    amp_postings_init(&fill.terms);
    int rc = frames_walk(&fill, fd, &pos);
    bool made = rc >= 0 && pos.off > f->end.off && amp_postings_sort(&fill.terms, NULL) == 0 &&
                amp_term_file_add(f, s->termfd, &s->names, &fill.terms, &pos, fill.newest);
    amp_postings_release(&fill.terms);
    *done += pos.off - fill.from;
    if (rc < 0 || (!made && pos.off > fill.from))
        return -1; /* damage is reported where it is read */
    return rc > 0 && pos.off < fill.end;
}

bool amp_turn_terms(struct amp_store *s, uint64_t most)
{
    struct amp_log *l = &s->log;
    uint64_t done = 0;
    if (!s->opt.names || s->opt.read_only || !l->last || l->pending.len)
        return false;
    if (!s->names.made)
        amp_term_names_make(&s->names, s->opt.names);
    if (terms_dir(s) < 0)
        return false;
    if (s->terms_seg < l->first)
        s->terms_seg = l->first;
    while (s->terms_seg <= l->last && done < most) {
        struct amp_term_file *f = file_current(s, s->terms_seg);
        int rc = is_complete(s, f) ? 0 : run_make(s, f, &done);
        if (rc < 0)
            return false;
        if (rc > 0)
            continue;
        if (f->seg == l->last || !is_complete(s, f)) {
            if (f->seg == l->last)
                return false;
            s->terms_seg++; /* it ends with a repair; what it lacks is read */
            continue;
        }
        if (f->n > 1)
            amp_term_file_join(f, s->termfd, &s->names);
        s->terms_seg++;
    }
    return s->terms_seg <= l->last;
}

void amp_turn_terms_drop(struct amp_store *s, uint32_t seg)
{
    char name[32];
    snprintf(name, sizeof name, "%06u", seg);
    if (terms_dir(s) >= 0)
        unlinkat(s->termfd, name, 0);
}

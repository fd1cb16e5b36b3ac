/* The commits of the log, read again from a position on; and pins, which keep them there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>

#include "store/history/history.h"
#include "store/store_int.h"

#define PIN       "pin."
#define PIN_MOST  80
#define LOOK_MS   1000 /* how long what the pins say is believed */
#define BLOB_MOST ((size_t)256 << 20)

struct reading {
    struct amp_store *s;
    uint64_t from, to;
    amp_store_commit_fn fn;
    void *ctx;
    struct amp_frame_arena arena;
    struct amp_buf blob; /* all blobs of one frame */
    struct amp_error *err;
};

/* Puts the blobs in the place of their names. */
static int fetch(struct reading *w, struct amp_frame *f, struct amp_frame_out *out,
                 struct amp_error *err)
{
    amp_buf_reset(&w->blob);
    if (f->state_blob.n > 0) {
        if (amp_blob_get(w->s, f->state_blob, &w->blob, err) < 0)
            return -1;
        f->state = amp_buf_span(&w->blob);
    }
    for (uint32_t i = 0; i < f->n_out; i++) {
        if (out[i].blob.n == 0)
            continue;
        size_t before = w->blob.len;
        const char *was = w->blob.data;
        if (amp_blob_get(w->s, out[i].blob, &w->blob, err) < 0)
            return -1;
        out[i].line = (struct amp_span){w->blob.data + before, w->blob.len - before};
        if (w->blob.data == was)
            continue;
        /* It moved: so did what was fetched before. */
        size_t off = 0;
        if (f->state_blob.n > 0) {
            f->state.p = w->blob.data;
            off = f->state.n;
        }
        for (uint32_t k = 0; k <= i; k++)
            if (out[k].blob.n > 0) {
                out[k].line.p = w->blob.data + off;
                off += out[k].line.n;
            }
    }
    return 0;
}

static int one_frame(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                     const struct amp_pos *after, struct amp_error *err)
{
    struct reading *w = ctx;
    struct amp_frame f;
    (void)after;
    if (head->n > w->to)
        return 1;
    if (head->n < w->from || head->log != AMP_FRAME_none)
        return 0;
    if (amp_frame_decode(frame, head, &w->arena, &f, err) != 0 ||
        fetch(w, &f, w->arena.out, err) < 0)
        return -1;
    struct amp_store_commit c = {.n = head->n,
                                 .was = f.was,
                                 .at_ms = f.at,
                                 .key = f.key,
                                 .event = f.event,
                                 .actor = f.actor,
                                 .json = f.state};
    for (c.index = 0; c.index < f.n_out || (c.index == 0 && f.n_out == 0); c.index++) {
        c.has_line = f.n_out > 0;
        c.id = c.has_line ? f.out[c.index].id : (struct amp_span){"", 0};
        c.line = c.has_line ? f.out[c.index].line : (struct amp_span){"", 0};
        c.last = c.index + 1 >= f.n_out;
        if (w->fn(w->ctx, &c) != 0)
            return 1;
    }
    return 0;
}

/* Where a scan for frame number `from` may begin. */
static struct amp_pos begin_at(struct amp_log *l, uint64_t from)
{
    struct amp_pos pos = {0};
    for (uint32_t seg = l->first; seg <= l->last; seg++) {
        uint64_t n = amp_log_first_number(l, seg);
        if (n == 0 || n > from)
            break;
        pos = (struct amp_pos){.seg = seg, .n = n - 1, .loose = true};
    }
    return pos;
}

static int ends(struct amp_store *s, uint64_t *first, uint64_t *last, struct amp_error *err)
{
    bool own;
    if (s->batch)
        return amp_fail(err, AMP_INTERNAL, "nested_turn", "frames are read outside of a batch");
    if (amp_turn_enter(s, &own, err) != 0)
        return -1;
    *last = s->log.end.n;
    if (*last && amp_log_list(&s->log, err) != 0) {
        amp_turn_leave(s, own, NULL);
        return -1;
    }
    *first = *last ? amp_log_first_number(&s->log, s->log.first) : 0;
    return amp_turn_leave(s, own, err);
}

int amp_store_range(struct amp_store *s, uint64_t *first, uint64_t *last, struct amp_error *err)
{
    return ends(s, first, last, err) != 0 ? -1 : 0;
}

int amp_store_commits(struct amp_store *s, uint64_t from, uint64_t to, amp_store_commit_fn fn,
                      void *ctx, struct amp_error *err)
{
    struct reading w = {.s = s, .from = from, .to = to, .fn = fn, .ctx = ctx, .err = err};
    uint64_t first, last;
    bool bad;
    if (ends(s, &first, &last, err) != 0)
        return -1;
    if (w.to > last)
        w.to = last;
    if (last == 0 || from > w.to)
        return 0;
    amp_frame_arena_init(&w.arena);
    amp_buf_init(&w.blob, BLOB_MOST);
    struct amp_pos pos = begin_at(&s->log, from);
    int rc = amp_log_scan(&s->log, &pos, &bad, one_frame, &w, err);
    amp_frame_arena_release(&w.arena);
    amp_buf_release(&w.blob);
    if (rc == 0 && bad && pos.n < w.to)
        return amp_log_damaged(&pos, "no intact frame stands there", err);
    return rc < 0 ? -1 : 0;
}

/* ---- pins ---- */

int amp_store_pin(struct amp_store *s, const char *name, uint64_t from, int64_t until_ms,
                  struct amp_error *err)
{
    char path[200], text[PIN_MOST];
    if (!amp_id_is_safe(amp_span_str(name)) || strlen(name) > 128)
        return amp_fail(err, AMP_USAGE, "bad_name", "a pin's name has other characters");
    if (mkdirat(s->dirfd, "run", 0700) != 0 && errno != EEXIST)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/run", s->dir);
    snprintf(path, sizeof path, "run/" PIN "%s", name);
    if (until_ms == 0)
        return unlinkat(s->dirfd, path, 0) != 0 && errno != ENOENT
                   ? amp_fail_errno(err, AMP_IOERR, "cannot remove %s/%s", s->dir, path)
                   : 0;
    snprintf(text, sizeof text, "%" PRIu64 " %" PRId64 "\n", from, until_ms);
    return amp_file_write_atomic(s->dirfd, path, 0600, amp_span_str(text), err);
}

static bool holds(struct amp_store *s, const char *name, uint64_t before, int64_t now_ms)
{
    char path[300];
    AMP_BUF struct amp_buf text = {0};
    uint64_t from;
    int64_t until;
    amp_buf_init(&text, PIN_MOST);
    snprintf(path, sizeof path, "run/%.255s", name);
    if (amp_file_read(s->dirfd, path, PIN_MOST - 1, &text, NULL) != 0 ||
        sscanf(text.data ? text.data : "", "%" SCNu64 " %" SCNd64, &from, &until) != 2)
        return false;
    return from < before && until > now_ms;
}

bool amp_store_pinned(struct amp_store *s, uint64_t before)
{
    int64_t now = amp_now_ms();
    if (s->pins.bound == before && now - s->pins.at_ms < LOOK_MS && now >= s->pins.at_ms)
        return s->pins.held;
    s->pins.bound = before;
    s->pins.at_ms = now;
    s->pins.held = false;
    int fd = openat(s->dirfd, "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (struct dirent *e; !s->pins.held && (e = readdir(d));)
        if (strncmp(e->d_name, PIN, strlen(PIN)) == 0)
            s->pins.held = holds(s, e->d_name, before, now);
    closedir(d);
    return s->pins.held;
}

/*
 * Searching the log for terms. The log is read in parts: for each segment its runs of postings,
 * then the frames without postings, in pieces of 4 MiB whose postings are made in memory. In each
 * part the offsets of all terms are in a heap; a term that is added later is looked up in the rest
 * of the current part, and in all parts that follow.
 */
#include "message/store/history/search.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/store/store_int.h"

enum { FILL = 16 << 20 }; /* bytes of frames that get postings in one turn */
enum part { PART_NONE, PART_FILE, PART_MEMORY };

struct amp_store_search {
    struct amp_store *s;
    char newest[32];   /* or empty */
    struct amp_pos to; /* the log's end */
    uint32_t *term;    /* open addressing; 0 free */
    size_t n_term, cap_term;
    enum part part;
    uint32_t seg;
    struct amp_pos start; /* of the segment */
    struct amp_pos pos;   /* of the next piece in memory */
    struct amp_term_file file;
    struct amp_postings mem;
    uint64_t mem_from;
    uint32_t *heap;
    size_t n_heap, cap_heap;
    bool any;      /* a frame of this segment was returned, */
    uint32_t last; /* at this offset */
    bool done;
    struct amp_error *err;
};

/* ---- the heap of offsets ---- */

static int heap_add(void *ctx, uint32_t off)
{
    struct amp_store_search *q = ctx;
    if (q->any && off <= q->last)
        return 0;
    if (amp_grow(&q->heap, &q->cap_heap, q->n_heap, sizeof *q->heap, q->err) < 0)
        return -1;
    size_t i = q->n_heap++;
    for (; i > 0 && q->heap[(i - 1) / 2] > off; i = (i - 1) / 2)
        q->heap[i] = q->heap[(i - 1) / 2];
    q->heap[i] = off;
    return 0;
}

static uint32_t heap_take(struct amp_store_search *q)
{
    uint32_t least = q->heap[0], v = q->heap[--q->n_heap];
    size_t i = 0;
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= q->n_heap)
            break;
        if (k + 1 < q->n_heap && q->heap[k + 1] < q->heap[k])
            k++;
        if (q->heap[k] >= v)
            break;
        q->heap[i] = q->heap[k];
        i = k;
    }
    q->heap[i] = v;
    return least;
}

/* ---- the terms ---- */

static size_t term_slot(const struct amp_store_search *q, uint32_t h)
{
    size_t i = h & (q->cap_term - 1);
    while (q->term[i] && q->term[i] != h)
        i = (i + 1) & (q->cap_term - 1);
    return i;
}

static bool term_has(const struct amp_store_search *q, uint32_t h)
{
    return q->cap_term && q->term[term_slot(q, h)] != 0;
}

static int terms_grow(struct amp_store_search *q, struct amp_error *err)
{
    struct amp_store_search more = {.cap_term = q->cap_term ? 2 * q->cap_term : 64};
    more.term = calloc(more.cap_term, sizeof *more.term);
    if (!more.term)
        return amp_fail_memory(err);
    for (size_t i = 0; i < q->cap_term; i++)
        if (q->term[i])
            more.term[term_slot(&more, q->term[i])] = q->term[i];
    free(q->term);
    q->term = more.term;
    q->cap_term = more.cap_term;
    return 0;
}

/* Looks a term up in the current part: 0, -1, or 1: the file is damaged. */
static int part_find(struct amp_store_search *q, uint32_t h)
{
    if (q->part == PART_MEMORY) {
        size_t i = amp_postings_first(q->mem.v, q->mem.n, h);
        for (; i < q->mem.n && q->mem.v[i].h == h; i++)
            if (heap_add(q, q->mem.v[i].off) < 0)
                return -1;
        return 0;
    }
    for (uint32_t i = 0; q->part == PART_FILE && i < q->file.n; i++) {
        const struct amp_term_run_at *r = &q->file.run[i];
        if ((q->any && r->to <= q->last) || (*q->newest && strcmp(r->newest, q->newest) < 0))
            continue;
        enum amp_term_found rc = amp_term_file_find(&q->file, i, h, heap_add, q);
        if (rc != AMP_TERM_FOUND)
            return rc == AMP_TERM_DAMAGED ? 1 : -1;
    }
    return 0;
}

/* The postings of this segment cannot be used: it is read from its start, behind the frame that
 * was returned last. */
static void file_leave(struct amp_store_search *q)
{
    amp_term_file_close(&q->file);
    q->n_heap = 0;
    q->part = PART_NONE;
    q->pos = q->start; /* no other read: the caller may still use the frame that was returned */
}

static int term_want(struct amp_store_search *q, uint32_t h, struct amp_error *err)
{
    if (2 * q->n_term >= q->cap_term && terms_grow(q, err) < 0)
        return -1;
    size_t at = term_slot(q, h);
    if (q->term[at])
        return 0;
    q->term[at] = h;
    q->n_term++;
    q->err = err;
    int rc = part_find(q, h);
    if (rc > 0)
        file_leave(q);
    return rc < 0 ? -1 : 0;
}

int amp_store_search_text(struct amp_store_search *q, struct amp_span text, struct amp_error *err)
{
    return text.n ? term_want(q, amp_term_of(text), err) : 0;
}

int amp_store_search_closes(struct amp_store_search *q, uint64_t n, struct amp_error *err)
{
    return term_want(q, amp_term_of_frame(n), err);
}

/* ---- the parts ---- */

/* Looks all terms up in a part that begins. */
static int part_begin(struct amp_store_search *q, enum part part)
{
    q->part = part;
    q->n_heap = 0;
    for (size_t i = 0; i < q->cap_term; i++) {
        int rc = q->term[i] ? part_find(q, q->term[i]) : 0;
        if (rc < 0)
            return -1;
        if (rc > 0) {
            file_leave(q);
            return 0;
        }
    }
    return 0;
}

static int segment_begin(struct amp_store_search *q, uint32_t seg)
{
    q->seg = seg;
    q->any = false;
    uint64_t first = amp_log_first_number(&q->s->log, seg);
    q->start = (struct amp_pos){.seg = seg, .n = first ? first - 1 : 0, .loose = true};
    amp_term_file_close(&q->file);
    amp_term_file_open(&q->file, q->s->termfd, &q->s->log, &q->s->names, seg);
    q->pos = q->file.end;
    if (q->file.n)
        return part_begin(q, PART_FILE);
    q->part = PART_NONE;
    return 0;
}

static int piece_frame(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                       const struct amp_pos *after, struct amp_error *err)
{
    struct amp_store_search *q = ctx;
    if (amp_terms_of_frame(q->s, &q->mem, frame, (uint32_t)(after->off - after->len), NULL, err) <
        0)
        return -1;
    return after->off - q->mem_from >= AMP_TERMS_CHUNK || head->n >= q->to.n;
}

/* Moves on to the next part: 1, 0: there is none, or -1. */
static int part_next(struct amp_store_search *q, struct amp_error *err)
{
    struct amp_log *l = &q->s->log;
    bool ends = true;
    q->err = err;
    if (q->done)
        return 0;
    if (!q->seg)
        return segment_begin(q, l->first) < 0 ? -1 : 1;
    if (q->pos.n >= q->to.n && q->to.n) {
        q->done = true;
        return 0;
    }
    q->mem.n = 0;
    q->mem_from = q->pos.off;
    uint64_t before = q->pos.off;
    int rc = 0;
    if (amp_log_fd(l, q->seg, NULL) >= 0) {
        rc = amp_log_scan_segment(l, &q->pos, &ends, piece_frame, q, err);
        if (rc < 0)
            return -1;
    }
    if (q->pos.off > before) {
        if (amp_postings_sort(&q->mem, err) < 0)
            return -1;
        return part_begin(q, PART_MEMORY) < 0 ? -1 : 1;
    }
    if (!ends && q->pos.n < q->to.n)
        return amp_log_damaged(&q->pos, "no intact frame there", err);
    if (q->seg >= q->to.seg) {
        q->done = true;
        return 0;
    }
    return segment_begin(q, q->seg + 1) < 0 ? -1 : 1;
}

/* Reads the frame at an offset of the segment: 1, or 0: there is none. */
static int frame_at(struct amp_store_search *q, uint32_t off, uint64_t *n, struct amp_span *frame)
{
    struct amp_log *l = &q->s->log;
    char p[AMP_FRAME_PREFIX];
    struct amp_frame_head h;
    int fd = amp_log_fd(l, q->seg, NULL);
    ssize_t got = fd < 0 ? -1 : pread(fd, p, sizeof p, off);
    if (got <= 0 || !amp_frame_peek(p, (size_t)got, &h) ||
        amp_log_frame(l, (struct amp_place){.seg = q->seg, .off = off, .len = h.size}, frame, &h,
                      NULL) < 0)
        return 0;
    *n = h.n;
    frame->n--;
    return 1;
}

int amp_store_search_next(struct amp_store_search *q, uint64_t *n, struct amp_span *frame,
                          struct amp_error *err)
{
    for (;;) {
        while (q->n_heap) {
            uint32_t off = heap_take(q);
            if (q->any && off <= q->last)
                continue;
            if (!frame_at(q, off, n, frame)) {
                /* Postings of a segment that was removed or repaired meanwhile. */
                if (q->part == PART_FILE)
                    file_leave(q);
                continue;
            }
            q->any = true;
            q->last = off;
            if (*n <= q->to.n)
                return 1;
        }
        int rc = part_next(q, err);
        if (rc <= 0)
            return rc;
    }
}

struct amp_store_place amp_store_search_end(const struct amp_store_search *q)
{
    return (struct amp_store_place){q->to};
}

int amp_store_search_wants(struct amp_store_search *q, struct amp_span frame, struct amp_error *err)
{
    q->mem.n = 0;
    q->part = PART_NONE;
    if (amp_terms_of_frame(q->s, &q->mem, frame, 0, NULL, err) < 0)
        return -1;
    for (size_t i = 0; i < q->mem.n; i++)
        if (term_has(q, q->mem.v[i].h))
            return 1;
    return 0;
}

/* Makes the postings that are missing, in short turns; then *to is the log's end. */
static int postings_make(struct amp_store *s, struct amp_pos *to, struct amp_error *err)
{
    bool more = true;
    if (!s->opt.names)
        return amp_fail(err, AMP_INTERNAL, no_names, "a search of a store without names");
    if (!s->names.made)
        amp_term_names_make(&s->names, s->opt.names);
    if (s->termfd < 0)
        s->termfd = openat(s->dirfd, "terms", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    while (more) {
        bool own;
        if (amp_turn_enter(s, &own, err) < 0)
            return -1;
        more = amp_turn_terms(s, FILL);
        *to = s->log.end;
        int rc = to->n ? amp_log_list(&s->log, err) : 0;
        if (amp_turn_leave(s, own, rc, err) < 0)
            return -1;
    }
    return amp_store_sync(s, err);
}

int amp_store_search_open(struct amp_store *s, const char *newest, struct amp_store_search **out,
                          struct amp_error *err)
{
    struct amp_pos to = {0};
    if (postings_make(s, &to, err) < 0)
        return -1;
    struct amp_store_search *q = calloc(1, sizeof *q);
    if (!q)
        return amp_fail_memory(err);
    q->s = s;
    q->to = to;
    q->file.fd = -1;
    q->done = to.n == 0;
    if (newest)
        snprintf(q->newest, sizeof q->newest, "%s", newest);
    amp_postings_init(&q->mem);
    *out = q;
    return 0;
}

void amp_store_search_free(struct amp_store_search *q)
{
    if (!q)
        return;
    amp_term_file_close(&q->file);
    amp_postings_release(&q->mem);
    free(q->term);
    free(q->heap);
    free(q);
}

/* The first place of a segment whose frames may be that late; false: none. */
static bool segment_since(struct amp_store *s, uint32_t seg, const char *time, struct amp_pos *out)
{
    struct amp_term_file f;
    amp_term_file_open(&f, s->termfd, &s->log, &s->names, seg);
    uint64_t first = amp_log_first_number(&s->log, seg);
    struct amp_pos pos = {.seg = seg, .n = first ? first - 1 : 0, .loose = true};
    uint32_t i = 0;
    while (i < f.n && strcmp(f.run[i].newest, time) < 0)
        i++;
    bool found =
        i < f.n || !(f.end.sealed ||
                     (seg < s->log.last && amp_log_first_number(&s->log, seg + 1) == f.end.n + 1));
    if (i == f.n && f.n)
        pos = f.end;
    /* Of a run in the middle only the offset is known; the segment is read from its start. */
    amp_term_file_close(&f);
    *out = pos;
    return found;
}

int amp_store_place_since(struct amp_store *s, const char *time, struct amp_store_place *at,
                          struct amp_error *err)
{
    struct amp_pos to = {0}, pos = {0};
    if (postings_make(s, &to, err) < 0)
        return -1;
    uint32_t seg = s->log.first;
    while (to.n && seg < to.seg && !segment_since(s, seg, time, &pos))
        seg++;
    if (to.n && seg == to.seg)
        segment_since(s, seg, time, &pos);
    at->pos = pos;
    return 0;
}

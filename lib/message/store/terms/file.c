/* The files of postings. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "message/store/terms/terms.h"

#define MAGIC "ampterm2"
enum { SEED = 0x70616765 };

struct page {
    uint64_t check;
    struct amp_term t[AMP_TERM_PER_PAGE];
};
_Static_assert(sizeof(struct page) == AMP_TERM_PAGE, "a page");

static uint64_t bytes_check(const void *p, size_t n)
{
    return amp_store_hash(SEED, (struct amp_span){p, n}, (struct amp_span){0});
}

static uint64_t head_check(const struct amp_term_run *h)
{
    struct amp_term_run copy = *h;
    copy.check = 0;
    return bytes_check(&copy, sizeof copy);
}

static bool page_is_intact(const struct page *p)
{
    return p->check == bytes_check(p->t, sizeof p->t);
}

static void name_of(uint32_t seg, char out[32])
{
    snprintf(out, 32, "%06u", seg);
}

void amp_term_file_close(struct amp_term_file *f)
{
    free(f->run);
    if (f->fd >= 0)
        close(f->fd);
    *f = (struct amp_term_file){.fd = -1};
}

static bool run_add(struct amp_term_file *f, const struct amp_term_run *h)
{
    if (f->n == f->cap) {
        uint32_t cap = f->cap ? 2 * f->cap : 8;
        void *p = realloc(f->run, cap * sizeof *f->run);
        if (!p)
            return false;
        f->run = p;
        f->cap = cap;
    }
    struct amp_term_run_at *r = &f->run[f->n++];
    *r = (struct amp_term_run_at){(uint32_t)(f->bytes / AMP_TERM_PAGE) + 1, h->pages, h->from,
                                  h->to, ""};
    memcpy(r->newest, h->newest, sizeof r->newest);
    r->newest[sizeof r->newest - 1] = '\0';
    f->bytes += (1 + (uint64_t)h->pages) * AMP_TERM_PAGE;
    return true;
}

static struct amp_pos run_end(const struct amp_term_run *h)
{
    return (struct amp_pos){.seg = h->seg,
                            .off = h->to,
                            .len = h->last_len,
                            .n = h->n,
                            .sum = h->sum,
                            .loose = h->loose != 0,
                            .sealed = h->sealed != 0};
}

/* The next run, if it is intact and its last frame is in the log. */
static bool run_read(struct amp_term_file *f, struct amp_log *l, const struct amp_term_names *names,
                     uint64_t size)
{
    struct amp_term_run h;
    if (f->bytes + sizeof h > size ||
        pread(f->fd, &h, sizeof h, (off_t)f->bytes) != (ssize_t)sizeof h)
        return false;
    if (memcmp(h.magic, MAGIC, 8) != 0 || h.check != head_check(&h) || h.names != names->hash ||
        h.seg != f->seg || h.from != f->end.off ||
        f->bytes + (1 + (uint64_t)h.pages) * AMP_TERM_PAGE > size)
        return false;
    struct amp_pos end = run_end(&h);
    if (!amp_log_stands(l, &end) || !run_add(f, &h))
        return false;
    f->end = end;
    return true;
}

void amp_term_file_open(struct amp_term_file *f, int dirfd, struct amp_log *l,
                        const struct amp_term_names *names, uint32_t seg)
{
    char name[32];
    struct stat st;
    uint64_t first = amp_log_first_number(l, seg);
    *f = (struct amp_term_file){.fd = -1, .seg = seg};
    f->end = (struct amp_pos){.seg = seg, .n = first ? first - 1 : 0, .loose = true};
    name_of(seg, name);
    f->fd = dirfd < 0 ? -1 : amp_file_open(dirfd, name, O_RDONLY | O_NOFOLLOW, 0, NULL);
    if (f->fd < 0 || fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    while (run_read(f, l, names, (uint64_t)st.st_size))
        continue;
}

static bool write_at(int fd, const void *p, size_t n, uint64_t off)
{
    const char *at = p;
    while (n > 0) {
        ssize_t r = pwrite(fd, at, n, (off_t)off);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return false;
        at += r;
        off += (uint64_t)r;
        n -= (size_t)r;
    }
    return true;
}

/* Writes a head and its pages at an offset of a file. */
static bool run_write(int fd, uint64_t off, struct amp_term_run *h, const struct amp_term *v)
{
    h->pages = (h->n_terms + AMP_TERM_PER_PAGE - 1) / AMP_TERM_PER_PAGE;
    h->check = head_check(h);
    size_t size = (1 + (size_t)h->pages) * AMP_TERM_PAGE;
    AMP_FREE char *mem = malloc(size);
    if (!mem)
        return false;
    memcpy(mem, h, sizeof *h);
    for (uint32_t i = 0; i < h->pages; i++) {
        struct page *p = (struct page *)(void *)(mem + (1 + (size_t)i) * AMP_TERM_PAGE);
        size_t at = (size_t)i * AMP_TERM_PER_PAGE, n = h->n_terms - at;
        if (n > AMP_TERM_PER_PAGE)
            n = AMP_TERM_PER_PAGE;
        memcpy(p->t, v + at, n * sizeof *v);
        memset(p->t + n, 0xff, (AMP_TERM_PER_PAGE - n) * sizeof *v);
        p->check = bytes_check(p->t, sizeof p->t);
    }
    return write_at(fd, mem, size, off);
}

static void head_set(struct amp_term_run *h, const struct amp_term_names *names, uint64_t from,
                     const struct amp_pos *to, size_t n_terms, const char *newest)
{
    memset(h, 0, sizeof *h);
    memcpy(h->magic, MAGIC, 8);
    h->names = names->hash;
    h->seg = to->seg;
    h->from = from;
    h->to = to->off;
    h->last_len = to->len;
    h->n = to->n;
    h->sum = to->sum;
    h->loose = to->loose;
    h->sealed = to->sealed;
    h->n_terms = (uint32_t)n_terms;
    snprintf(h->newest, sizeof h->newest, "%.31s", newest);
}

bool amp_term_file_add(struct amp_term_file *f, int dirfd, const struct amp_term_names *names,
                       const struct amp_postings *t, const struct amp_pos *to, const char *newest)
{
    char name[32];
    struct amp_term_run h;
    name_of(f->seg, name);
    AMP_CLOSE int fd = amp_file_open(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, NULL);
    if (fd < 0 || t->n > UINT32_MAX)
        return false;
    head_set(&h, names, f->end.off, to, t->n, newest);
    /* Runs that do not fit the log are overwritten. */
    if (ftruncate(fd, (off_t)f->bytes) != 0 || !run_write(fd, f->bytes, &h, t->v) ||
        !run_add(f, &h))
        return false;
    f->end = *to;
    return true;
}

bool amp_term_file_join(struct amp_term_file *f, int dirfd, const struct amp_term_names *names)
{
    struct amp_postings all;
    struct amp_term_run h;
    char name[32], made[40], newest[32] = "";
    bool done = false;
    name_of(f->seg, name);
    snprintf(made, sizeof made, "%s.new", name);
    amp_postings_init(&all);
    uint64_t pages = 0;
    for (uint32_t i = 0; i < f->n; i++)
        pages += f->run[i].pages;
    all.v = malloc((pages * AMP_TERM_PER_PAGE + 1) * sizeof *all.v);
    AMP_CLOSE int in = amp_file_open(dirfd, name, O_RDONLY | O_NOFOLLOW, 0, NULL);
    bool fits = all.v && in >= 0;
    for (uint32_t i = 0; fits && i < f->n; i++) {
        if (strcmp(f->run[i].newest, newest) > 0)
            memcpy(newest, f->run[i].newest, sizeof newest);
        for (uint32_t k = 0; fits && k < f->run[i].pages; k++) {
            struct page p;
            fits = pread(in, &p, sizeof p, (off_t)((uint64_t)f->run[i].page + k) * AMP_TERM_PAGE) ==
                       sizeof p &&
                   page_is_intact(&p);
            for (unsigned j = 0; fits && j < AMP_TERM_PER_PAGE; j++)
                if (p.t[j].h != UINT32_MAX || p.t[j].off != UINT32_MAX)
                    all.v[all.n++] = p.t[j];
        }
    }
    if (fits && amp_postings_sort(&all, NULL) == 0 && all.n <= UINT32_MAX) {
        unlinkat(dirfd, made, 0);
        AMP_CLOSE int fd =
            amp_file_open(dirfd, made, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, NULL);
        head_set(&h, names, 0, &f->end, all.n, newest);
        done = fd >= 0 && run_write(fd, 0, &h, all.v) && renameat(dirfd, made, dirfd, name) == 0;
        if (fd >= 0 && !done)
            unlinkat(dirfd, made, 0);
    }
    amp_postings_release(&all);
    return done;
}

static off_t page_at(const struct amp_term_file *f, uint32_t i, uint32_t page)
{
    return (off_t)((uint64_t)f->run[i].page + page) * AMP_TERM_PAGE;
}

/* The last page of a run that begins before the term, or the first one; -1: it cannot be read. */
static int64_t page_find(const struct amp_term_file *f, uint32_t i, uint32_t term)
{
    uint32_t low = 0, high = f->run[i].pages;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        struct amp_term t;
        if (pread(f->fd, &t, sizeof t, page_at(f, i, mid) + (off_t)offsetof(struct page, t)) !=
            (ssize_t)sizeof t)
            return -1;
        if (t.h < term)
            low = mid + 1;
        else
            high = mid;
    }
    return low ? (int64_t)low - 1 : 0;
}

enum amp_term_found amp_term_file_find(const struct amp_term_file *f, uint32_t i, uint32_t term,
                                       int (*fn)(void *ctx, uint32_t off), void *ctx)
{
    for (int64_t at = page_find(f, i, term); at < f->run[i].pages; at++) {
        struct page page;
        const struct amp_term *t = page.t;
        if (at < 0 ||
            pread(f->fd, &page, sizeof page, page_at(f, i, (uint32_t)at)) != sizeof page ||
            !page_is_intact(&page))
            return AMP_TERM_DAMAGED;
        if (t[0].h > term)
            return AMP_TERM_FOUND;
        size_t a = amp_postings_first(t, AMP_TERM_PER_PAGE, term);
        for (; a < AMP_TERM_PER_PAGE && t[a].h == term; a++)
            if (t[a].off != UINT32_MAX && fn(ctx, t[a].off) < 0)
                return AMP_TERM_FAILED;
        if (a < AMP_TERM_PER_PAGE)
            return AMP_TERM_FOUND;
    }
    return AMP_TERM_FOUND;
}

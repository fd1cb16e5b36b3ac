/* The text of a tree: see tree.h. */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "work/git/snapshot/path.h"
#include "work/git/snapshot/tree.h"

int amp_tree_write(const struct amp_tree *t, struct amp_buf *out, struct amp_error *err)
{
    for (const struct amp_tree_entry *e = t->v; e < t->v + t->n; e++)
        if (amp_buf_fmt(out, err, "%c %o %lld.%09ld %lld.%09ld %llu %lld %s %s", e->type, e->mode,
                        (long long)e->mtime.tv_sec, e->mtime.tv_nsec, (long long)e->ctime.tv_sec,
                        e->ctime.tv_nsec, (unsigned long long)e->ino, (long long)e->size,
                        e->sum[0] ? e->sum : "-", e->path) < 0 ||
            amp_buf_add(out, "", 1, err) < 0 ||
            amp_buf_str(out, e->target ? e->target : "", err) < 0 ||
            amp_buf_add(out, "", 1, err) < 0)
            return -1;
    return 0;
}

/* Fills e; path and target are copies. */
static bool entry_read(const char *text, const char *target, struct amp_tree_entry *e)
{
    int at = 0;
    long long seconds, changed, size;
    unsigned long long ino;
    if (sscanf(text, "%c %o %lld.%9ld %lld.%9ld %llu %lld %64s%n", &e->type, &e->mode, &seconds,
               &e->mtime.tv_nsec, &changed, &e->ctime.tv_nsec, &ino, &size, e->sum, &at) != 9 ||
        !strchr("fldpqug-s", e->type) || text[at] != ' ')
        return false;
    e->mtime.tv_sec = seconds;
    e->ctime.tv_sec = changed;
    e->ino = ino;
    e->size = size;
    if (strcmp(e->sum, "-") == 0)
        e->sum[0] = '\0';
    e->path = strdup(text + at + 1);
    e->target = *target ? strdup(target) : NULL;
    bool link = e->type == AMP_TREE_LINK, sums = link || e->type == AMP_TREE_FILE;
    return e->path && amp_tree_path_valid(e->path) && link == (e->target != NULL) &&
           sums == (strlen(e->sum) == 64) && strspn(e->sum, "0123456789abcdef") == strlen(e->sum);
}

int amp_tree_read(struct amp_span text, struct amp_tree *t, struct amp_error *err)
{
    const char *at = text.p, *end = text.p + text.n;
    do {
        const char *stop = text.n ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        const char *next = stop ? memchr(stop + 1, '\0', (size_t)(end - stop) - 1) : NULL;
        bool grown = amp_grow(&t->v, &t->cap, t->n, sizeof *t->v, err) == 0;
        struct amp_tree_entry *e = grown ? &t->v[t->n++] : NULL;
        if (e)
            *e = (struct amp_tree_entry){0};
        if (!e || !next || !entry_read(at, stop + 1, e)) {
            size_t n = t->n;
            amp_tree_release(t);
            return e ? amp_fail(err, AMP_DATAERR, bad_tree, "entry %zu is malformed", n) : -1;
        }
        if (e->type == AMP_TREE_FILE)
            t->bytes += e->size;
        at = next + 1;
    } while (at < end);
    amp_tree_sort(t);
    return 0;
}

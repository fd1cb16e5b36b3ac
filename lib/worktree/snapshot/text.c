/* The text of a tree: see tree.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "worktree/snapshot/path.h"
#include "worktree/snapshot/tree.h"

static void entry_release(struct amp_tree_entry *e)
{
    free(e->path);
    free(e->target);
}

/* A field after others, "-" for NULL. */
static int text_escape(const char *s, struct amp_buf *out, struct amp_error *err)
{
    if (!s)
        return amp_buf_str(out, " -", err);
    if (amp_buf_str(out, strcmp(s, "-") == 0 ? " %2D" : " ", err) < 0)
        return -1;
    for (s += strcmp(s, "-") == 0; *s; s++) {
        unsigned char c = (unsigned char)*s;
        int rc = c > ' ' && c < 0x7f && c != '%' ? amp_buf_add(out, s, 1, err)
                                                 : amp_buf_fmt(out, err, "%%%02X", c);
        if (rc < 0)
            return -1;
    }
    return 0;
}

int amp_tree_write(const struct amp_tree *t, struct amp_buf *out, struct amp_error *err)
{
    for (const struct amp_tree_entry *e = t->v; e < t->v + t->n; e++)
        if (amp_buf_fmt(out, err, "%c %o %lld.%09ld %lld.%09ld %llu %lld %s", e->type, e->mode,
                        (long long)e->mtime.tv_sec, e->mtime.tv_nsec, (long long)e->ctime.tv_sec,
                        e->ctime.tv_nsec, (unsigned long long)e->ino, (long long)e->size,
                        e->sum[0] ? e->sum : "-") < 0 ||
            text_escape(e->path, out, err) < 0 || text_escape(e->target, out, err) < 0 ||
            amp_buf_str(out, "\n", err) < 0)
            return -1;
    return 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A copy of n escaped bytes without the escapes; NULL: they are malformed. */
static char *text_unescape(const char *s, size_t n)
{
    char *out = malloc(n + 1), *to = out;
    for (size_t i = 0; out && i < n; i++) {
        int high = 0, low = 0;
        if (s[i] != '%') {
            *to++ = s[i];
            continue;
        }
        if (i + 2 >= n || (high = hex_digit(s[i + 1])) < 0 || (low = hex_digit(s[i + 2])) < 0 ||
            high + low == 0) {
            free(out);
            return NULL;
        }
        *to++ = (char)(high * 16 + low);
        i += 2;
    }
    if (out)
        *to = '\0';
    return out;
}

/* The next field, for free(); NULL: it is "-". false: it is malformed. */
static bool field_read(const char **at, const char *end, char **out)
{
    const char *from = *at, *space = memchr(from, ' ', (size_t)(end - from));
    size_t n = (size_t)((space ? space : end) - from);
    *at = space ? space + 1 : end;
    return (n == 1 && *from == '-') || (n > 0 && (*out = text_unescape(from, n)));
}

static bool line_read(const char *line, size_t n, struct amp_tree_entry *e)
{
    char text[256];
    int at = 0;
    long long seconds, changed, size;
    unsigned long long ino;
    *e = (struct amp_tree_entry){0};
    amp_span_copy((struct amp_span){line, n}, text, sizeof text);
    if (sscanf(text, "%c %o %lld.%9ld %lld.%9ld %llu %lld %64s %n", &e->type, &e->mode, &seconds,
               &e->mtime.tv_nsec, &changed, &e->ctime.tv_nsec, &ino, &size, e->sum, &at) != 9 ||
        !at || !strchr("fldpqug-s", e->type) || (size_t)at >= n)
        return false;
    e->mtime.tv_sec = seconds;
    e->ctime.tv_sec = changed;
    e->ino = ino;
    e->size = size;
    if (strcmp(e->sum, "-") == 0)
        e->sum[0] = '\0';
    const char *p = line + at, *end = line + n;
    bool fields = field_read(&p, end, &e->path) && field_read(&p, end, &e->target) && p == end;
    bool link = e->type == AMP_TREE_LINK, sums = link || e->type == AMP_TREE_FILE;
    if (fields && e->path && amp_tree_path_valid(e->path) && link == (e->target != NULL) &&
        sums == (strlen(e->sum) == 64) && strspn(e->sum, "0123456789abcdef") == strlen(e->sum))
        return true;
    entry_release(e);
    return false;
}

int amp_tree_read(struct amp_span text, struct amp_tree *t, struct amp_error *err)
{
    if (!text.n)
        return amp_fail(err, AMP_DATAERR, "bad_tree", "the list is empty");
    for (size_t at = 0; at < text.n;) {
        const char *line = text.p + at, *end = memchr(line, '\n', text.n - at);
        struct amp_tree_entry e;
        if (!end || !line_read(line, (size_t)(end - line), &e)) {
            amp_tree_release(t);
            return amp_fail(err, AMP_DATAERR, "bad_tree", "line %zu is malformed", t->n + 1);
        }
        if (amp_grow(&t->v, &t->cap, t->n, sizeof *t->v, err) < 0) {
            entry_release(&e);
            amp_tree_release(t);
            return -1;
        }
        t->v[t->n++] = e;
        if (e.type == AMP_TREE_FILE)
            t->bytes += e.size;
        at += (size_t)(end - line) + 1;
    }
    amp_tree_sort(t);
    return 0;
}

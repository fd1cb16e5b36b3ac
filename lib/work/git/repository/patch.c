/* Counts the lines of each file in a unified diff; matches scope patterns. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/file.h>
#include <amp/base/num.h>

#include "base/grow.h"
#include "work/git/repository/patch.h"

#define PATCH_MAX (64u << 20)

bool amp_diff_url_parse(struct amp_span url, char *base, size_t base_size, char *commit,
                        size_t commit_size)
{
    static const char scheme[] = "file://";
    const char *hash = url.n ? memrchr(url.p, '#', url.n) : NULL;

    if (url.n < sizeof scheme || memcmp(url.p, scheme, sizeof scheme - 1) || !hash)
        return false;
    struct amp_span range = {hash + 1, url.n - (size_t)(hash + 1 - url.p)};
    const char *dots = memmem(range.p, range.n, "...", 3);
    if (!dots || dots == range.p)
        return false;
    struct amp_span to = {dots + 3, range.n - (size_t)(dots + 3 - range.p)};
    return to.n &&
           amp_span_copy((struct amp_span){range.p, (size_t)(dots - range.p)}, base, base_size) &&
           amp_span_copy(to, commit, commit_size);
}

void amp_patch_release(struct amp_patch *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        free(p->v[i].path);
    free(p->v);
    *p = (struct amp_patch){0};
}

/* "diff --git a/PATH b/PATH": both names have the same length unless the file was renamed. */
static int add_file(struct amp_patch *p, struct amp_span line, struct amp_error *err)
{
    struct amp_span names = {line.p + 11, line.n - 11};
    const char *b = NULL;

    if (amp_grow(&p->v, &p->cap, p->n, sizeof *p->v, err) < 0)
        return -1;
    if (names.n > 5 && (names.n - 5) % 2 == 0)
        b = names.p + 2 + (names.n - 5) / 2;
    struct amp_span path = names;
    if (b && !memcmp(b, " b/", 3))
        path = (struct amp_span){b + 3, names.n - (size_t)(b + 3 - names.p)};
    p->v[p->n] = (struct amp_patch_file){.path = amp_span_dup(path)};
    if (!p->v[p->n].path)
        return amp_fail_memory(err);
    p->n++;
    return 0;
}

/* A number of lines in "@@ -a,b +c,d @@". */
static int64_t count_of(const char *at, char sign)
{
    const char *s = strchr(at, sign);
    if (!s)
        return 0;
    s += 1 + strspn(s + 1, "0123456789");
    int64_t n = 1;
    if (*s == ',' && amp_num_parse((struct amp_span){s + 1, strspn(s + 1, "0123456789")}, 0,
                                   PATCH_MAX, &n, NULL))
        n = 0;
    return n;
}

static int read_line(struct amp_patch *p, struct amp_span line, int64_t *minus, int64_t *plus,
                     struct amp_error *err)
{
    struct amp_patch_file *f = p->n ? &p->v[p->n - 1] : NULL;

    if (f && (*minus > 0 || *plus > 0)) { /* inside a hunk */
        char c = line.n ? line.p[0] : ' ';
        *minus -= c == '-' || c == ' ';
        *plus -= c == '+' || c == ' ';
        f->lines += c == '-' || c == '+';
        return 0;
    }
    if (amp_span_starts(line, "diff --git "))
        return add_file(p, line, err);
    if (!f)
        return 0;
    if (amp_span_starts(line, "@@ ")) {
        char head[128];
        amp_span_copy(line, head, sizeof head);
        *minus = count_of(head, '-');
        *plus = count_of(head, '+');
    } else if (amp_span_starts(line, "new file mode")) {
        f->created = true;
    } else if (amp_span_starts(line, "Binary files ") ||
               amp_span_starts(line, "GIT binary patch")) {
        f->binary = true;
    }
    return 0;
}

int amp_patch_read(const char *path, struct amp_patch *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_patch p = {0};
    int64_t minus = 0, plus = 0;

    amp_buf_init(&b, PATCH_MAX);
    if (amp_file_read(AT_FDCWD, path, PATCH_MAX, &b, err) < 0)
        return -1;
    for (size_t at = 0; at < b.len;) {
        char *nl = memchr(b.data + at, '\n', b.len - at);
        size_t end = nl ? (size_t)(nl - b.data) : b.len;
        if (read_line(&p, (struct amp_span){b.data + at, end - at}, &minus, &plus, err)) {
            amp_patch_release(&p);
            return -1;
        }
        at = end + 1;
    }
    *out = p;
    return 0;
}

static bool path_matches(struct amp_span path, struct amp_span pattern)
{
    if (pattern.n > 2 && !memcmp(pattern.p, "./", 2))
        pattern = (struct amp_span){pattern.p + 2, pattern.n - 2};
    if (pattern.n && pattern.p[pattern.n - 1] == '/')
        return path.n > pattern.n && !memcmp(path.p, pattern.p, pattern.n);
    if (memchr(pattern.p, '/', pattern.n))
        return amp_span_glob(path, pattern);
    const char *slash = memrchr(path.p, '/', path.n);
    struct amp_span last = path;
    if (slash)
        last = (struct amp_span){slash + 1, path.n - (size_t)(slash + 1 - path.p)};
    return amp_span_glob(last, pattern);
}

/* "Info.plist", "src/", "*.lock", "a/b"; not "e.g.", "2.0" or "CoreData". */
static bool is_pattern(struct amp_span word)
{
    if (word.n < 2)
        return false;
    if (memchr(word.p, '*', word.n))
        return true;
    const char *slash = memchr(word.p, '/', word.n);
    if (slash)
        return strncmp(word.p, "http", 4) && !memchr(word.p, ':', word.n);
    const char *dot = memrchr(word.p, '.', word.n);
    if (!dot || dot == word.p + word.n - 1)
        return false;
    /* The dots of "e.g" and "i.e" are between single letters. */
    size_t stem = (size_t)(dot - word.p), suffix = word.n - stem - 1;
    if (stem == 1 && suffix == 1 && !strchr("chmS", dot[1]))
        return false;
    for (const char *c = dot + 1; c < word.p + word.n; c++)
        if (isalpha((unsigned char)*c))
            return true;
    return false;
}

static struct amp_span next_word(struct amp_span *rest)
{
    static const char edge[] = " \t\n\r\"'`,;:()[]{}<>";
    size_t i = 0, n;

    while (i < rest->n && strchr(edge, rest->p[i]))
        i++;
    for (n = i; n < rest->n && !strchr(edge, rest->p[n]);)
        n++;
    struct amp_span word = {rest->p + i, n - i};
    *rest = (struct amp_span){rest->p + n, rest->n - n};
    /* The full stop of a sentence is not part of the name. */
    while (word.n && word.p[word.n - 1] == '.')
        word.n--;
    return word;
}

bool amp_scope_forbids(struct amp_span path, const char *const *patterns,
                       const struct amp_spans *actions, char *by, size_t size)
{
    for (int i = 0; patterns && patterns[i]; i++) {
        if (path_matches(path, amp_span_str(patterns[i]))) {
            snprintf(by, size, "%s", patterns[i]);
            return true;
        }
    }
    for (uint32_t i = 0; actions && i < actions->n; i++) {
        for (struct amp_span rest = actions->v[i], word; (word = next_word(&rest)).n;) {
            if (is_pattern(word) && path_matches(path, word)) {
                amp_span_copy(actions->v[i], by, size);
                return true;
            }
        }
    }
    return false;
}

/* Extended attributes: see attr.h. */
#include "worktree/snapshot/attr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

enum { LIST_MOST = 65536, VALUE_MOST = 65536 }; /* the kernel's limits */

static bool is_kept(const char *name)
{
    return strncmp(name, "user.", 5) == 0 || strcmp(name, "system.posix_acl_access") == 0 ||
           strcmp(name, "system.posix_acl_default") == 0;
}

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct names {
    char *list; /* each with a NUL */
    const char **v;
    size_t n;
};

static void names_release(struct names *x)
{
    free(x->list);
    free(x->v);
}

static int names_read(int fd, struct names *x)
{
    ssize_t n = flistxattr(fd, NULL, 0);
    if (n <= 0)
        return n == 0 || errno == ENOTSUP || errno == ENOSYS ? 0 : -1;
    x->list = malloc(LIST_MOST + 1);
    if (!x->list)
        return -1;
    n = flistxattr(fd, x->list, LIST_MOST);
    if (n < 0)
        return -1;
    x->list[n] = '\0';
    size_t count = 0;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(x->list + at) + 1)
        count++;
    x->v = calloc(count + 1, sizeof *x->v);
    if (!x->v)
        return -1;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(x->list + at) + 1)
        if (is_kept(x->list + at))
            x->v[x->n++] = x->list + at;
    qsort(x->v, x->n, sizeof *x->v, text_compare);
    return 0;
}

static int line_add(struct amp_buf *out, const char *name, const unsigned char *value, size_t n)
{
    for (const char *c = name; *c; c++) {
        bool plain = *c > ' ' && *c < 0x7f && *c != '%' && *c != '=';
        if ((plain ? amp_buf_add(out, c, 1, NULL)
                   : amp_buf_fmt(out, NULL, "%%%02X", (unsigned char)*c)) < 0)
            return -1;
    }
    if (amp_buf_str(out, "=", NULL) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (amp_buf_fmt(out, NULL, "%02x", value[i]) < 0)
            return -1;
    return amp_buf_str(out, "\n", NULL);
}

int amp_attrs_read(int fd, char **out)
{
    AMP_CLEANUP(names_release) struct names x = {0};
    AMP_BUF struct amp_buf text = {0};
    *out = NULL;
    if (names_read(fd, &x) < 0)
        return -1;
    if (!x.n)
        return 0;
    AMP_FREE unsigned char *value = malloc(VALUE_MOST);
    if (!value)
        return -1;
    amp_buf_init(&text, AMP_ATTRS_MOST + 1);
    for (size_t i = 0; i < x.n; i++) {
        ssize_t n = fgetxattr(fd, x.v[i], value, VALUE_MOST);
        if (n < 0 && errno == ENODATA)
            continue;
        if (n < 0 && errno != ERANGE && errno != E2BIG)
            return -1;
        if (n < 0 || line_add(&text, x.v[i], value, (size_t)n) < 0)
            return 1;
    }
    if (!text.len)
        return 0;
    *out = strdup(text.data);
    return *out ? 0 : -1;
}

/* One line of a text; its name without escapes, and its value. */
struct line {
    char name[256];
    unsigned char value[AMP_ATTRS_MOST / 2];
    size_t n;
};

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int hex_byte(const char *p)
{
    int high = hex_digit(p[0]), low = high < 0 ? -1 : hex_digit(p[1]);
    return low < 0 ? -1 : high * 16 + low;
}

/* Returns where the next line begins; NULL: the text is malformed. */
static const char *line_read(const char *p, struct line *l)
{
    const char *equals = strchr(p, '='), *end = strchr(p, '\n');
    size_t n = 0;
    if (!equals || !end || equals > end)
        return NULL;
    for (; p < equals && n + 1 < sizeof l->name; p++) {
        int byte = *p == '%' && equals - p > 2 ? hex_byte(p + 1) : (unsigned char)*p;
        if (byte <= 0)
            return NULL;
        p += *p == '%' ? 2 : 0;
        l->name[n++] = (char)byte;
    }
    l->name[n] = '\0';
    l->n = 0;
    for (p = equals + 1; p + 1 < end && l->n < sizeof l->value; p += 2) {
        int byte = hex_byte(p);
        if (byte < 0)
            return NULL;
        l->value[l->n++] = (unsigned char)byte;
    }
    return end + 1;
}

static bool text_has(const char *text, const char *name, struct line *l)
{
    while (text && *text && (text = line_read(text, l)))
        if (strcmp(l->name, name) == 0)
            return true;
    return false;
}

int amp_attrs_set(int fd, const char *text)
{
    AMP_CLEANUP(names_release) struct names x = {0};
    AMP_FREE struct line *l = NULL;
    if (names_read(fd, &x) < 0)
        return -1;
    if (!x.n && !text)
        return 0;
    if (!(l = malloc(sizeof *l)))
        return -1;
    for (size_t i = 0; i < x.n; i++)
        if (!text_has(text, x.v[i], l) && fremovexattr(fd, x.v[i]) < 0 && errno != ENODATA)
            return -1;
    for (const char *p = text; p && *p;) {
        p = line_read(p, l);
        if (!p || !is_kept(l->name)) {
            errno = EINVAL;
            return -1;
        }
        if (fsetxattr(fd, l->name, l->value, l->n, 0) < 0)
            return -1;
    }
    return 0;
}

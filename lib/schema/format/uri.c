/* URI references. Splitting never fails: what is no URI becomes a path. */
#include "schema/format/uri.h"

#include <string.h>

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_scheme_char(char c)
{
    return is_alpha(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

static struct amp_span upto(const char *p, const char *end)
{
    return (struct amp_span){p, (size_t)(end - p)};
}

static const char *find_any(const char *p, const char *end, const char *set)
{
    while (p < end && !(*p && strchr(set, *p)))
        p++;
    return p;
}

struct amp_uri amp_uri_split(struct amp_span text)
{
    struct amp_uri u = {0};
    if (!text.n) {
        u.path = (struct amp_span){"", 0};
        return u;
    }
    const char *p = text.p, *end = text.p + text.n, *q = p;
    while (q < end && is_scheme_char(*q))
        q++;
    if (q < end && *q == ':' && q > p && is_alpha(*p)) {
        u.scheme = upto(p, q);
        p = q + 1;
    }
    if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
        q = find_any(p + 2, end, "/?#");
        u.authority = upto(p + 2, q);
        u.has_authority = true;
        p = q;
    }
    q = find_any(p, end, "?#");
    u.path = upto(p, q);
    p = q;
    if (p < end && *p == '?') {
        q = find_any(p + 1, end, "#");
        u.query = upto(p + 1, q);
        u.has_query = true;
        p = q;
    }
    if (p < end) {
        u.fragment = upto(p + 1, end);
        u.has_fragment = true;
    }
    return u;
}

/* Section 5.2.4 in place, from `start` of the buffer. */
static void remove_dots(struct amp_buf *b, size_t start)
{
    char *base = b->data + start, *out = base;
    const char *in = base, *end = b->data + b->len;
    bool relative = in < end && *in != '/';
    while (in < end) {
        const char *seg = in;
        if (*in == '/')
            in++;
        while (in < end && *in != '/')
            in++;
        size_t n = (size_t)(in - seg);
        const char *name = seg + (*seg == '/');
        size_t len = n - (*seg == '/');
        bool one = len == 1 && name[0] == '.', two = len == 2 && name[0] == '.' && name[1] == '.';
        if (!one && !two) {
            memmove(out, seg, n);
            out += n;
            continue;
        }
        if (two) {
            while (out > base && *--out != '/')
                continue;
            if (relative && out == base) {
                in += in < end;
                continue;
            }
        }
        if (in == end && *seg == '/') /* "/." and "/.." at the end leave the slash */
            *out++ = '/';
        else if (*seg != '/' && in < end)
            in++; /* "./x" and "../x" at the front lose theirs */
    }
    b->len = (size_t)(out - b->data);
}

int amp_uri_resolve(struct amp_span base_text, struct amp_span ref_text, struct amp_buf *out,
                    struct amp_error *err)
{
    struct amp_uri base = amp_uri_split(base_text), ref = amp_uri_split(ref_text), *from = &ref;
    bool whole = ref.scheme.n || ref.has_authority;
    struct amp_span scheme = ref.scheme.n ? ref.scheme : base.scheme;
    const struct amp_uri *authority = whole ? &ref : &base;

    if (scheme.n && (amp_buf_add(out, scheme.p, scheme.n, err) || amp_buf_str(out, ":", err)))
        return -1;
    if (authority->has_authority &&
        (amp_buf_str(out, "//", err) ||
         amp_buf_add(out, authority->authority.p, authority->authority.n, err)))
        return -1;
    size_t start = out->len;
    if (!whole && !ref.path.n) {
        if (amp_buf_add(out, base.path.p, base.path.n, err))
            return -1;
        if (!ref.has_query)
            from = &base;
    } else {
        if (!whole && ref.path.p[0] != '/') {
            size_t n = base.path.n;
            while (n > 0 && base.path.p[n - 1] != '/')
                n--;
            if (base.has_authority && !base.path.n) {
                if (amp_buf_str(out, "/", err))
                    return -1;
            } else if (amp_buf_add(out, base.path.p, n, err)) {
                return -1;
            }
        }
        if (amp_buf_add(out, ref.path.p, ref.path.n, err))
            return -1;
        if (out->data && (out->len > start))
            remove_dots(out, start);
    }
    if (from->has_query &&
        (amp_buf_str(out, "?", err) || amp_buf_add(out, from->query.p, from->query.n, err)))
        return -1;
    return 0;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int amp_uri_decode(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '%' && i + 2 < text.n && hex(text.p[i + 1]) >= 0 && hex(text.p[i + 2]) >= 0) {
            c = (char)(hex(text.p[i + 1]) << 4 | hex(text.p[i + 2]));
            i += 2;
        }
        if (amp_buf_add(out, &c, 1, err))
            return -1;
    }
    return 0;
}

/* Reads the head of a request, to a proxy or to this program. */
#include "net/request.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <amp/base/num.h>

#include "base/codes.h"

struct field {
    struct amp_span name, value;
};

static bool is_token(struct amp_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.n > 0;
}

/* Bytes that a value may have: no control characters but a tab. */
static bool is_text(struct amp_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool field_is(struct amp_span name, const char *want)
{
    return name.n == strlen(want) && strncasecmp(name.p, want, name.n) == 0;
}

/* Takes a line that ends with CR LF; false: there is none, or it contains another CR or LF. */
static bool line_take(struct amp_span *rest, struct amp_span *line)
{
    const char *lf = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    if (!lf || lf == rest->p || lf[-1] != '\r')
        return false;
    *line = (struct amp_span){rest->p, (size_t)(lf - rest->p) - 1};
    rest->n -= line->n + 2;
    rest->p = lf + 1;
    return !memchr(line->p, '\r', line->n);
}

static bool field_take(struct amp_span line, struct field *out)
{
    const char *colon = memchr(line.p, ':', line.n);
    if (!colon)
        return false;
    out->name = (struct amp_span){line.p, (size_t)(colon - line.p)};
    struct amp_span v = {colon + 1, line.n - out->name.n - 1};
    while (v.n && (v.p[0] == ' ' || v.p[0] == '\t')) {
        v.p++;
        v.n--;
    }
    while (v.n && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t'))
        v.n--;
    out->value = v;
    return is_token(out->name) && is_text(v);
}

static int request_fail(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_DATAERR, bad_request, "the request to the proxy: %s", what);
}

static int target_read(struct amp_span target, struct amp_net_request *r, struct amp_error *err)
{
    if (r->tunnel) {
        r->authority = target;
        return amp_net_host_parse(target, 0, &r->host, err);
    }
    if (target.n < 7 || strncasecmp(target.p, "http://", 7) != 0)
        return amp_fail(err, AMP_DATAERR, not_proxied,
                        "not a request to a proxy (expected CONNECT host:port or an http:// URI)");
    struct amp_span rest = {target.p + 7, target.n - 7};
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
        n++;
    r->authority = (struct amp_span){rest.p, n};
    r->path = (struct amp_span){rest.p + n, rest.n - n};
    if (memchr(target.p, '#', target.n))
        return request_fail(err, "a fragment in the URI");
    return amp_net_host_parse(r->authority, 80, &r->host, err);
}

static bool same_host(const struct amp_net_host *a, const struct amp_net_host *b)
{
    return a->port == b->port && a->literal == b->literal && strcmp(a->name, b->name) == 0;
}

/* Applies a field that decides about the host or the body. */
static int field_check(const struct field *f, struct amp_net_request *r, bool *host, bool *length,
                       struct amp_error *err)
{
    struct amp_net_host named;
    int64_t n;
    if (field_is(f->name, "host")) {
        if (*host)
            return request_fail(err, "two fields Host");
        *host = true;
        if (!r->tunnel &&
            (amp_net_host_parse(f->value, 80, &named, NULL) < 0 || !same_host(&named, &r->host)))
            return amp_fail(err, AMP_DATAERR, host_mismatch,
                            "the field Host names another host than the URI");
    } else if (field_is(f->name, "content-length")) {
        if (*length || amp_num_parse(f->value, 0, INT64_MAX, &n, NULL) < 0 || f->value.p[0] == '-')
            return request_fail(err, "the length of the body is malformed");
        *length = true;
        r->body = (uint64_t)n;
    } else if (field_is(f->name, "transfer-encoding")) {
        return amp_fail(err, AMP_DATAERR, length_required,
                        "a body needs Content-Length; transfer codings are not forwarded");
    }
    return 0;
}

/* The first line, split. */
struct first {
    struct amp_span method, target, rest; /* rest: the fields */
    size_t head;
};

/* 1: the head is complete; 0: it is not; -1. */
static int first_read(struct amp_span bytes, struct first *out, struct amp_error *err)
{
    const char *end = bytes.n ? memmem(bytes.p, bytes.n, "\r\n\r\n", 4) : NULL;
    if (!end) {
        /* A head that ends without CR would never be complete. */
        const char *lf = bytes.n ? memchr(bytes.p, '\n', bytes.n) : NULL;
        if (lf && (lf == bytes.p || lf[-1] != '\r'))
            return request_fail(err, "a line ends without CR");
        return 0;
    }
    struct first f = {.head = (size_t)(end - bytes.p) + 4};
    struct amp_span line;
    f.rest = (struct amp_span){bytes.p, f.head - 2};
    if (!line_take(&f.rest, &line) || !is_text(line))
        return request_fail(err, "malformed first line");
    const char *sp = memchr(line.p, ' ', line.n);
    const char *sp2 = sp ? memchr(sp + 1, ' ', line.n - (size_t)(sp + 1 - line.p)) : NULL;
    if (!sp2)
        return request_fail(err, "malformed first line");
    f.method = (struct amp_span){line.p, (size_t)(sp - line.p)};
    f.target = (struct amp_span){sp + 1, (size_t)(sp2 - sp) - 1};
    struct amp_span version = {sp2 + 1, line.n - (size_t)(sp2 + 1 - line.p)};
    if (!is_token(f.method) || f.target.n == 0 ||
        !(amp_span_is(version, "HTTP/1.1") || amp_span_is(version, "HTTP/1.0")))
        return request_fail(err, "malformed first line");
    *out = f;
    return 1;
}

int amp_net_request_read(struct amp_span bytes, struct amp_net_request *out, struct amp_error *err)
{
    struct first first;
    int rc = first_read(bytes, &first, err);
    if (rc <= 0)
        return rc;
    struct amp_net_request r = {
        .head = first.head, .method = first.method, .tunnel = amp_span_is(first.method, "CONNECT")};
    if (target_read(first.target, &r, err) < 0)
        return -1;
    struct amp_span rest = first.rest, line;
    bool host = false, length = false;
    unsigned n = 0;
    while (rest.n) {
        struct field f;
        if (!line_take(&rest, &line) || !field_take(line, &f))
            return request_fail(err, "malformed field");
        if (++n > AMP_NET_FIELDS_MAX)
            return request_fail(err, "more than 128 fields");
        if (field_check(&f, &r, &host, &length, err) < 0)
            return -1;
    }
    if (r.tunnel && r.body)
        return request_fail(err, "CONNECT with a body");
    *out = r;
    return 1;
}

static int served_fail(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_DATAERR, bad_request, "the request: %s", what);
}

/* Applies a field that decides about the body. */
static int served_field(const struct field *f, struct amp_net_served *r, bool *length, bool *host,
                        struct amp_error *err)
{
    int64_t n;
    if (field_is(f->name, "content-length")) {
        if (*length || amp_num_parse(f->value, 0, INT64_MAX, &n, NULL) < 0 || f->value.p[0] == '-')
            return served_fail(err, "the length of the body is malformed");
        *length = true;
        r->body = (uint64_t)n;
    } else if (field_is(f->name, "transfer-encoding")) {
        return amp_fail(err, AMP_DATAERR, length_required,
                        "a body needs Content-Length; transfer codings are not read");
    } else if (field_is(f->name, "host")) {
        if (*host)
            return served_fail(err, "two fields Host");
        *host = true;
    } else if (field_is(f->name, "content-type")) {
        if (r->type.n)
            return served_fail(err, "two fields Content-Type");
        r->type = f->value;
    }
    return 0;
}

int amp_net_served_read(struct amp_span bytes, struct amp_net_served *out, struct amp_error *err)
{
    struct first first;
    int rc = first_read(bytes, &first, err);
    if (rc <= 0)
        return rc;
    if (first.target.p[0] != '/' || memchr(first.target.p, '#', first.target.n))
        return served_fail(err, "the target is not a path");
    const char *mark = memchr(first.target.p, '?', first.target.n);
    size_t path = mark ? (size_t)(mark - first.target.p) : first.target.n;
    struct amp_net_served r = {.head = first.head,
                               .method = first.method,
                               .path = {first.target.p, path},
                               .query = {first.target.p + path, 0}};
    if (mark)
        r.query = (struct amp_span){mark + 1, first.target.n - path - 1};
    struct amp_span rest = first.rest, line;
    bool length = false, host = false;
    unsigned n = 0;
    while (rest.n) {
        struct field f;
        if (!line_take(&rest, &line) || !field_take(line, &f))
            return served_fail(err, "malformed field");
        if (++n > AMP_NET_FIELDS_MAX)
            return served_fail(err, "more than 128 fields");
        if (served_field(&f, &r, &length, &host, err) < 0)
            return -1;
    }
    *out = r;
    return 1;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int form_fail(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_DATAERR, bad_form, "the form: %s", what);
}

/* Appends a decoded name or value. */
static int form_decode(struct amp_span s, struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i] == '+' ? ' ' : s.p[i];
        if (c == '%') {
            int high = s.n - i > 2 ? hex_digit(s.p[i + 1]) : -1;
            int low = s.n - i > 2 ? hex_digit(s.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return form_fail(err, "malformed escape");
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0')
            return form_fail(err, "a NUL");
        if (amp_buf_add(out, &c, 1, err) < 0)
            return -1;
    }
    return amp_buf_add(out, "", 1, err);
}

int amp_net_form_get(struct amp_span form, const char *name, struct amp_buf *out,
                     struct amp_error *err)
{
    bool found = false;
    size_t before = out->len;
    AMP_BUF struct amp_buf key = {0};
    amp_buf_init(&key, 4096);
    while (form.n) {
        const char *end = memchr(form.p, '&', form.n);
        size_t n = end ? (size_t)(end - form.p) : form.n;
        const char *eq = n ? memchr(form.p, '=', n) : NULL;
        struct amp_span k = {form.p, eq ? (size_t)(eq - form.p) : n}, v = {form.p + n, 0};
        if (eq)
            v = (struct amp_span){eq + 1, n - k.n - 1};
        amp_buf_reset(&key);
        if (form_decode(k, &key, err) < 0)
            goto fail;
        if (strcmp(key.data, name) == 0) {
            if (found) {
                form_fail(err, "a field is there twice");
                goto fail;
            }
            found = true;
            if (form_decode(v, out, err) < 0)
                goto fail;
        }
        form.p += end ? n + 1 : n;
        form.n -= end ? n + 1 : n;
    }
    return found;
fail:
    out->len = before;
    return -1;
}

/* Fields between the client and the proxy. Upgrade too: after it the gate could not tell what is
 * sent. */
static bool is_for_proxy(struct amp_span name)
{
    static const char *const names[] = {"connection", "keep-alive",    "te", "trailer", "upgrade",
                                        "host",       "http2-settings"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (field_is(name, names[i]))
            return true;
    return name.n > 6 && strncasecmp(name.p, "proxy-", 6) == 0;
}

int amp_net_request_forward(struct amp_span bytes, const struct amp_net_request *r,
                            struct amp_buf *out, struct amp_error *err)
{
    size_t before = out->len;
    struct amp_span rest = {bytes.p, r->head - 2}, line;
    struct field f;
    bool slash = !amp_span_starts(r->path, "/");
    int rc = amp_buf_fmt(out, err, "%.*s %s%.*s HTTP/1.1\r\nHost: %.*s\r\n", (int)r->method.n,
                         r->method.p, slash ? "/" : "", (int)r->path.n, r->path.n ? r->path.p : "",
                         (int)r->authority.n, r->authority.p);
    line_take(&rest, &line);
    while (rc == 0 && line_take(&rest, &line) && field_take(line, &f))
        if (!is_for_proxy(f.name))
            rc = amp_buf_fmt(out, err, "%.*s: %.*s\r\n", (int)f.name.n, f.name.p, (int)f.value.n,
                             f.value.n ? f.value.p : "");
    if (rc == 0)
        rc = amp_buf_str(out, "Connection: close\r\n\r\n", err);
    if (rc < 0)
        out->len = before;
    return rc;
}

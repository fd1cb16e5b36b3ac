/* Prints examples with new ids and the current time. */
#include "example.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/nearest.h"
#include "cli/cli.h"

enum { OUT_MOST = 4 << 20, NAME_MOST = 64, DAY_MS = 86400000 };

struct example {
    const char *names, *line;
};

static const char *example_next(const char *at, struct example *out)
{
    *out = (struct example){at, at + strlen(at) + 1};
    return *at ? out->line + strlen(out->line) + 1 : NULL;
}

/* Case, and '.', '-' and '_', make no difference. */
static bool is_same(struct amp_span a, struct amp_span b)
{
    bool same = a.n == b.n;
    for (size_t i = 0; same && i < a.n; i++) {
        char x = (char)tolower((unsigned char)a.p[i]), y = (char)tolower((unsigned char)b.p[i]);
        same = x == y || (strchr(".-_", x) && strchr(".-_", y));
    }
    return same;
}

static struct amp_span short_name(struct amp_span name)
{
    const char *slash = memchr(name.p, '/', name.n);
    return slash ? (struct amp_span){slash + 1, name.n - (size_t)(slash + 1 - name.p)} : name;
}

/* The name of the example that the type is, or empty. */
static struct amp_span name_match(const struct example *e, struct amp_span type)
{
    for (const char *at = e->names; *at; at += strspn(at, " ")) {
        struct amp_span name = {at, strcspn(at, " ")};
        if (is_same(name, type) || is_same(short_name(name), type))
            return name;
        at += name.n;
    }
    return (struct amp_span){"", 0};
}

/* An example with all the names of its type. */
static int list_object(const struct example *e, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "type", (struct amp_span){e->names, strcspn(e->names, " ")});
    amp_jw_member_open(&w, "names", '[');
    for (const char *at = e->names; *at; at += strspn(at, " ")) {
        struct amp_span name = {at, strcspn(at, " ")};
        amp_jw_str(&w, name);
        at += name.n;
    }
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static int list_write(bool json, struct amp_buf *out, struct amp_error *err)
{
    struct example e;
    for (const char *at = amp_examples; (at = example_next(at, &e));)
        if ((json ? list_object(&e, out, err)
                  : amp_buf_fmt(out, err, "%.*s\n", (int)strcspn(e.names, " "), e.names)) < 0)
            return -1;
    return 0;
}

struct values {
    char uuid[3][AMP_UUID_MAX], now[AMP_TIME_MAX], later[AMP_TIME_MAX], tail[AMP_ID_TAIL_MAX];
    char number[32];
};

static void values_make(struct values *v)
{
    int64_t now = amp_now_ms();
    for (int i = 0; i < 3; i++)
        amp_uuid4(v->uuid[i]);
    amp_time_format(now, v->now);
    amp_time_format(now + DAY_MS, v->later);
    amp_id_tail(now, v->tail);
    snprintf(v->number, sizeof v->number, "%lld", (long long)amp_id_number(now));
}

/* Replaces the placeholders of the table. */
static int line_write(const char *line, struct amp_buf *out, struct amp_error *err)
{
    struct values v;
    values_make(&v);
    const struct {
        const char *name, *value;
    } known[] = {{"@UUID1@", v.uuid[0]}, {"@UUID2@", v.uuid[1]}, {"@UUID3@", v.uuid[2]},
                 {"@NOW@", v.now},       {"@LATER@", v.later},   {"@MS@", v.tail},
                 {"@SEQ@", v.number}};
    while (*line) {
        size_t n = strcspn(line, "@"), k = 0;
        if (amp_buf_add(out, line, n, err) < 0)
            return -1;
        line += n;
        while (k < sizeof known / sizeof *known &&
               strncmp(line, known[k].name, strlen(known[k].name)) != 0)
            k++;
        bool found = *line && k < sizeof known / sizeof *known;
        if (*line && amp_buf_str(out, found ? known[k].value : "@", err) < 0)
            return -1;
        line += found ? strlen(known[k].name) : *line ? 1 : 0;
    }
    return amp_buf_add(out, "\n", 1, err);
}

static void type_refuse(const char *type)
{
    struct amp_nearest near;
    struct example e;
    amp_nearest_init(&near, amp_span_str(type));
    for (const char *at = amp_examples; (at = example_next(at, &e));) {
        struct amp_span name = {e.names, strcspn(e.names, " ")};
        amp_nearest_try(&near, name);
        amp_nearest_try(&near, short_name(name));
    }
    if (near.word[0])
        amp_die_usage("there is no example of '%s' (did you mean '%s'?)", type, near.word);
    amp_die_usage("there is no example of '%s'; 'amp-validate --example list' lists them", type);
}

/* An example of each type of a protocol. *n: how many. */
static int protocol_write(const char *protocol, unsigned *n, struct amp_buf *out,
                          struct amp_error *err)
{
    struct example e;
    size_t len = strlen(protocol);
    for (const char *at = amp_examples; (at = example_next(at, &e));) {
        if (!is_same((struct amp_span){e.names, strcspn(e.names, "/")},
                     (struct amp_span){protocol, len}))
            continue;
        if (line_write(e.line, out, err) < 0)
            return -1;
        ++*n;
    }
    return 0;
}

static int type_write(const char *type, struct amp_buf *out, struct amp_error *err)
{
    char names[256] = "";
    struct example e, found = {0};
    unsigned n = 0;
    for (const char *at = amp_examples; (at = example_next(at, &e));) {
        struct amp_span name = name_match(&e, amp_span_str(type));
        if (name.n == 0)
            continue;
        size_t len = strlen(names);
        snprintf(names + len, sizeof names - len, "%s%.*s", n ? ", " : "", (int)name.n, name.p);
        found = e;
        n++;
    }
    if (n > 1)
        amp_die_usage("'%s' is a type of several protocols: %s", type, names);
    if (n == 0 && protocol_write(type, &n, out, err) < 0)
        return -1;
    if (n == 0)
        type_refuse(type);
    return !found.line ? 0 : line_write(found.line, out, err);
}

int example_print(char **types, int n, bool json, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {.max = OUT_MOST};
    int rc = 0;
    if (n == 0 || (n == 1 && strcmp(types[0], "list") == 0))
        rc = list_write(json, &out, err);
    else
        for (int i = 0; rc == 0 && i < n; i++)
            rc = type_write(types[i], &out, err);
    return rc < 0 ? -1 : amp_out(amp_buf_span(&out), err);
}

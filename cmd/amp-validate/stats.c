/* Counts by protocol, type and code: counted for each result, added up when results are written,
 * printed at the end and, on a terminal, also meanwhile. */
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "cli/cli.h"

enum { ROWS_MOST = 256, NAME_MOST = 64, TICK_MS = 250, TEXT_MOST = 1 << 20 };

/* A type with its lines, or a code with its findings. */
struct row {
    enum amp_protocol protocol;
    char name[NAME_MOST];
    uint64_t valid, refused; /* of a code: warnings, errors */
};

struct table {
    struct row row[ROWS_MOST];
    unsigned n;
};

struct stats {
    uint64_t lines, bytes, valid, refused, unchecked;
    struct table types, codes;
};

struct stats *stats_new(void)
{
    return calloc(1, sizeof(struct stats));
}

void stats_reset(struct stats *s)
{
    s->lines = s->bytes = s->valid = s->refused = s->unchecked = 0;
    s->types.n = s->codes.n = 0;
}

/* The last row counts everything for which the table has no row. */
static struct row *row_of(struct table *t, enum amp_protocol p, struct amp_span name)
{
    if (name.n >= NAME_MOST)
        name.n = NAME_MOST - 1;
    for (unsigned i = 0; i < t->n; i++)
        if (t->row[i].protocol == p && amp_span_is(name, t->row[i].name))
            return &t->row[i];
    if (t->n < ROWS_MOST) {
        struct row *r = &t->row[t->n++];
        *r = (struct row){.protocol = p};
        if (t->n == ROWS_MOST) {
            r->protocol = AMP_PROTO_NONE;
            name = AMP_SPAN("(others)");
        }
        amp_span_copy(name, r->name, sizeof r->name);
    }
    return &t->row[t->n - 1];
}

void stats_line(struct stats *s, const struct line_verdict *v)
{
    s->lines++;
    s->bytes += v->whole.n;
    if (v->answer == LINE_UNCHECKED) {
        s->unchecked++;
        return;
    }
    static const struct amp_span none = {"", 0};
    struct row *type = row_of(&s->types, v->view ? v->view->protocol : AMP_PROTO_NONE,
                              v->view ? v->view->type : none);
    bool valid = v->answer == LINE_VALID;
    *(valid ? &s->valid : &s->refused) += 1;
    *(valid ? &type->valid : &type->refused) += 1;
    for (unsigned i = 0; i < v->n_findings; i++) {
        const struct amp_finding *f = &v->findings[i];
        struct row *code = row_of(&s->codes, f->protocol, amp_span_str(f->code));
        *(f->severity == AMP_SEV_ERROR ? &code->refused : &code->valid) += 1;
    }
}

static void add_rows(struct table *to, const struct table *from)
{
    for (unsigned i = 0; i < from->n; i++) {
        struct row *r = row_of(to, from->row[i].protocol, amp_span_str(from->row[i].name));
        r->valid += from->row[i].valid;
        r->refused += from->row[i].refused;
    }
}

void stats_add(struct stats *to, const struct stats *from)
{
    to->lines += from->lines;
    to->bytes += from->bytes;
    to->valid += from->valid;
    to->refused += from->refused;
    to->unchecked += from->unchecked;
    add_rows(&to->types, &from->types);
    add_rows(&to->codes, &from->codes);
}

static const char *protocol_name(enum amp_protocol p)
{
    return p == AMP_PROTO_NONE ? "-" : amp_protocol_name(p);
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->protocol != y->protocol)
        return x->protocol < y->protocol ? -1 : 1;
    return strcmp(x->name, y->name);
}

static double per_second(uint64_t n, int64_t ms)
{
    return (double)n * 1000.0 / (double)(ms > 0 ? ms : 1);
}

static void summary_format(const struct stats *s, int64_t ms, char *out, size_t size)
{
    char unchecked[48] = "";
    if (s->unchecked)
        snprintf(unchecked, sizeof unchecked, ", %llu unchecked", (unsigned long long)s->unchecked);
    snprintf(out, size,
             "%llu line%s: %llu valid, %llu refused%s; %.1f MB in %.2f s: %.0f lines/s, %.1f MB/s",
             (unsigned long long)s->lines, s->lines == 1 ? "" : "s", (unsigned long long)s->valid,
             (unsigned long long)s->refused, unchecked, (double)s->bytes / 1e6, (double)ms / 1e3,
             per_second(s->lines, ms), per_second(s->bytes, ms) / 1e6);
}

/* One line for each row. A name may be any text, so it is made safe for a terminal. */
static int add_rows_text(const struct table *t, const char *good, const char *bad,
                         struct amp_buf *out)
{
    for (unsigned i = 0; i < t->n; i++) {
        const struct row *r = &t->row[i];
        AMP_BUF struct amp_buf name = {0};
        amp_buf_init(&name, 4096);
        struct amp_span shown = amp_span_str(r->name[0] ? r->name : "-");
        if (amp_text_safe(shown, 40, &name, NULL) < 0 ||
            amp_buf_fmt(out, NULL, "  %-6s %-40.*s", protocol_name(r->protocol), (int)name.len,
                        name.data) < 0)
            return -1;
        if (r->valid &&
            amp_buf_fmt(out, NULL, " %10llu %s", (unsigned long long)r->valid, good) < 0)
            return -1;
        if (r->refused &&
            amp_buf_fmt(out, NULL, " %10llu %s", (unsigned long long)r->refused, bad) < 0)
            return -1;
        if (amp_buf_str(out, "\n", NULL) < 0)
            return -1;
    }
    return 0;
}

static int add_text(const struct stats *s, int64_t ms, bool color, struct amp_buf *out)
{
    char line[240];
    summary_format(s, ms, line, sizeof line);
    if (amp_diagnostic(AMP_DIAG_NOTE, color, amp_span_str(line), out, NULL) < 0)
        return -1;
    return add_rows_text(&s->types, "valid", "refused", out) < 0
               ? -1
               : add_rows_text(&s->codes, "warnings", "errors", out);
}

static void write_rows(struct amp_jw *w, const struct table *t, const char *name, const char *good,
                       const char *bad)
{
    amp_jw_open(w, '[');
    for (unsigned i = 0; i < t->n; i++) {
        const struct row *r = &t->row[i];
        amp_jw_open(w, '{');
        amp_jw_member_text(w, "protocol", amp_protocol_name(r->protocol));
        amp_jw_member_text(w, name, r->name);
        amp_jw_member_uint(w, good, r->valid);
        amp_jw_member_uint(w, bad, r->refused);
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
}

static int add_json(const struct stats *s, int64_t ms, struct amp_buf *out)
{
    const struct {
        const char *key;
        uint64_t n;
    } counts[] = {{"lines", s->lines},
                  {"bytes", s->bytes},
                  {"valid", s->valid},
                  {"refused", s->refused},
                  {"unchecked", s->unchecked},
                  {"ms", (uint64_t)ms},
                  {"lines_per_second", (uint64_t)per_second(s->lines, ms)},
                  {"bytes_per_second", (uint64_t)per_second(s->bytes, ms)}};
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        amp_jw_member_uint(&w, counts[i].key, counts[i].n);
    amp_jw_key(&w, "types");
    write_rows(&w, &s->types, "type", "valid", "refused");
    amp_jw_key(&w, "codes");
    write_rows(&w, &s->codes, "code", "warnings", "errors");
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, NULL);
}

void stats_print(struct stats *s, const struct validate_options *opt, int64_t ms)
{
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, TEXT_MOST);
    qsort(s->types.row, s->types.n, sizeof s->types.row[0], compare_rows);
    qsort(s->codes.row, s->codes.n, sizeof s->codes.row[0], compare_rows);
    bool json = strcmp(opt->stats, "json") == 0;
    if ((json ? add_json(s, ms, &out) : add_text(s, ms, opt->color, &out)) == 0)
        amp_err(amp_buf_span(&out));
    else
        amp_warn("no memory for the statistics");
}

bool stats_progress(const struct stats *s, int64_t ms, int64_t *last_ms)
{
    char line[240], shown[260];
    if (ms - *last_ms < TICK_MS)
        return false;
    *last_ms = ms;
    summary_format(s, ms, line, sizeof line);
    int n = snprintf(shown, sizeof shown, "\r\033[K%s", line);
    amp_err((struct amp_span){shown, (size_t)n});
    return true;
}

/* Findings as diagnostics. */
#include "shared/finding.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

enum { LINE_MOST = 16 * 1024 };

static int location_add(const struct amp_finding *f, const struct amp_line_place *at,
                        struct amp_buf *out, struct amp_error *err)
{
    unsigned long long line = at ? (unsigned long long)at->line : 0;
    int rc = 0;
    if (line > 0 && at->file)
        rc = amp_buf_fmt(out, err, "%s:%llu: ", at->file, line);
    else if (line > 0)
        rc = amp_buf_fmt(out, err, "line %llu: ", line);
    return rc ? rc : amp_buf_fmt(out, err, "%.200s%s", f->field, f->field[0] ? ": " : "");
}

int amp_finding_line(const struct amp_finding *f, const struct amp_line_place *at, bool document,
                     bool color, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, LINE_MOST);
    if (location_add(f, at, &text, err) || amp_buf_fmt(&text, err, "%s: ", f->code) < 0 ||
        amp_finding_sentence(f, document, &text, err))
        return -1;
    return amp_diagnostic(f->severity == AMP_SEV_ERROR ? AMP_DIAG_ERROR : AMP_DIAG_WARNING, color,
                          amp_buf_span(&text), out, err);
}

void amp_finding_print(void *ctx, const struct amp_finding *f, const struct amp_line_place *at)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_error err;
    (void)ctx;
    amp_buf_init(&line, 2 * LINE_MOST);
    if (amp_finding_line(f, at, false, amp_color(stderr), &line, &err) < 0)
        amp_complain(&err);
    else
        amp_err(amp_buf_span(&line));
}

void amp_finding_print_error(void *ctx, const struct amp_finding *f,
                             const struct amp_line_place *at)
{
    if (f->severity == AMP_SEV_ERROR)
        amp_finding_print(ctx, f, at);
}

/* Diagnostics on stderr: one line each, with control characters escaped. */
#include "base/codes.h"
#include "cli/private.h"

#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/pipe.h>

static int noted;
static int64_t started_ms;
static char last_complaint[sizeof((struct amp_error *)0)->what];

const char *amp_cli_name(void)
{
    return cli_tool ? cli_tool->name : "amp";
}

const char *amp_cli_login(const char *otherwise)
{
    const struct passwd *pw = getpwuid(geteuid());
    return pw && *pw->pw_name ? pw->pw_name : otherwise;
}

void cli_summary_start(void)
{
    started_ms = amp_mono_ms();
}

int cli_noted_status(void)
{
    return noted;
}

void amp_status_note(int status)
{
    noted = (int)amp_status_worse((enum amp_status)noted, (enum amp_status)status);
}

#define CODES_MOST 32 /* further codes are counted together */

static struct {
    char code[48];
    unsigned long long n;
} refusals[CODES_MOST + 1];
static unsigned n_refusals;

void amp_refused(const char *code, uint64_t n)
{
    unsigned i = 0;
    if (n == 0)
        return;
    amp_status_note(AMP_NO);
    while (i < n_refusals && i < CODES_MOST && strcmp(refusals[i].code, code) != 0)
        i++;
    if (i == n_refusals) {
        n_refusals++;
        snprintf(refusals[i].code, sizeof refusals[i].code, "%s",
                 i < CODES_MOST ? code : "other codes");
    }
    refusals[i].n += n;
}

static int compare_codes(const void *a, const void *b)
{
    return strcmp(a, b); /* the code comes first in its row */
}

void cli_print_refused(void)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 4096);
    qsort(refusals, n_refusals, sizeof refusals[0], compare_codes);
    for (unsigned i = 0; i < n_refusals; i++)
        amp_buf_fmt(&b, NULL, "%s%llu %s", i ? ", " : "", refusals[i].n, refusals[i].code);
    if (b.len > 0)
        amp_warn("refused: %.*s", (int)b.len, b.data);
}

void cli_summary_print(void)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_error err;
    amp_buf_init(&b, 4096);
    if (!amp_verbose || (cli_tool->summary && cli_tool->summary(&b, &err) < 0))
        return;
    amp_note("%.*s, %.3f s", b.len ? (int)b.len : 4, b.len ? b.data : "done",
             (double)(amp_mono_ms() - started_ms) / 1000);
}

bool amp_color_of(int fd)
{
    if (strcmp(cli_standard.color, "always") == 0)
        return true;
    if (strcmp(cli_standard.color, "never") == 0)
        return false;
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

bool amp_color(FILE *f)
{
    return amp_color_of(fileno(f));
}

int amp_diagnostic(enum amp_diagnostic_kind kind, bool color, struct amp_span what,
                   struct amp_buf *out, struct amp_error *err)
{
    static const struct {
        const char *word, *tint;
    } kinds[] = {[AMP_DIAG_ERROR] = {"error", "\033[31m"},
                 [AMP_DIAG_WARNING] = {"warning", "\033[33m"},
                 [AMP_DIAG_NOTE] = {"note", "\033[36m"}};
    size_t before = out->len;
    if (amp_buf_fmt(out, err, "%s: %s%s%s: ", amp_cli_name(), color ? kinds[kind].tint : "",
                    kinds[kind].word, color ? "\033[0m" : "") == 0 &&
        amp_text_safe(what, 0, out, err) == 0 && amp_buf_str(out, "\n", err) == 0)
        return 0;
    out->len = before;
    return -1;
}

static void diagnostic_print(enum amp_diagnostic_kind kind, struct amp_span what)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 65536);
    if (amp_diagnostic(kind, amp_color(stderr), what, &b, NULL)) {
        static const char sorry[] = ": error: no memory for a diagnostic\n";
        ssize_t n = write(2, amp_cli_name(), strlen(amp_cli_name()));
        n = write(2, sorry, sizeof sorry - 1);
        (void)n;
        return;
    }
    amp_err(amp_buf_span(&b));
}

static bool (*divert)(void *ctx, struct amp_span text);
static void *divert_ctx;

void amp_err_divert(bool (*take)(void *ctx, struct amp_span text), void *ctx)
{
    divert = take;
    divert_ctx = ctx;
}

void amp_err(struct amp_span text)
{
    cli_progress_clear();
    if (divert && divert(divert_ctx, text))
        return;
    amp_write_until(2, text, &amp_stop, NULL); /* a failure cannot be reported */
}

__attribute__((format(printf, 2, 0))) static void diagnostic_format(enum amp_diagnostic_kind kind,
                                                                    const char *fmt, va_list ap)
{
    char text[4096];
    vsnprintf(text, sizeof text, fmt, ap);
    diagnostic_print(kind, amp_span_str(text));
}

void amp_warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diagnostic_format(AMP_DIAG_WARNING, fmt, ap);
    va_end(ap);
}

bool amp_quiet, amp_verbose;

void amp_note(const char *fmt, ...)
{
    va_list ap;
    if (amp_quiet)
        return;
    va_start(ap, fmt);
    diagnostic_format(AMP_DIAG_NOTE, fmt, ap);
    va_end(ap);
}

void amp_note_terminal(const char *path)
{
    static bool noted_once;
    if (noted_once || (path && strcmp(path, "-") != 0) || !isatty(STDIN_FILENO))
        return;
    noted_once = true;
    amp_note("reading from the terminal; Ctrl-D ends the input");
}

int amp_complain(const struct amp_error *err)
{
    /* A closed reader and an interrupt are not worth a diagnostic. */
    amp_span_copy(amp_span_str(err->what), last_complaint, sizeof last_complaint);
    if (!amp_code_is(err->code, closed_pipe) && strcmp(err->what, "interrupted") != 0)
        diagnostic_print(AMP_DIAG_ERROR, amp_span_str(err->what));
    return err->status;
}

bool cli_complained(const struct amp_error *err)
{
    return strcmp(err->what, last_complaint) == 0;
}

void amp_die_usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diagnostic_format(AMP_DIAG_ERROR, fmt, ap);
    va_end(ap);
    amp_note("try '%s --help'", amp_cli_name());
    struct amp_error ignored;
    amp_out_flush(&ignored);
    exit(AMP_USAGE);
}

/* Diagnostics on stderr: one line each, written at once, control characters neutralised. */
#include "cli/private.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

static const char *tool_name = "amp";
static int noted;
static char last_complaint[sizeof((struct amp_error *)0)->what];

void cli_set_name(const char *name)
{
    tool_name = name;
}

const char *amp_cli_name(void)
{
    return tool_name;
}

int cli_noted_status(void)
{
    return noted;
}

void amp_status_note(int status)
{
    noted = (int)amp_status_worse((enum amp_status)noted, (enum amp_status)status);
}

bool amp_color(FILE *f)
{
    if (strcmp(cli_standard.color, "always") == 0)
        return true;
    if (strcmp(cli_standard.color, "never") == 0)
        return false;
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fileno(f));
}

static void say(const char *severity, const char *tint, struct amp_span what)
{
    bool color = amp_color(stderr);
    AMP_BUF struct amp_buf b;
    amp_buf_init(&b, 65536);
    /* With no memory for the line there is still the plain text. */
    if (amp_buf_fmt(&b, NULL, "%s: %s%s%s: ", tool_name, color ? tint : "", severity,
                    color ? "\033[0m" : "") ||
        amp_text_safe(what, 0, &b, NULL) || amp_buf_str(&b, "\n", NULL)) {
        static const char sorry[] = ": error: no memory for a diagnostic\n";
        ssize_t n = write(2, tool_name, strlen(tool_name));
        n = write(2, sorry, sizeof sorry - 1);
        (void)n;
        return;
    }
    struct amp_error ignored;
    amp_write_all(2, amp_buf_span(&b), &ignored);
}

__attribute__((format(printf, 3, 0))) static void say_args(const char *severity, const char *tint,
                                                           const char *fmt, va_list ap)
{
    char text[4096];
    vsnprintf(text, sizeof text, fmt, ap);
    say(severity, tint, amp_span_str(text));
}

void amp_warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_args("warning", "\033[33m", fmt, ap);
    va_end(ap);
}

void amp_note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_args("note", "\033[36m", fmt, ap);
    va_end(ap);
}

int amp_complain(const struct amp_error *err)
{
    /* A reader that left has seen what it wanted; who interrupted us knows that they did. */
    amp_span_copy(amp_span_str(err->what), last_complaint, sizeof last_complaint);
    if (strcmp(err->code, "closed_pipe") != 0 && strcmp(err->what, "interrupted") != 0)
        say("error", "\033[31m", amp_span_str(err->what));
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
    say_args("error", "\033[31m", fmt, ap);
    va_end(ap);
    amp_note("try '%s --help'", tool_name);
    struct amp_error ignored;
    amp_out_flush(&ignored);
    exit(AMP_USAGE);
}

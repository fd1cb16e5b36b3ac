/* The progress of long work: one line of stderr that is written again. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "cli/private.h"

enum { FIRST_MS = 1000, AGAIN_MS = 250 };

static int64_t begun_ms, shown_ms;
static const char *begun; /* the work that is going on */
static bool shown;

bool amp_progress_wanted(void)
{
    if (amp_quiet || strcmp(cli_standard.progress, "never") == 0)
        return false;
    return strcmp(cli_standard.progress, "always") == 0 || isatty(STDERR_FILENO);
}

static void line_write(const char *text)
{
    /* A progress line that cannot be written now is not worth a wait. */
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
}

void cli_progress_clear(void)
{
    if (!shown)
        return;
    shown = false;
    line_write("\r\033[K");
}

void amp_progress(const char *what, uint64_t done, uint64_t total)
{
    char line[200];
    int64_t now = amp_mono_ms();

    if (begun != what) {
        begun = what;
        begun_ms = now;
        shown_ms = 0;
    }
    if (now - begun_ms < FIRST_MS || now - shown_ms < AGAIN_MS || !amp_progress_wanted())
        return;
    shown_ms = now;
    if (total > 0)
        snprintf(line, sizeof line, "\r\033[K%s: %s: %llu of %llu (%d %%)", amp_cli_name(), what,
                 (unsigned long long)done, (unsigned long long)total,
                 (int)(100 * (double)done / (double)total));
    else
        snprintf(line, sizeof line, "\r\033[K%s: %s: %llu", amp_cli_name(), what,
                 (unsigned long long)done);
    line_write(line);
    shown = true;
}

/* amp_shell_quote: the quoted forms, and that a shell reads each of them as one word with the same
 * bytes. */
#include "base/process/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"

#define QUOTED_MAX 4096

static void quoted_is(const char *text, const char *want)
{
    static int n;
    AMP_BUF struct amp_buf out = {.max = QUOTED_MAX};
    struct amp_error err;
    int rc = amp_shell_quote(amp_span_str(text), &out, &err);
    TAP_OK(rc == 0 && amp_span_is(amp_buf_span(&out), want), "the form of text %d", ++n);
}

/* Whether sh prints exactly the text as the only operand. */
static bool survives(const char *text, size_t n)
{
    AMP_BUF struct amp_buf command = {.max = QUOTED_MAX};
    struct amp_error err;
    char got[1024];
    if (amp_buf_str(&command, "set -- ", &err) < 0 ||
        amp_shell_quote((struct amp_span){text, n}, &command, &err) < 0 ||
        amp_buf_str(&command, "; [ $# = 1 ] && printf %s \"$1\"", &err) < 0)
        return false;
    FILE *f = popen(command.data, "r");
    if (!f)
        return false;
    size_t len = fread(got, 1, sizeof got, f);
    return pclose(f) == 0 && len == n && memcmp(got, text, n) == 0;
}

int main(void)
{
    static const char *const texts[] = {
        "",    "a b", "it's", "'",   "''",  "\"$HOME\"", "`id`",   "$(id)", "a\nb", "\n", "~root",
        "=ls", "*",   "#x",   "a\\", "\\'", "-n",        "a;b|c&", "{a,b}", "!!",   "\t "};
    char every[255], high[128];
    struct amp_error err;
    AMP_BUF struct amp_buf small = {.max = 4};

    quoted_is("", "''");
    quoted_is("plain-1.0/a_b:c,d@e%f+g=h", "plain-1.0/a_b:c,d@e%f+g=h");
    quoted_is("a b", "'a b'");
    quoted_is("it's", "'it'\\''s'");
    quoted_is("'", "''\\'''");
    quoted_is("\n", "'\n'");
    quoted_is("=ls", "'=ls'");
    quoted_is("~", "'~'");
    quoted_is("\xc3\xa9", "'\xc3\xa9'");
    quoted_is("\x80\xff", "'\x80\xff'");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        TAP_OK(survives(texts[i], strlen(texts[i])), "a shell reads text %zu as one word", i + 1);
    for (unsigned i = 0; i < sizeof every; i++)
        every[i] = (char)(i + 1);
    memcpy(high, every + 127, sizeof high);
    TAP_OK(survives(every, sizeof every), "a shell reads all bytes but NUL as one word");
    TAP_OK(survives(high, sizeof high), "also the bytes from 0x80 alone");
    TAP_OK(amp_shell_quote(AMP_SPAN("a b c"), &small, &err) < 0, "a full buffer is a failure");
    return tap_done();
}

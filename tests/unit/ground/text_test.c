/* Untrusted text for a terminal. */
#include "cli/cli.h"

#include "../tap.h"

static void shows(struct amp_span text, int width, const char *want, const char *name)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 1000);
    amp_text_safe(text, width, &b, NULL);
    TAP_SPAN(amp_buf_span(&b), want, name);
}

int main(void)
{
    shows(AMP_SPAN("plain äö 漢字"), 0, "plain äö 漢字", "ordinary text");
    shows(AMP_SPAN("\033[2J\033]0;x\007"), 0, "\\x1b[2J\\x1b]0;x\\x07", "terminal sequences");
    shows(AMP_SPAN("a\nb\tc\r"), 0, "a\\nb\\tc\\r", "line ends and tabs");
    shows((struct amp_span){"\0\x7f", 2}, 0, "\\x00\\x7f", "NUL and DEL");
    shows(AMP_SPAN("\xc2\x9b"
                   "31m"),
          0, "\\x9b31m", "C1");
    shows(AMP_SPAN("a\xe2\x80\xae"
                   "b"),
          0, "a\\u{202e}b", "direction overrides");
    shows(AMP_SPAN("a\xe2\x80\x8b"
                   "b"),
          0, "a\\u{200b}b", "invisible characters");
    shows(AMP_SPAN("\xf3\xa0\x81\x81"), 0, "\\u{e0041}", "tag characters");
    shows(AMP_SPAN("\xff\xc0\xaf\xed\xa0\x80\xe2\x82"), 0,
          "\\xff\\xc0\\xaf\\xed\\xa0\\x80\\xe2\\x82", "bytes that are no UTF-8");
    shows(AMP_SPAN("e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81"), 0,
          "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81", "towers of marks");
    shows(AMP_SPAN("abcdef"), 6, "abcdef", "exactly the width");
    shows(AMP_SPAN("abcdefg"), 6, "abcde…", "cut");
    shows(AMP_SPAN("漢字漢字"), 5, "漢字…", "wide characters");
    shows(AMP_SPAN("漢字漢字"), 4, "漢…", "wide characters, odd room");
    shows(AMP_SPAN("a\nb"), 3, "a…", "an escape is not cut in two");
    shows(AMP_SPAN("ab"), 1, "…", "width 1");
    struct amp_buf b;
    amp_buf_init(&b, 3);
    struct amp_error err;
    amp_buf_str(&b, "x", &err);
    TAP_OK(amp_text_safe(AMP_SPAN("abc"), 0, &b, &err) == -1 && b.len == 1, "all or nothing");
    amp_buf_release(&b);
    return tap_done();
}

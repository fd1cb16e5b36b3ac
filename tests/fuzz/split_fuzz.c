/* amp_shell_split: a plain line (work/git/call/plain.h) of one command without redirections has the
 * same words for both readers, and words survive quoting. */
#include <string.h>

#include "base/process/quote.h"
#include "must.h"
#include "work/git/call/plain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plain_compare(struct amp_span line)
{
    AMP_CLEANUP(amp_shell_split_release) struct amp_shell_split s = {0};
    AMP_PLAIN p = {0};
    struct amp_error err;

    MUST(amp_plain_line(line, &p, &err) == 0);
    if (p.why[0] || p.n != 1 || memchr(line.p, ';', line.n) || memchr(line.p, '>', line.n))
        return;
    MUST(amp_shell_split(line, &s, &err) == 0 && s.n == p.v[0].n);
    for (size_t k = 0; k < s.n; k++)
        MUST(strcmp(s.v[k], p.v[0].words[k]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct amp_span line = {(const char *)data, size};
    AMP_CLEANUP(amp_shell_split_release) struct amp_shell_split s = {0}, again = {0};
    AMP_BUF struct amp_buf quoted = {.max = 1u << 22};
    struct amp_error err;

    plain_compare(line);
    if (amp_shell_split(line, &s, &err) < 0)
        return 0;
    for (size_t i = 0; i < s.n; i++)
        MUST(amp_shell_quote(amp_span_str(s.v[i]), &quoted, &err) == 0 &&
             amp_buf_str(&quoted, " ", &err) == 0);
    if (amp_shell_split(amp_buf_span(&quoted), &again, &err) == 0) {
        MUST(again.n == s.n);
        for (size_t i = 0; i < s.n; i++)
            MUST(strcmp(again.v[i], s.v[i]) == 0);
    }
    return 0;
}

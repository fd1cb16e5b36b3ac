/* amp_shell_split: what it accepts is one simple command without expansions also for the parser of
 * worktree/call/shell.h, with the same words, and its words survive quoting. */
#include <string.h>

#include "base/process/quote.h"
#include "must.h"
#include "worktree/call/shell.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool words_same(const struct amp_shell_split *s, const struct amp_shell_item *i)
{
    if (i->kind != AMP_SHELL_COMMAND || i->n != s->n || i->n_targets || i->n_sources || i->n_nested)
        return false;
    for (size_t k = 0; k < s->n; k++)
        if (strcmp(s->v[k], i->words[k].text) != 0)
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct amp_span line = {(const char *)data, size};
    AMP_CLEANUP(amp_shell_split_release) struct amp_shell_split s = {0}, again = {0};
    AMP_BUF struct amp_buf quoted = {.max = 1u << 22};
    struct amp_shell parsed = {0};
    struct amp_error err;

    if (amp_shell_split(line, &s, &err) < 0)
        return 0;
    if (amp_shell_parse(line, &parsed, &err) == 0) {
        MUST(parsed.n == 1 && words_same(&s, &parsed.items[0]));
        amp_shell_release(&parsed);
    }
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

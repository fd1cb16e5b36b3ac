/* Quoting of words for a shell. */
#include "base/process/quote.h"

#include <string.h>

/* '=' at the beginning of a word is expanded by zsh, '~' by all shells. */
static bool is_plain(struct amp_span text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,@%+";
    for (size_t i = 0; i < text.n; i++)
        if (!text.p[i] || !strchr(plain, text.p[i]))
            return false;
    return text.n > 0 && text.p[0] != '=';
}

int amp_shell_quote(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    if (is_plain(text))
        return amp_buf_add(out, text.p, text.n, err);
    if (amp_buf_str(out, "'", err) < 0)
        return -1;
    for (size_t i = 0; i < text.n; i++)
        if ((text.p[i] == '\'' ? amp_buf_str(out, "'\\''", err)
                               : amp_buf_add(out, text.p + i, 1, err)) < 0)
            return -1;
    return amp_buf_str(out, "'", err);
}

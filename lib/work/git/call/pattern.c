/* Compares a simple command with the words of a pattern. */
#include <string.h>

#include "base/codes.h"
#include "work/git/call/plain.h"

int amp_call_pattern_check(struct amp_span pattern, struct amp_error *err)
{
    bool word = false;
    if (pattern.n > AMP_PATTERN_MAX)
        return amp_fail(err, AMP_CONFIG, bad_config, "a command pattern of more than %d bytes",
                        AMP_PATTERN_MAX);
    for (size_t i = 0; i < pattern.n; i++) {
        unsigned char c = (unsigned char)pattern.p[i];
        if (c < ' ' || c == 0x7f || strchr("'\"$`;&|<>()\\", c))
            return amp_fail(err, AMP_CONFIG, bad_config,
                            "the command pattern \"%.*s\" has a character that only a shell would "
                            "read; write the words of one simple command",
                            AMP_CLIP(pattern, 100));
        word |= c != ' ';
    }
    if (!word)
        return amp_fail(err, AMP_CONFIG, bad_config, "an empty command pattern");
    return 0;
}

/* Takes the next word of a pattern; false at its end. */
static bool word_next(struct amp_span *rest, struct amp_span *word)
{
    while (rest->n && *rest->p == ' ')
        *rest = (struct amp_span){rest->p + 1, rest->n - 1};
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ' ')
        n++;
    *word = (struct amp_span){rest->p, n};
    *rest = (struct amp_span){rest->p + n, rest->n - n};
    return n > 0;
}

static bool is_rest(struct amp_span word, struct amp_span rest)
{
    struct amp_span next;
    return amp_span_is(word, "*") && !word_next(&rest, &next);
}

bool amp_plain_fits(const struct amp_plain_command *c, struct amp_span pattern)
{
    struct amp_span word;
    size_t i = 0;
    while (word_next(&pattern, &word)) {
        if (i > 0 && is_rest(word, pattern))
            return true;
        if (i == c->n || !amp_span_glob(amp_span_str(c->words[i]), word))
            return false;
        i++;
    }
    return i == c->n;
}

static bool program_is(const char *text, struct amp_span word)
{
    const char *slash = strrchr(text, '/');
    return amp_span_glob(amp_span_str(text), word) ||
           (slash && !memchr(word.p, '/', word.n) && amp_span_glob(amp_span_str(slash + 1), word));
}

bool amp_plain_names(const struct amp_plain_command *c, struct amp_span pattern)
{
    struct amp_span word;
    size_t i = 1;
    if (!word_next(&pattern, &word) || !program_is(c->words[0], word))
        return false;
    while (word_next(&pattern, &word)) {
        if (is_rest(word, pattern))
            return true;
        /* An option, and the word behind it, which may be its value, do not hide the next word. */
        for (bool value = false;; i++) {
            if (i == c->n)
                return false;
            if (amp_span_glob(amp_span_str(c->words[i]), word))
                break;
            bool option = c->words[i][0] == '-';
            if (!option && !value)
                return false;
            value = option && !strchr(c->words[i], '=') && strcmp(c->words[i], "--") != 0;
        }
        i++;
    }
    return true;
}

/* Compares a simple command with the words of a pattern. */
#include <string.h>

#include "worktree/call/units.h"

int amp_call_pattern_check(struct amp_span pattern, struct amp_error *err)
{
    bool word = false;
    if (pattern.n > AMP_PATTERN_MAX)
        return amp_fail(err, AMP_CONFIG, "bad_config", "a command pattern of more than %d bytes",
                        AMP_PATTERN_MAX);
    for (size_t i = 0; i < pattern.n; i++) {
        unsigned char c = (unsigned char)pattern.p[i];
        if (c < ' ' || c == 0x7f || strchr("'\"$`;&|<>()\\", c))
            return amp_fail(err, AMP_CONFIG, "bad_config",
                            "the command pattern \"%.*s\" has a character that only a shell would "
                            "read; write the words of one simple command",
                            AMP_CLIP(pattern, 100));
        word |= c != ' ';
    }
    if (!word)
        return amp_fail(err, AMP_CONFIG, "bad_config", "an empty command pattern");
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

bool amp_unit_fits(const struct amp_call_unit *u, struct amp_span pattern)
{
    struct amp_span word;
    size_t i = 0;
    if (u->derived || !u->plain || u->unknown)
        return false;
    while (word_next(&pattern, &word)) {
        if (i > 0 && is_rest(word, pattern))
            return true;
        if (i == u->n || !amp_span_glob(amp_span_str(u->words[i].text), word))
            return false;
        i++;
    }
    return i == u->n;
}

/* Whether the word after this option is its value; PERHAPS: the option is not known. */
static enum amp_named option_takes(const struct amp_call_unit *u, const char *option)
{
    static const char *const git[] = {"-C",          "-c",          "--git-dir",    "--work-tree",
                                      "--namespace", "--exec-path", "--config-env", NULL};
    if (strchr(option, '=') || strcmp(option, "--") == 0)
        return AMP_NAMED_NO;
    const char *slash = strrchr(u->words[0].text, '/');
    if (strcmp(slash ? slash + 1 : u->words[0].text, "git") == 0)
        for (int i = 0; git[i]; i++)
            if (strcmp(git[i], option) == 0)
                return AMP_NAMED_YES;
    return AMP_NAMED_PERHAPS;
}

static bool program_is(const char *text, struct amp_span word)
{
    const char *slash = strrchr(text, '/');
    return amp_span_glob(amp_span_str(text), word) ||
           (slash && !memchr(word.p, '/', word.n) && amp_span_glob(amp_span_str(slash + 1), word));
}

enum amp_named amp_unit_names(const struct amp_call_unit *u, struct amp_span pattern)
{
    struct amp_span word;
    enum amp_named takes = AMP_NAMED_NO, found = AMP_NAMED_YES;
    size_t i = 1;
    if (u->unknown)
        return AMP_NAMED_PERHAPS;
    if (!u->n || !word_next(&pattern, &word) || !program_is(u->words[0].text, word))
        return AMP_NAMED_NO;
    while (word_next(&pattern, &word)) {
        if (is_rest(word, pattern))
            return found;
        for (;; i++) {
            if (i == u->n)
                return AMP_NAMED_NO;
            const char *text = u->words[i].text;
            if (u->words[i].opaque)
                return AMP_NAMED_PERHAPS;
            if (takes != AMP_NAMED_YES && amp_span_glob(amp_span_str(text), word))
                break;
            if (text[0] == '-' && takes != AMP_NAMED_YES) {
                takes = option_takes(u, text);
                continue;
            }
            if (takes == AMP_NAMED_NO)
                return AMP_NAMED_NO;
            if (takes == AMP_NAMED_PERHAPS)
                found = AMP_NAMED_PERHAPS;
            takes = AMP_NAMED_NO;
        }
        takes = AMP_NAMED_NO;
        i++;
    }
    return found;
}

/* What a risk level and a dispatch's forbidden actions keep an executor from touching. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "worktree/patch.h"

static bool matches(struct amp_span path, struct amp_span pattern)
{
    if (pattern.n > 2 && !memcmp(pattern.p, "./", 2))
        pattern = (struct amp_span){pattern.p + 2, pattern.n - 2};
    if (pattern.n && pattern.p[pattern.n - 1] == '/')
        return path.n > pattern.n && !memcmp(path.p, pattern.p, pattern.n);
    if (memchr(pattern.p, '/', pattern.n))
        return amp_span_glob(path, pattern);
    const char *slash = memrchr(path.p, '/', path.n);
    struct amp_span last = path;
    if (slash)
        last = (struct amp_span){slash + 1, path.n - (size_t)(slash + 1 - path.p)};
    return amp_span_glob(last, pattern);
}

/* "Info.plist", "src/", "*.lock", "a/b"; not "e.g.", "2.0" or "CoreData". */
static bool is_pattern(struct amp_span word)
{
    if (word.n < 2)
        return false;
    if (memchr(word.p, '*', word.n))
        return true;
    const char *slash = memchr(word.p, '/', word.n);
    if (slash)
        return strncmp(word.p, "http", 4) && !memchr(word.p, ':', word.n);
    const char *dot = memrchr(word.p, '.', word.n);
    if (!dot || dot == word.p + word.n - 1)
        return false;
    /* Inner dots as in "e.g" or "i.e" stand between single letters. */
    size_t stem = (size_t)(dot - word.p), suffix = word.n - stem - 1;
    if (stem == 1 && suffix == 1 && !strchr("chmS", dot[1]))
        return false;
    for (const char *c = dot + 1; c < word.p + word.n; c++)
        if (isalpha((unsigned char)*c))
            return true;
    return false;
}

static struct amp_span next_word(struct amp_span *rest)
{
    static const char edge[] = " \t\n\r\"'`,;:()[]{}<>";
    size_t i = 0, n;

    while (i < rest->n && strchr(edge, rest->p[i]))
        i++;
    for (n = i; n < rest->n && !strchr(edge, rest->p[n]);)
        n++;
    struct amp_span word = {rest->p + i, n - i};
    *rest = (struct amp_span){rest->p + n, rest->n - n};
    /* The full stop of a sentence is no part of a name. */
    while (word.n && word.p[word.n - 1] == '.')
        word.n--;
    return word;
}

bool amp_scope_forbids(struct amp_span path, const char *const *patterns,
                       const struct amp_spans *actions, char *by, size_t size)
{
    for (int i = 0; patterns && patterns[i]; i++) {
        if (matches(path, amp_span_str(patterns[i]))) {
            snprintf(by, size, "%s", patterns[i]);
            return true;
        }
    }
    for (uint32_t i = 0; actions && i < actions->n; i++) {
        for (struct amp_span rest = actions->v[i], word; (word = next_word(&rest)).n;) {
            if (is_pattern(word) && matches(path, word)) {
                amp_span_copy(actions->v[i], by, size);
                return true;
            }
        }
    }
    return false;
}

/* A command line as words, without a shell: nothing is expanded, only quotes are taken away. */
#include "port/port.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 1024

void amp_argv_free(char **argv)
{
    for (char **w = argv; w && *w; w++)
        free(*w);
    free(argv);
}

/* One word from *text on, into room (as large as the text). Returns its length, -1 when a quote
 * stays open. */
static long word(const char **text, char *room)
{
    const char *p = *text;
    size_t n = 0;
    char quote = 0;
    for (; *p && (quote || (*p != ' ' && *p != '\t')); p++) {
        if (quote && *p == quote)
            quote = 0;
        else if (!quote && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (*p == '\\' && quote != '\'' && p[1])
            room[n++] = *++p;
        else
            room[n++] = *p;
    }
    *text = p;
    room[n] = 0;
    return quote ? -1 : (long)n;
}

int amp_argv_split(const char *text, char ***out, struct amp_error *err)
{
    char **argv = calloc(WORDS_MAX + 1, sizeof(*argv));
    AMP_FREE char *room = malloc(strlen(text) + 1);
    int n = 0;
    if (!argv || !room)
        goto failed;
    for (const char *p = text;;) {
        p += strspn(p, " \t");
        if (!*p)
            break;
        if (n == WORDS_MAX || word(&p, room) < 0) {
            amp_argv_free(argv);
            return amp_fail(err, AMP_USAGE, "bad_port",
                            n == WORDS_MAX ? "too many words in \"%.200s\""
                                           : "a quote is not closed in \"%.200s\"",
                            text);
        }
        if (!(argv[n] = strdup(room)))
            goto failed;
        n++;
    }
    if (n == 0) {
        amp_argv_free(argv);
        return amp_fail(err, AMP_USAGE, "bad_port", "the command is empty");
    }
    *out = argv;
    return 0;
failed:
    amp_argv_free(argv);
    return amp_fail_memory(err);
}

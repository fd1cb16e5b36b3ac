/* A command line as words, without a shell. */
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/process/quote.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define HINT           "; no shell runs here: quote it, or put the command in a script"

struct splitter {
    const char *start, *p, *end;
    struct amp_shell_split *out;
    struct amp_error *err;
    struct amp_buf word;
    bool quoted; /* a part of the word was quoted */
    bool brace;  /* an unquoted { is open in the word */
};

static int split_fail(const struct splitter *s, const char *what)
{
    return amp_fail(s->err, AMP_DATAERR, bad_command, "%s at byte %td%s", what, s->p - s->start + 1,
                    HINT);
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int char_take(struct splitter *s)
{
    return amp_buf_add(&s->word, s->p++, 1, s->err);
}

/* Reads a single-quoted text, from its opening quote on. */
static int single_read(struct splitter *s)
{
    const char *close = memchr(s->p + 1, '\'', (size_t)(s->end - s->p - 1));
    if (!close)
        return split_fail(s, "a ' without its end");
    if (amp_buf_add(&s->word, s->p + 1, (size_t)(close - s->p - 1), s->err) < 0)
        return -1;
    s->p = close + 1;
    return 0;
}

static int double_read(struct splitter *s)
{
    const struct splitter open = *s;
    for (s->p++; s->p < s->end && *s->p != '"';) {
        bool escape = *s->p == '\\' && s->p + 1 < s->end;
        if (escape && s->p[1] == '\n') {
            s->p += 2;
            continue;
        }
        if (escape && strchr("$`\"\\", s->p[1]))
            s->p++;
        else if (*s->p == '$' || *s->p == '`')
            return split_fail(s, *s->p == '$' ? "an expansion ($)" : "a command in backticks");
        /* In other escapes both bytes stay. */
        if (char_take(s) < 0)
            return -1;
    }
    if (s->p >= s->end)
        return split_fail(&open, "a \" without its end");
    s->p++;
    return 0;
}

/* Reads a byte outside of quotes that is not a blank. */
static int plain_read(struct splitter *s)
{
    char c = *s->p;
    bool first = s->word.len == 0 && !s->quoted;
    char before = s->word.len ? s->word.data[s->word.len - 1] : '\0';
    bool last = s->p + 1 == s->end || strchr(" \t\n", s->p[1]);

    if (strchr(";&|<>()", c))
        return split_fail(s, "an operator of the shell");
    if (c == '\r')
        return split_fail(s, "a carriage return");
    if (c == '$' || c == '`')
        return split_fail(s, c == '$' ? "an expansion ($)" : "a command in backticks");
    /* A lone [ is a program. */
    if (c == '*' || c == '?' || (c == '[' && !(first && last)))
        return split_fail(s, "a pattern of file names");
    if (c == '~' && (first || before == '=' || before == ':'))
        return split_fail(s, "a home directory (~)");
    if (c == '#' && first)
        return split_fail(s, "a comment (#)");
    if (s->brace && (c == ',' || (c == '.' && before == '.')))
        return split_fail(s, "a list in braces");
    s->brace |= c == '{';
    return char_take(s);
}

/* Refuses a first word that a shell would not run as a program. */
static int program_check(struct splitter *s, const char *from)
{
    static const char *const reserved[] = {
        "!",    "{",  "}",  "[[",  "]]", "case", "coproc", "do",    "done",   "elif",     "else",
        "esac", "fi", "if", "for", "in", "then", "until",  "while", "select", "function", "time"};
    struct splitter at = *s;
    const char *equals = memchr(from, '=', (size_t)(s->p - from));

    at.p = from;
    for (size_t i = 0; !s->quoted && i < sizeof reserved / sizeof *reserved; i++)
        if (amp_span_is(amp_buf_span(&s->word), reserved[i]))
            return split_fail(&at, "a reserved word of the shell");
    /* NAME=value, and bash's NAME+=value and NAME[i]=value (its [ was refused before). */
    if (equals && equals > from && strchr("0123456789", *from) == NULL) {
        size_t n = (size_t)(equals - from) - (equals[-1] == '+');
        size_t i = 0;
        while (i < n && (from[i] == '_' || is_alnum(from[i])))
            i++;
        if (i == n && n > 0)
            return split_fail(&at, "an assignment (use env)");
    }
    return s->word.len ? 0 : split_fail(&at, "an empty name of a program");
}

static int word_push(struct splitter *s, const char *from)
{
    struct amp_shell_split *o = s->out;

    if (o->n == 0 && program_check(s, from) < 0)
        return -1;
    if (o->n == AMP_SPLIT_WORDS_MAX)
        return split_fail(s, "more than 4096 words");
    char **more = realloc(o->v, (o->n + 2) * sizeof *more);
    if (!more)
        return amp_fail_memory(s->err);
    o->v = more;
    if (!(o->v[o->n] = amp_span_dup(amp_buf_span(&s->word))))
        return amp_fail_memory(s->err);
    o->v[++o->n] = NULL;
    return 0;
}

static int word_read(struct splitter *s)
{
    const char *from = s->p;

    amp_buf_reset(&s->word);
    s->quoted = s->brace = false;
    while (s->p < s->end && !strchr(" \t\n", *s->p)) {
        int rc = 0;
        if (*s->p == '\'' || *s->p == '"') {
            rc = *s->p == '\'' ? single_read(s) : double_read(s);
            s->quoted = true;
        } else if (*s->p == '\\') {
            if (s->p + 1 >= s->end)
                return split_fail(s, "a backslash at the end");
            s->p++;
            if (*s->p == '\n') { /* joins two lines */
                s->p++;
                continue;
            }
            if (is_alnum(*s->p))
                return split_fail(s, "a backslash before a letter (of a Windows path?)");
            s->quoted = true;
            rc = char_take(s);
        } else {
            rc = plain_read(s);
        }
        if (rc < 0)
            return -1;
    }
    return word_push(s, from);
}

/* Skips to the next word. Line feeds after the last word count as blanks. */
static int blanks_skip(struct splitter *s)
{
    const char *lf = NULL;

    for (; s->p < s->end; s->p++) {
        if (*s->p == '\n' && !lf)
            lf = s->p;
        else if (s->p[0] == '\\' && s->end - s->p >= 2 && s->p[1] == '\n')
            s->p++; /* joins two lines */
        else if (!strchr(" \t\n", *s->p))
            break;
    }
    if (s->p == s->end || !lf || s->out->n == 0)
        return 0;
    s->p = lf;
    return split_fail(s, "a second line");
}

int amp_shell_split(struct amp_span line, struct amp_shell_split *out, struct amp_error *err)
{
    struct splitter s = {.start = line.p, .p = line.p, .out = out, .err = err};

    *out = (struct amp_shell_split){0};
    if (line.n > LINE_MAX_BYTES)
        return amp_fail(err, AMP_DATAERR, bad_command, "a command longer than 1 MiB");
    if (line.n && memchr(line.p, '\0', line.n))
        return amp_fail(err, AMP_DATAERR, bad_command, "a NUL byte in a command");
    s.end = line.n ? line.p + line.n : line.p;
    amp_buf_init(&s.word, LINE_MAX_BYTES + 1);
    int rc = blanks_skip(&s);
    while (rc == 0 && s.p < s.end)
        if ((rc = word_read(&s)) == 0)
            rc = blanks_skip(&s);
    if (rc == 0 && !out->n)
        rc = amp_fail(err, AMP_DATAERR, bad_command, "an empty command");
    amp_buf_release(&s.word);
    if (rc < 0)
        amp_shell_split_release(out);
    return rc;
}

void amp_shell_split_release(struct amp_shell_split *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    *s = (struct amp_shell_split){0};
}

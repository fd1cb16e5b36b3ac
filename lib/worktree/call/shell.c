/* Divides a command line into simple commands and words. */
#include "worktree/call/shell.h"

#include <stdlib.h>
#include <string.h>

#define NESTED_MAX 256
#define HEREDOCS   16

struct parser {
    const char *p, *end;
    struct amp_shell *out;
    struct amp_shell_item item; /* being read */
    struct amp_error *err;
    int depth; /* of subshells */
    struct {
        char *delimiter;
        bool tabs;    /* <<- */
        bool literal; /* its delimiter is quoted: nothing is expanded */
    } pending[HEREDOCS];
    int n_pending;
};

static int parser_fail(struct parser *s, const char *what)
{
    return amp_fail(s->err, AMP_DATAERR, "bad_command", "%s", what);
}

static void item_release(struct amp_shell_item *i)
{
    for (size_t k = 0; k < i->n; k++)
        free(i->words[k].text);
    for (size_t k = 0; k < i->n_targets; k++)
        free(i->targets[k].text);
    for (size_t k = 0; k < i->n_sources; k++)
        free(i->sources[k].text);
    for (size_t k = 0; k < i->n_nested; k++)
        free(i->nested[k]);
    free(i->sources);
    free(i->words);
    free(i->targets);
    free(i->nested);
    free(i->input);
    memset(i, 0, sizeof *i);
}

void amp_shell_release(struct amp_shell *s)
{
    for (size_t i = 0; i < s->n; i++)
        item_release(&s->items[i]);
    free(s->items);
    memset(s, 0, sizeof *s);
}

static int item_push(struct parser *s, enum amp_shell_kind kind)
{
    struct amp_shell_item *more = realloc(s->out->items, (s->out->n + 1) * sizeof *more);
    if (!more)
        return amp_fail_memory(s->err);
    s->out->items = more;
    more[s->out->n] = (struct amp_shell_item){.kind = kind};
    if (kind == AMP_SHELL_COMMAND) {
        more[s->out->n] = s->item;
        memset(&s->item, 0, sizeof s->item);
    }
    s->out->n++;
    return 0;
}

/* Ends the simple command, if there is one. */
static int command_end(struct parser *s)
{
    const struct amp_shell_item *i = &s->item;
    return i->n || i->n_targets || i->n_sources || i->n_nested || i->input || i->input_opaque
               ? item_push(s, AMP_SHELL_COMMAND)
               : 0;
}

static int word_push(struct parser *s, struct amp_shell_word **list, size_t *n,
                     struct amp_shell_word w)
{
    if (*n >= AMP_SHELL_WORDS_MAX) {
        free(w.text);
        return parser_fail(s, "more than 4096 words in a command");
    }
    struct amp_shell_word *more = realloc(*list, (*n + 1) * sizeof *more);
    if (!more) {
        free(w.text);
        return amp_fail_memory(s->err);
    }
    *list = more;
    more[(*n)++] = w;
    return 0;
}

static int nested_push(struct parser *s, const char *from, size_t n)
{
    if (s->item.n_nested >= NESTED_MAX)
        return parser_fail(s, "too many nested commands");
    char **more = realloc(s->item.nested, (s->item.n_nested + 1) * sizeof *more);
    if (!more)
        return amp_fail_memory(s->err);
    s->item.nested = more;
    more[s->item.n_nested] = amp_span_dup((struct amp_span){from, n});
    return more[s->item.n_nested++] ? 0 : amp_fail_memory(s->err);
}

static const char *group_end(const char *p, const char *end, int level);

/* From a double quote to behind the closing one. */
static const char *quote_end(const char *p, const char *end, int level)
{
    for (p++; p && p < end; p++) {
        if (*p == '\\')
            p++;
        else if (*p == '"')
            return p + 1;
        else if (*p == '$' && p + 1 < end && p[1] == '(') {
            p = group_end(p + 2, end, level + 1);
            if (!p)
                return NULL;
            p--;
        }
    }
    return NULL;
}

/* From behind "<<" of a here-document: its delimiter; p is behind it. */
static struct amp_span delimiter_find(const char **p, const char *end)
{
    const char *q = *p;
    if (q < end && *q == '-')
        q++;
    while (q < end && (*q == ' ' || *q == '\t'))
        q++;
    char quote = q < end && (*q == '\'' || *q == '"') ? *q++ : '\0';
    const char *from = q;
    while (q < end && (quote ? *q != quote : !strchr(" \t\n;&|()<>\\'\"", *q)))
        q++;
    struct amp_span out = {from, (size_t)(q - from)};
    *p = q + (quote && q < end);
    return out;
}

/* From a line's start to the start of the line behind the delimiter's. */
static const char *body_end(const char *p, const char *end, struct amp_span delimiter)
{
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        struct amp_span line = {p, lf ? (size_t)(lf - p) : (size_t)(end - p)};
        while (line.n && *line.p == '\t') {
            line.p++;
            line.n--;
        }
        p = lf ? lf + 1 : end;
        if (amp_span_eq(line, delimiter))
            return p;
    }
    return NULL;
}

/* From behind "(" to behind the matching ")", through quotes and here-documents. NULL: there is
 * none. */
static const char *group_end(const char *p, const char *end, int level)
{
    struct amp_span delimiter = {NULL, 0};
    if (level > 16)
        return NULL;
    for (int depth = 1; p && p < end;) {
        char c = *p++;
        if (c == '\\') {
            p++;
        } else if (c == '\'') {
            p = p < end ? memchr(p, '\'', (size_t)(end - p)) : NULL;
            p = p ? p + 1 : NULL;
        } else if (c == '"') {
            p = quote_end(p - 1, end, level);
        } else if (c == '<' && end - p >= 2 && p[0] == '<' && p[1] != '<') {
            p++;
            delimiter = delimiter_find(&p, end);
        } else if (c == '\n' && delimiter.n) {
            p = body_end(p, end, delimiter);
            delimiter.n = 0;
        } else if (c == '(') {
            depth++;
        } else if (c == ')' && --depth == 0) {
            return p;
        }
    }
    return NULL;
}

/* At "$": reads an expansion; the word becomes opaque. */
static int dollar_read(struct parser *s, bool *opaque)
{
    const char *p = ++s->p;
    *opaque = true;
    if (p >= s->end)
        return 0;
    if (*p == '(') {
        const char *close = group_end(p + 1, s->end, 0);
        if (!close)
            return parser_fail(s, "$( without )");
        s->p = close;
        return nested_push(s, p + 1, (size_t)(close - p - 2));
    }
    if (*p == '{') {
        const char *close = memchr(p, '}', (size_t)(s->end - p));
        if (!close)
            return parser_fail(s, "${ without }");
        for (const char *q = p; q < close; q++)
            if (*q == '$' || *q == '`' || *q == '\'' || *q == '"' || *q == '\\')
                return parser_fail(s, "a nested expansion in ${}");
        s->p = close + 1;
        return 0;
    }
    if (*p == '\'')
        return parser_fail(s, "$'…'");
    while (s->p < s->end && (*s->p == '_' || (*s->p >= '0' && *s->p <= '9') ||
                             (*s->p >= 'a' && *s->p <= 'z') || (*s->p >= 'A' && *s->p <= 'Z')))
        s->p++;
    if (s->p == p && strchr("?!#@*$-", *p))
        s->p++;
    return 0;
}

static int backtick_read(struct parser *s, bool *opaque)
{
    const char *close = memchr(s->p + 1, '`', (size_t)(s->end - s->p - 1));
    *opaque = true;
    if (!close || memchr(s->p, '\\', (size_t)(close - s->p)))
        return parser_fail(s, "a backtick");
    const char *from = s->p + 1;
    s->p = close + 1;
    return nested_push(s, from, (size_t)(close - from));
}

static int double_read(struct parser *s, struct amp_buf *text, bool *opaque)
{
    for (s->p++; s->p < s->end && *s->p != '"';) {
        if (*s->p == '\\' && s->p + 1 < s->end) {
            if (!strchr("$`\"\\\n", s->p[1]) && amp_buf_add(text, s->p, 1, s->err) < 0)
                return -1;
            if (s->p[1] != '\n' && amp_buf_add(text, s->p + 1, 1, s->err) < 0)
                return -1;
            s->p += 2;
        } else if (*s->p == '$') {
            if (dollar_read(s, opaque) < 0)
                return -1;
        } else if (*s->p == '`') {
            if (backtick_read(s, opaque) < 0)
                return -1;
        } else if (amp_buf_add(text, s->p++, 1, s->err) < 0) {
            return -1;
        }
    }
    if (s->p >= s->end)
        return parser_fail(s, "a \" without its end");
    s->p++;
    return 0;
}

static bool ends_word(char c)
{
    return strchr(" \t\n;&|()<>", c) != NULL;
}

/* Reads one word. *quoted: a part of it was quoted. */
static int word_read(struct parser *s, struct amp_shell_word *w, bool *quoted)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, AMP_SHELL_MAX + 1);
    const char *start = s->p;
    bool brace = false;
    *quoted = false;
    w->opaque = false;
    if (amp_buf_reserve(&text, 1, s->err) < 0)
        return -1;
    while (s->p < s->end && !ends_word(*s->p)) {
        char c = *s->p;
        /* A shell takes a carriage return for a part of a word, so what follows is no comment. */
        if (c == '\0' || c == '\r')
            return parser_fail(s, c ? "a carriage return" : "a NUL byte");
        if (c == '\'') {
            const char *close = memchr(s->p + 1, '\'', (size_t)(s->end - s->p - 1));
            if (!close)
                return parser_fail(s, "a ' without its end");
            *quoted = true;
            if (amp_buf_add(&text, s->p + 1, (size_t)(close - s->p - 1), s->err) < 0)
                return -1;
            s->p = close + 1;
        } else if (c == '"') {
            *quoted = true;
            if (double_read(s, &text, &w->opaque) < 0)
                return -1;
        } else if (c == '\\') {
            *quoted = true;
            if (s->p + 1 >= s->end)
                return parser_fail(s, "a backslash at the end");
            if (s->p[1] != '\n' && amp_buf_add(&text, s->p + 1, 1, s->err) < 0)
                return -1;
            s->p += 2;
        } else if (c == '$') {
            if (dollar_read(s, &w->opaque) < 0)
                return -1;
        } else if (c == '`') {
            if (backtick_read(s, &w->opaque) < 0)
                return -1;
        } else {
            brace |= c == '{';
            if (strchr("*?[", c) || (c == '~' && s->p == start) ||
                (brace && (c == ',' || c == '.')))
                w->opaque = true;
            if (amp_buf_add(&text, s->p++, 1, s->err) < 0)
                return -1;
        }
    }
    if (memchr(text.data, '\0', text.len))
        return parser_fail(s, "a NUL byte");
    w->text = amp_span_dup(amp_buf_span(&text));
    return w->text ? 0 : amp_fail_memory(s->err);
}

static void blanks_skip(struct parser *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' ||
                             (*s->p == '\\' && s->p + 1 < s->end && s->p[1] == '\n')))
        s->p += *s->p == '\\' ? 2 : 1;
}

/* The here-documents that begin after this line feed. */
static int heredocs_read(struct parser *s)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, AMP_SHELL_MAX + 1);
    for (int i = 0; i < s->n_pending; i++) {
        bool found = false;
        while (s->p < s->end && !found) {
            const char *lf = memchr(s->p, '\n', (size_t)(s->end - s->p));
            struct amp_span line = {s->p, lf ? (size_t)(lf - s->p) : (size_t)(s->end - s->p)};
            s->p += line.n + (lf ? 1 : 0);
            struct amp_span bare = line;
            while (s->pending[i].tabs && bare.n && *bare.p == '\t') {
                bare.p++;
                bare.n--;
            }
            found = amp_span_is(bare, s->pending[i].delimiter);
            if (!found && (amp_buf_add(&text, line.p, line.n, s->err) < 0 ||
                           amp_buf_str(&text, "\n", s->err) < 0))
                return -1;
        }
        free(s->pending[i].delimiter);
        s->pending[i].delimiter = NULL;
        /* bash joins a line that ends in a backslash with the next one before it looks for the
         * delimiter, other shells do not. */
        bool expands = !s->pending[i].literal && text.len &&
                       (memmem(text.data, text.len, "$(", 2) || memchr(text.data, '`', text.len) ||
                        memmem(text.data, text.len, "\\\n", 2));
        if (!found || expands) {
            for (int k = i + 1; k < s->n_pending; k++)
                free(s->pending[k].delimiter);
            s->n_pending = 0;
            return parser_fail(s, found ? "a command or a joined line in a here-document"
                                        : "a here-document without its end");
        }
    }
    s->n_pending = 0;
    if (text.len && s->out->n) {
        struct amp_shell_item *last = &s->out->items[s->out->n - 1];
        free(last->input);
        last->input = amp_span_dup(amp_buf_span(&text));
        if (!last->input)
            return amp_fail_memory(s->err);
    }
    return 0;
}

/* The text of <<< is input, as that of a here-document. */
static void here_string_add(struct parser *s, struct amp_shell_word w)
{
    s->item.input_opaque |= w.opaque;
    free(w.opaque ? w.text : s->item.input);
    if (!w.opaque)
        s->item.input = w.text;
}

/* At "<" or ">". */
static int redirect_read(struct parser *s)
{
    char c = *s->p++;
    bool here = false, tabs = false, target = c == '>', source = c == '<', any = false;
    struct amp_shell_word w = {0};
    if (s->p < s->end && *s->p == '(') { /* <(…), >(…) */
        const char *from = s->p + 1, *close = group_end(from, s->end, 0);
        if (!close)
            return parser_fail(s, "<( without )");
        s->p = close;
        return nested_push(s, from, (size_t)(close - from - 1));
    }
    if (c == '<' && s->p < s->end && *s->p == '<') {
        s->p++;
        here = !(s->p < s->end && *s->p == '<');
        source = false;
        if (!here)
            s->p++; /* <<< */
        else if (s->p < s->end && *s->p == '-')
            tabs = *s->p++ == '-';
    } else if (c == '<' && s->p < s->end && *s->p == '>') {
        s->p++;
        target = true;
    } else if (c == '>' && s->p < s->end && (*s->p == '>' || *s->p == '|')) {
        s->p++;
    }
    if (s->p < s->end && *s->p == '&') {
        s->p++;
        any = true;
    }
    blanks_skip(s);
    bool quoted;
    if (s->p >= s->end || ends_word(*s->p))
        return parser_fail(s, "a redirection without a file");
    if (word_read(s, &w, &quoted) < 0)
        return -1;
    if (here) {
        if (w.opaque || s->n_pending == HEREDOCS) {
            free(w.text);
            return parser_fail(s, "a here-document");
        }
        s->pending[s->n_pending].delimiter = w.text;
        s->pending[s->n_pending].literal = quoted;
        s->pending[s->n_pending++].tabs = tabs;
        return 0;
    }
    bool number = !w.opaque && strspn(w.text, "0123456789-") == strlen(w.text);
    if (any && number) {
        free(w.text);
        return 0;
    }
    if (target)
        return word_push(s, &s->item.targets, &s->item.n_targets, w);
    if (source)
        return word_push(s, &s->item.sources, &s->item.n_sources, w);
    here_string_add(s, w);
    return 0;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* Words of the grammar before a command, which are left out. 1: such a word; -1: a construct that
 * is not read. */
static int reserved_take(struct parser *s, const struct amp_shell_word *w, bool quoted)
{
    static const char *const before[] = {"if", "then", "else", "elif", "while", "until", "do",
                                         "!",  "{",    "}",    "fi",   "done",  "time",  NULL};
    static const char *const never[] = {"case", "esac", "function", "select", "coproc", "[[", NULL};
    if (s->item.n || quoted || w->opaque)
        return 0;
    for (int i = 0; before[i]; i++)
        if (strcmp(w->text, before[i]) == 0)
            return 1;
    for (int i = 0; never[i]; i++)
        if (strcmp(w->text, never[i]) == 0)
            return parser_fail(s, "a construct of the shell");
    return 0;
}

static int operator_read(struct parser *s)
{
    char c = *s->p++;
    if (c == '&' && s->p < s->end && *s->p == '>') /* &> */
        return redirect_read(s);
    if (c == '(') {
        if (s->item.n || (s->p < s->end && *s->p == '('))
            return parser_fail(s, "a function or arithmetic");
        s->depth++;
        return command_end(s) < 0 || item_push(s, AMP_SHELL_OPEN) < 0 ? -1 : 0;
    }
    if (command_end(s) < 0)
        return -1;
    if (c == ')') {
        if (--s->depth < 0)
            return parser_fail(s, "a ) without (");
        return item_push(s, AMP_SHELL_CLOSE);
    }
    return c == '\n' && s->n_pending ? heredocs_read(s) : 0;
}

static int script_parse(struct parser *s)
{
    while (blanks_skip(s), s->p < s->end) {
        if (*s->p == '#') {
            const char *lf = memchr(s->p, '\n', (size_t)(s->end - s->p));
            s->p = lf ? lf : s->end;
            continue;
        }
        if (*s->p == '<' || *s->p == '>') {
            if (redirect_read(s) < 0)
                return -1;
            continue;
        }
        if (ends_word(*s->p)) {
            if (operator_read(s) < 0)
                return -1;
            continue;
        }
        struct amp_shell_word w = {0};
        bool quoted;
        if (word_read(s, &w, &quoted) < 0)
            return -1;
        /* The number of a descriptor. */
        if (!quoted && is_number(w.text) && s->p < s->end && (*s->p == '<' || *s->p == '>')) {
            free(w.text);
            continue;
        }
        int reserved = reserved_take(s, &w, quoted);
        if (reserved) {
            free(w.text);
            if (reserved < 0)
                return -1;
            continue;
        }
        if (word_push(s, &s->item.words, &s->item.n, w) < 0)
            return -1;
    }
    if (command_end(s) < 0)
        return -1;
    return s->depth || s->n_pending ? parser_fail(s, "an unfinished command") : 0;
}

int amp_shell_parse(struct amp_span line, struct amp_shell *out, struct amp_error *err)
{
    struct parser s = {.p = line.p, .end = line.p + line.n, .out = out, .err = err};
    memset(out, 0, sizeof *out);
    if (line.n > AMP_SHELL_MAX)
        return amp_fail(err, AMP_DATAERR, "bad_command", "longer than 1 MiB");
    if (!line.n)
        return 0;
    int rc = script_parse(&s);
    item_release(&s.item);
    for (int i = 0; i < s.n_pending; i++)
        free(s.pending[i].delimiter);
    if (rc < 0)
        amp_shell_release(out);
    return rc;
}

/* Reads plain command lines. */
#include "work/git/call/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define LINE_MAX_BYTES ((size_t)16 << 10) /* each part of a word may be looked up as a path */
#define WORDS_MAX      4096               /* of a line */

struct reader {
    const char *p, *end;
    struct amp_plain *out;
    struct amp_buf word;
    size_t n_words;
    struct amp_error *err;
};

static void commands_release(struct amp_plain *p)
{
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < p->v[i].n; k++)
            free(p->v[i].words[k]);
        free(p->v[i].words);
    }
    p->n = 0;
    p->moves = false;
}

/* The words cannot be read. 1, as all functions below that find this; 0: go on; -1: no memory. */
static int odd(struct amp_plain *out, const char *why)
{
    commands_release(out);
    snprintf(out->why, sizeof out->why, "%s", why);
    return 1;
}

static bool is_literal(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("_-./:=,@%+", c));
}

static bool at_word_end(const struct reader *r)
{
    return r->p == r->end || strchr(" \t;|&", *r->p);
}

static void blanks_skip(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
        r->p++;
}

/* ---- commands ---- */

static int word_push(struct reader *r, struct amp_span text)
{
    if (++r->n_words > WORDS_MAX)
        return odd(r->out, "it has more than 4096 words");
    struct amp_plain_command *c = &r->out->v[r->out->n - 1];
    char **more = realloc(c->words, (c->n + 2) * sizeof *more);
    if (!more)
        return amp_fail_memory(r->err);
    c->words = more;
    more[c->n + 1] = NULL;
    more[c->n] = amp_span_dup(text);
    return more[c->n++] ? 0 : amp_fail_memory(r->err);
}

static int command_begin(struct reader *r)
{
    struct amp_plain *o = r->out;
    if (amp_grow(&o->v, &o->cap, o->n, sizeof *o->v, r->err) < 0)
        return -1;
    o->v[o->n++] = (struct amp_plain_command){0};
    return 0;
}

/* `cd DIR`, of which it is certain where it leads: no option, no `..` behind a name, which may be a
 * link. */
static bool is_clear_move(const struct amp_plain_command *c)
{
    const char *dir = c->n == 2 ? c->words[1] : "";
    while (strncmp(dir, "../", 3) == 0)
        dir += 3;
    return *dir && *dir != '-' && (!strstr(dir, "..") || strcmp(dir, "..") == 0);
}

/* joined: by `&&` to the next command, or it is the last one. */
static int command_end(struct reader *r, bool joined)
{
    struct amp_plain *o = r->out;
    const struct amp_plain_command *c = &o->v[o->n - 1];
    if (!c->n || !*c->words[0])
        return odd(o, "a command of it is empty");
    if (strcmp(c->words[0], "cd") == 0) {
        if (o->n > 1 || !joined || !is_clear_move(c))
            return odd(o, "it changes the directory; only \"cd DIR &&\" may be first");
        o->moves = true;
        return 0;
    }
    if (strchr(c->words[0], '='))
        return odd(o, "it has an assignment");
    if (!o->why[0] && amp_runs_others(c))
        snprintf(o->why, sizeof o->why, "\"%.60s\" can run other commands", c->words[0]);
    return 0;
}

/* ---- words ---- */

/* At a quote: takes the text in it. */
static int quoted_take(struct reader *r)
{
    char quote = *r->p++;
    const char *close = r->p < r->end ? memchr(r->p, quote, (size_t)(r->end - r->p)) : NULL;
    if (!close)
        return odd(r->out, "a quote has no end");
    for (const char *p = r->p; p < close; p++)
        if ((*p >= '\0' && *p < ' ' && *p != '\n' && *p != '\t') || *p == 0x7f ||
            (quote == '"' && strchr("$`\\", *p)))
            return odd(r->out, quote == '"' ? "a text in double quotes has $, ` or \\"
                                            : "a word has a control character");
    if (amp_buf_add(&r->word, r->p, (size_t)(close - r->p), r->err) < 0)
        return -1;
    r->p = close + 1;
    return at_word_end(r) ? 0 : odd(r->out, "a quote ends inside of a word");
}

/* At ">"; the word before it, without a blank between, is the descriptor. */
static int redirection_skip(struct reader *r)
{
    struct amp_span fd = amp_buf_span(&r->word), rest = {r->p, (size_t)(r->end - r->p)};
    if (fd.n && !amp_span_is(fd, "1") && !amp_span_is(fd, "2"))
        return odd(r->out, "it has a redirection");
    if (amp_span_is(fd, "2") && amp_span_starts(rest, ">&1")) {
        r->p += 3;
    } else {
        r->p++;
        blanks_skip(r);
        rest = (struct amp_span){r->p, (size_t)(r->end - r->p)};
        if (!amp_span_starts(rest, "/dev/null"))
            return odd(r->out, "it has a redirection");
        r->p += strlen("/dev/null");
    }
    return at_word_end(r) ? 0 : odd(r->out, "it has a redirection");
}

static int word_read(struct reader *r)
{
    const char *from = r->p;
    amp_buf_reset(&r->word);
    if (*from == '=')
        return odd(r->out, "a word begins with \"=\"");
    while (!at_word_end(r)) {
        if (*r->p == '>')
            return redirection_skip(r);
        if (*r->p == '\'' || *r->p == '"') {
            int rc = quoted_take(r);
            if (rc)
                return rc;
            break;
        }
        if (!is_literal(*r->p)) {
            odd(r->out, "it has a character that only quotes make literal");
            if (*r->p > ' ' && *r->p < 0x7f)
                snprintf(r->out->why, sizeof r->out->why, "it has an unquoted \"%c\"", *r->p);
            return 1;
        }
        if (amp_buf_add(&r->word, r->p++, 1, r->err) < 0)
            return -1;
    }
    return word_push(r, amp_buf_span(&r->word));
}

/* From behind a command: to the next one. 2: there is none. */
static int join_read(struct reader *r)
{
    bool twice = r->end - r->p >= 2 && r->p[0] == r->p[1];
    if (r->p == r->end)
        return 2;
    if (*r->p == '&' && !twice)
        return odd(r->out, "it has a command in the background");
    bool last = *r->p == ';' && !twice;
    r->p += twice && *r->p != ';' ? 2 : 1;
    blanks_skip(r);
    return last && r->p == r->end ? 2 : 0;
}

static int line_read(struct reader *r)
{
    int rc = 0;
    blanks_skip(r);
    while (rc == 0 && (rc = command_begin(r)) == 0) {
        while (rc == 0 && !(r->p < r->end && strchr(";|&", *r->p)) && r->p < r->end) {
            rc = word_read(r);
            blanks_skip(r);
        }
        bool joined = r->end - r->p < 2 || (r->p[0] == '&' && r->p[1] == '&');
        if (rc == 0)
            rc = command_end(r, joined);
        if (rc == 0)
            rc = join_read(r);
    }
    return rc < 0 ? -1 : 0;
}

int amp_plain_line(struct amp_span line, struct amp_plain *out, struct amp_error *err)
{
    struct reader r = {.p = line.p, .out = out, .err = err};
    *out = (struct amp_plain){0};
    while (line.n && line.p[line.n - 1] && strchr(" \t\n", line.p[line.n - 1]))
        line.n--;
    if (!line.n || line.n > LINE_MAX_BYTES || memchr(line.p, '\0', line.n)) {
        odd(out, !line.n                   ? "it is empty"
                 : line.n > LINE_MAX_BYTES ? "it has more than 16 KiB"
                                           : "it has a NUL byte");
        return 0;
    }
    r.end = line.p + line.n;
    amp_buf_init(&r.word, LINE_MAX_BYTES + 1);
    int rc = line_read(&r);
    amp_buf_release(&r.word);
    return rc;
}

/* A command as separate words, which no shell reads; that of `sh -c LINE` is the line. */
static int words_read(const struct amp_call_command *c, struct amp_plain *out,
                      struct amp_error *err)
{
    static const char *const shells[] = {"sh", "bash", "zsh", "dash"};
    struct reader r = {.out = out, .err = err};
    int rc = 0;
    *out = (struct amp_plain){0};
    if (c->n == 3 && (strcmp(c->words[1], "-c") == 0 || strcmp(c->words[1], "-lc") == 0)) {
        const char *slash = strrchr(c->words[0], '/');
        for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
            if (strcmp(slash ? slash + 1 : c->words[0], shells[i]) == 0)
                return amp_plain_line(amp_span_str(c->words[2]), out, err);
    }
    if (command_begin(&r) < 0)
        return -1;
    for (size_t i = 0; i < c->n && !rc; i++)
        rc = word_push(&r, amp_span_str(c->words[i]));
    return rc < 0 || (rc == 0 && command_end(&r, true) < 0) ? -1 : 0;
}

int amp_plain_read(const struct amp_call_event *e, struct amp_plain *out, struct amp_error *err)
{
    const struct amp_call_command *c = &e->commands[0];
    *out = (struct amp_plain){0};
    if (e->n_commands > 1)
        odd(out, "it is one of several");
    else if (e->n_commands && c->foreign)
        odd(out, "it is of another shell");
    else if (e->n_commands)
        return c->words ? words_read(c, out, err) : amp_plain_line(c->line, out, err);
    return 0;
}

void amp_plain_release(struct amp_plain *p)
{
    commands_release(p);
    free(p->v);
    *p = (struct amp_plain){0};
}

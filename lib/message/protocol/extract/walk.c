/*
 * The walk over a candidate: whether text from a '{' on can still be a JSON object. It follows only
 * the structure of the grammar, to fail early; a complete candidate is then scanned. Colours
 * between and within tokens are skipped, and so is the prefix of the first line at the start of
 * later lines.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "message/protocol/extract/extract.h"

enum state {
    S_KEY_OR_END, /* after '{' */
    S_KEY,        /* after a comma in an object */
    S_COLON,
    S_VALUE,
    S_VALUE_OR_END, /* after '[' */
    S_NEXT,         /* after a value */
    S_STRING,
    S_ESCAPE,
    S_NUMBER,
    S_WORD,
};

int amp_walk_init(struct amp_walk *w, uint32_t max_depth, struct amp_error *err)
{
    *w = (struct amp_walk){.max_depth = max_depth ? max_depth : 1};
    w->level = calloc(w->max_depth, sizeof *w->level);
    return w->level ? 0 : amp_fail_memory(err);
}

void amp_walk_release(struct amp_walk *w)
{
    free(w->level);
    w->level = NULL;
}

static uint8_t ansi_next(uint8_t state, char c)
{
    enum { NONE, ESCAPE, CONTROL, COMMAND, COMMAND_END };
    switch (state) {
    case ESCAPE:
        return c == '[' ? CONTROL : c == ']' ? COMMAND : NONE;
    case CONTROL: /* ESC [ parameters letter */
        return c >= 0x40 && c <= 0x7e ? NONE : CONTROL;
    case COMMAND: /* ESC ] text BEL, or text ESC \ */
        return c == 0x07 ? NONE : c == 0x1b ? COMMAND_END : COMMAND;
    case COMMAND_END:
        return NONE;
    default:
        return c == 0x1b ? ESCAPE : NONE;
    }
}

bool amp_ansi_takes(uint8_t *state, char c)
{
    bool takes = c != '\n' && (*state || c == 0x1b);
    *state = takes ? ansi_next(*state, c) : 0;
    return takes;
}

static bool level_push(struct amp_walk *w, char bracket, size_t at)
{
    if (w->depth == w->max_depth)
        return false;
    w->level[w->depth++] = (struct amp_walk_level){at, bracket};
    w->state = bracket == '{' ? S_KEY_OR_END : S_VALUE_OR_END;
    return true;
}

void amp_walk_begin(struct amp_walk *w, size_t at)
{
    w->depth = 0;
    w->ansi = 0;
    level_push(w, '{', at);
}

static bool is_digit(char c)
{
    return isdigit((unsigned char)c);
}

/* The index after the blanks and digits of a number, or `at` if there is no number. */
static size_t number_end(const char *p, size_t n, size_t at)
{
    size_t i = at;
    while (i < n && p[i] == ' ')
        i++;
    if (i == n || !is_digit(p[i]))
        return at;
    while (i < n && is_digit(p[i]))
        i++;
    return i;
}

enum { NO_PREFIX = -1, MAYBE_PREFIX = -2 };

/* The length of the prefix at the start of the text; numbers in it may differ. */
static int prefix_match(const struct amp_walk *w, const char *text, size_t n)
{
    size_t i = 0, k = 0;
    while (i < w->n_prefix) {
        size_t number = number_end(w->prefix, w->n_prefix, i);
        if (number > i) {
            size_t end = number_end(text, n, k);
            bool open = end == n || (end == k && n - k < AMP_PREFIX_MOST);
            for (size_t j = k; open && j < n; j++)
                open = text[j] == ' ' || is_digit(text[j]);
            if (open && n - k < AMP_PREFIX_MOST)
                return MAYBE_PREFIX;
            if (end == k)
                return NO_PREFIX;
            i = number;
            k = end;
            continue;
        }
        if (k == n)
            return MAYBE_PREFIX;
        if (text[k++] != w->prefix[i++])
            return NO_PREFIX;
    }
    return (int)k;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool begin_value(struct amp_walk *w, char c, size_t at)
{
    switch (c) {
    case '{':
    case '[':
        return level_push(w, c, at);
    case '"':
        w->key = false;
        w->state = S_STRING;
        return true;
    case 't':
        w->word = "rue";
        break;
    case 'f':
        w->word = "alse";
        break;
    case 'n':
        w->word = "ull";
        break;
    default:
        w->state = S_NUMBER;
        return c == '-' || is_digit(c);
    }
    w->state = S_WORD;
    return true;
}

static bool close_level(struct amp_walk *w, char c)
{
    if (w->level[w->depth - 1].bracket != (c == '}' ? '{' : '['))
        return false;
    w->depth--;
    w->state = S_NEXT;
    return true;
}

/* Takes one byte outside of strings that is not white space. False: it is not JSON. */
static bool walk_byte(struct amp_walk *w, char c, size_t at)
{
    switch (w->state) {
    case S_KEY_OR_END:
        if (c == '}')
            return close_level(w, c);
        /* fall through */
    case S_KEY:
        w->key = true;
        w->state = S_STRING;
        return c == '"';
    case S_COLON:
        w->state = S_VALUE;
        return c == ':';
    case S_VALUE_OR_END:
        if (c == ']')
            return close_level(w, c);
        /* fall through */
    case S_VALUE:
        return begin_value(w, c, at);
    case S_WORD:
        if (c != *w->word)
            return false;
        if (*++w->word == '\0')
            w->state = S_NEXT;
        return true;
    case S_NUMBER:
        if (is_digit(c) || memchr("+-.eE", c, 5))
            return true;
        w->state = S_NEXT;
        /* fall through */
    default:
        if (c == '}' || c == ']')
            return close_level(w, c);
        w->state = w->level[w->depth - 1].bracket == '{' ? S_KEY : S_VALUE;
        return c == ',';
    }
}

/* Takes the bytes inside a string, from *pos on. False: they are not JSON. */
static bool walk_string(struct amp_walk *w, const char *text, size_t n, size_t *pos)
{
    size_t i = *pos;
    bool good = true;
    for (; i < n && good && w->ansi == 0; i++) {
        unsigned char c = (unsigned char)text[i];
        if (w->state == S_ESCAPE) {
            good = c > ' ' && memchr("\"\\/bfnrtu", c, 9);
            w->state = S_STRING;
        } else if (c == '"') {
            w->state = w->key ? S_COLON : S_NEXT;
            i++;
            break;
        } else if (c == '\\') {
            w->state = S_ESCAPE;
        } else if (c < 0x20) {
            good = amp_ansi_takes(&w->ansi, (char)c);
        }
        if (!good)
            break;
    }
    *pos = i;
    return good;
}

enum amp_walk_result amp_walk_on(struct amp_walk *w, const char *text, size_t n, size_t *pos)
{
    for (size_t i = *pos; i < n;) {
        char c = text[i];
        *pos = i;
        if (w->ansi && amp_ansi_takes(&w->ansi, c)) {
            i++;
            continue;
        }
        if (w->state == S_STRING || w->state == S_ESCAPE) {
            if (!walk_string(w, text, n, &i)) {
                *pos = i;
                return AMP_WALK_FAIL;
            }
            continue;
        }
        if (c == '\n' && w->n_prefix) {
            int prefix = prefix_match(w, text + i + 1, n - i - 1);
            if (prefix == MAYBE_PREFIX)
                return AMP_WALK_MORE;
            i += prefix > 0 ? (size_t)prefix : 0;
        }
        i++;
        if (is_space(c) || c == 0x1b) {
            if ((w->state == S_NUMBER || w->state == S_WORD) && c != 0x1b) {
                if (w->state == S_WORD)
                    return AMP_WALK_FAIL;
                w->state = S_NEXT;
            }
            amp_ansi_takes(&w->ansi, c);
            continue;
        }
        if (!walk_byte(w, c, i - 1))
            return AMP_WALK_FAIL;
        if (w->depth == 0) {
            *pos = i;
            return AMP_WALK_DONE;
        }
    }
    *pos = n;
    return AMP_WALK_MORE;
}

int amp_walk_clean(const struct amp_walk *w, struct amp_span raw, struct amp_buf *out,
                   struct amp_error *err)
{
    uint8_t ansi = 0;
    bool string = false;
    if (amp_buf_reserve(out, raw.n, err) < 0)
        return -1;
    for (size_t i = 0; i < raw.n; i++) {
        char c = raw.p[i];
        if (amp_ansi_takes(&ansi, c))
            continue;
        if (string) {
            out->data[out->len++] = c;
            if (c == '\\' && i + 1 < raw.n && raw.p[i + 1] != 0x1b)
                out->data[out->len++] = raw.p[++i];
            else if (c == '"')
                string = false;
            continue;
        }
        if (c == '\n' && w->n_prefix) {
            int prefix = prefix_match(w, raw.p + i + 1, raw.n - i - 1);
            i += prefix > 0 ? (size_t)prefix : 0;
        }
        if (is_space(c))
            continue;
        string = c == '"';
        out->data[out->len++] = c;
    }
    return 0;
}

/* Mermaid. Participants are P1, P2 … with their names as labels. */
#include "message/history/diagram.h"

#include <stdlib.h>
#include <string.h>

#include "json/text.h"

enum { NAME_MOST = 60, TEXT_MOST = 120, PEOPLE_MAX = 200, ROWS_MOST = 2000 };

struct amp_diagram {
    struct amp_buf people, lines;
    char *name[PEOPLE_MAX];
    unsigned n_people;
    uint32_t rows, limit, left_out;
};

static bool is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr(" ._-,/()", c) != NULL;
}

/* Control characters, and characters that turn or hide their neighbours. */
static bool is_invisible(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
           (c >= 0xe0000 && c <= 0xe0fff);
}

static uint32_t code_point(const unsigned char *p, size_t len)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = p[0] & first[len];
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

int amp_diagram_text(struct amp_span text, unsigned most, struct amp_buf *out,
                     struct amp_error *err)
{
    const unsigned char *p = (const unsigned char *)text.p;
    unsigned n = 0;
    for (size_t i = 0; i < text.n; n++) {
        size_t len = amp_utf8_length(p + i, text.n - i);
        uint32_t c = len ? code_point(p + i, len) : 0xfffd;
        if (n == most)
            return amp_buf_str(out, "#8230;", err);
        if (is_invisible(c))
            c = 0xfffd;
        /* "--" could be read as an arrow or, behind a tag, as a comment's end. */
        bool plain =
            c < 0x80 && c && is_plain((unsigned char)c) && !(c == '-' && i > 0 && p[i - 1] == '-');
        if ((plain ? amp_buf_add(out, p + i, 1, err) : amp_buf_fmt(out, err, "#%u;", c)) < 0)
            return -1;
        i += len ? len : 1;
    }
    return 0;
}

/* The number of a participant; PEOPLE_MAX is "others". */
static int person_number(struct amp_diagram *d, struct amp_span name, unsigned *out,
                         struct amp_error *err)
{
    if (name.n == 0)
        name = AMP_SPAN("unknown");
    for (unsigned i = 0; i < d->n_people; i++)
        if (amp_span_is(name, d->name[i])) {
            *out = i + 1;
            return 0;
        }
    if (d->n_people == PEOPLE_MAX - 1)
        name = AMP_SPAN("others");
    else if (d->n_people == PEOPLE_MAX) {
        *out = PEOPLE_MAX;
        return 0;
    }
    char *copy = amp_span_dup(name);
    if (!copy)
        return amp_fail_memory(err);
    d->name[d->n_people++] = copy;
    *out = d->n_people;
    if (amp_buf_fmt(&d->people, err, "    participant P%u as ", *out) < 0 ||
        amp_diagram_text(name, NAME_MOST, &d->people, err) < 0)
        return -1;
    return amp_buf_add(&d->people, "\n", 1, err);
}

/* The texts of an arrow or note, and their number. */
#define WORDS(...)                                                                                 \
    (const struct amp_span[]){__VA_ARGS__},                                                        \
        sizeof((const struct amp_span[]){__VA_ARGS__}) / sizeof(struct amp_span)

static int words_write(struct amp_diagram *d, const struct amp_span *w, size_t n,
                       struct amp_error *err)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (w[i].n == 0)
            continue;
        if ((any && amp_buf_add(&d->lines, " ", 1, err) < 0) ||
            amp_diagram_text(w[i], TEXT_MOST, &d->lines, err) < 0)
            return -1;
        any = true;
    }
    /* A text must not be empty. */
    return any ? amp_buf_add(&d->lines, "\n", 1, err) : amp_buf_str(&d->lines, "-\n", err);
}

static int arrow_write(struct amp_diagram *d, struct amp_span from, struct amp_span to,
                       const char *sign, const struct amp_span *w, size_t n, struct amp_error *err)
{
    unsigned a, b;
    if (person_number(d, from, &a, err) < 0 || person_number(d, to, &b, err) < 0 ||
        amp_buf_fmt(&d->lines, err, "    P%u%sP%u: ", a, sign, b) < 0)
        return -1;
    return words_write(d, w, n, err);
}

static int note_write(struct amp_diagram *d, struct amp_span over, struct amp_span and,
                      const struct amp_span *w, size_t n, struct amp_error *err)
{
    unsigned a, b = 0;
    if (person_number(d, over, &a, err) < 0 || (and.n > 0 && person_number(d, and, &b, err) < 0))
        return -1;
    if ((b && b != a
             ? amp_buf_fmt(&d->lines, err, "    Note over P%u,P%u: ", a < b ? a : b, a < b ? b : a)
             : amp_buf_fmt(&d->lines, err, "    Note over P%u: ", a)) < 0)
        return -1;
    return words_write(d, w, n, err);
}

static int message_row(struct amp_diagram *d, const struct amp_history_row *r,
                       struct amp_error *err)
{
    struct amp_span late = r->late ? AMP_SPAN("(late)") : (struct amp_span){"", 0};
    struct amp_span attempt =
        amp_span_is(r->event, "resend") ? AMP_SPAN("again") : (struct amp_span){"", 0};
    if (amp_span_starts(r->event, "ack_")) {
        return arrow_write(d, r->by, r->sender, "-->>", WORDS(r->stage, late, r->id), err);
    }
    if (amp_span_starts(r->event, "nack_")) {
        return arrow_write(d, r->by, r->sender, "--x", WORDS(r->stage, r->code, late, r->id), err);
    }
    if (amp_span_is(r->to, "SENT")) {
        return arrow_write(d, r->sender, r->recipient, "->>", WORDS(r->type, attempt, r->id), err);
    }
    if (amp_span_eq(r->from, r->to))
        return 0; /* the ledger's own book-keeping */
    return note_write(d, r->sender, r->recipient,
                      WORDS(r->event, r->from, AMP_SPAN("to"), r->to, r->id), err);
}

static int step_row(struct amp_diagram *d, const struct amp_history_row *r, struct amp_error *err)
{
    if (amp_span_is(r->kind, "message"))
        return message_row(d, r, err);
    if (amp_span_is(r->kind, "dead")) {
        return note_write(d, r->actor, r->sender,
                          WORDS(AMP_SPAN("dead letter"), r->to, r->code, r->why, r->id), err);
    }
    if (amp_span_is(r->kind, "token")) {
        return note_write(d, r->sender, (struct amp_span){"", 0},
                          WORDS(r->decision.n ? r->decision : r->event, r->id,
                                r->original.n ? AMP_SPAN("of") : r->original, r->original),
                          err);
    }
    if (amp_span_is(r->kind, "inbox")) {
        return note_write(d, r->agent, (struct amp_span){"", 0},
                          WORDS(AMP_SPAN("inbox"), r->event, r->to, r->id), err);
    }
    return note_write(
        d, r->actor, (struct amp_span){"", 0},
        WORDS(r->kind, r->id, r->event, r->from, r->from.n ? AMP_SPAN("to") : r->from, r->to), err);
}

int amp_diagram_row(struct amp_diagram *d, const struct amp_history_row *r, struct amp_error *err)
{
    bool emits = r->what == AMP_HISTORY_EMIT && !amp_span_is(r->kind, "route");
    /* A router's lines and closed entries only repeat the message and its answers. */
    if ((r->what != AMP_HISTORY_STEP && !emits) ||
        (r->what == AMP_HISTORY_STEP &&
         (amp_span_is(r->kind, "route") || amp_span_is(r->kind, "log"))))
        return 0;
    if (d->rows == d->limit) {
        d->left_out++;
        return 0;
    }
    d->rows++;
    if (r->what == AMP_HISTORY_STEP)
        return step_row(d, r, err);
    return arrow_write(d, r->actor, r->recipient, "-)",
                       WORDS(r->type, r->stage, r->code, r->original.n ? r->original : r->id), err);
}

int amp_diagram_write(const struct amp_diagram *d, struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_str(out, "sequenceDiagram\n", err) < 0 ||
        (d->n_people == 0 && amp_buf_str(out, "    participant P0 as none\n", err) < 0) ||
        amp_buf_add(out, d->people.data ? d->people.data : "", d->people.len, err) < 0 ||
        amp_buf_add(out, d->lines.data ? d->lines.data : "", d->lines.len, err) < 0)
        return -1;
    if (d->left_out == 0)
        return 0;
    return amp_buf_fmt(out, err, "    Note over P1: %u more are left out\n", d->left_out);
}

struct amp_diagram *amp_diagram_new(uint32_t limit, struct amp_error *err)
{
    struct amp_diagram *d = calloc(1, sizeof(*d));
    if (!d) {
        amp_fail_memory(err);
        return NULL;
    }
    d->limit = limit ? limit : ROWS_MOST;
    amp_buf_init(&d->people, 1 << 20);
    amp_buf_init(&d->lines, (size_t)256 << 20);
    return d;
}

void amp_diagram_free(struct amp_diagram *d)
{
    if (!d)
        return;
    for (unsigned i = 0; i < d->n_people; i++)
        free(d->name[i]);
    amp_buf_release(&d->people);
    amp_buf_release(&d->lines);
    free(d);
}

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

static int words_write(struct amp_diagram *d, const struct amp_diagram_step *step,
                       struct amp_error *err)
{
    bool any = false;
    for (size_t i = 0; i < step->n; i++) {
        if (step->word[i].n == 0)
            continue;
        if ((any && amp_buf_add(&d->lines, " ", 1, err) < 0) ||
            amp_diagram_text(step->word[i], TEXT_MOST, &d->lines, err) < 0)
            return -1;
        any = true;
    }
    /* A text must not be empty. */
    return any ? amp_buf_add(&d->lines, "\n", 1, err) : amp_buf_str(&d->lines, "-\n", err);
}

static int step_write(struct amp_diagram *d, const struct amp_diagram_step *step,
                      struct amp_error *err)
{
    static const char *const signs[] = {"", "->>", "-->>", "--x", "-)"};
    unsigned a, b = 0;
    int rc;
    if (person_number(d, step->from, &a, err) < 0 ||
        ((step->is != AMP_DIAGRAM_NOTE || step->to.n > 0) &&
         person_number(d, step->to, &b, err) < 0))
        return -1;
    if (step->is != AMP_DIAGRAM_NOTE)
        rc = amp_buf_fmt(&d->lines, err, "    P%u%sP%u: ", a, signs[step->is], b);
    else if (b && b != a)
        rc = amp_buf_fmt(&d->lines, err, "    Note over P%u,P%u: ", a < b ? a : b, a < b ? b : a);
    else
        rc = amp_buf_fmt(&d->lines, err, "    Note over P%u: ", a);
    return rc < 0 ? -1 : words_write(d, step, err);
}

/* Sets what a step is; the texts follow. */
static struct amp_diagram_step step_of(enum amp_diagram_is is, struct amp_span from,
                                       struct amp_span to)
{
    return (struct amp_diagram_step){.is = is, .from = from, .to = to};
}

#define WORDS(step, ...)                                                                           \
    do {                                                                                           \
        const struct amp_span words_[] = {__VA_ARGS__};                                            \
        (step)->n = sizeof words_ / sizeof *words_;                                                \
        memcpy((step)->word, words_, sizeof words_);                                               \
    } while (0)

static bool message_step(const struct amp_history_row *r, struct amp_diagram_step *s)
{
    struct amp_span none = {"", 0};
    struct amp_span late = r->late ? AMP_SPAN("(late)") : none;
    struct amp_span attempt = amp_span_is(r->event, "resend") ? AMP_SPAN("again") : none;
    if (amp_span_starts(r->event, "ack_")) {
        *s = step_of(AMP_DIAGRAM_REPLY, r->by, r->sender);
        WORDS(s, r->stage, late, r->id);
    } else if (amp_span_starts(r->event, "nack_")) {
        *s = step_of(AMP_DIAGRAM_REFUSAL, r->by, r->sender);
        WORDS(s, r->stage, r->code, late, r->id);
    } else if (amp_span_is(r->to, "SENT")) {
        *s = step_of(AMP_DIAGRAM_MESSAGE, r->sender, r->recipient);
        WORDS(s, r->type, attempt, r->id);
    } else if (amp_span_eq(r->from, r->to)) {
        return false; /* the ledger's own book-keeping */
    } else {
        *s = step_of(AMP_DIAGRAM_NOTE, r->sender, r->recipient);
        WORDS(s, r->event, r->from, AMP_SPAN("to"), r->to, r->id);
    }
    return true;
}

static void record_step(const struct amp_history_row *r, struct amp_diagram_step *s)
{
    struct amp_span none = {"", 0};
    if (amp_span_is(r->kind, "dead")) {
        *s = step_of(AMP_DIAGRAM_NOTE, r->actor, r->sender);
        WORDS(s, AMP_SPAN("dead letter"), r->to, r->code, r->why, r->id);
    } else if (amp_span_is(r->kind, "token")) {
        *s = step_of(AMP_DIAGRAM_NOTE, r->sender, none);
        WORDS(s, r->decision.n ? r->decision : r->event, r->id,
              r->original.n ? AMP_SPAN("of") : r->original, r->original);
    } else if (amp_span_is(r->kind, "inbox")) {
        *s = step_of(AMP_DIAGRAM_NOTE, r->agent, none);
        WORDS(s, AMP_SPAN("inbox"), r->event, r->to, r->id);
    } else {
        *s = step_of(AMP_DIAGRAM_NOTE, r->actor, none);
        WORDS(s, r->kind, r->id, r->event, r->from, r->from.n ? AMP_SPAN("to") : r->from, r->to);
    }
}

bool amp_diagram_step(const struct amp_history_row *r, struct amp_diagram_step *out)
{
    bool emits = r->what == AMP_HISTORY_EMIT && !amp_span_is(r->kind, "route");
    /* A router's lines and closed entries only repeat the message and its answers. */
    if ((r->what != AMP_HISTORY_STEP && !emits) ||
        (r->what == AMP_HISTORY_STEP &&
         (amp_span_is(r->kind, "route") || amp_span_is(r->kind, "log"))))
        return false;
    if (emits) {
        *out = step_of(AMP_DIAGRAM_ANSWER, r->actor, r->recipient);
        WORDS(out, r->type, r->stage, r->code, r->original.n ? r->original : r->id);
        return true;
    }
    if (amp_span_is(r->kind, "message"))
        return message_step(r, out);
    record_step(r, out);
    return true;
}

int amp_diagram_row(struct amp_diagram *d, const struct amp_history_row *r, struct amp_error *err)
{
    struct amp_diagram_step step;
    if (!amp_diagram_step(r, &step))
        return 0;
    if (d->rows == d->limit) {
        d->left_out++;
        return 0;
    }
    d->rows++;
    return step_write(d, &step, err);
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

/* A conversation as a sequence diagram in SVG. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/history/draw/private.h"

enum { PEOPLE_MOST = 24, STEPS_MOST = 500, LEFT = 190, GAP = 190, ROW = 30, HEAD = 52 };

struct step {
    enum amp_diagram_is is;
    size_t from, to; /* columns; of a note with one participant both are the same */
    int64_t at_ms;
    struct amp_span word[6];
    size_t n;
    bool band; /* over all columns */
};

static struct amp_history_row row_of(const struct draw_row *r)
{
    return (struct amp_history_row){.n = r->n,
                                    .what = r->what,
                                    .kind = r->kind,
                                    .id = r->id,
                                    .agent = r->agent,
                                    .event = r->event,
                                    .from = r->from,
                                    .to = r->to,
                                    .actor = r->actor,
                                    .task = r->task,
                                    .type = r->type,
                                    .sender = r->sender,
                                    .recipient = r->recipient,
                                    .stage = r->stage,
                                    .by = r->by,
                                    .code = r->code,
                                    .original = r->original,
                                    .late = r->late};
}

static int words_write(const struct step *s, struct amp_buf *out, struct amp_error *err)
{
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->word[i].n)
            continue;
        if ((any && amp_buf_add(out, " ", 1, err) < 0) ||
            draw_escape(s->word[i], i == 0 ? 30 : 60, out, err) < 0)
            return -1;
        any = true;
    }
    return 0;
}

/* The words, cut so that they stay near their arrow; the full text is a hint. */
static int label_write(const struct step *s, double x, double y, const char *anchor, double room,
                       struct amp_buf *out, struct amp_error *err)
{
    unsigned most = (unsigned)(room / 7.6);
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 1 << 16);
    /* An arrow's id is in the hint only. */
    size_t n = s->is != AMP_DIAGRAM_NOTE && s->n > 1 ? s->n - 1 : s->n;
    for (size_t i = 0; i < n; i++)
        if (s->word[i].n && ((text.len && amp_buf_add(&text, " ", 1, err) < 0) ||
                             amp_buf_add(&text, s->word[i].p, s->word[i].n, err) < 0))
            return -1;
    if (amp_buf_str(out, "<g><title>", err) < 0 || words_write(s, out, err) < 0 ||
        amp_buf_str(out, "</title>", err) < 0 ||
        draw_text(out, x, y, "", anchor, amp_buf_span(&text), most < 12 ? 12 : most, err) < 0)
        return -1;
    return amp_buf_str(out, "</g>", err);
}

static double column(size_t i)
{
    return LEFT + (double)i * GAP;
}

static int arrow_draw(const struct step *s, double y, struct amp_buf *out, struct amp_error *err)
{
    unsigned look = s->is == AMP_DIAGRAM_REPLY ? 1 : s->is == AMP_DIAGRAM_REFUSAL ? 2 : 0;
    const char line[] = {'a', (char)('0' + look), '\0'}, point[] = {'p', (char)('0' + look), '\0'};
    double a = column(s->from), b = column(s->to), way = b < a ? -1 : 1;
    if (s->from == s->to) {
        if (amp_buf_fmt(out, err, "<path d=\"M%.1f %.1fh22v10h-16\" fill=\"none\" class=\"%s\"/>",
                        a, y - 6, line) < 0)
            return -1;
        b = a + 6;
        y += 4;
        way = -1;
    } else if (draw_line(out, a, y, b - way * 6, y, line, err) < 0) {
        return -1;
    }
    if (amp_buf_fmt(out, err, "<path d=\"M%.1f %.1fl%.1f -4v8z\" class=\"%s\"/>", b, y, -way * 8,
                    point) < 0)
        return -1;
    if (s->from == s->to)
        return label_write(s, a + 28, y, "start", GAP - 34, out, err);
    double room = (b - a) * way - 14;
    return label_write(s, (a + b) / 2, y - 6, "middle", room, out, err);
}

static int note_draw(const struct step *s, size_t columns, double y, struct amp_buf *out,
                     struct amp_error *err)
{
    size_t low = s->from < s->to ? s->from : s->to, high = s->from < s->to ? s->to : s->from;
    if (s->band) {
        low = 0;
        high = columns ? columns - 1 : 0;
    }
    double x = column(low) - GAP * 0.46, w = column(high) - column(low) + GAP * 0.92;
    if (draw_rect(out, x, y - 17, w, 22, "n", (struct amp_span){"", 0}, err) < 0)
        return -1;
    return label_write(s, x + w / 2, y - 2, "middle", w - 12, out, err);
}

/* Arrows for messages and their answers, notes for what befell them, a band for each state of a
 * task. Jobs, agents and outboxes have no place here. */
static bool is_shown(const struct draw_row *r)
{
    static const char *const kinds[] = {"message",    "task",     "dead",     "refused",
                                        "escalation", "approval", "override", NULL};
    for (int i = 0; r->what == AMP_HISTORY_STEP && kinds[i]; i++)
        if (amp_span_is(r->kind, kinds[i]))
            return !amp_span_eq(r->from, r->to) || !amp_span_is(r->kind, "task");
    return false;
}

static void band_make(const struct draw_row *r, struct step *s)
{
    s->is = AMP_DIAGRAM_NOTE;
    s->band = true;
    s->n = 5;
    s->word[0] = r->id;
    s->word[1] = r->from;
    s->word[2] = r->from.n ? AMP_SPAN("→") : r->from;
    s->word[3] = r->to;
    s->word[4] = r->code;
}

static int steps_make(struct amp_drawing *d, struct step *steps, size_t *n, size_t *more,
                      struct draw_names *people, struct amp_error *err)
{
    *n = *more = 0;
    for (size_t i = 0; i < d->n; i++) {
        struct amp_diagram_step made;
        struct amp_history_row r = row_of(&d->row[i]);
        if (!is_shown(&d->row[i]) || !amp_diagram_step(&r, &made))
            continue;
        if (*n == STEPS_MOST) {
            ++*more;
            continue;
        }
        struct step *s = &steps[(*n)++];
        *s = (struct step){.is = made.is, .at_ms = d->row[i].at_ms, .n = made.n};
        memcpy(s->word, made.word, sizeof s->word);
        if (amp_span_is(r.kind, "task")) {
            band_make(&d->row[i], s);
            continue;
        }
        if (draw_name(people, made.from, &s->from, err) < 0)
            return -1;
        s->to = s->from;
        if ((made.is != AMP_DIAGRAM_NOTE || made.to.n) &&
            draw_name(people, made.to, &s->to, err) < 0)
            return -1;
    }
    return 0;
}

static int people_draw(const struct draw_names *people, double y, double height,
                       struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < people->n; i++) {
        double x = column(i);
        if (draw_line(out, x, y + 34, x, y + height, "l", err) < 0 ||
            draw_rect(out, x - GAP * 0.44, y, GAP * 0.88, 30, "k", people->v[i], err) < 0 ||
            draw_text(out, x, y + 20, "h", "middle", people->v[i], 21, err) < 0)
            return -1;
    }
    return 0;
}

int draw_sequence(struct amp_drawing *d, double y, struct amp_buf *out, struct draw_size *size,
                  struct amp_error *err)
{
    AMP_FREE struct step *steps = calloc(STEPS_MOST, sizeof *steps);
    struct draw_names people = {.most = PEOPLE_MOST};
    size_t n, more;
    char text[80];
    if (!steps)
        return amp_fail_memory(err);
    int rc = steps_make(d, steps, &n, &more, &people, err);
    size->height = HEAD + (double)n * ROW + (more ? ROW : 0) + 10;
    size->width = column(people.n ? people.n - 1 : 0) + GAP * 0.6;
    if (rc == 0)
        rc = people_draw(&people, y, size->height, out, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        double at = y + HEAD + (double)i * ROW + 16;
        draw_clock(steps[i].at_ms, d->last_ms - d->first_ms, text);
        if (i == 0 || steps[i].at_ms != steps[i - 1].at_ms)
            rc = draw_text(out, 12, at, "d", "start", amp_span_str(text), 0, err);
        if (rc == 0)
            rc = steps[i].is == AMP_DIAGRAM_NOTE ? note_draw(&steps[i], people.n, at, out, err)
                                                 : arrow_draw(&steps[i], at, out, err);
    }
    if (rc == 0 && more) {
        snprintf(text, sizeof text, "%zu more are left out", more);
        rc = draw_text(out, LEFT, y + size->height - 14, "d", "start", amp_span_str(text), 0, err);
    }
    if (rc == 0 && !n)
        rc = draw_text(out, 16, y + 40, "d", "start", AMP_SPAN("nothing to draw"), 0, err);
    free(people.v);
    return rc;
}

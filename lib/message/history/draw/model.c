/* Collecting rows, and the deliveries in them. */
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/grow.h"
#include "message/history/draw/private.h"

enum { BLOCK = 256 * 1024, TEXT_MOST = 512, ROWS_MOST = 20000 };

struct draw_block {
    struct draw_block *next;
    size_t n;
    char text[BLOCK];
};

struct amp_drawing *amp_drawing_new(uint32_t limit, struct amp_error *err)
{
    struct amp_drawing *d = calloc(1, sizeof *d);
    if (!d)
        amp_fail_memory(err);
    else
        d->limit = limit ? limit : ROWS_MOST;
    return d;
}

void amp_drawing_free(struct amp_drawing *d)
{
    if (!d)
        return;
    while (d->block) {
        struct draw_block *b = d->block;
        d->block = b->next;
        free(b);
    }
    free(d->row);
    free(d->delivery);
    free(d->slot);
    free(d);
}

static int text_keep(struct amp_drawing *d, struct amp_span *text, struct amp_error *err)
{
    if (text->n > TEXT_MOST)
        text->n = TEXT_MOST;
    if (!text->n) {
        *text = (struct amp_span){"", 0};
        return 0;
    }
    if (!d->block || d->block->n + text->n > BLOCK) {
        struct draw_block *b = malloc(sizeof *b);
        if (!b)
            return amp_fail_memory(err);
        b->n = 0;
        b->next = d->block;
        d->block = b;
    }
    char *to = d->block->text + d->block->n;
    memcpy(to, text->p, text->n);
    d->block->n += text->n;
    text->p = to;
    return 0;
}

int amp_drawing_row(struct amp_drawing *d, const struct amp_history_row *r, struct amp_error *err)
{
    int64_t at = 0;
    if (d->n >= d->limit) {
        d->left_out++;
        return 0;
    }
    if (r->implied || !amp_time_parse(r->at, &at))
        return 0;
    if (amp_grow(&d->row, &d->cap, d->n, sizeof *d->row, err) < 0)
        return -1;
    struct draw_row *v = &d->row[d->n];
    *v = (struct draw_row){.n = r->n,
                           .what = r->what,
                           .at_ms = at,
                           .kind = r->kind,
                           .id = r->id,
                           .agent = r->agent,
                           .event = r->event,
                           .from = r->from,
                           .to = r->to,
                           .actor = r->actor,
                           .correlation = r->correlation,
                           .task = r->task,
                           .protocol = r->protocol,
                           .type = r->type,
                           .sender = r->sender,
                           .recipient = r->recipient,
                           .stage = r->stage,
                           .by = r->by,
                           .code = r->code,
                           .original = r->original,
                           .attempt = r->attempt,
                           .late = r->late};
    struct amp_span *texts[] = {&v->kind, &v->id,      &v->agent,       &v->event, &v->from,
                                &v->to,   &v->actor,   &v->correlation, &v->task,  &v->protocol,
                                &v->type, &v->sender,  &v->recipient,   &v->stage, &v->by,
                                &v->code, &v->original};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (text_keep(d, texts[i], err) < 0)
            return -1;
    if (!d->n || at < d->first_ms)
        d->first_ms = at;
    if (at > d->last_ms)
        d->last_ms = at;
    d->n++;
    return 0;
}

/* ---- deliveries ---- */

static uint64_t hash_of(struct amp_span a)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < a.n; i++)
        h = (h ^ (unsigned char)a.p[i]) * 1099511628211u;
    return h ^ h >> 29;
}

static struct draw_delivery *delivery_of(struct amp_drawing *d, struct amp_span id,
                                         struct amp_error *err)
{
    size_t i = hash_of(id) & (d->slots - 1);
    for (; d->slot[i]; i = (i + 1) & (d->slots - 1))
        if (amp_span_eq(d->delivery[d->slot[i] - 1].id, id))
            return &d->delivery[d->slot[i] - 1];
    if (amp_grow(&d->delivery, &d->cap_delivery, d->n_delivery, sizeof *d->delivery, err) < 0)
        return NULL;
    struct draw_delivery *m = &d->delivery[d->n_delivery++];
    *m = (struct draw_delivery){.id = id};
    d->slot[i] = (uint32_t)d->n_delivery;
    return m;
}

bool draw_failed(const struct draw_delivery *m)
{
    return amp_span_is(m->state, "FAILED") || amp_span_is(m->state, "REJECTED") ||
           amp_span_is(m->state, "TIMED_OUT");
}

static void delivery_take(struct draw_delivery *m, const struct draw_row *r)
{
    if (!m->sent_ms) {
        m->sent_ms = r->at_ms;
        m->type = r->type;
        m->protocol = r->protocol;
        m->sender = r->sender;
        m->recipient = r->recipient;
    }
    if (r->task.n)
        m->task = r->task;
    if (r->correlation.n)
        m->correlation = r->correlation;
    if (r->original.n)
        m->original = r->original;
    if (r->attempt)
        m->attempt = r->attempt;
    if (r->code.n)
        m->code = r->code;
    if (r->to.n)
        m->state = r->to;
    if (r->stage.n && !m->acked_ms)
        m->acked_ms = r->at_ms;
    if (amp_span_is(r->to, "READ") && !m->read_ms)
        m->read_ms = r->at_ms;
    if (amp_span_is(r->to, "FULFILLED") || draw_failed(m))
        m->end_ms = m->end_ms ? m->end_ms : r->at_ms;
}

int draw_deliveries(struct amp_drawing *d, struct amp_error *err)
{
    if (d->made)
        return 0;
    for (d->slots = 64; d->slots < 2 * d->n; d->slots *= 2)
        continue;
    free(d->slot);
    d->n_delivery = 0;
    if (!(d->slot = calloc(d->slots, sizeof *d->slot)))
        return amp_fail_memory(err);
    for (size_t i = 0; i < d->n; i++) {
        const struct draw_row *r = &d->row[i];
        if (r->what != AMP_HISTORY_STEP || !r->id.n || !amp_span_is(r->kind, "message"))
            continue;
        struct draw_delivery *m = delivery_of(d, r->id, err);
        if (!m)
            return -1;
        delivery_take(m, r);
    }
    d->made = true;
    return 0;
}

int draw_name(struct draw_names *names, struct amp_span name, size_t *number, struct amp_error *err)
{
    if (!name.n)
        name = AMP_SPAN("unknown");
    for (size_t i = 0; i < names->n; i++)
        if (amp_span_eq(names->v[i], name)) {
            *number = i;
            return 0;
        }
    if (names->most && names->n + 1 >= names->most) {
        *number = names->most - 1;
        if (names->n == names->most)
            return 0;
        name = AMP_SPAN("others");
    }
    if (amp_grow(&names->v, &names->cap, names->n, sizeof *names->v, err) < 0)
        return -1;
    *number = names->n;
    names->v[names->n++] = name;
    return 0;
}

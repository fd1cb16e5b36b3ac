/* The two records of an inbox as JSON: read and written here only. */
#include "message/inbox/private.h"

#include <stdlib.h>
#include <string.h>

/* ---- the buffer ---- */

static int text_of(const struct amp_tape *t, uint32_t tok, struct amp_buf *mem,
                   struct amp_span *out, struct amp_error *err)
{
    struct amp_span text;
    *out = (struct amp_span){"", 0};
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING)
        return 0;
    size_t at = mem->len;
    if (amp_tok_text(t, tok, mem, &text, err) < 0)
        return -1;
    if (mem->len == at && amp_buf_add(mem, text.p, text.n, err) < 0)
        return -1;
    *out = (struct amp_span){mem->data + at, text.n};
    return 0;
}

static int64_t number_of(const struct amp_tape *t, uint32_t object, const char *key)
{
    int64_t n = 0;
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    return tok != AMP_TOK_NONE && amp_tok_int(t, tok, &n) ? n : 0;
}

static uint32_t array_of(const struct amp_tape *t, const char *key, uint32_t *count)
{
    uint32_t tok = amp_tape_get(t, 0, amp_span_str(key));
    bool is = tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_ARRAY;
    *count = is ? t->tok[tok].count : 0;
    return tok;
}

static int lists_read(const struct amp_tape *t, struct amp_buf *mem, struct amp_inbox_buffer *b,
                      struct amp_error *err)
{
    uint32_t n_waiting, n_open;
    uint32_t waiting = array_of(t, "waiting", &n_waiting), open = array_of(t, "open", &n_open);
    b->waiting = calloc(n_waiting + 1, sizeof(*b->waiting));
    b->open = calloc(n_open + 1, sizeof(*b->open));
    if (!b->waiting || !b->open)
        return amp_fail_memory(err);
    uint32_t tok = waiting + 1;
    for (; b->n_waiting < n_waiting; tok = t->tok[tok].next) {
        struct amp_inbox_place *p = &b->waiting[b->n_waiting++];
        if (text_of(t, amp_tape_get(t, tok, AMP_SPAN("id")), mem, &p->id, err) < 0)
            return -1;
        p->at_ms = number_of(t, tok, "at_ms");
        p->expires_ms = number_of(t, tok, "expires_ms");
        p->lane = number_of(t, tok, "lane");
        p->order = number_of(t, tok, "order");
        p->size = number_of(t, tok, "size");
        p->own = number_of(t, tok, "own") != 0;
    }
    for (tok = open + 1; b->n_open < n_open; tok = t->tok[tok].next)
        if (text_of(t, tok, mem, &b->open[b->n_open++], err) < 0)
            return -1;
    return 0;
}

int amp_inbox_buffer_read(struct amp_span json, struct amp_buf *mem, struct amp_inbox_buffer *out,
                          struct amp_error *err)
{
    struct amp_inbox_buffer b = {0};
    struct amp_tape t;
    amp_buf_reset(mem);
    amp_record_tape(&t);
    int rc = -1;
    /* The texts never need more than the record, so that the spans stay where they are. */
    if (amp_buf_reserve(mem, json.n, err) == 0 && amp_record_scan(&t, json, err) == 0 &&
        amp_record_text(&t, "agent", mem, &b.agent, err) == 0 &&
        lists_read(&t, mem, &b, err) == 0) {
        b.bound = amp_record_int(&t, "bound");
        b.credits = amp_record_int(&t, "credits");
        b.busy_ms = amp_record_int(&t, "busy_ms");
        b.until_ms = amp_record_int(&t, "until_ms");
        *out = b;
        rc = 0;
    }
    amp_tape_release(&t);
    if (rc < 0)
        amp_inbox_buffer_free(&b);
    return rc;
}

void amp_inbox_buffer_free(struct amp_inbox_buffer *b)
{
    free(b->waiting);
    free(b->open);
    b->waiting = NULL;
    b->open = NULL;
    b->n_waiting = b->n_open = 0;
}

int amp_inbox_buffer_write(const struct amp_inbox_buffer *b, struct amp_buf *out,
                           struct amp_error *err)
{
    struct amp_jw w;
    amp_buf_reset(out);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_some_str(&w, "agent", b->agent);
    amp_jw_some_int(&w, "bound", b->bound);
    amp_jw_some_int(&w, "credits", b->credits);
    amp_jw_some_int(&w, "busy_ms", b->busy_ms);
    amp_jw_some_int(&w, "until_ms", b->until_ms);
    amp_jw_key(&w, "waiting");
    amp_jw_open(&w, '[');
    for (uint32_t i = 0; i < b->n_waiting; i++) {
        amp_jw_open(&w, '{');
        amp_jw_some_str(&w, "id", b->waiting[i].id);
        amp_jw_some_int(&w, "at_ms", b->waiting[i].at_ms);
        amp_jw_some_int(&w, "expires_ms", b->waiting[i].expires_ms);
        amp_jw_some_int(&w, "lane", b->waiting[i].lane);
        amp_jw_some_int(&w, "order", b->waiting[i].order);
        amp_jw_some_int(&w, "size", b->waiting[i].size);
        amp_jw_some_int(&w, "own", b->waiting[i].own);
        amp_jw_close(&w, '}');
    }
    amp_jw_close(&w, ']');
    if (b->n_open > 0) {
        amp_jw_key(&w, "open");
        amp_jw_open(&w, '[');
        for (uint32_t i = 0; i < b->n_open; i++)
            amp_jw_str(&w, b->open[i]);
        amp_jw_close(&w, ']');
    }
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

uint32_t amp_inbox_buffer_find(const struct amp_inbox_buffer *b, struct amp_span id)
{
    uint32_t i = 0;
    while (i < b->n_waiting && !amp_span_eq(b->waiting[i].id, id))
        i++;
    return i;
}

void amp_inbox_buffer_drop(struct amp_inbox_buffer *b, uint32_t index)
{
    b->n_waiting--;
    memmove(&b->waiting[index], &b->waiting[index + 1],
            (b->n_waiting - index) * sizeof(*b->waiting));
}

static int64_t next_expiry(const struct amp_inbox_buffer *b)
{
    int64_t due = 0;
    for (uint32_t i = 0; i < b->n_waiting; i++)
        if (b->waiting[i].expires_ms > 0 && (due == 0 || b->waiting[i].expires_ms < due))
            due = b->waiting[i].expires_ms;
    return due;
}

struct buffer_work {
    amp_inbox_buffer_fn fn;
    void *ctx;
    struct amp_span agent;
    const char *event;
    struct amp_buf mem, out;
};

static int buffer_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct buffer_work *w = ctx;
    struct amp_inbox_buffer b = {0};
    if (amp_inbox_buffer_read(now->found ? now->json : AMP_SPAN("{}"), &w->mem, &b, err) < 0)
        return -1;
    b.agent = w->agent;
    int rc = w->fn(w->ctx, &b, err);
    if (rc == 0)
        rc = amp_inbox_buffer_write(&b, &w->out, err);
    change->event = w->event;
    change->to = b.busy_ms > 0 ? "BUSY" : "IDLE";
    change->json = amp_buf_span(&w->out);
    change->due_ms = next_expiry(&b);
    amp_inbox_buffer_free(&b);
    return rc;
}

int amp_inbox_buffer_update(struct amp_store *s, struct amp_span agent, const char *event,
                            amp_inbox_buffer_fn fn, void *ctx, struct amp_error *err)
{
    struct buffer_work w = {.fn = fn, .ctx = ctx, .agent = agent, .event = event};
    amp_buf_init(&w.mem, AMP_RECORD_MAX);
    amp_buf_init(&w.out, AMP_RECORD_MAX);
    int rc = amp_store_update(s, AMP_INBOX_BUFFERS, agent, NULL, buffer_fn, &w,
                              &(enum amp_store_outcome){0}, err);
    amp_buf_release(&w.mem);
    amp_buf_release(&w.out);
    return rc;
}

int amp_inbox_buffer_get(struct amp_store *s, struct amp_span agent, struct amp_buf *mem,
                         struct amp_inbox_buffer *out, bool *found, struct amp_error *err)
{
    struct amp_store_rec rec;
    *out = (struct amp_inbox_buffer){0};
    if (amp_store_get(s, AMP_INBOX_BUFFERS, agent, &rec, err) < 0)
        return -1;
    if (found)
        *found = rec.found;
    return amp_inbox_buffer_read(rec.found ? rec.json : AMP_SPAN("{}"), mem, out, err);
}

struct leaving {
    struct amp_span id;
    bool open;
};

static int leave_fn(void *ctx, struct amp_inbox_buffer *b, struct amp_error *err)
{
    const struct leaving *l = ctx;
    (void)err;
    uint32_t i = amp_inbox_buffer_find(b, l->id);
    if (i == b->n_waiting)
        return 1;
    amp_inbox_buffer_drop(b, i);
    if (l->open && b->credits > 0)
        b->open[b->n_open++] = l->id;
    return 0;
}

int amp_inbox_buffer_leave(struct amp_store *s, struct amp_span agent, struct amp_span id,
                           bool open, struct amp_error *err)
{
    struct leaving l = {.id = id, .open = open};
    return amp_inbox_buffer_update(s, agent, open ? "read" : "drop", leave_fn, &l, err);
}

/* ---- the delivery ---- */

static int delivery_write(const struct amp_inbox_delivery *d, struct amp_buf *out,
                          struct amp_error *err)
{
    struct amp_jw w;
    amp_buf_reset(out);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_some_str(&w, "msg_id", d->msg_id);
    amp_jw_some_int(&w, "at_ms", d->at_ms);
    amp_jw_some_int(&w, "expires_ms", d->expires_ms);
    amp_jw_some_int(&w, "lane", d->lane);
    amp_jw_some_int(&w, "attempt", d->attempt);
    amp_jw_some_int(&w, "offered_ms", d->offered_ms);
    amp_jw_some_int(&w, "read_ms", d->read_ms);
    amp_jw_some_int(&w, "requeue", d->requeue);
    amp_jw_some_str(&w, "code", d->code);
    if (d->line.n > 0)
        amp_record_line(&w, d->line);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

static int delivery_read(const struct amp_store_rec *rec, struct amp_buf *mem,
                         struct amp_inbox_delivery *out, struct amp_error *err)
{
    struct amp_inbox_delivery d = {0};
    struct amp_tape t;
    int state = amp_fsm_state(&amp_inbox_fsm, rec->state);
    if (state < 0)
        return amp_fail(err, AMP_INTERNAL, "bad_record", "unknown inbox state \"%.*s\"",
                        (int)rec->state.n, rec->state.p);
    d.state = (uint8_t)state;
    amp_buf_reset(mem);
    amp_record_tape(&t);
    int rc = -1;
    if (amp_buf_reserve(mem, rec->json.n, err) == 0 && amp_record_scan(&t, rec->json, err) == 0 &&
        amp_record_text(&t, "msg_id", mem, &d.msg_id, err) == 0 &&
        amp_record_text(&t, "code", mem, &d.code, err) == 0 &&
        amp_record_line_read(&t, mem, &d.line, err) == 0) {
        d.at_ms = amp_record_int(&t, "at_ms");
        d.expires_ms = amp_record_int(&t, "expires_ms");
        d.lane = amp_record_int(&t, "lane");
        d.attempt = amp_record_int(&t, "attempt");
        d.offered_ms = amp_record_int(&t, "offered_ms");
        d.read_ms = amp_record_int(&t, "read_ms");
        d.requeue = amp_record_int(&t, "requeue");
        *out = d;
        rc = 0;
    }
    amp_tape_release(&t);
    return rc;
}

int amp_inbox_delivery_get(struct amp_store *s, struct amp_span key, struct amp_buf *mem,
                           struct amp_inbox_delivery *out, struct amp_error *err)
{
    struct amp_store_rec rec;
    *out = (struct amp_inbox_delivery){.state = AMP_INBOX_ABSENT};
    if (amp_store_get(s, AMP_INBOX_KIND, key, &rec, err) < 0)
        return -1;
    return rec.found ? delivery_read(&rec, mem, out, err) : 0;
}

struct step_work {
    struct amp_inbox_step *step;
    struct amp_buf mem, out;
};

static int step_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                   struct amp_error *err)
{
    struct step_work *w = ctx;
    struct amp_inbox_step *st = w->step;
    struct amp_inbox_delivery d = {.state = AMP_INBOX_ABSENT};
    struct amp_fsm_result r;
    if (now->found && delivery_read(now, &w->mem, &d, err) < 0)
        return -1;
    if (!now->found && st->fresh)
        d = *st->fresh;
    d.state = now->found ? d.state : AMP_INBOX_ABSENT;
    if (amp_fsm_step(&amp_inbox_fsm, d.state, st->event, 0, &r, err) < 0)
        return -1;
    st->effects = r.effects;
    st->from = d.state;
    st->to = r.to;
    st->attempt = d.attempt;
    if (r.to == d.state && st->event != AMP_INBOX_EV_OFFER && !st->emit)
        return 1;
    if (st->event == AMP_INBOX_EV_OFFER) {
        d.attempt++;
        d.offered_ms = st->now_ms;
    } else if (r.to == AMP_INBOX_READ && d.state != AMP_INBOX_READ) {
        d.read_ms = st->now_ms;
    } else if (st->event == AMP_INBOX_EV_REQUEUE) {
        d.attempt = d.offered_ms = d.read_ms = 0;
        d.at_ms = st->now_ms;
        d.requeue = st->requeue;
        d.code = (struct amp_span){"", 0};
    } else if (r.to == AMP_INBOX_FAILED && d.state != AMP_INBOX_FAILED) {
        d.code = amp_span_str(st->code ? st->code : r.code);
    }
    st->attempt = d.attempt;
    if (delivery_write(&d, &w->out, err) < 0)
        return -1;
    change->event = amp_inbox_fsm.events[st->event].name;
    change->to = amp_inbox_fsm.states[r.to].name;
    change->json = amp_buf_span(&w->out);
    change->actor = st->actor;
    change->emits = st->emit;
    change->n_emits = st->emit != NULL;
    st->committed = true;
    return 0;
}

int amp_inbox_step(struct amp_store *s, struct amp_span key, struct amp_inbox_step *step,
                   struct amp_error *err)
{
    struct step_work w = {.step = step};
    enum amp_store_outcome how;
    amp_buf_init(&w.mem, AMP_RECORD_MAX);
    amp_buf_init(&w.out, AMP_RECORD_MAX);
    step->committed = false;
    int rc = amp_store_update(s, AMP_INBOX_KIND, key, NULL, step_fn, &w, &how, err);
    amp_buf_release(&w.mem);
    amp_buf_release(&w.out);
    return rc;
}

int amp_inbox_carry(struct amp_store *s, struct amp_span agent, const struct amp_inbox_key *k,
                    const struct amp_inbox_step *step, struct amp_error *err)
{
    return step->effects & AMP_INBOX_DO_DROP
               ? amp_inbox_buffer_leave(s, agent, k->id, step->to == AMP_INBOX_READ, err)
               : 0;
}

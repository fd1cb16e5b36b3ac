/* Attempts of single messages. */
#include "message/port/tries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/backoff.h"
#include "message/port/private.h"

#define LENGTH_CHARS 8

static const struct amp_backoff pauses = {.first_ms = 500, .most_ms = 30000};

/* An entry of the queue is the length of the id in hex, the id, and the line. */
int amp_tries_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                    int64_t since_ms, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, LENGTH_CHARS + id.n + line.n + 1);
    if (amp_buf_fmt(&text, err, "%08zx", id.n) < 0 || amp_buf_add(&text, id.p, id.n, err) < 0 ||
        amp_buf_add(&text, line.p, line.n, err) < 0)
        return -1;
    return amp_queue_add(&p->queue, amp_buf_span(&text), tag, since_ms, err);
}

void amp_tries_take(struct amp_port *p, int64_t now_ms)
{
    struct amp_tries *s = p->tries;
    for (uint32_t i = 0; i < s->window && s->n < s->window && p->queue.n > 0; i++) {
        struct amp_try *t = &s->v[i];
        uint32_t n;
        if (t->used)
            continue;
        struct amp_span whole = amp_queue_bytes(&p->queue, 0, 0, 0, &n);
        char length[LENGTH_CHARS + 1];
        memcpy(length, whole.p, LENGTH_CHARS);
        length[LENGTH_CHARS] = 0;
        struct amp_span text = {whole.p + LENGTH_CHARS, whole.n - LENGTH_CHARS};
        char *copy = amp_span_dup(text);
        if (!copy)
            return; /* it stays in the queue */
        *t = (struct amp_try){.used = true,
                              .tag = amp_queue_at(&p->queue, 0)->tag,
                              .text = copy,
                              .id_len = strtoul(length, NULL, 16),
                              .n = text.n,
                              .due_ms = now_ms};
        s->n++;
        s->bytes += t->n;
        amp_queue_pop(&p->queue);
    }
}

struct amp_span amp_try_id(const struct amp_try *t)
{
    return (struct amp_span){t->text, t->id_len};
}

struct amp_span amp_try_line(const struct amp_try *t)
{
    return (struct amp_span){t->text + t->id_len, t->n - t->id_len};
}

static void try_free(struct amp_tries *s, struct amp_try *t)
{
    s->n--;
    s->bytes -= t->n;
    free(t->text);
    *t = (struct amp_try){0};
}

void amp_try_ended(struct amp_port *p, struct amp_try *t, const struct amp_error *why, bool again,
                   int64_t after_ms)
{
    t->running = false;
    if (why && again && t->begun < p->opt.attempts) {
        uint64_t random;
        amp_random(&random, sizeof(random));
        int64_t pause = amp_backoff_jitter(amp_backoff_nth(&pauses, t->begun - 1), random);
        t->due_ms = amp_mono_ms() + (pause > after_ms ? pause : after_ms);
        return;
    }
    uint64_t tag = t->tag;
    struct amp_error unknown;
    if (why && t->unknown) {
        unknown = *why;
        unknown.sys = ETIMEDOUT;
        why = &unknown;
    }
    try_free(p->tries, t);
    amp_port_report(p, tag, why);
}

void amp_tries_withdraw(struct amp_port *p, const struct amp_port_recall *r)
{
    struct amp_tries *s = p->tries;
    for (uint32_t i = 0; i < s->window; i++) {
        struct amp_try *t = &s->v[i];
        if (!t->used || (t->running && t->paused))
            continue;
        if (!r->wanted(r->ctx, t->tag)) {
            t->paused = false;
        } else if (!t->running) {
            uint64_t tag = t->tag;
            try_free(s, t);
            r->taken(r->ctx, tag);
        } else if (amp_port_has(p, AMP_PORT_RUNS)) {
            t->paused = true;
            amp_runner_hurry(&t->run, r->grace_ms);
        }
    }
}

void amp_tries_fail(struct amp_port *p, const struct amp_error *why)
{
    struct amp_tries *s = p->tries;
    for (uint32_t i = 0; i < s->window; i++)
        if (s->v[i].used && !s->v[i].running)
            amp_try_ended(p, &s->v[i], why, false, 0);
    const struct amp_queued *head;
    while ((head = amp_queue_at(&p->queue, 0))) {
        uint64_t tag = head->tag;
        amp_queue_pop(&p->queue);
        amp_port_report(p, tag, why);
    }
}

int64_t amp_tries_wait(const struct amp_port *p, int64_t now_ms)
{
    const struct amp_tries *s = p->tries;
    int64_t wait = p->queue.n > 0 && s->n < s->window ? 0 : -1;
    for (uint32_t i = 0; i < s->window; i++) {
        if (!s->v[i].used || s->v[i].running || s->v[i].paused)
            continue;
        int64_t left = s->v[i].due_ms > now_ms ? s->v[i].due_ms - now_ms : 0;
        if (wait < 0 || left < wait)
            wait = left;
    }
    return wait;
}

void amp_tries_free(struct amp_port *p)
{
    if (!p->tries)
        return;
    for (uint32_t i = 0; i < AMP_TRIES_MAX; i++)
        free(p->tries->v[i].text);
    free(p->tries);
    p->tries = NULL;
}

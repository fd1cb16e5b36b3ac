/*
 * The log as a stream: a consumer has a cursor over it, which moves by the commit that puts the
 * messages of one frame into our outbox again. Who is killed goes on where it was (--from NAME).
 * While a consumer reads, the log keeps what lies before it (a pin).
 */
#include "route/admission/from.h"
#include "store/history/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/base/num.h>

#include "message/cursor/cursors.h"
#include "message/history/recorded.h"
#include "route/admission/streams.h"

#define ROOM   256 /* undecided messages, past which the log waits */
#define PIN_MS (60 * 1000)

const char *from_position;

struct from {
    char consumer[136], answers[ANSWERS_NAME_MAX], holder[200];
    struct amp_cursor_options opt;
    struct amp_cursor *cursor;
    struct amp_recorded *log;
    struct amp_recorded_item item; /* read, and of a later frame than the last */
    bool has_item, done;
    uint64_t last; /* the last frame that is read */
    int64_t pinned_ms;
    uint64_t given;
    int lock;
};

/* Until then the log keeps what is behind the cursor. */
static int pin(struct router *r, bool now, struct amp_error *err)
{
    struct from *f = r->from;
    int64_t t = amp_now_ms();
    if (!now && t - f->pinned_ms < PIN_MS / 3)
        return 0;
    f->pinned_ms = t;
    return amp_store_pin(r->store, f->consumer, (uint64_t)amp_cursor_position(f->cursor) + 1,
                         t + AMP_CURSOR_LEASE_MS, err);
}

/* A number or `start` sets the cursor there. */
static int set_cursor(struct router *r, uint64_t n, bool alone, struct amp_error *err)
{
    struct from *f = r->from;
    struct amp_cursors_edit e = {.consumer = amp_span_str(f->consumer),
                                 .source = AMP_SPAN(AMP_LOG_SOURCE),
                                 .seq = (int64_t)n - 1,
                                 .now_ms = amp_now_ms(),
                                 .lease_ms = AMP_CURSOR_LEASE_MS,
                                 .actor = r->consumer,
                                 .force = alone};
    return amp_cursors_move(r->store, &e, err);
}

static int start(struct router *r, struct amp_error *err)
{
    struct from *f = r->from;
    uint64_t first, n;
    int64_t number;
    bool name = strcmp(from_position, "start") != 0 && strcmp(from_position, "end") != 0 &&
                amp_num_parse(amp_span_str(from_position), 1, INT64_MAX, &number, NULL) < 0;
    const char *consumer = name                      ? from_position
                           : r->streams_opt.consumer ? r->streams_opt.consumer
                                                     : r->consumer;
    if (!amp_id_is_safe(amp_span_str(consumer)) || strlen(consumer) > 128)
        return amp_fail(err, AMP_USAGE, "bad_position",
                        "--from takes start, end, the number of a frame, or a consumer's name");
    snprintf(f->consumer, sizeof f->consumer, "%s", consumer);
    int alone = amp_streams_alone(r, consumer, &f->lock, err);
    if (alone < 0 || amp_store_range(r->store, &first, &f->last, err) < 0 ||
        amp_recorded_position(r->store, from_position, &n, err) < 0)
        return -1;
    amp_keeper_answers_name(r, f->answers);
    snprintf(f->holder, sizeof f->holder, "%.128s/%ld", r->consumer, (long)getpid());
    f->opt = (struct amp_cursor_options){.consumer = f->consumer,
                                         .outbox = r->consumer,
                                         .answers = f->answers,
                                         .holder = f->holder,
                                         .lease_ms = r->streams_opt.lease_ms,
                                         .ordered = true,
                                         .alone = alone};
    if ((!name && set_cursor(r, n, alone, err) < 0) ||
        amp_cursor_open(r->store, AMP_SPAN(AMP_LOG_SOURCE), &f->opt, (int64_t)n - 1, amp_now_ms(),
                        &f->cursor, err) < 0 ||
        pin(r, true, err) < 0)
        return -1;
    return amp_recorded_open(r->store, n, f->last, &f->log, err);
}

int amp_from_open(struct router *r, struct amp_error *err)
{
    if (!from_position)
        return 0;
    if (!r->store)
        return amp_fail(err, AMP_USAGE, "no_state", "--from needs --state");
    if (!(r->from = calloc(1, sizeof *r->from)))
        return amp_fail_memory(err);
    r->from->lock = -1;
    return start(r, err);
}

void amp_from_close(struct router *r)
{
    struct from *f = r->from;
    struct amp_error err;
    if (!f)
        return;
    amp_recorded_free(f->log);
    if (f->cursor && !r->broken && amp_store_pin(r->store, f->consumer, 0, 0, &err) < 0)
        r->voice->status(r->voice->complain(&err));
    if (f->cursor && amp_cursor_close(f->cursor, r->broken ? 0 : amp_now_ms(), &err) < 0)
        r->voice->status(r->voice->complain(&err));
    if (f->lock >= 0)
        close(f->lock);
    free(f);
    r->from = NULL;
}

bool amp_from_reads(const struct router *r)
{
    return r->from && !r->from->done;
}

/* ---- reading ---- */

bool amp_from_may(const struct router *r)
{
    return amp_from_reads(r) && !r->held_ms && r->n_undecided < ROOM && !amp_keeper_waits(r) &&
           amp_outlet_pending(r, 0) < r->port_options.max_pending / 2;
}

static int commit_fn(void *ctx, const struct amp_store_emit *emits, uint32_t n,
                     struct amp_store_entry_id *at, struct amp_error *err)
{
    struct from *f = ctx;
    enum amp_cursor_verdict verdict;
    struct amp_cursor_item e = {.seq = (int64_t)f->item.n,
                                .id = emits[0].id,
                                .line = emits[0].line,
                                .emits = emits,
                                .n_emits = n};
    if (amp_cursor_take(f->cursor, &e, amp_now_ms(), &verdict, err) < 0)
        return -1;
    *at = e.entry;
    return 0;
}

/* The messages of one frame: committed together, and added to the chain. */
static int take_frame(struct router *r, struct job **tail, uint32_t *taken, struct amp_error *err)
{
    struct from *f = r->from;
    struct job *jobs[BATCH_MAX];
    uint32_t n = 0;
    uint64_t frame = f->item.n;
    int rc;
    do {
        struct job *j = amp_route_job_new(r, f->item.line, NULL);
        if (!j)
            return amp_fail_memory(err);
        jobs[n++] = j;
        if (amp_keeper_look(r, j, err) < 0)
            return -1;
        rc = amp_recorded_next(f->log, &f->item, err);
        f->has_item = rc > 0;
    } while (rc > 0 && f->item.n == frame && n < BATCH_MAX);
    uint64_t next = f->item.n;
    f->item.n = frame;
    if (rc >= 0)
        rc = amp_keeper_commit(jobs, n, commit_fn, f, err);
    f->item.n = next;
    for (uint32_t i = 0; i < n && rc >= 0; i++) {
        *tail = jobs[i];
        tail = &jobs[i]->next;
    }
    *taken += n;
    f->given += n;
    return rc < 0 ? -1 : 0;
}

/* All is read: what has no messages counts as read too. */
static int end(struct router *r, struct amp_error *err)
{
    struct from *f = r->from;
    enum amp_cursor_verdict verdict;
    struct amp_cursor_item e = {.seq = (int64_t)f->last, .nothing = true};
    f->done = true;
    if (e.seq > amp_cursor_position(f->cursor) &&
        amp_cursor_take(f->cursor, &e, amp_now_ms(), &verdict, err) < 0)
        return -1;
    if (f->given > 0)
        r->voice->note("%" PRIu64 " %s of the log, up to frame %" PRIu64 ", %s delivered again",
                       f->given, f->given == 1 ? "message" : "messages", f->last,
                       f->given == 1 ? "is" : "are");
    return amp_store_sync(r->store, err);
}

int amp_from_step(struct router *r, struct amp_error *err)
{
    struct from *f = r->from;
    struct job *first = NULL, **tail = &first;
    struct amp_cursor_turn turn;
    uint32_t taken = 0;
    if (!amp_from_reads(r))
        return 0;
    if (amp_cursor_due(f->cursor) <= amp_now_ms() &&
        amp_cursor_turn(f->cursor, amp_now_ms(), &turn, err) < 0)
        return -1;
    if (pin(r, false, err) < 0)
        return -1;
    if (!amp_from_may(r))
        return 0;
    if (!f->has_item) {
        int rc = amp_recorded_next(f->log, &f->item, err);
        if (rc <= 0)
            return rc < 0 ? -1 : end(r, err);
        f->has_item = true;
    }
    while (f->has_item && taken < ROOM) {
        if (take_frame(r, tail, &taken, err) < 0)
            return -1;
        while (*tail)
            tail = &(*tail)->next;
    }
    if (amp_store_sync(r->store, err) < 0)
        return -1;
    amp_match_add_all(r, first);
    amp_match_step(r);
    return 0;
}

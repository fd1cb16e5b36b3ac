/*
 * The log as a stream. A consumer has a cursor over it, which moves with the commit that puts the
 * messages of one frame into the router's outbox again. After a crash --from NAME continues there.
 * While a consumer reads, a pin keeps the segments of the log from its position on.
 */
#include "message/route/admission/replayed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "message/delivery/cursor/cursors.h"
#include "message/delivery/history/recorded.h"
#include "message/store/history/history.h"

#define ROOM   256 /* messages of one step */
#define PIN_MS (60 * 1000)

struct amp_replayed {
    const struct amp_source_env *env;
    char consumer[136], answers[ANSWERS_NAME_MAX], holder[200];
    struct amp_cursor_options opt;
    struct amp_cursor *cursor;
    struct amp_recorded *log;
    struct amp_recorded_item item; /* the next one, if has_item */
    bool has_item, done;
    uint64_t last; /* the last frame that is read */
    int64_t pinned_ms;
    uint64_t given;
    int lock;
};

/* Renews the pin; without `now` only if a third of its time has passed. */
static int log_pin(struct amp_replayed *f, bool now, struct amp_error *err)
{
    int64_t t = amp_now_ms();
    if (!now && t - f->pinned_ms < PIN_MS / 3)
        return 0;
    f->pinned_ms = t;
    return amp_store_pin(f->env->run->store, f->consumer,
                         (uint64_t)amp_cursor_position(f->cursor) + 1, t + AMP_CURSOR_LEASE_MS,
                         err);
}

/* Moves the cursor to the frame n. */
static int cursor_set(struct amp_replayed *f, uint64_t n, bool alone, struct amp_error *err)
{
    struct amp_cursors_edit e = {.consumer = amp_span_str(f->consumer),
                                 .source = AMP_SPAN(AMP_LOG_SOURCE),
                                 .seq = (int64_t)n - 1,
                                 .now_ms = amp_now_ms(),
                                 .lease_ms = AMP_CURSOR_LEASE_MS,
                                 .actor = f->env->run->name,
                                 .force = alone};
    return amp_cursors_move(f->env->run->store, &e, err);
}

static int log_start(struct amp_replayed *f, const struct amp_streams *streams,
                     struct amp_error *err)
{
    const struct amp_source_env *env = f->env;
    const struct amp_route_run *run = env->run;
    uint64_t first, n;
    int64_t number;
    bool name = strcmp(env->from, "start") != 0 && strcmp(env->from, "end") != 0 &&
                amp_num_parse(amp_span_str(env->from), 1, INT64_MAX, &number, NULL) < 0;
    const char *consumer = name ? env->from : env->consumer ? env->consumer : run->name;
    if (!amp_id_is_safe(amp_span_str(consumer)) || strlen(consumer) > 128)
        return amp_fail(err, AMP_USAGE, bad_position,
                        "--from takes start, end, the number of a frame, or a consumer's name");
    snprintf(f->consumer, sizeof f->consumer, "%s", consumer);
    int alone = amp_streams_alone(streams, env, consumer, &f->lock, err);
    if (alone < 0 || amp_store_range(run->store, &first, &f->last, err) < 0 ||
        amp_recorded_position(run->store, env->from, &n, err) < 0)
        return -1;
    amp_keeper_answers_name(run, f->answers);
    snprintf(f->holder, sizeof f->holder, "%.128s/%ld", run->name, (long)getpid());
    f->opt = (struct amp_cursor_options){.consumer = f->consumer,
                                         .outbox = run->name,
                                         .answers = f->answers,
                                         .holder = f->holder,
                                         .lease_ms = env->lease_ms,
                                         .ordered = true,
                                         .alone = alone};
    if ((!name && cursor_set(f, n, alone, err) < 0) ||
        amp_cursor_open(run->store, AMP_SPAN(AMP_LOG_SOURCE), &f->opt, (int64_t)n - 1, amp_now_ms(),
                        &f->cursor, err) < 0 ||
        log_pin(f, true, err) < 0)
        return -1;
    return amp_recorded_open(run->store, n, f->last, &f->log, err);
}

int amp_replayed_open(const struct amp_source_env *env, const struct amp_streams *streams,
                      struct amp_replayed **out, struct amp_error *err)
{
    if (!env->from)
        return 0;
    if (!env->run->store)
        return amp_fail(err, AMP_USAGE, no_state, "--from needs --state");
    struct amp_replayed *f = calloc(1, sizeof *f);
    if (!f)
        return amp_fail_memory(err);
    f->env = env;
    f->lock = -1;
    *out = f;
    return log_start(f, streams, err);
}

void amp_replayed_close(struct amp_replayed *f)
{
    struct amp_error err;
    if (!f)
        return;
    const struct amp_route_run *run = f->env->run;
    amp_recorded_free(f->log);
    if (f->cursor && !run->broken && amp_store_pin(run->store, f->consumer, 0, 0, &err) < 0)
        run->voice->status(run->voice->complain(&err));
    if (f->cursor && amp_cursor_close(f->cursor, run->broken ? 0 : amp_now_ms(), &err) < 0)
        run->voice->status(run->voice->complain(&err));
    if (f->lock >= 0)
        close(f->lock);
    free(f);
}

bool amp_replayed_reads(const struct amp_replayed *f)
{
    return f && !f->done;
}

/* ---- reading ---- */

static int commit_fn(void *ctx, const struct amp_store_emit *emits, uint32_t n,
                     struct amp_store_entry_id *at, struct amp_error *err)
{
    struct amp_replayed *f = ctx;
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
static int frame_take(struct amp_replayed *f, struct parcel **tail, uint32_t *taken,
                      struct amp_error *err)
{
    const struct amp_source_env *env = f->env;
    struct parcel *parcels[AMP_ROUTE_BATCH_MAX];
    uint32_t n = 0;
    uint64_t frame = f->item.n;
    int rc;
    do {
        struct parcel *j = amp_parcel_new(env->parcels, f->item.line, NULL);
        if (!j)
            return amp_fail_memory(err);
        parcels[n++] = j;
        if (env->look(env->look_ctx, j, err) < 0)
            return -1;
        rc = amp_recorded_next(f->log, &f->item, err);
        f->has_item = rc > 0;
    } while (rc > 0 && f->item.n == frame && n < AMP_ROUTE_BATCH_MAX);
    uint64_t next = f->item.n;
    f->item.n = frame;
    if (rc >= 0)
        rc = amp_keeper_commit(parcels, n, commit_fn, f, err);
    f->item.n = next;
    for (uint32_t i = 0; i < n && rc >= 0; i++) {
        *tail = parcels[i];
        tail = &parcels[i]->next;
    }
    *taken += n;
    f->given += n;
    return rc < 0 ? -1 : 0;
}

/* Moves the cursor to the last frame, which may have no messages. */
static int log_end(struct amp_replayed *f, struct amp_error *err)
{
    const struct amp_route_run *run = f->env->run;
    enum amp_cursor_verdict verdict;
    struct amp_cursor_item e = {.seq = (int64_t)f->last, .nothing = true};
    f->done = true;
    if (e.seq > amp_cursor_position(f->cursor) &&
        amp_cursor_take(f->cursor, &e, amp_now_ms(), &verdict, err) < 0)
        return -1;
    if (f->given > 0)
        run->voice->note("%" PRIu64 " %s of the log, up to frame %" PRIu64 ", %s delivered again",
                         f->given, f->given == 1 ? "message" : "messages", f->last,
                         f->given == 1 ? "is" : "are");
    return amp_store_sync(run->store, err);
}

int amp_replayed_step(struct amp_replayed *f, bool room, struct amp_error *err)
{
    struct parcel *first = NULL, **tail = &first;
    struct amp_cursor_turn turn;
    uint32_t taken = 0;
    if (!amp_replayed_reads(f))
        return 0;
    if (amp_cursor_due(f->cursor) <= amp_now_ms() &&
        amp_cursor_turn(f->cursor, amp_now_ms(), &turn, err) < 0)
        return -1;
    if (log_pin(f, false, err) < 0)
        return -1;
    if (!room)
        return 0;
    if (!f->has_item) {
        int rc = amp_recorded_next(f->log, &f->item, err);
        if (rc <= 0)
            return rc < 0 ? -1 : log_end(f, err);
        f->has_item = true;
    }
    while (f->has_item && taken < ROOM) {
        if (frame_take(f, tail, &taken, err) < 0)
            return -1;
        while (*tail)
            tail = &(*tail)->next;
    }
    if (amp_store_sync(f->env->run->store, err) < 0)
        return -1;
    f->env->pass(f->env->pass_ctx, first);
    return 0;
}

/*
 * The loop: reads the available input, records it, decides, offers it to the ports, and steps each
 * port. It never waits for one reader: the queue of a port that accepts nothing fills up and
 * refuses past its bound, and the input goes on.
 */
#include "message/route/router/private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/loop.h"
#include "message/delivery/admit/tokens.h"
#include "message/delivery/facts.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/routing.h"
#include "message/route/count.h"
#include "message/route/outlet/unacked.h"

#define UNDECIDED_MAX   512
#define LOG_AHEAD_MAX   256 /* undecided messages; beyond this the log waits */
#define BATCH_BYTES     ((size_t)512 << 10)
#define RECIPIENT_BYTES 64 /* of an entry in the outbox */
#define ANSWER_MOST     ((size_t)64 << 20)
#define LOOK_MS         500 /* the longest wait while work is open that may have no event */

struct batch {
    struct parcel *v[AMP_ROUTE_BATCH_MAX];
    uint32_t n;
    size_t bytes;
};

static int batch_commit(struct amp_router *r, struct batch *b, struct amp_error *err)
{
    b->bytes = 0;
    if (!r->run.dry && (amp_admission_record(r->admission, b->v, &b->n, err) < 0 ||
                        amp_keeper_record(r->keeper, b->v, b->n, err) < 0))
        return -1;
    for (uint32_t i = 0; i < b->n; i++)
        amp_decide_add(r, b->v[i]);
    b->n = 0;
    amp_decide_step(r);
    return 0;
}

/* Sends the answer of a protocol that falls back, such as the work for a version 1 agent. */
static int malformed_answer(struct amp_router *r, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, ANSWER_MOST);
    int rc = r->run.dry ? 0 : amp_intake_answer(&r->intake, v, amp_now_ms(), &line, err);
    if (rc > 0)
        amp_keeper_say(r->keeper, amp_buf_span(&line));
    return rc < 0 ? -1 : 0;
}

/* A malformed message is refused if its protocol answers those. Others are in the error log only.
 */
static int malformed_refuse(struct amp_router *r, const struct amp_view *v, struct amp_error *err)
{
    char why[160];
    const char *code = r->intake.bad_code, *field = r->intake.bad_field;
    /* An answer about an id with a NUL would look like one about another message. */
    if (v->id.n == 0 || memchr(v->id.p, '\0', v->id.n) || r->run.dry ||
        !amp_routing_of(v->protocol)->refuses_malformed || v->from.n == 0 ||
        v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK)
        return 0;
    struct parcel *j = amp_parcel_new(&r->parcels, v->line, v);
    if (!j)
        return amp_fail_memory(err);
    j->lane = amp_lane_of(r->lanes, v);
    if (amp_code_is(code, oversize_payload))
        snprintf(why, sizeof why, "its payload exceeds the limit of its type");
    else
        snprintf(why, sizeof why, "it is invalid%s%.100s", *field ? ": " : "", field);
    amp_keeper_refuse(r->keeper, j, code, why, "", false);
    amp_parcel_free(j);
    return 0;
}

/* Marks a message to be refused if its sender exceeds its rate. Acknowledgements are not limited.
 */
static int rate_look(struct amp_router *r, struct parcel *j, const struct amp_view *v,
                     struct amp_error *err)
{
    char why[120];
    if (v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK)
        return 0;
    int took = amp_producers_take(r->producers, v->from, r->run.now_ms, err);
    snprintf(why, sizeof why, "its sender may send %u messages per second", r->opt->producer_rate);
    if (took == 0)
        amp_parcel_refuse(j, AMP_CODE(rate_limited), why, "", true);
    return took < 0 ? -1 : 0;
}

static int message_take(struct amp_router *r, struct batch *b, const struct amp_view *v,
                        struct amp_error *err)
{
    struct parcel *j = amp_parcel_new(&r->parcels, v->line, v);
    if (!j)
        return amp_fail_memory(err);
    j->number = r->intake.lines.number;
    j->came_ms = r->run.now_ms;
    enum amp_admitted how =
        r->run.dry ? AMP_ADMIT_GO : amp_admission_admit(r->admission, j, v, err);
    if (how != AMP_ADMIT_GO) {
        amp_parcel_free(j);
        return how == AMP_ADMIT_FAILED ? -1 : 0;
    }
    b->v[b->n++] = j;
    b->bytes += v->line.n;
    if (amp_admission_look(r->admission, j, v, err) < 0)
        return -1;
    if (r->producers && rate_look(r, j, v, err) < 0)
        return -1;
    amp_route_count_parcel(&r->run, AMP_METRIC_RECEIVED, "", j);
    amp_metrics_tool(r->run.metrics, v);
    b->bytes += j->address.n * RECIPIENT_BYTES;
    return 0;
}

/* Takes the message with the names that a router assigns, such as the call_id of SW4RM §18.2 and
 * the recipients of a message for all. */
static int named_take(struct amp_router *r, struct batch *b, const struct amp_view *v,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = v->line.n + (2 << 20)};
    struct amp_check_options opt = {0};
    struct amp_view named;
    int rc = amp_assigned_line(v, &line, err);
    const struct amp_message_facts *facts = r->run.store ? amp_store_facts(r->run.store) : NULL;
    if (rc == 0 && facts && !r->run.dry)
        rc = facts->publish(r->run.store, v, &line, err);
    if (rc == 0)
        return message_take(r, b, v, err);
    if (rc < 0 ||
        amp_reader_line(r->intake.reader, amp_buf_span(&line), &opt, &named, NULL, NULL, err) < 0)
        return -1;
    return message_take(r, b, &named, err);
}

/* Whether a message from another machine is signed by a key that may speak for its sender, and one
 * of an external agent has a token if it needs one. 1: it is; 0: it was reported and must be
 * refused. */
static int sender_check(struct amp_router *r, const struct amp_view *v, struct amp_error *err)
{
    struct amp_said said;
    struct amp_error why = {0};
    bool trusted = !r->opt->signed_only && amp_input_is_trusted(r->opt->in_path);
    int rc = amp_identities_refresh(r->opt->ids, err);
    if (rc == 0 && r->opt->signed_only)
        rc = amp_identities_who(r->opt->ids, v, false, &said, &why, err);
    else if (rc == 0)
        rc = 1;
    if (rc > 0 && !r->run.dry)
        rc = amp_tokens_admit(r->opt->ids, r->run.store, v, trusted, r->run.name, &why, err);
    if (rc != 0)
        return rc;
    r->run.voice->status(AMP_NO);
    return amp_intake_refuse(&r->intake, v, &why, err) < 0 ? -1 : 0;
}

/* Takes what the intake returned for a line: a message, or a report. */
static int taken_line(struct amp_router *r, struct batch *b, enum amp_intake_got got,
                      const struct amp_view *v, struct amp_error *err)
{
    if (got == AMP_INTAKE_BAD) {
        r->run.voice->status(AMP_NO);
        if (malformed_answer(r, v, err) < 0)
            return -1;
        /* A message in chunks that was dropped is not here, so that it cannot be a dead letter. */
        return r->intake.dropped.why.code[0] ? 0 : malformed_refuse(r, v, err);
    }
    int rc = r->opt->signed_only || amp_tokens_are_needed() ? sender_check(r, v, err) : 1;
    if (rc <= 0)
        return rc < 0 ? -1 : malformed_refuse(r, v, err);
    if (b->n > 0 && (b->n == AMP_ROUTE_BATCH_MAX || b->bytes + v->line.n > BATCH_BYTES) &&
        batch_commit(r, b, err) < 0)
        return -1;
    return named_take(r, b, v, err);
}

/* The messages that a chunk or batch made complete. A message from chunks is recorded before the
 * next one is asked for. */
static int parts_take(struct amp_router *r, struct batch *b, struct amp_error *err)
{
    struct amp_view v;
    enum amp_intake_got got;
    while ((got = amp_intake_more(&r->intake, &v, err)) > AMP_INTAKE_NONE)
        if (taken_line(r, b, got, &v, err) < 0 ||
            (amp_units_hold(r->intake.units) && batch_commit(r, b, err) < 0))
            return -1;
    return (int)got;
}

static int line_take(struct amp_router *r, struct batch *b, enum amp_line_result got,
                     const struct amp_line *line, struct amp_error *err)
{
    struct amp_view v;
    if (b->n > 0 && r->direct.open && batch_commit(r, b, err) < 0)
        return -1;
    if (got == AMP_LINE && amp_direct_take(r, line->bytes))
        return 0;
    enum amp_intake_got took = amp_intake_line(&r->intake, got, line, &v, err);
    if (took == AMP_INTAKE_FAILED)
        return -1;
    return took == AMP_INTAKE_PART ? parts_take(r, b, err) : taken_line(r, b, took, &v, err);
}

/* At the end of input: handles the messages whose chunks did not all come. */
static int unfinished_take(struct amp_router *r, struct batch *b, struct amp_error *err)
{
    struct amp_view v;
    enum amp_intake_got got;
    while ((got = amp_intake_unfinished(&r->intake, &v, err)) > AMP_INTAKE_NONE)
        if (taken_line(r, b, got, &v, err) < 0)
            return -1;
    return (int)got;
}

/* Routes all complete lines that were read. */
static int lines_take(struct amp_router *r, struct amp_error *err)
{
    struct batch b = {.n = 0};
    struct amp_line line;
    enum amp_line_result got = AMP_LINE_MORE;
    int rc = 0;
    amp_addressing_turn(r->addressing);
    if (r->intake.units)
        rc = parts_take(r, &b, err);
    while (rc == 0 && (got = amp_lines_next(&r->intake.lines, &line)) <= AMP_LINE_TOO_LONG)
        rc = line_take(r, &b, got, &line, err);
    if (rc == 0 && r->intake.units && got == AMP_LINE_END)
        rc = unfinished_take(r, &b, err);
    if (rc == 0)
        rc = batch_commit(r, &b, err);
    while (b.n > 0)
        amp_parcel_free(b.v[--b.n]);
    return rc;
}

static int input_read(struct amp_router *r, struct amp_error *err)
{
    enum amp_read got = amp_lines_fill(&r->intake.lines, r->in.fd, err);
    if (got == AMP_READ_FAILED)
        return errno == EINTR ? 0 : -1;
    if (got == AMP_READ_WOULD_BLOCK)
        return 0;
    if (got == AMP_READ_END)
        r->run.eof_ms = r->run.now_ms;
    return lines_take(r, err);
}

/* Whether there is room for more messages of the input, or of the log. */
static bool has_room(const struct amp_router *r, uint32_t undecided_max)
{
    return r->run.held_ms == 0 && r->undecided.n < undecided_max &&
           amp_outlets_has_room(r->outlets);
}

static bool has_log_room(const struct amp_router *r)
{
    return has_room(r, LOG_AHEAD_MAX) && !amp_keeper_waits(r->keeper);
}

/* Whether all open work waits for an event that wakes the router. */
static bool is_quiet(const struct amp_router *r)
{
    return r->run.held_ms == 0 && r->undecided.n == 0 && !amp_keeper_waits(r->keeper) &&
           amp_outlets_quiet(r->outlets, r->run.eof_ms > 0);
}

static int loop_wait(struct amp_router *r, bool *readable, struct amp_error *err)
{
    struct pollfd fds[AMP_OUTLETS_FDS + 3];
    int timeout = -1;
    uint32_t outlets = amp_outlets_watch(r->outlets, fds, &timeout), n = outlets;
    amp_rules_watch(r->rules, &fds[n], &timeout);
    n += 2;
    int tick = amp_metrics_timeout(r->run.metrics);
    if (tick >= 0 && (timeout < 0 || tick < timeout))
        timeout = tick;
    bool reading = !*r->opt->hangup && !amp_admission_reads(r->admission) && r->run.eof_ms == 0 &&
                   has_room(r, UNDECIDED_MAX);
    fds[n] = (struct pollfd){.fd = reading ? r->in.fd : -1, .events = POLLIN};
    amp_admission_watch(r->admission, has_log_room(r), &timeout);
    if (!is_quiet(r) && (timeout < 0 || timeout > LOOK_MS))
        timeout = LOOK_MS;
    /* A wait of this length need not end early for a hang-up. */
    const volatile int *hangup = timeout < 0 || timeout > LOOK_MS ? r->opt->hangup : NULL;
    struct amp_loop turn = amp_loop_turn(fds, n + 1, r->run.stop, hangup);
    turn.n = n + 1;
    turn.wait_ms = timeout;
    *readable = false;
    int ended = amp_loop_wait(&turn, err);
    bool ready = ended == AMP_LOOP_READY;
    *readable = ready && fds[n].revents != 0;
    r->run.now_ms = amp_mono_ms();
    amp_outlets_woken(r->outlets, fds, ready ? outlets : 0);
    return ended < 0 ? -1 : 0;
}

/* ---- messages of an earlier run ---- */

/* Frees the recipients that have read the message. 1: it needs no delivery. */
static int read_drop(struct amp_router *r, struct parcel *j, struct amp_error *err)
{
    struct parcel **at = &j->address.kids;
    j->address.last = NULL;
    while (*at) {
        struct parcel *kid = *at;
        int rc = amp_unacked_was_read(&r->run, kid, err);
        if (rc < 0)
            return -1;
        if (rc == 0) {
            j->address.last = kid;
            at = &kid->next;
            continue;
        }
        *at = kid->next;
        amp_keeper_settled(r->keeper, kid);
        amp_parcel_free(kid);
    }
    return j->address.is_group ? 0 : amp_unacked_was_read(&r->run, j, err);
}

/* The routes may have changed, so all checks are made again. */
static int parcel_restore(void *ctx, struct parcel *j, struct amp_error *err)
{
    struct amp_router *r = ctx;
    int rc = amp_admission_look_again(r->admission, j, err);
    if (rc == 0)
        rc = read_drop(r, j, err);
    if (rc < 0)
        return -1;
    if (rc == 0) {
        amp_decide_add(r, j);
    } else {
        amp_dispatch_drop(r, j);
        amp_keeper_settled(r->keeper, j);
        amp_parcel_free(j);
    }
    return 0;
}

/* ---- the loop ---- */

static void metrics_turn(struct amp_router *r)
{
    struct amp_error err;
    if (amp_metrics_timeout(r->run.metrics) != 0)
        return;
    amp_outlets_measure(r->outlets);
    amp_admission_measure(r->admission);
    if (amp_metrics_tick(r->run.metrics, &err) < 0)
        r->run.voice->warn("%s", err.what);
}

static void reload_turn(struct amp_router *r)
{
    if (*r->opt->hangup && r->undecided.n == 0) {
        *r->opt->hangup = 0;
        r->opt->reread(r);
    }
    amp_outlets_close_retired(r->outlets);
}

/* Whether every message is delivered, or kept for another run. */
static bool is_finished(struct amp_router *r)
{
    return r->run.eof_ms > 0 && !amp_admission_reads(r->admission) && r->undecided.n == 0 &&
           amp_outlets_finish(r->outlets) && !amp_keeper_waits(r->keeper) &&
           r->parcels.n == r->tees.away;
}

static int run_end(const struct amp_router *r, struct amp_error *err)
{
    if (!r->run.broken)
        return 0;
    *err = r->run.why;
    return -1;
}

int amp_router_run(struct amp_router *r, struct amp_error *err)
{
    bool readable;
    r->run.now_ms = amp_mono_ms();
    amp_outlets_start(r->outlets);
    if (r->run.store && !r->run.dry && amp_keeper_restore(r->keeper, parcel_restore, r, err) < 0)
        return -1;
    amp_decide_step(r);
    if (r->intake.units && lines_take(r, err) < 0) /* that a killed router of this name left */
        return -1;
    for (;;) {
        amp_outlets_step(r->outlets);
        amp_decide_step(r);
        reload_turn(r);
        amp_keeper_turn(r->keeper);
        metrics_turn(r);
        if (run_end(r, err) < 0 || amp_admission_turn(r->admission, has_log_room(r), err) < 0)
            return -1;
        if (*r->run.stop) {
            amp_outlets_stop(r->outlets);
            amp_keeper_turn(r->keeper);
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        }
        if (is_finished(r))
            break;
        if (loop_wait(r, &readable, err) < 0 || (readable && input_read(r, err) < 0))
            return -1;
    }
    amp_keeper_turn(r->keeper);
    return run_end(r, err);
}

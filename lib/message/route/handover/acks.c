/*
 * Acknowledgements of messages that were handed over (--acks), in the message's protocol: AMP's
 * ack, SW4RM's READ, and with --fulfill SW4RM's FULFILLED and the Runtime Protocol's processed. The
 * commit that records the stage puts the line into the outbox. It is signed and written after the
 * sync, and its entry is closed when the port has it. After a crash the next run writes the same
 * message.
 */
#include "message/route/handover/handover.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/intake.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/delivery/record/record.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/settle/answer.h"
#include "message/delivery/settle/outcome.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/delivery.h"

#define PENDING_MAX ((size_t)4 << 20)
#define SIGNED_MAX  ((size_t)2 << 20)
#define REFUSED_MAX 10000 /* refused entries; more of them keep their places in `away` */

int amp_acks_open(struct amp_acks *a, struct amp_error *err)
{
    const char *spec = a->o->acks_port;
    struct amp_port_options opt = {
        .consumer = a->outbox, .open_timeout_ms = -1, .max_pending = PENDING_MAX, .durable = true};
    a->actor = AMP_SWEEPER;
    if (!spec)
        return 0;
    a->actor = a->outbox;
    amp_buf_init(&a->line, SIGNED_MAX);
    amp_buf_init(&a->refused, REFUSED_MAX * sizeof(a->away[0]));
    snprintf(a->outbox, sizeof(a->outbox), "inbox:%.*s", (int)a->o->agent.n, a->o->agent.p);
    a->spec = spec;
    if (!(a->reader = amp_reader_new(NULL, err)))
        return -1;
    if (strncmp(spec, "inbox:", 6) == 0)
        return amp_inbox_agent_check(amp_span_str(spec + 6), err);
    opt.unopened = true;
    if (amp_port_new(spec, &opt, &a->port, err) < 0)
        return -1;
    if (amp_port_has(a->port, AMP_PORT_OUTPUT | AMP_PORT_REQUEST))
        return amp_fail(err, AMP_USAGE, bad_port,
                        "--acks takes a local port (fifo:, file:, spool:, command:, unix:, "
                        "exec-each:, inbox:), not %s",
                        spec);
    amp_port_free(a->port);
    a->port = NULL;
    opt.unopened = false;
    return amp_port_new(spec, &opt, &a->port, err);
}

void amp_acks_close(struct amp_acks *a)
{
    amp_port_free(a->port);
    amp_reader_free(a->reader);
    amp_buf_release(&a->line);
    amp_buf_release(&a->refused);
    a->port = NULL;
    a->reader = NULL;
}

/* ---- composing ---- */

struct ack_line {
    struct amp_view v; /* of the acknowledged message */
    char by[AMP_INBOX_AGENT_MAX + 1];
    struct amp_buf *line;
    struct amp_store_emit emit;
};

/* Whether the protocol has such an acknowledgement, and the message's sender waits for it. */
static bool is_awaited(const struct amp_view *v, enum amp_ack_stage stage)
{
    if (v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK || v->id.n == 0 ||
        amp_timeouts_ack(v) <= 0)
        return false;
    const struct amp_delivery_terms *terms = amp_delivery_of(v->protocol);
    return (terms->handed_over & 1u << stage) && (v->from.n > 0 || !terms->acks_to_sender);
}

/* 1: the message needs an acknowledgement. */
static int message_look(struct amp_acks *a, const struct amp_inbox_msg *m, enum amp_ack_stage stage,
                        struct ack_line *l, struct amp_error *err)
{
    struct amp_check_options opt = {0};
    amp_span_copy(a->o->agent, l->by, sizeof(l->by));
    if (!a->spec)
        return 0;
    if (amp_reader_line(a->reader, m->line, &opt, &l->v, NULL, NULL, err) < 0)
        return -1;
    return is_awaited(&l->v, stage);
}

static int ack_compose(struct amp_acks *a, struct ack_line *l, enum amp_ack_stage stage,
                       int64_t now_ms, struct amp_error *err)
{
    struct amp_answer ack = {.stage = stage, .by = l->by, .node = l->by, .now_ms = now_ms};
    char role[64] = "system";
    if (amp_delivery_of(l->v.protocol)->acks_by_role) {
        if (l->v.n_to > 0)
            amp_span_copy(l->v.to[0], role, sizeof(role));
        ack.by = role;
    }
    if (amp_sequence_answer(a->store, &l->v, a->outbox, &ack, err) < 0 ||
        amp_answer_line(&l->v, &ack, l->line, err) < 0)
        return -1;
    l->line->len--; /* without its LF */
    l->emit = (struct amp_store_emit){
        .id = l->v.id, .line = amp_buf_span(l->line), .role = AMP_ROLE_answer};
    return 0;
}

int amp_acks_read(struct amp_acks *a, const struct amp_inbox_msg *m, int64_t now_ms,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    struct ack_line l = {.line = &line};
    amp_buf_init(&line, 1 << 20);
    for (uint32_t i = 0; i < AMP_ACKS_AWAY; i++)
        if (a->held[i] == AMP_ACKS_FAILED) {
            a->away[i] = (struct amp_store_entry_id){0};
            a->held[i] = AMP_ACKS_GOES;
        }
    int rc = message_look(a, m, AMP_STAGE_READ, &l, err);
    if (rc < 0 || (rc > 0 && ack_compose(a, &l, AMP_STAGE_READ, now_ms, err) < 0))
        return -1;
    return amp_inbox_read_and_say(a->store, a->o->agent, m->id, now_ms, rc > 0 ? &l.emit : NULL,
                                  a->outbox, err);
}

/* Whether the ledger will accept it: an unused sequence number would be a gap. */
static int is_acceptable(struct amp_acks *a, const struct ack_line *l, struct amp_error *err)
{
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    bool late = false;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_message_find(a->store, l->v.id, &mem, &r, err) < 0)
        return -1;
    if (!r.found || amp_record_has_ack(&r, amp_ack_stage_name(AMP_STAGE_FULFILLED), l->by, &late))
        return 0;
    return !amp_delivery_of(l->v.protocol)->acks_are_durable || !l->v.wants_outcome ||
           amp_outcome_known(&r);
}

static int fulfilled_record(struct amp_acks *a, const struct amp_inbox_msg *m, int64_t now_ms,
                            struct ack_line *l, struct amp_error *err)
{
    struct amp_message_answer answer = {.stage = AMP_STAGE_FULFILLED, .by = l->by};
    int rc = message_look(a, m, AMP_STAGE_FULFILLED, l, err);
    if (rc > 0)
        rc = is_acceptable(a, l, err);
    if (rc > 0) {
        rc = ack_compose(a, l, AMP_STAGE_FULFILLED, now_ms, err);
        answer.emit = &l->emit;
        answer.actor = a->outbox;
    }
    struct amp_span known;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (rc < 0 || amp_inbox_known_as(a->store, a->o->agent, m->id, &mem, &known, err) < 0)
        return -1;
    return amp_settle_answer(a->store, known, &answer, now_ms, NULL, err);
}

int amp_acks_fulfilled(struct amp_acks *a, const struct amp_inbox_msg *m, int64_t now_ms,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    struct ack_line l = {.line = &line};
    amp_buf_init(&line, 1 << 20);
    if (amp_store_begin(a->store, err) < 0)
        return -1;
    int rc = fulfilled_record(a, m, now_ms, &l, err);
    amp_store_end(a->store);
    return rc;
}

/* ---- writing ---- */

static bool is_entry(const struct amp_store_entry_id *id, const struct amp_store_entry *e)
{
    return id->n == e->n && id->index == e->index;
}

static bool is_away(const struct amp_acks *a, const struct amp_store_entry *e)
{
    const struct amp_store_entry_id *refused = (const void *)a->refused.data;
    for (uint32_t i = 0; i < AMP_ACKS_AWAY; i++)
        if (is_entry(&a->away[i], e))
            return true;
    for (size_t i = 0; i < a->refused.len / sizeof(*refused); i++)
        if (is_entry(&refused[i], e))
            return true;
    return false;
}

static int entries_close(struct amp_acks *a, struct amp_error *err)
{
    int rc = 0;
    if (a->n_closed > 0)
        rc = amp_store_outbox_close(a->store, a->outbox, a->closed, a->n_closed, err);
    a->n_gone += a->n_closed;
    a->n_closed = 0;
    return rc;
}

/* Puts the line into another agent's inbox, which ignores it if it has the line already. */
static int inbox_put(struct amp_acks *a, struct amp_span line, struct amp_error *err)
{
    struct amp_view v;
    struct amp_check_options check = {0};
    struct amp_span to = amp_span_str(a->spec + 6);
    struct amp_inbox_options opt = {.actor = a->outbox, .lane = AMP_LANE_STANDARD, .line = line};
    if (amp_reader_line(a->reader, line, &check, &v, NULL, NULL, err) < 0 ||
        amp_inbox_put(a->store, to, &v, &opt, amp_now_ms(), NULL, NULL, NULL, err) < 0)
        return -1;
    a->rang = true;
    return 0;
}

/* The log has the acknowledgement as it was composed; it is signed when it leaves. */
static int line_sign(struct amp_acks *a, struct amp_span line, struct amp_error *err)
{
    return a->o->voice->sign ? a->o->voice->sign(line, &a->line, err)
                             : amp_buf_add(&a->line, line.p, line.n, err);
}

static int entry_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct amp_acks *a = ctx;
    struct amp_error why;
    uint32_t free_at = AMP_ACKS_AWAY;
    if (is_away(a, e))
        return 0;
    for (uint32_t i = AMP_ACKS_AWAY; i-- > 0;)
        if (a->away[i].n == 0)
            free_at = i;
    if (free_at == AMP_ACKS_AWAY || a->n_closed == AMP_ACKS_AWAY) {
        a->more = true;
        return 1;
    }
    struct amp_store_entry_id id = {.n = e->n, .index = e->index};
    amp_buf_reset(&a->line);
    if (line_sign(a, e->line, err) < 0)
        return -1;
    struct amp_span line = amp_buf_span(&a->line);
    int rc = a->port ? amp_port_offer(a->port, e->id, line, free_at + 1, amp_mono_ms(), &why)
                     : inbox_put(a, line, &why);
    if (rc < 0) {
        a->o->voice->warn("%s: %s; it stays in the outbox %s", a->spec, why.what, a->outbox);
        a->o->voice->status(why.status);
        return 1;
    }
    if (a->port) {
        a->away[free_at] = id;
        a->n_away++;
    } else {
        a->closed[a->n_closed++] = id;
    }
    return 0;
}

static void done_fn(void *ctx, uint64_t tag, const struct amp_error *why)
{
    struct amp_acks *a = ctx;
    struct amp_store_entry_id *id = &a->away[tag - 1];
    if (why) {
        a->o->voice->warn("%s: %s; it stays in the outbox %s", a->spec, why->what, a->outbox);
        a->o->voice->status(why->status);
        /* Sent again after the next READ, or not in this run. */
        a->held[tag - 1] = why->status == AMP_NO ? AMP_ACKS_REFUSED : AMP_ACKS_FAILED;
        if (why->status == AMP_NO &&
            amp_buf_add(&a->refused, (const char *)id, sizeof(*id), NULL) == 0) {
            *id = (struct amp_store_entry_id){0};
            a->held[tag - 1] = AMP_ACKS_GOES;
            a->n_gone++;
        }
    } else {
        a->closed[a->n_closed++] = *id;
        *id = (struct amp_store_entry_id){0};
    }
    a->n_away--;
}

int amp_acks_step(struct amp_acks *a, struct amp_error *err)
{
    if (!a->port)
        return 0;
    amp_port_step(a->port, done_fn, a);
    return entries_close(a, err);
}

int amp_acks_turn(struct amp_acks *a, struct amp_error *err)
{
    uint64_t before;
    if (!a->spec)
        return 0;
    do {
        before = a->n_gone;
        a->more = false;
        if (amp_store_outbox(a->store, a->outbox, entry_fn, a, err) < 0 ||
            amp_acks_step(a, err) < 0 || entries_close(a, err) < 0)
            return -1;
    } while (a->more && a->n_gone > before);
    if (a->rang) {
        if (amp_store_sync(a->store, err) < 0)
            return -1;
        amp_inbox_ring(amp_store_dir(a->store), amp_span_str(a->spec + 6));
    }
    a->rang = false;
    return 0;
}

void amp_acks_watch(const struct amp_acks *a, struct pollfd fds[AMP_PORT_FDS], int64_t *timeout_ms)
{
    int wait = *timeout_ms < 0 || *timeout_ms > INT_MAX ? -1 : (int)*timeout_ms;
    fds[0] = fds[1] = (struct pollfd){.fd = -1};
    if (!a->port)
        return;
    amp_port_watch(a->port, fds, &wait);
    if (wait >= 0)
        *timeout_ms = wait;
}

static int count_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    ++*(uint64_t *)ctx;
    return 0;
}

static int missing_report(struct amp_acks *a, struct amp_error *err)
{
    uint64_t n = 0;
    if (amp_store_outbox(a->store, a->outbox, count_fn, &n, err) < 0)
        return -1;
    return amp_fail(err, AMP_UNAVAILABLE, no_reader,
                    "%s has no reader: %" PRIu64 " %s in the outbox %s until the next run", a->spec,
                    n, n == 1 ? "line stays" : "lines stay", a->outbox);
}

int amp_acks_finish(struct amp_acks *a, struct amp_error *err)
{
    int64_t until = amp_mono_ms() + a->o->open_timeout_ms;
    struct amp_handover alone = {.o = a->o, .acks = a, .out = {.fd = -1}};
    if (amp_acks_turn(a, err) < 0)
        return -1;
    while (a->port && !*a->o->stop) {
        int64_t rest = until - amp_mono_ms();
        int rc = a->n_away == 0 ? amp_port_finish(a->port, err) : 0;
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        if (rest <= 0)
            break;
        if (amp_handover_wait(&alone, NULL, 0, rest < 50 ? rest : 50, err) < 0)
            return -1;
        if (a->n_away < AMP_ACKS_AWAY / 2 && amp_acks_turn(a, err) < 0)
            return -1;
    }
    return a->n_away == 0 || *a->o->stop ? 0 : missing_report(a, err);
}

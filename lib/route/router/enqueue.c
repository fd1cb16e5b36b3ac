/*
 * Into the inbox of an agent. The message stands in our outbox until all that the inbox needs is
 * committed behind it in the log; the answer that it was received is one commit with the delivery.
 */
#include "route/router/router.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/inbox/bell.h"
#include "message/inbox/inbox.h"
#include "message/ledger/stages.h"
#include "message/record/sequence.h"
#include "protocol/compose/answer.h"

struct admission {
    struct router *r;
    const struct amp_view *v;
    const char *actor;
    struct amp_answer say;
    struct amp_buf *line; /* as it leaves */
};

static int say_admitted(void *ctx, struct amp_buf *line, struct amp_error *err)
{
    struct admission *a = ctx;
    if (amp_sequence_answer(a->r->store, a->v, a->actor, &a->say, err) < 0 ||
        amp_answer_line(a->v, &a->say, line, err) < 0)
        return -1;
    line->len--; /* its LF */
    return amp_buf_add(a->line, line->data, line->len, err);
}

static int put(struct router *r, const struct job *j, struct amp_span agent, uint32_t port_index,
               struct amp_buf *answer, struct amp_store_entry_id *entry, struct amp_error *err)
{
    struct amp_view v;
    struct amp_check_options check = {0};
    char actor[ANSWERS_NAME_MAX], by[AMP_INBOX_AGENT_MAX + 1];
    int64_t now = amp_now_ms();
    struct amp_outlet *t = r->outlets[port_index];
    struct amp_inbox_options opt = {.bound = t->inbound == 0 || t->inbound > AMP_INBOX_BOUND_MAX
                                                 ? AMP_INBOX_BOUND_MAX
                                                 : t->inbound,
                                    .urgent = r->lane_rules.urgent_places,
                                    .lane = amp_lanes_admit(&t->lanes, j->lane, r->now_ms),
                                    .order = j->order,
                                    .credits = (uint32_t)r->credits,
                                    .actor = actor,
                                    .line = {j->line, j->n}};
    if (amp_reader_line(r->again, amp_route_job_whole(j), &check, &v, NULL, NULL, err) < 0)
        return -1;
    if (v.expires_ms == 0 || amp_terms_of(v.protocol)->expiry_is_wish)
        v.expires_ms = j->expires_ms;
    amp_keeper_answers_name(r, actor);
    /* Who waits for admission is told of it. */
    const struct amp_terms *terms = amp_terms_of(v.protocol);
    amp_span_copy(agent, by, sizeof(by));
    struct admission told = {
        .r = r,
        .v = &v,
        .actor = actor,
        .say = {.stage = AMP_STAGE_RECEIVED, .by = by, .node = r->consumer, .now_ms = now},
        .line = answer};
    struct amp_inbox_answer say = {say_admitted, &told};
    bool waits = terms->acknowledges && terms->waits_for == AMP_STAGE_RECEIVED &&
                 amp_stages_timeout(&v) > 0 && v.id.n > 0 && v.kind != AMP_KIND_ACK &&
                 v.kind != AMP_KIND_NACK;
    return amp_inbox_put(r->store, agent, &v, &opt, now, waits ? &say : NULL, entry, NULL, err);
}

void amp_enqueue(struct router *r, struct job *j, struct amp_span agent, uint32_t port_index)
{
    struct amp_error err = {0};
    struct amp_store_entry_id entry = {0};
    char port[AMP_INBOX_AGENT_MAX + 8];
    AMP_BUF struct amp_buf answer = {0};
    amp_buf_init(&answer, 1 << 20);
    snprintf(port, sizeof(port), "inbox:%.*s", (int)agent.n, agent.p);
    if (put(r, j, agent, port_index, &answer, &entry, &err) == 0) {
        r->delivered++;
        amp_route_count_placed(r, port, j);
        amp_route_count_job(r, AMP_METRIC_SENT, port, j);
        if (entry.n > 0)
            amp_keeper_answer(r, amp_buf_span(&answer), entry);
        amp_inbox_ring(amp_store_dir(r->store), agent);
    } else if (err.status != AMP_NO) {
        amp_route_break(r, &err);
    } else if (strcmp(err.code, "duplicate_msg_id") == 0) {
        amp_keeper_duplicate(r, j, &err);
    } else {
        amp_keeper_refuse(r, j, err.code, err.what, port, strcmp(err.code, "buffer_full") == 0);
    }
}

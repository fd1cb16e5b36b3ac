/* The checks of a message while it is in view. */
#include "message/route/admission/admission.h"

#include <stdlib.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/facts.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/record/record.h"
#include "message/delivery/sequences.h"
#include "message/delivery/settle/outcome.h"
#include "message/delivery/settle/rails.h"
#include "message/protocol/routing.h"
#include "message/route/address/worktree.h"
#include "message/route/admission/replayed.h"
#include "message/route/admission/streams.h"

struct amp_admission {
    struct amp_source_env env;
    struct amp_streams *streams; /* or NULL */
    struct amp_replayed *from;   /* reads the log before the input, or NULL */
};

static int parcel_look_again(void *ctx, struct parcel *j, struct amp_error *err)
{
    return amp_admission_look_again(ctx, j, err);
}

int amp_admission_new(const struct amp_source_env *env, struct amp_admission **out,
                      struct amp_error *err)
{
    struct amp_admission *a = calloc(1, sizeof(*a));
    if (!a)
        return amp_fail_memory(err);
    a->env = *env;
    a->env.look = parcel_look_again;
    a->env.look_ctx = a;
    *out = a;
    return 0;
}

int amp_admission_open(struct amp_admission *a, struct amp_error *err)
{
    return amp_streams_open(&a->env, &a->streams, err) < 0 ||
                   amp_replayed_open(&a->env, a->streams, &a->from, err) < 0
               ? -1
               : 0;
}

void amp_admission_free(struct amp_admission *a)
{
    if (!a)
        return;
    amp_replayed_close(a->from);
    amp_streams_close(a->streams);
    free(a);
}

/* ---- operations ----
 *
 * An operation is routed once, if its protocol says so. A repeated operation gets an answer
 * instead. A message that a tracker of the same state has passed is not checked again.
 * Acknowledgements and outcomes update the message that they answer, so a duplicate gets the
 * progress of the first attempt. An outcome from an agent that does not hold the work is refused
 * and not delivered. */

/* The result of a commit (rc, e) for an answer to another message. An answer to an unknown message,
 * or one that comes out of turn, is delivered too. */
static enum amp_admitted answer_admit(const struct amp_admission *a, const struct parcel *j,
                                      const struct amp_view *v, int rc, const struct amp_error *e,
                                      struct amp_error *err)
{
    if (rc != 0 && amp_rails_refused(e)) {
        const struct amp_route_run *run = a->env.run;
        AMP_BUF struct amp_buf line = {.max = 1 << 20};
        if (amp_keeper_denied(a->env.keeper, j, v, e, err) < 0 ||
            amp_rails_answer(run->store, v, e, run->name, amp_now_ms(), &line, err) < 0)
            return AMP_ADMIT_FAILED;
        if (line.len > 0)
            amp_keeper_answer(a->env.keeper, amp_buf_span(&line), (struct amp_store_entry_id){0});
        return AMP_ADMIT_DROP;
    }
    if (rc == 0 || e->status == AMP_NO)
        return AMP_ADMIT_GO;
    *err = *e;
    return AMP_ADMIT_FAILED;
}

static enum amp_admitted repetition_answer(const struct amp_admission *a, const struct amp_view *v,
                                           const struct amp_idem_answer *first,
                                           struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, (size_t)64 << 20);
    const struct amp_route_run *run = a->env.run;
    if (amp_idem_reply(run->store, v, first, run->name, amp_now_ms(), &line, err) < 0)
        return AMP_ADMIT_FAILED;
    amp_keeper_answer(a->env.keeper, amp_buf_span(&line), (struct amp_store_entry_id){0});
    return AMP_ADMIT_DROP;
}

static enum amp_admitted operation_claim(const struct amp_admission *a, const struct amp_view *v,
                                         struct amp_error *err)
{
    const struct amp_route_run *run = a->env.run;
    enum amp_admitted how = AMP_ADMIT_GO;
    struct amp_idem_answer first;
    struct amp_idem_options opt = {
        .now_ms = amp_now_ms(), .window_ms = a->env.window_ms, .actor = run->name};
    enum amp_store_outcome outcome;
    amp_idem_answer_init(&first);
    if (amp_idem_claim(run->store, v, &opt, &first, err) < 0)
        how = AMP_ADMIT_FAILED;
    else if (first.verdict >= AMP_IDEM_RUNNING)
        how = repetition_answer(a, v, &first, err);
    else if (amp_message_record(run->store, v, opt.now_ms, &outcome, err) < 0)
        how = AMP_ADMIT_FAILED;
    amp_idem_answer_release(&first);
    return how;
}

/* Whether the ledger has the message, so its operation was checked: 1, 0; -1 error. */
static int is_known(const struct amp_admission *a, const struct amp_view *v, struct amp_error *err)
{
    struct amp_store_rec rec;
    if (v->id.n == 0)
        return 0;
    return amp_store_get(a->env.run->store, AMP_KEY(AMP_MESSAGE_KIND, v->id), &rec, err) < 0
               ? -1
               : rec.found || rec.forgotten;
}

static enum amp_admitted operation_admit(const struct amp_admission *a, const struct parcel *j,
                                         const struct amp_view *v, struct amp_error *err)
{
    struct amp_store *store = a->env.run->store;
    struct amp_error e = {0};
    bool answers = v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK;
    const struct amp_routing_terms *terms = amp_routing_of(v->protocol);
    bool once = terms->routes_once && terms->routes_once(v);
    if (!store)
        return AMP_ADMIT_GO;
    if (answers && terms->acks_update_ledger)
        return answer_admit(a, j, v, amp_message_acknowledge(store, v, amp_now_ms(), &e), &e, err);
    /* Of the others only outcomes matter here; an inbox recorded their work. */
    if (!once && (terms->routes_once || !amp_outcome_is(v)))
        return AMP_ADMIT_GO;
    int known = is_known(a, v, err);
    if (known != 0)
        return known < 0 ? AMP_ADMIT_FAILED : AMP_ADMIT_GO;
    if (once) {
        /* The check comes before the record. */
        if (amp_outcome_check(store, v, &e) < 0)
            return answer_admit(a, j, v, -1, &e, err);
        enum amp_admitted how = operation_claim(a, v, &e);
        if (how != AMP_ADMIT_GO)
            return how == AMP_ADMIT_FAILED ? answer_admit(a, j, v, -1, &e, err) : how;
    }
    return answer_admit(a, j, v, amp_rails_apply(store, v, amp_now_ms(), &e), &e, err);
}

enum amp_admitted amp_admission_admit(struct amp_admission *a, struct parcel *j,
                                      const struct amp_view *v, struct amp_error *err)
{
    enum amp_admitted how = operation_admit(a, j, v, err);
    if (how == AMP_ADMIT_GO && amp_streams_admit(a->streams, j, v, err) < 0)
        how = AMP_ADMIT_FAILED;
    return how;
}

/* ---- checks of every message ---- */

/* Refuses new work of a suspended task. */
static int suspension_look(const struct amp_admission *a, struct parcel *j,
                           const struct amp_view *v, struct amp_error *err)
{
    const struct amp_message_facts *facts =
        a->env.run->store ? amp_store_facts(a->env.run->store) : NULL;
    char why[AMP_FACTS_WHY];
    if (!facts || !amp_parcel_is_work(v))
        return 0;
    int rc = facts->waits(a->env.run->store, v->task, NULL, why, err);
    if (rc == 1)
        amp_parcel_refuse(j, AMP_CODE(suspended), "its task is suspended until the admin decides",
                          "", true);
    return rc < 0 ? -1 : 0;
}

/* Refuses a call of a tool that needs a worktree, if the caller has none. */
static int worktree_look(const struct amp_admission *a, struct parcel *j, const struct amp_view *v,
                         struct amp_error *err)
{
    int lacks = a->env.run->store && v->kind == AMP_KIND_TOOL_CALL
                    ? amp_worktree_caller_lacks(a->env.run->store, v, err)
                    : 0;
    if (lacks == 1)
        amp_parcel_refuse(j, AMP_NOT_BOUND,
                          "the tool needs a worktree, and its caller is not bound to one", "",
                          true);
    return lacks < 0 ? -1 : 0;
}

/* Refuses an expired message. Work that comes after its deadline is refused by whom it is for. */
static void expiry_look(struct parcel *j, const struct amp_view *v)
{
    int64_t now = amp_now_ms();
    j->expires_ms = amp_message_expiry(v, now);
    if (j->expires_ms <= 0 || j->expires_ms > now)
        return;
    if (v->expires_ms > 0 && v->expires_ms <= now)
        amp_parcel_refuse(j, amp_parcel_expired_code(j), "its time to live has passed", "", false);
    else
        j->expires_ms = v->expires_ms;
}

int amp_admission_look(struct amp_admission *a, struct parcel *j, const struct amp_view *v,
                       struct amp_error *err)
{
    amp_outlets_look(a->env.outlets, j, v);
    if (suspension_look(a, j, v, err) < 0 || worktree_look(a, j, v, err) < 0)
        return -1;
    expiry_look(j, v);
    j->lane = amp_lane_of(a->env.lanes, v);
    j->order = amp_lane_key_of(amp_sequence_key(v));
    amp_rules_match(a->env.rules, j, v);
    return amp_addressing_look(a->env.addressing, j, v, err);
}

int amp_admission_look_again(struct amp_admission *a, struct parcel *j, struct amp_error *err)
{
    struct amp_view v;
    struct amp_check_options opt = {0};
    struct amp_span line = {j->line, j->n};
    if (amp_reader_line(a->env.run->reader, line, &opt, &v, NULL, NULL, err) < 0 ||
        amp_parcel_fill(j, line, &v, err) < 0)
        return -1;
    return amp_admission_look(a, j, &v, err);
}

int amp_admission_record(struct amp_admission *a, struct parcel **batch, uint32_t *n,
                         struct amp_error *err)
{
    return amp_streams_record(a->streams, batch, n, err);
}

/* ---- streams and the log ---- */

int amp_admission_turn(struct amp_admission *a, bool room, struct amp_error *err)
{
    return amp_streams_turn(a->streams, err) < 0 ? -1 : amp_replayed_step(a->from, room, err);
}

bool amp_admission_reads(const struct amp_admission *a)
{
    return amp_replayed_reads(a->from);
}

void amp_admission_watch(const struct amp_admission *a, bool room, int *timeout_ms)
{
    if (room && amp_replayed_reads(a->from))
        *timeout_ms = 0;
    amp_streams_watch(a->streams, timeout_ms);
}

void amp_admission_measure(const struct amp_admission *a)
{
    amp_streams_measure(a->streams);
}

void amp_admission_say(const struct amp_admission *a)
{
    amp_streams_say(a->streams);
}

/*
 * Durability. With a state directory a message is committed to the outbox and synced before a port
 * gets it; its entry is closed after every port has reported its outcome. When a router ends, the
 * next router of its name delivers the open entries. A refused message becomes a dead letter in one
 * commit with the answer to its sender; the answer is written after the sync, then its entry is
 * closed. Without a state directory there are only answers.
 */
#include "message/route/keeper/keeper.h"
#include "message/delivery/history/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/facts.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/ledger/refused.h"
#include "message/delivery/outbox.h"
#include "message/delivery/record/record.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/sender/head.h"
#include "message/protocol/answers.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/delivery.h"
#include "message/protocol/work.h"
#include "message/route/count.h"
#include "message/route/record.h"

#define SIGNATURE_MOST 16384
#define ANSWERS        ".answers" /* suffix of the outbox of the answers */

struct amp_keeper {
    struct amp_route_run *run;
    struct amp_parcels *parcels;
    struct amp_outlets *outlets;
    int lock; /* of the router's name; -1 none */
    struct closing {
        struct amp_store_entry_id v[AMP_ROUTE_BATCH_MAX];
        uint32_t n;
    } closing[2];                                /* settled messages, written answers */
    struct parcel *answers[AMP_ROUTE_BATCH_MAX]; /* committed, not yet synced */
    uint32_t n_answers;
};

void amp_keeper_answers_name(const struct amp_route_run *run, char out[ANSWERS_NAME_MAX])
{
    snprintf(out, ANSWERS_NAME_MAX, "%.128s" ANSWERS, run->name);
}

int amp_keeper_new(struct amp_route_run *run, struct amp_parcels *parcels,
                   struct amp_outlets *outlets, struct amp_keeper **out, struct amp_error *err)
{
    struct amp_keeper *k = calloc(1, sizeof(*k));
    if (!k)
        return amp_fail_memory(err);
    k->run = run;
    k->parcels = parcels;
    k->outlets = outlets;
    k->lock = -1;
    *out = k;
    return 0;
}

int amp_keeper_open(struct amp_keeper *k, const char *dir, struct amp_store_options opening,
                    struct amp_error *err)
{
    struct amp_route_run *run = k->run;
    opening.names = amp_history_names;
    opening.sign_head = amp_head_sign;
    if (!amp_id_is_safe(amp_span_str(run->name)))
        return amp_fail(err, AMP_USAGE, bad_name, "--as takes letters, digits, '.', '_' and '-'");
    if (amp_store_open(dir, &opening, &run->store, err) < 0)
        return -1;
    if (run->dry)
        return 0;
    /* Two routers of one name would deliver the same open entries. */
    return amp_outbox_lock(run->store, run->name,
                           opening.lock_timeout_ms < 0 ? 0 : opening.lock_timeout_ms, &k->lock,
                           err);
}

void amp_keeper_free(struct amp_keeper *k)
{
    if (!k)
        return;
    amp_store_close(k->run->store);
    k->run->store = NULL;
    if (k->lock >= 0)
        close(k->lock);
    free(k);
}

bool amp_keeper_waits(const struct amp_keeper *k)
{
    return k->n_answers > 0;
}

/* ---- recording ---- */

/* The first recipient with an outbox entry; only recipients of a group have entries. */
static struct parcel *group_first(const struct parcel *j)
{
    return j->address.is_group ? j->address.kids : NULL;
}

/* Makes the outbox entries of the parcels; the caller frees *out. */
static int emits_make(struct parcel *const *parcels, uint32_t n, struct amp_store_emit **out,
                      uint32_t *n_out, struct amp_error *err)
{
    uint32_t most = n, at = 0;
    for (uint32_t i = 0; i < n; i++)
        most += parcels[i]->address.n;
    struct amp_store_emit *emits = *out = calloc(most, sizeof(*emits));
    if (!emits)
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        const struct parcel *j = parcels[i];
        emits[at++] = (struct amp_store_emit){.id = amp_span_str(j->id),
                                              .line = {j->line, j->n},
                                              .role = j->address.is_group ? AMP_ROLE_group
                                                                          : AMP_ROLE_message};
        for (const struct parcel *kid = group_first(j); kid; kid = kid->next)
            emits[at++] = (struct amp_store_emit){.id = amp_span_str(kid->address.name),
                                                  .line = AMP_SPAN("{}"),
                                                  .role = AMP_ROLE_recipient};
    }
    *n_out = at;
    return 0;
}

int amp_keeper_commit(struct parcel *const *parcels, uint32_t n, amp_keeper_commit_fn *fn,
                      void *ctx, struct amp_error *err)
{
    AMP_FREE struct amp_store_emit *emits = NULL;
    struct amp_store_entry_id at = {0};
    uint32_t n_emits = 0;
    if (emits_make(parcels, n, &emits, &n_emits, err) < 0 || fn(ctx, emits, n_emits, &at, err) < 0)
        return -1;
    for (uint32_t i = 0; i < n && at.n > 0; i++) {
        parcels[i]->entry = at;
        at.index++;
        for (struct parcel *kid = group_first(parcels[i]); kid; kid = kid->next, at.index++)
            kid->entry = at;
    }
    return 0;
}

static int record_fn(void *ctx, const struct amp_store_emit *emits, uint32_t n,
                     struct amp_store_entry_id *at, struct amp_error *err)
{
    const struct amp_route_run *run = ctx;
    enum amp_store_outcome how;
    const struct amp_route_commit c = {
        .event = "record", .actor = run->name, .emits = emits, .n_emits = n};
    if (amp_route_record(run, &c, &how, err) < 0)
        return -1;
    at->n = amp_store_last_frame(run->store);
    return 0;
}

int amp_keeper_record(struct amp_keeper *k, struct parcel *const *parcels, uint32_t n,
                      struct amp_error *err)
{
    struct parcel *open[AMP_ROUTE_BATCH_MAX]; /* parcels that no cursor has recorded */
    uint32_t n_open = 0;
    if (!k->run->store || n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (parcels[i]->entry.n == 0)
            open[n_open++] = parcels[i];
    if (n_open > 0 && amp_keeper_commit(open, n_open, record_fn, k->run, err) < 0)
        return -1;
    return amp_store_sync(k->run->store, err);
}

static void entries_close(struct amp_keeper *k, bool answers)
{
    struct amp_route_run *run = k->run;
    struct closing *c = &k->closing[answers];
    char name[ANSWERS_NAME_MAX];
    struct amp_error err;
    amp_keeper_answers_name(run, name);
    if (c->n > 0 &&
        amp_store_outbox_close(run->store, answers ? name : run->name, c->v, c->n, &err) < 0)
        amp_route_break(run, &err);
    c->n = 0;
}

void amp_keeper_settled(struct amp_keeper *k, const struct parcel *j)
{
    if (!k->run->store || j->entry.n == 0)
        return;
    struct closing *c = &k->closing[j->answer];
    if (c->n == AMP_ROUTE_BATCH_MAX)
        entries_close(k, j->answer);
    c->v[c->n++] = j->entry;
}

/* ---- answers ---- */

static struct parcel *answer_new(struct amp_keeper *k, struct amp_span line)
{
    struct amp_error err;
    AMP_BUF struct amp_buf whole = {0};
    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    amp_buf_init(&whole, line.n + SIGNATURE_MOST);
    if (k->run->store && k->run->voice->sign) {
        if (k->run->voice->sign(line, &whole, &err) < 0) {
            amp_route_break(k->run, &err);
            return NULL;
        }
        line = amp_buf_span(&whole);
    }
    struct parcel *a = amp_parcel_new(k->parcels, line, NULL);
    if (a)
        a->answer = true;
    return a;
}

static void answer_send(struct amp_keeper *k, struct parcel *a)
{
    struct amp_error err;
    a->waiting = 1;
    if (amp_outlets_answer(k->outlets, a, &err) == 0)
        return;
    k->run->voice->complain(&err);
    k->run->voice->status(AMP_UNAVAILABLE);
    amp_parcel_free(a);
}

static void answers_flush(struct amp_keeper *k)
{
    struct amp_error err;
    if (k->n_answers == 0)
        return;
    if (amp_store_sync(k->run->store, &err) < 0) {
        amp_route_break(k->run, &err);
        return;
    }
    for (uint32_t i = 0; i < k->n_answers; i++)
        answer_send(k, k->answers[i]);
    k->n_answers = 0;
}

void amp_keeper_say(struct amp_keeper *k, struct amp_span line)
{
    struct parcel *a = answer_new(k, line);
    if (a)
        answer_send(k, a);
}

void amp_keeper_answer(struct amp_keeper *k, struct amp_span line, struct amp_store_entry_id entry)
{
    struct parcel *a = answer_new(k, line);
    if (!a)
        return; /* it stays in the outbox */
    a->entry = entry;
    if (k->n_answers == AMP_ROUTE_BATCH_MAX)
        answers_flush(k);
    if (k->n_answers == AMP_ROUTE_BATCH_MAX) {
        /* The sync failed: the router ends, and the answer stays in the outbox. */
        amp_parcel_free(a);
        return;
    }
    k->answers[k->n_answers++] = a;
}

/* ---- refusing ---- */

static const struct parcel_summary *summary_of(const struct parcel *j)
{
    return j->address.of ? &j->address.of->summary : &j->summary;
}

/* Fills the view from the parcel's summary, or by parsing a message without one. */
static int parcel_view(const struct amp_keeper *k, const struct parcel *j, struct amp_view *v,
                       struct amp_error *err)
{
    struct amp_check_options opt = {0};
    if (amp_parcel_view(j, v))
        return 0;
    return amp_reader_line(k->run->reader, amp_parcel_whole(j), &opt, v, NULL, NULL, err) < 0 ? -1
                                                                                              : 0;
}

/* The failure of a message. */
struct failure {
    const char *code, *why, *route;
    bool retryable;
};

static int letter_add(const struct amp_keeper *k, const struct parcel *j, const struct amp_view *v,
                      const struct failure *f, struct amp_span answer,
                      struct amp_store_entry_id *entry, struct amp_error *err)
{
    struct amp_dead_letter d = {.code = f->code,
                                .why = f->why,
                                .route = f->route,
                                .retryable = f->retryable,
                                .failed_ms = amp_now_ms()};
    char actor[ANSWERS_NAME_MAX];
    struct amp_span tried = amp_span_str(j->tried ? j->tried : f->route);
    amp_dead_from_view(&d, v);
    if (d.created_ms <= 0 && j->came_ms > 0)
        d.created_ms = d.failed_ms - (amp_mono_ms() - j->came_ms);
    d.lane = amp_lane_name(j->lane);
    d.tried = &tried;
    d.n_tried = tried.n > 0;
    d.line = amp_parcel_whole(j);
    if (summary_of(j)->known)
        d.excerpt = summary_of(j)->excerpt;
    amp_keeper_answers_name(k->run, actor);
    answer.n -= answer.n > 0; /* its LF */
    return amp_dead_add(k->run->store, &d, actor, answer, entry, err);
}

/* The answer is in the sender's protocol, if it has an answer for this. */
static int answer_compose(const struct amp_route_run *run, const struct parcel *j,
                          const struct amp_view *v, const struct failure *f, const char *note,
                          struct amp_buf *out, struct amp_error *err)
{
    const struct amp_answer_terms *answers = amp_answers_of(v->protocol);
    const struct amp_delivery_terms *delivery = amp_delivery_of(v->protocol);
    bool own = answers->answer != amp_terms_record && (!answers->answers || answers->answers(v));
    bool expired = amp_code_is(f->code, ttl_expired) && delivery->expiry_fails;
    struct amp_answer a = {.stage = expired ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED,
                           .by = own ? run->name : "system",
                           .code = f->code,
                           .note = note,
                           .rule = "route",
                           .retryable = f->retryable,
                           .node = run->name,
                           .now_ms = amp_now_ms(),
                           .repeats = summary_of(j)->known ? summary_of(j)->repeats : NULL};
    char name[AMP_MSG_ID_MAX];
    struct amp_view named = *v;
    amp_message_name(&named, name);
    return amp_sequence_answer(run->store, v, a.by, &a, err) < 0
               ? -1
               : amp_answer_line(&named, &a, out, err);
}

static void parcel_fail(struct amp_keeper *k, const struct parcel *j, const struct failure *f,
                        bool answer)
{
    struct amp_route_run *run = k->run;
    struct amp_view v;
    struct amp_error err = {0};
    AMP_BUF struct amp_buf nack = {0};
    char note[512];
    amp_buf_init(&nack, 1 << 20);
    if (parcel_view(k, j, &v, &err) < 0) {
        amp_route_break(run, &err);
        return;
    }
    /* One turn at the store, so that a sequence number is used by the answer that took it. */
    struct amp_store_entry_id entry = {0};
    bool turn = run->store && amp_store_begin(run->store, NULL) == 0;
    if (answer && v.kind != AMP_KIND_ACK && v.kind != AMP_KIND_NACK) {
        snprintf(note, sizeof(note), "%.400s%s", f->why,
                 run->store ? "; kept in the dead letters" : "; not kept: no state directory");
        if (answer_compose(run, j, &v, f, note, &nack, &err) < 0) {
            run->voice->complain(&err);
            run->voice->status(err.status);
        }
    }
    int rc = 0;
    if (run->store)
        rc = letter_add(k, j, &v, f, amp_buf_span(&nack), &entry, &err);
    if (turn)
        amp_store_end(run->store);
    if (rc < 0)
        amp_route_break(run, &err);
    else if (nack.len > 0 && run->store)
        amp_keeper_answer(k, amp_buf_span(&nack), entry);
    else if (nack.len > 0)
        amp_keeper_say(k, amp_buf_span(&nack));
}

void amp_keeper_refuse(struct amp_keeper *k, const struct parcel *j, const char *code,
                       const char *why, const char *route, bool retryable)
{
    k->run->voice->refused(code, 1);
    amp_route_count_code(k->run, AMP_METRIC_REJECTS, route, j, code);
    amp_route_count_code(k->run, AMP_METRIC_NACKS, route, j, code);
    parcel_fail(k, j, &(struct failure){code, why, route, retryable}, true);
}

void amp_keeper_dead(struct amp_keeper *k, const struct parcel *j, const char *code,
                     const char *why, const char *route)
{
    parcel_fail(k, j, &(struct failure){code, why, route, false}, false);
}

/* ---- the error log ---- */

/* f has the severity, code and message, and the field if there is one. */
static void finding_log(struct amp_keeper *k, const struct parcel *j, struct amp_finding f)
{
    struct amp_route_run *run = k->run;
    struct amp_view v;
    struct amp_error err = {0};
    struct amp_line_place at = {.tool = "amp-route", .now_ms = amp_now_ms()};
    AMP_BUF struct amp_buf record = {0};
    amp_buf_init(&record, 1 << 16);
    if (!run->store)
        return;
    if (parcel_view(k, j, &v, &err) < 0) {
        amp_route_break(run, &err);
        return;
    }
    f.protocol = v.protocol;
    f.type = v.type;
    f.id = v.id;
    f.rule = f.code;
    f.found = f.expected = "";
    f.field = f.field ? f.field : "";
    f.pointer = f.pointer ? f.pointer : "";
    if (amp_finding_record(&f, &at, &record, &err) < 0 ||
        amp_store_error_log(run->store, amp_buf_span(&record), &err) < 0)
        amp_route_break(run, &err);
}

void amp_keeper_duplicate(struct amp_keeper *k, const struct parcel *j, const struct amp_error *why)
{
    struct amp_finding f = {.severity = AMP_SEV_ERROR,
                            .code = why->code,
                            .field = "msg_id",
                            .pointer = "/msg_id",
                            .message = why->what};
    k->run->voice->warn("%s: %s", j->id, why->what);
    k->run->voice->status(AMP_NO);
    finding_log(k, j, f);
}

int amp_keeper_denied(struct amp_keeper *k, const struct parcel *j, const struct amp_view *v,
                      const struct amp_error *why, struct amp_error *err)
{
    struct amp_route_run *run = k->run;
    struct amp_finding f = {.severity = AMP_SEV_ERROR, .code = why->code, .message = why->what};
    run->voice->warn("%s: %s: %s", j->id, why->code, why->what);
    run->voice->status(AMP_NO);
    amp_route_count_code(run, AMP_METRIC_REJECTS, "", j, why->code);
    finding_log(k, j, f);
    return amp_refused_record(run->store, v, why, run->name, amp_now_ms(), err);
}

void amp_keeper_unsigned(struct amp_keeper *k, const struct parcel *j, const char *port)
{
    char what[300];
    struct amp_finding f = {
        .severity = AMP_SEV_WARNING, .code = AMP_CODE(unsigned), .message = what};
    snprintf(what, sizeof(what), "is sent unsigned through %.200s (--allow-unsigned)", port);
    k->run->voice->warn("%s: %s", j->id, what);
    finding_log(k, j, f);
}

/* A capability without a route, again and again, is a case for a review. */
static void route_report(struct amp_keeper *k, const struct parcel *j, const char *code)
{
    const struct amp_message_facts *facts = k->run->store ? amp_store_facts(k->run->store) : NULL;
    struct amp_error err;
    if (!facts || !facts->ended || !amp_work_of(j->protocol)->reviews ||
        (!amp_code_is(code, capability_unavailable) && !amp_code_is(code, no_route)))
        return;
    const struct amp_work_end e = {.request = amp_parcel_whole(j),
                                   .failure = AMP_CODE(capability_unavailable),
                                   .route = true,
                                   .actor = k->run->name,
                                   .now_ms = amp_now_ms()};
    if (facts->ended(k->run->store, &e, &err) < 0)
        amp_route_break(k->run, &err);
}

void amp_keeper_unaddressed(struct amp_keeper *k, const struct parcel *j)
{
    const struct no_recipient *n = j->address.no_recipient;
    struct amp_finding f = {.severity = AMP_SEV_ERROR,
                            .code = n->why.code,
                            .message = n->why.what,
                            .seed_code = n->seed_code};
    finding_log(k, j, f);
    route_report(k, j, n->why.code);
    amp_keeper_refuse(k, j, n->why.code, n->why.what, "agents", n->retryable);
}

/* ---- open entries of an earlier run ---- */

struct found {
    struct parcel **v;
    uint32_t n;
    size_t cap;
    struct amp_parcels *parcels;
    bool answer;
};

static int found_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct found *f = ctx;
    struct parcel *before = f->n > 0 ? f->v[f->n - 1] : NULL;
    if (e->role == AMP_ROLE_recipient) {
        if (!before || !before->address.is_group || before->entry.n != e->n)
            return 0;
        struct amp_store_entry_id entry = {.n = e->n, .index = e->index};
        return amp_parcel_add_recipient(before, e->id, entry, err);
    }
    if (amp_grow(&f->v, &f->cap, f->n, sizeof *f->v, err) < 0)
        return -1;
    struct parcel *j = amp_parcel_new(f->parcels, e->line, NULL);
    if (!j)
        return amp_fail_memory(err);
    j->entry = (struct amp_store_entry_id){.n = e->n, .index = e->index};
    j->answer = f->answer;
    f->v[f->n++] = j;
    j->address.is_group = e->role == AMP_ROLE_group;
    return 0;
}

static int outbox_restore(struct amp_keeper *k, bool answers,
                          int (*again)(void *ctx, struct parcel *j, struct amp_error *err),
                          void *ctx, struct amp_error *err)
{
    const struct amp_route_run *run = k->run;
    struct found f = {.parcels = k->parcels, .answer = answers};
    char name[ANSWERS_NAME_MAX];
    uint32_t i = 0;
    amp_keeper_answers_name(run, name);
    int rc = amp_store_outbox(run->store, answers ? name : run->name, found_fn, &f, err);
    if (f.n > 0 && !answers)
        run->voice->note("%u %s of an earlier run %s delivered again", f.n,
                         f.n == 1 ? "message" : "messages", f.n == 1 ? "is" : "are");
    for (; i < f.n && rc == 0; i++)
        if (answers)
            answer_send(k, f.v[i]);
        else if ((rc = again(ctx, f.v[i], err)) < 0)
            break;
    for (; i < f.n; i++)
        amp_parcel_free(f.v[i]);
    free(f.v);
    return rc;
}

int amp_keeper_restore(struct amp_keeper *k,
                       int (*again)(void *ctx, struct parcel *j, struct amp_error *err), void *ctx,
                       struct amp_error *err)
{
    if (outbox_restore(k, true, again, ctx, err) < 0 ||
        outbox_restore(k, false, again, ctx, err) < 0)
        return -1;
    return amp_store_sync(k->run->store, err);
}

void amp_keeper_turn(struct amp_keeper *k)
{
    if (!k->run->store || k->run->broken)
        return;
    answers_flush(k);
    entries_close(k, false);
    entries_close(k, true);
}

/*
 * The durable side. With a state directory a message is committed to the outbox and synced before
 * any port sees it, and its entry is closed only when every port told its outcome; what is open
 * when a router ends, however it ends, is delivered by the next one of that name. A refused message
 * becomes a dead letter, committed together with the answer to its sender; the answer leaves after
 * the sync and its entry closes when it was written.
 */
#include "route/router/router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "flow/outbox.h"
#include "message/dead/dead.h"
#include "message/ledger/ledger.h"
#include "message/ledger/refused.h"
#include "message/record/named.h"
#include "message/record/sequence.h"
#include "protocol/compose/answer.h"
#include "protocol/terms.h"

#define ANSWERS ".answers" /* the outbox of our answers is the consumer's with this behind it */

struct amp_keeper {
    int lock; /* of the router's name; -1 none */
    struct closing {
        struct amp_store_entry_id v[BATCH_MAX];
        uint32_t n;
    } closing[2];                   /* settled messages, written answers */
    struct job *answers[BATCH_MAX]; /* committed, not yet synced */
    uint32_t n_answers;
};

void amp_keeper_answers_name(const struct router *r, char out[ANSWERS_NAME_MAX])
{
    snprintf(out, 160, "%.128s" ANSWERS, r->consumer);
}

int amp_keeper_open(struct router *r, const char *dir, int64_t lock_timeout_ms,
                    struct amp_error *err)
{
    struct amp_store_options opt = {.lock_timeout_ms = lock_timeout_ms, .actor = "amp-route"};
    if (!amp_id_is_safe(amp_span_str(r->consumer)))
        return amp_fail(err, AMP_USAGE, "bad_name", "--as takes letters, digits, '.', '_' and '-'");
    if (!(r->keeper = calloc(1, sizeof(*r->keeper))))
        return amp_fail_memory(err);
    r->keeper->lock = -1;
    if (amp_store_open(dir, &opt, &r->store, err) < 0)
        return -1;
    if (r->dry)
        return 0;
    /* The open entries of another router of this name would be delivered twice. */
    return amp_outbox_lock(r->store, r->consumer, lock_timeout_ms < 0 ? 0 : lock_timeout_ms,
                           &r->keeper->lock, err);
}

void amp_keeper_close(struct router *r)
{
    amp_store_close(r->store);
    r->store = NULL;
    if (r->keeper && r->keeper->lock >= 0)
        close(r->keeper->lock);
    free(r->keeper);
    r->keeper = NULL;
}

bool amp_keeper_waits(const struct router *r)
{
    return r->keeper && r->keeper->n_answers > 0;
}

/* ---- recording ---- */

struct recording {
    struct job *const *jobs;
    uint32_t n;
    const char *actor;
    struct amp_store_emit *emits;
    uint32_t n_emits;
    struct amp_buf names; /* of recipients */
    char json[AMP_KEEPER_BATCH_MAX];
};

/* Control records have none; one that is too long for a key need not be found by it. */
static struct amp_span entry_id(const struct job *j)
{
    struct amp_span id = amp_span_str(j->address.mark ? j->address.mark : j->id);
    size_t n = j->address.mark ? id.n - 1 : id.n;
    if (n > 0 && n <= 900 && !memchr(id.p, '\n', n))
        return id;
    return j->address.mark ? AMP_SPAN("unnamed\n") : AMP_SPAN("unnamed");
}

/* A recipient's: its name behind a LF. */
static struct amp_span kid_id(struct recording *rec, const struct job *kid)
{
    size_t at = rec->names.len, n = strlen(kid->address.name);
    if (amp_buf_add(&rec->names, "\n", 1, NULL) < 0 ||
        amp_buf_add(&rec->names, kid->address.name, n, NULL) < 0)
        return (struct amp_span){NULL, 0}; /* cannot be: there is room for all of them */
    return (struct amp_span){rec->names.data + at, n + 1};
}

void amp_keeper_batch(const struct amp_store_rec *now, struct amp_store_change *change,
                      char json[AMP_KEEPER_BATCH_MAX], const struct amp_store_emit *emits,
                      uint32_t n)
{
    snprintf(json, AMP_KEEPER_BATCH_MAX, "{\"batches\":%llu}", (unsigned long long)now->rev + 1);
    change->to = "OPEN";
    change->json = amp_span_str(json);
    change->emits = emits;
    change->n_emits = n;
}

static int record_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct recording *rec = ctx;
    (void)err;
    amp_keeper_batch(now, change, rec->json, rec->emits, rec->n_emits);
    change->actor = rec->actor;
    change->event = "record";
    return 0;
}

static void release(struct recording *rec)
{
    free(rec->emits);
    amp_buf_release(&rec->names);
}

/* What the jobs leave in the outbox. */
static int emits_of(struct recording *rec, struct amp_error *err)
{
    size_t names = 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < rec->n; i++, n++)
        for (const struct job *kid = rec->jobs[i]->address.kids; kid; kid = kid->next, n++)
            names += strlen(kid->address.name) + 1;
    amp_buf_init(&rec->names, names + 1);
    rec->emits = calloc(n, sizeof(*rec->emits));
    if (!rec->emits || amp_buf_reserve(&rec->names, names, NULL) < 0)
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < rec->n; i++) {
        const struct job *j = rec->jobs[i];
        rec->emits[rec->n_emits++] =
            (struct amp_store_emit){.id = entry_id(j), .line = {j->line, j->n}};
        for (const struct job *kid = j->address.mark ? j->address.kids : NULL; kid; kid = kid->next)
            rec->emits[rec->n_emits++] =
                (struct amp_store_emit){.id = kid_id(rec, kid), .line = AMP_SPAN("{}")};
    }
    return 0;
}

static void entries_of(const struct recording *rec, struct amp_store_entry_id at)
{
    for (uint32_t i = 0; i < rec->n; i++) {
        struct job *j = rec->jobs[i];
        j->entry = at;
        at.index++;
        for (struct job *kid = j->address.mark ? j->address.kids : NULL; kid;
             kid = kid->next, at.index++)
            kid->entry = at;
    }
}

static int record(struct router *r, struct recording *rec, struct amp_error *err)
{
    enum amp_store_outcome how;
    if (emits_of(rec, err) < 0 ||
        amp_store_update(r->store, AMP_ROUTE_KIND, amp_span_str(r->consumer), NULL, record_fn, rec,
                         &how, err) < 0)
        return -1;
    entries_of(rec, (struct amp_store_entry_id){.n = amp_store_last_frame(r->store)});
    return 0;
}

int amp_keeper_record(struct router *r, struct job *const *jobs, uint32_t n, struct amp_error *err)
{
    struct job *open[BATCH_MAX]; /* what no cursor has recorded */
    struct recording rec = {.jobs = open, .actor = r->consumer};
    int rc = 0;
    if (!r->store || n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (jobs[i]->entry.n == 0)
            open[rec.n++] = jobs[i];
    if (rec.n > 0) {
        rc = record(r, &rec, err);
        release(&rec);
    }
    return rc < 0 ? -1 : amp_store_sync(r->store, err);
}

int amp_keeper_commit(struct job *const *jobs, uint32_t n, amp_keeper_commit_fn *fn, void *ctx,
                      struct amp_error *err)
{
    struct recording rec = {.jobs = jobs, .n = n};
    struct amp_store_entry_id at = {0};
    int rc = emits_of(&rec, err);
    if (rc == 0)
        rc = fn(ctx, rec.emits, rec.n_emits, &at, err);
    if (rc == 0 && at.n > 0)
        entries_of(&rec, at);
    release(&rec);
    return rc;
}

static void close_entries(struct router *r, bool answers)
{
    struct closing *c = &r->keeper->closing[answers];
    char name[160];
    struct amp_error err;
    amp_keeper_answers_name(r, name);
    if (c->n > 0 &&
        amp_store_outbox_close(r->store, answers ? name : r->consumer, c->v, c->n, &err) < 0)
        amp_route_break(r, &err);
    c->n = 0;
}

void amp_keeper_settled(struct router *r, const struct job *j)
{
    if (!r->store || j->entry.n == 0)
        return;
    struct closing *c = &r->keeper->closing[j->answer];
    if (c->n == BATCH_MAX)
        close_entries(r, j->answer);
    c->v[c->n++] = j->entry;
}

/* ---- refusing ---- */

/* Parses only what came without being looked at closely, or whose answer needs the document. */
static int view_of(struct router *r, const struct job *j, struct amp_view *v, struct amp_error *err)
{
    struct amp_check_options opt = {0};
    if (!amp_terms_of(j->protocol)->answer_reads_document && amp_route_job_view(j, v))
        return 0;
    return amp_reader_line(r->again, amp_route_job_whole(j), &opt, v, NULL, NULL, err) < 0 ? -1 : 0;
}

static struct job *answer_job(struct router *r, struct amp_span line)
{
    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    struct job *a = amp_route_job_new(r, line, NULL);
    if (a)
        a->answer = true;
    return a;
}

void amp_keeper_send(struct router *r, struct job *a)
{
    struct amp_error err;
    a->waiting = 1;
    if (amp_port_offer(r->outlets[0]->port, (struct amp_span){"", 0},
                       (struct amp_span){a->line, a->n}, (uintptr_t)a, &err) == 0)
        return;
    r->voice->complain(&err);
    r->voice->status(AMP_UNAVAILABLE);
    amp_route_job_free(r, a);
}

static void flush_answers(struct router *r)
{
    struct amp_error err;
    if (r->keeper->n_answers == 0)
        return;
    if (amp_store_sync(r->store, &err) < 0) {
        amp_route_break(r, &err);
        return;
    }
    for (uint32_t i = 0; i < r->keeper->n_answers; i++)
        amp_keeper_send(r, r->keeper->answers[i]);
    r->keeper->n_answers = 0;
}

void amp_keeper_say(struct router *r, struct amp_span line)
{
    struct job *a = answer_job(r, line);
    if (a)
        amp_keeper_send(r, a);
}

void amp_keeper_answer(struct router *r, struct amp_span line, struct amp_store_entry_id entry)
{
    struct job *a = answer_job(r, line);
    if (!a)
        return; /* it stays in the outbox */
    a->entry = entry;
    if (r->keeper->n_answers == BATCH_MAX)
        flush_answers(r);
    r->keeper->answers[r->keeper->n_answers++] = a;
}

static int keep(struct router *r, struct job *j, const struct amp_view *v, const char *code,
                const char *why, const char *route, bool retryable, struct amp_span answer,
                struct amp_store_entry_id *entry, struct amp_error *err)
{
    struct amp_dead_letter d = {.code = code,
                                .why = why,
                                .route = route,
                                .retryable = retryable,
                                .failed_ms = amp_now_ms()};
    char actor[ANSWERS_NAME_MAX];
    amp_dead_from_view(&d, v);
    struct amp_span tried = amp_span_str(j->tried ? j->tried->spec : route);
    d.lane = amp_lane_name(j->lane);
    d.tried = &tried;
    d.n_tried = tried.n > 0;
    d.line = amp_route_job_whole(j);
    if (j->address.of ? j->address.of->summary.known : j->summary.known)
        d.excerpt = j->address.of ? j->address.of->summary.excerpt : j->summary.excerpt;
    amp_keeper_answers_name(r, actor);
    answer.n -= answer.n > 0; /* its LF */
    return amp_dead_add(r->store, &d, actor, answer, entry, err);
}

/* In the sender's protocol, where it has a word for it. */
static int compose(const struct router *r, const struct amp_view *v, const char *code,
                   const char *said, bool retryable, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_terms *terms = amp_terms_of(v->protocol);
    bool own = terms->answer != amp_terms_record && (!terms->answers || terms->answers(v));
    bool expired = strcmp(code, "ttl_expired") == 0 && terms->expiry_fails;
    struct amp_answer a = {.stage = expired ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED,
                           .by = own ? r->consumer : "system",
                           .code = code,
                           .note = said,
                           .rule = "route",
                           .retryable = retryable,
                           .node = r->consumer,
                           .now_ms = amp_now_ms()};
    char name[AMP_MSG_ID_MAX];
    struct amp_view named = *v;
    amp_message_name(&named, name);
    return amp_sequence_answer(r->store, v, a.by, &a, err) < 0
               ? -1
               : amp_answer_line(&named, &a, out, err);
}

static void refuse(struct router *r, struct job *j, const char *code, const char *why,
                   const char *route, bool retryable, bool answer)
{
    struct amp_view v;
    struct amp_error err = {0};
    AMP_BUF struct amp_buf nack = {0};
    char said[512];
    amp_buf_init(&nack, 1 << 20);
    if (view_of(r, j, &v, &err) < 0) {
        amp_route_break(r, &err);
        return;
    }
    /* One turn, so that a number which is taken for an answer leaves with it. */
    struct amp_store_entry_id entry = {0};
    bool turn = r->store && amp_store_begin(r->store, NULL) == 0;
    if (answer && v.kind != AMP_KIND_ACK && v.kind != AMP_KIND_NACK) {
        snprintf(said, sizeof(said), "%.400s%s", why,
                 r->store ? "; kept in the dead letters" : "; not kept: no state directory");
        if (compose(r, &v, code, said, retryable, &nack, &err) < 0) {
            r->voice->complain(&err);
            r->voice->status(err.status);
        }
    }
    int rc = 0;
    if (r->store)
        rc = keep(r, j, &v, code, why, route, retryable, amp_buf_span(&nack), &entry, &err);
    if (turn)
        amp_store_end(r->store);
    if (rc < 0) {
        amp_route_break(r, &err);
    } else if (r->store && nack.len > 0) {
        amp_keeper_answer(r, amp_buf_span(&nack), entry);
    } else if (nack.len > 0) {
        struct job *a = answer_job(r, amp_buf_span(&nack));
        if (a)
            amp_keeper_send(r, a);
    }
}

void amp_keeper_refuse(struct router *r, struct job *j, const char *code, const char *why,
                       const char *route, bool retryable)
{
    r->voice->refused(code, 1);
    amp_route_count_refused(r, route, j, code);
    refuse(r, j, code, why, route, retryable, true);
}

void amp_keeper_dead(struct router *r, struct job *j, const char *code, const char *why,
                     const char *route)
{
    refuse(r, j, code, why, route, false, false);
}

struct told {
    enum amp_severity severity;
    const char *code, *field, *pointer, *what, *seed_code;
};

static void log_record(struct router *r, const struct job *j, const struct told *t)
{
    struct amp_view v;
    struct amp_error err = {0};
    AMP_BUF struct amp_buf record = {0};
    amp_buf_init(&record, 1 << 16);
    if (!r->store)
        return;
    int rc = view_of(r, j, &v, &err);
    if (rc >= 0) {
        struct amp_finding f = {.severity = t->severity,
                                .protocol = v.protocol,
                                .type = v.type,
                                .id = v.id,
                                .code = t->code,
                                .field = t->field,
                                .pointer = t->pointer,
                                .rule = t->code,
                                .message = t->what,
                                .found = "",
                                .expected = "",
                                .seed_code = t->seed_code};
        struct amp_line_place at = {.tool = "amp-route", .now_ms = amp_now_ms()};
        rc = amp_finding_record(&f, &at, &record, &err);
    }
    if (rc < 0 || amp_store_error_log(r->store, amp_buf_span(&record), &err) < 0)
        amp_route_break(r, &err);
}

void amp_keeper_duplicate(struct router *r, struct job *j, const struct amp_error *why)
{
    r->voice->warn("%s: %s", j->id, why->what);
    r->voice->status(AMP_NO);
    log_record(r, j,
               &(struct told){.severity = AMP_SEV_ERROR,
                              .code = why->code,
                              .field = "msg_id",
                              .pointer = "/msg_id",
                              .what = why->what});
}

int amp_keeper_denied(struct router *r, const struct job *j, const struct amp_view *v,
                      const struct amp_error *why, struct amp_error *err)
{
    r->voice->warn("%s: %s: %s", j->id, why->code, why->what);
    r->voice->status(AMP_NO);
    amp_route_count_denied(r, j, why->code);
    log_record(r, j,
               &(struct told){.severity = AMP_SEV_ERROR,
                              .code = why->code,
                              .field = "",
                              .pointer = "",
                              .what = why->what});
    return amp_refused_record(r->store, v, why, r->consumer, amp_now_ms(), err);
}

void amp_keeper_unsigned(struct router *r, const struct job *j, const char *port)
{
    char what[300];
    snprintf(what, sizeof(what), "leaves unsigned by %.200s (--allow-unsigned)", port);
    r->voice->warn("%s: %s", j->id, what);
    log_record(r, j,
               &(struct told){.severity = AMP_SEV_WARNING,
                              .code = "unsigned",
                              .field = "",
                              .pointer = "",
                              .what = what});
}

void amp_keeper_unaddressed(struct router *r, struct job *j)
{
    const struct amp_error *why = &j->address.nobody->why;
    log_record(r, j,
               &(struct told){.severity = AMP_SEV_ERROR,
                              .code = why->code,
                              .field = "",
                              .pointer = "",
                              .what = why->what,
                              .seed_code = j->address.nobody->seed_code});
    amp_keeper_refuse(r, j, why->code, why->what, "agents", amp_address_is_temporary(why->code));
}

void amp_keeper_turn(struct router *r)
{
    if (!r->store || r->broken)
        return;
    flush_answers(r);
    close_entries(r, false);
    close_entries(r, true);
}

/*
 * Makes the facts that the rules need from the ledger's events: the last number of each outbox, the
 * last attempt of each operation, the holder and the outcome of each task. The ledger is read at
 * the first event and again at intervals; facts are never removed.
 */
#include <stdlib.h>

#include <amp/base/id.h>

#include "base/grow.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/record/record.h"
#include "message/protocol/answers.h"
#include "message/protocol/work.h"
#include "rtp.h"

static uint64_t text_hash(const struct rtp_history *h, struct amp_span text)
{
    return text.n ? amp_keyed_hash(h->key, text) : 0;
}

bool rtp_is_event(enum amp_protocol p)
{
    return amp_answers_of(p)->numbering == AMP_NUMBERED_BY_NODE;
}

/* Finds a repeated operation: same outbox, kind and conversation, and the payload's bytes. */
static uint64_t operation_of(const struct rtp_history *h, const struct amp_view *v,
                             const struct rtp_fact *f)
{
    if (f->corr == 0 || v->payload == AMP_TOK_NONE)
        return 0;
    const uint64_t parts[] = {f->outbox, f->corr, text_hash(h, v->type),
                              text_hash(h, amp_tok_source(v->tape, v->payload))};
    return text_hash(h, (struct amp_span){(const char *)parts, sizeof parts});
}

int rtp_fact_of(const struct rtp_history *h, const struct amp_view *v, struct rtp_fact *f,
                struct amp_error *err)
{
    struct amp_outcome o;
    bool says = amp_outcome_read(v, &o);
    *f = (struct rtp_fact){.kind = amp_rtp_kind_of(v),
                           .id = text_hash(h, v->id),
                           .outbox = text_hash(h, v->node),
                           .task = text_hash(h, v->task),
                           .corr = text_hash(h, v->correlation),
                           .agent = text_hash(h, o.by),
                           .begins = says && o.takes_up,
                           .releases = says && o.releases,
                           .failures_most = amp_work_of(v->protocol)->failures_most,
                           .seq = v->sequence,
                           .attempt = v->attempt,
                           .created_ms = v->created_ms};
    f->operation = operation_of(h, v, f);
    if (f->kind == AMP_RTP_SKILL || f->kind == AMP_RTP_COMPLETE) {
        struct amp_span versions[AMP_RTP_VERSIONS_MAX];
        for (uint32_t i = amp_rtp_versions(v->tape, versions); i-- > 0;)
            f->versions[i] = text_hash(h, versions[i]);
    }
    if ((f->kind != AMP_RTP_CREATE && f->kind != AMP_RTP_SKILL) || v->n_to == 0)
        return 0;
    f->assignees = calloc(v->n_to, sizeof *f->assignees);
    if (!f->assignees)
        return amp_fail_memory(err);
    while (f->n_assignees < v->n_to) {
        f->assignees[f->n_assignees] = text_hash(h, v->to[f->n_assignees]);
        f->n_assignees++;
    }
    return 0;
}

void rtp_fact_release(struct rtp_fact *f)
{
    free(f->assignees);
    f->assignees = NULL;
}

/* A skill distribution is done when its completion confirms the version. */
static bool is_confirmed(const struct rtp_task *task, const struct rtp_fact *f)
{
    bool good = task->version == 0;
    for (unsigned i = 0; i < AMP_RTP_VERSIONS_MAX && !good; i++)
        good = f->versions[i] == task->version;
    return good;
}

/* After the last failure of its budget no agent may try again. */
bool rtp_spent(const struct rtp_task *task, const struct rtp_fact *f)
{
    return f->failures_most > 0 && task->failures >= f->failures_most;
}

static void absorb_task(struct rtp_task *task, struct rtp_fact *f)
{
    bool releases = f->releases && !rtp_spent(task, f);

    switch (f->kind) {
    case AMP_RTP_CREATE:
    case AMP_RTP_SKILL:
        task->created = true;
        task->version = f->kind == AMP_RTP_SKILL ? f->versions[0] : 0;
        if (!task->assignees) {
            task->assignees = f->assignees;
            task->n_assignees = f->n_assignees;
            f->assignees = NULL;
        }
        break;
    case AMP_RTP_ACCEPT:
    case AMP_RTP_ACK_ACCEPT:
        if (task->claimant == 0)
            task->claimant = f->agent;
        break;
    case AMP_RTP_COMPLETE:
        task->done |= is_confirmed(task, f);
        break;
    case AMP_RTP_FAILED:
        task->failed = true;
        task->failures += f->releases;
        task->done |= !releases;
        task->claimant = releases ? 0 : task->claimant; /* another agent may try again */
        break;
    default:
        break;
    }
}

static int claim_count(struct rtp_history *h, uint64_t agent, int by, struct amp_error *err)
{
    int64_t *n = agent ? amp_map_add(&h->claims, agent, err) : NULL;
    if (n)
        *n += by;
    return n || !agent ? 0 : -1;
}

int rtp_absorb(struct rtp_history *h, struct rtp_fact *f, struct amp_error *err)
{
    struct rtp_event *event = amp_map_add(&h->events, f->id, err);
    int64_t *seq = f->outbox ? amp_map_add(&h->outboxes, f->outbox, err) : NULL;
    int64_t *attempt = f->operation ? amp_map_add(&h->operations, f->operation, err) : NULL;
    struct rtp_task *task = f->task ? amp_map_add(&h->tasks, f->task, err) : NULL;
    if (!event || (f->outbox && !seq) || (f->operation && !attempt) || (f->task && !task))
        return -1;
    *event = (struct rtp_event){f->kind, f->task, f->corr};
    if (seq && f->seq >= *seq)
        *seq = f->seq + 1; /* the least number that may come */
    if (attempt && f->attempt > *attempt)
        *attempt = f->attempt;
    if (f->kind == AMP_RTP_REPLY && f->corr && !amp_map_add(&h->replies, f->corr, err))
        return -1;
    if (!task)
        return 0;
    const uint64_t had = task->done ? 0 : task->claimant;
    absorb_task(task, f);
    const uint64_t has = task->done ? 0 : task->claimant;
    return had == has || (claim_count(h, had, -1, err) == 0 && claim_count(h, has, 1, err) == 0)
               ? 0
               : -1;
}

/* The facts of one reading of the ledger, which are sorted before they are absorbed. */
struct loading {
    struct rtp_history *h;
    struct checks *c;
    struct rtp_fact *v;
    size_t n, cap;
};

static int load_one(void *ctx, struct amp_span id, const struct amp_store_rec *row,
                    struct amp_error *err)
{
    struct loading *l = ctx;
    struct amp_message_rec rec;
    struct amp_view v;
    if (amp_map_find(&l->h->events, text_hash(l->h, id)))
        return 0;
    if (amp_message_parse(row, &l->c->mem, &rec, err) < 0)
        return -1;
    if (!rtp_is_event(amp_protocol_find(rec.protocol)))
        return 0;
    int good = amp_reader_line(l->h->reader, rec.line, NULL, &v, NULL, NULL, err);
    if (good <= 0 || !rtp_is_event(v.protocol))
        return good < 0 ? -1 : 0;
    if (amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, err) < 0)
        return -1;
    if (rtp_fact_of(l->h, &v, &l->v[l->n], err) < 0)
        return -1;
    l->n++;
    return 0;
}

static int compare_facts(const void *a, const void *b)
{
    const struct rtp_fact *x = a, *y = b;
    if (x->created_ms != y->created_ms)
        return x->created_ms < y->created_ms ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

int rtp_history_load(struct rtp_history *h, struct checks *c, struct amp_error *err)
{
    struct loading l = {.h = h, .c = c};
    int64_t begun = amp_mono_ms();
    int bad = amp_store_each(c->store, AMP_MESSAGE_KIND, NULL, load_one, &l, err);
    if (l.n > 0)
        qsort(l.v, l.n, sizeof *l.v, compare_facts);
    for (size_t i = 0; i < l.n; i++) {
        if (bad == 0)
            bad = rtp_absorb(h, &l.v[i], err);
        rtp_fact_release(&l.v[i]);
    }
    free(l.v);
    h->read_ms = amp_mono_ms();
    h->took_ms = h->read_ms - begun;
    h->loaded = h->loaded || bad == 0;
    return bad;
}

int rtp_history_new(struct rtp_history **out, struct amp_error *err)
{
    struct rtp_history *h = calloc(1, sizeof *h);
    if (!h)
        return amp_fail_memory(err);
    amp_random(h->key, sizeof h->key);
    h->everyone = text_hash(h, AMP_SPAN("all"));
    amp_map_init(&h->events, sizeof(struct rtp_event));
    amp_map_init(&h->outboxes, sizeof(int64_t));
    amp_map_init(&h->operations, sizeof(int64_t));
    amp_map_init(&h->tasks, sizeof(struct rtp_task));
    amp_map_init(&h->replies, 1);
    amp_map_init(&h->claims, sizeof(int64_t));
    h->reader = amp_reader_new(NULL, err);
    if (!h->reader) {
        rtp_history_free(h);
        return -1;
    }
    *out = h;
    return 0;
}

static void free_task(void *value)
{
    free(((struct rtp_task *)value)->assignees);
}

void rtp_history_free(struct rtp_history *h)
{
    if (!h)
        return;
    amp_map_each(&h->tasks, free_task);
    amp_map_release(&h->events);
    amp_map_release(&h->outboxes);
    amp_map_release(&h->operations);
    amp_map_release(&h->tasks);
    amp_map_release(&h->replies);
    amp_map_release(&h->claims);
    amp_reader_free(h->reader);
    free(h);
}

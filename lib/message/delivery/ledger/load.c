/* The works that an agent has accepted, and their limit. */
#include "message/delivery/ledger/load.h"

#include <string.h>

#include <amp/base/num.h>

#include "message/delivery/facts.h"
#include "message/delivery/ledger/delivery.h"
#include "message/delivery/ledger/holder.h"
#include "message/delivery/record/record.h"
#include "message/protocol/work.h"
#include "message/record/subject.h"

static int64_t set; /* 0: the protocol's */

int64_t amp_load_most(enum amp_protocol p)
{
    int64_t own = amp_work_of(p)->claims_most;
    return own > 0 && set > 0 ? set : own;
}

int amp_load_set(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    return amp_num_parse(amp_span_str(text), 1, AMP_LOAD_MOST, &set, err);
}

struct claim {
    struct amp_span id;
    const struct amp_key *key;
};
static const struct amp_rec_field fields[] = {AMP_REC_EVER(TEXT, struct claim, "id", id)};
AMP_REC_TABLE(claim_rec, "the claim of an agent", struct claim, fields);

static const char *const states[] = {"OPEN", NULL};
static const struct amp_subject claims = {.kind = "work_claim",
                                          .table = &claim_rec,
                                          .states = states,
                                          .key = AMP_SUBJECT_AT(struct claim, key)};

/* ---- what an agent has ---- */

struct counting {
    struct amp_store *store;
    const char *agent;
    struct amp_span id, task; /* the work that it wants */
    int64_t n;
    bool known;           /* it has that work */
    bool prunes;          /* removes the claims on work that ended */
    struct amp_buf tasks; /* each with a NUL; other works of the same task are one */
};

static bool is_open(const struct amp_message_rec *r, const char *agent)
{
    return r->found && amp_span_is(r->holder, agent) &&
           (r->state == AMP_DELIVERY_SENT || r->state == AMP_DELIVERY_RECEIVED ||
            r->state == AMP_DELIVERY_READ || r->state == AMP_DELIVERY_RETRYING);
}

/* Adds the task; 1: it was there. */
static int task_add(struct counting *n, struct amp_span task, struct amp_error *err)
{
    for (size_t i = 0; i < n->tasks.len; i += strlen(n->tasks.data + i) + 1)
        if (amp_span_is(task, n->tasks.data + i))
            return 1;
    return amp_buf_add(&n->tasks, task.p, task.n, err) < 0 || amp_buf_add(&n->tasks, "", 1, err) < 0
               ? -1
               : 0;
}

static int on_claim(void *ctx, const void *rec, struct amp_error *err)
{
    const struct claim *c = rec;
    struct counting *n = ctx;
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};

    if (amp_message_find(n->store, c->id, &mem, &r, err) < 0)
        return -1;
    if (!is_open(&r, n->agent))
        return n->prunes && amp_subject_forget(&claims, n->store, *c->key, 0, NULL, err) < 0 ? -1
                                                                                             : 0;
    if (amp_span_eq(c->id, n->id) || (n->task.n > 0 && amp_span_eq(r.task, n->task))) {
        n->known = true;
        return 0;
    }
    int known = r.task.n > 0 ? task_add(n, r.task, err) : 0;
    n->n += known == 0;
    return known < 0 ? -1 : 0;
}

static int claims_count(struct counting *n, struct amp_error *err)
{
    int rc = amp_subject_of(&claims, n->store, amp_span_str(n->agent), on_claim, n, err);

    amp_buf_release(&n->tasks);
    return rc < 0 ? -1 : 0;
}

int amp_load_check(struct amp_store *s, const char *agent, struct amp_span id,
                   struct amp_error *err)
{
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};

    if (amp_message_find(s, id, &mem, &r, err) < 0)
        return -1;
    const struct amp_work_terms *t = amp_work_of(amp_protocol_find(r.protocol));
    const int64_t most = r.found ? amp_load_most(amp_protocol_find(r.protocol)) : 0;
    struct counting n = {
        .store = s, .agent = agent, .id = id, .task = r.task, .tasks = {.max = 1 << 16}};
    const struct amp_message_facts *facts = amp_store_facts(s);
    if (most == 0)
        return 0;
    if (facts && facts->approved && facts->approved(s, r.line, err) < 0)
        return -1;
    if (claims_count(&n, err) < 0)
        return -1;
    return n.known || n.n < most
               ? 0
               : amp_fail_text(err, AMP_NO, amp_terms_denial(t, AMP_WORK_FULL),
                               "%s has accepted %lld tasks that have not ended (the limit, "
                               "runtime.max_claims, is %lld)",
                               agent, (long long)n.n, (long long)most);
}

/* ---- recording ---- */

int amp_load_note(struct amp_store *s, const char *agent, struct amp_span id, struct amp_error *err)
{
    const struct claim c = {.id = id};
    struct counting n = {.store = s, .agent = agent, .prunes = true, .tasks = {.max = 1 << 16}};

    return claims_count(&n, err) < 0
               ? -1
               : amp_subject_put(&claims, s, AMP_KEY(claims.kind, amp_span_str(agent), id), &c,
                                 true, "claim", NULL, err);
}

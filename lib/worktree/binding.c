/* Bindings in the store: one record for each agent, changed by the machine under compare-and-set.
 */
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/codes.h"
#include "worktree/binding.h"
#include "json/record.h"

#define RECORD_MAX (64u << 10)

static const char *const reasons[] = {
#define X(id, name) name,
    AMP_BIND_REASONS(X)
#undef X
};

const char *amp_bind_reason_name(int reason)
{
    return reason < AMP_BIND_REASON_COUNT ? reasons[reason] : "";
}

static const struct amp_rec_words reason_words = {.name = amp_bind_reason_name,
                                                  .n = AMP_BIND_REASON_COUNT};

#define MEMBER(as, key, member) AMP_REC_EVER(as, struct amp_binding, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(CHARS, "agent", agent),
    MEMBER(CHARS, "repo", repo),
    MEMBER(CHARS, "worktree", worktree),
    MEMBER(CHARS, "other", other),
    MEMBER(CHARS, "branch", branch),
    AMP_REC(CHARS, struct amp_binding, "base", base),
    AMP_REC_ENUM(struct amp_binding, "reason", reason, &reason_words),
    MEMBER(CHARS, "why", why),
    MEMBER(CHARS, "invocation", invocation),
    MEMBER(INT, "tries", tries),
    MEMBER(INT, "since_ms", since_ms),
    AMP_REC(BOOL, struct amp_binding, "person", person),
    AMP_REC(CHARS, struct amp_binding, "by", by),
    AMP_REC(INT, struct amp_binding, "ttl_ms", ttl_ms),
    AMP_REC(INT, struct amp_binding, "retries", retries),
    AMP_REC(INT, struct amp_binding, "retry_ms", retry_ms),
    AMP_REC(INT, struct amp_binding, "notice_ms", notice_ms),
};
AMP_REC_TABLE(binding_rec, "a binding's record", struct amp_binding, fields);

static int binding_read(const struct amp_store_rec *rec, const char *agent, struct amp_binding *out,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    if (rec->found ? amp_rec_parse(&binding_rec, rec->json, &mem, out, err)
                   : amp_rec_init(&binding_rec, out, err))
        return -1;
    int state = rec->found ? amp_fsm_state(&amp_binding_fsm, rec->state) : AMP_BINDING_UNBOUND;
    if (state < 0)
        return amp_fail(err, AMP_DATAERR, bad_record, "binding.%s has an unknown state", agent);
    amp_span_copy(amp_span_str(agent), out->agent, sizeof out->agent);
    out->found = rec->found;
    out->state = (uint8_t)state;
    out->due_ms = rec->found ? rec->due_ms : 0;
    return 0;
}

int amp_binding_get(struct amp_store *s, const char *agent, struct amp_binding *out,
                    struct amp_error *err)
{
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_KEY(AMP_BINDING_KIND, amp_span_str(agent)), &rec, err) < 0)
        return -1;
    return binding_read(&rec, agent, out, err);
}

struct each {
    amp_binding_fn fn;
    void *ctx;
};

static int each_record(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct each *e = ctx;
    struct amp_binding b;
    char agent[sizeof b.agent];
    amp_span_copy(id, agent, sizeof agent);
    return binding_read(rec, agent, &b, err) < 0 ? -1 : e->fn(e->ctx, &b, err);
}

int amp_binding_each(struct amp_store *s, amp_binding_fn fn, void *ctx, struct amp_error *err)
{
    struct each e = {fn, ctx};
    return amp_store_each(s, AMP_BINDING_KIND, NULL, each_record, &e, err);
}

bool amp_binding_is_bound(const struct amp_binding *b)
{
    return b->state == AMP_BINDING_BOUND_HOME || b->state == AMP_BINDING_BOUND_NON_HOME ||
           b->state == AMP_BINDING_SWITCH_PENDING;
}

struct holder {
    const char *path, *agent;
    bool visiting, found;
    char *name;
};

static int is_holder(void *ctx, const struct amp_binding *b, struct amp_error *err)
{
    struct holder *h = ctx;
    bool home = !h->visiting && amp_binding_is_bound(b) && strcmp(b->worktree, h->path) == 0;
    bool away = b->state == AMP_BINDING_BOUND_NON_HOME && strcmp(b->other, h->path) == 0;
    if (strcmp(b->agent, h->agent) == 0 || (!home && !away))
        return 0;
    snprintf(h->name, 128, "%s", b->agent);
    h->found = true;
    return 1;
}

int amp_binding_holder(struct amp_store *s, const char *path, const char *agent, bool visiting,
                       char holder[128], struct amp_error *err)
{
    struct holder h = {.path = path, .agent = agent, .visiting = visiting, .name = holder};
    if (amp_binding_each(s, is_holder, &h, err) < 0)
        return -1;
    return h.found;
}

/* Lives until amp_store_update returns. */
struct update {
    const struct amp_binding_step *step;
    struct amp_binding *out;
    struct amp_buf json;
};

/* The earlier of two times, 0 for none. */
static int64_t earlier(int64_t a, int64_t b)
{
    return !a || (b && b < a) ? b : a;
}

/* The effects of a failed bind. */
static void failure_carry(struct amp_binding *b, const struct amp_binding_step *step,
                          const struct amp_fsm_result *r)
{
    static const struct amp_backoff pause = {AMP_BINDING_RETRY_MS, AMP_BINDING_RETRY_MOST_MS};
    const struct amp_binding *with = &step->with;
    if (r->effects & AMP_BINDING_DO_RECORD_REASON) {
        b->reason = with->reason;
        memcpy(b->why, with->why, sizeof b->why);
        b->tries++;
    }
    if (r->effects & AMP_BINDING_DO_CLEAR_REASON) {
        b->reason = AMP_BIND_NONE;
        b->why[0] = '\0';
        b->tries = 0;
    }
    /* A retry that fails does not delay the notice. */
    if (r->effects & AMP_BINDING_DO_ARM_RECOVERY && r->to != b->state)
        b->notice_ms = step->now_ms + AMP_BINDING_RECOVERY_MS;
    if (r->effects & AMP_BINDING_DO_ARM_RETRY) {
        uint32_t done = AMP_BINDING_RETRIES - (uint32_t)with->retries;
        b->retries = with->retries;
        b->retry_ms = with->retries > 0 ? step->now_ms + amp_backoff_nth(&pause, done) : 0;
    }
    if (r->effects & AMP_BINDING_DO_NOTIFY_OPERATOR)
        b->notice_ms = 0;
    if (r->to != AMP_BINDING_BIND_FAILED)
        b->retries = b->retry_ms = b->notice_ms = 0;
}

/* The effects on a switch. */
static void switch_carry(struct amp_binding *b, const struct amp_binding_step *step,
                         const struct amp_fsm_result *r)
{
    const struct amp_binding *with = &step->with;
    b->invocation[0] = '\0';
    if (r->effects & AMP_BINDING_DO_ASK_APPROVAL) {
        memcpy(b->other, with->other, sizeof b->other);
        memcpy(b->invocation, with->invocation, sizeof b->invocation);
        b->person = with->person;
        b->ttl_ms = with->ttl_ms;
    }
    if (r->effects & AMP_BINDING_DO_ARM_TTL) {
        int64_t ttl = step->ttl_ms ? step->ttl_ms : b->ttl_ms;
        b->due_ms = step->now_ms + (ttl ? ttl : AMP_BINDING_SWITCH_TTL_MS);
        memcpy(b->by, with->by, sizeof b->by);
    }
    if (r->effects & (AMP_BINDING_DO_GO_HOME | AMP_BINDING_DO_RELEASE)) {
        b->other[0] = b->by[0] = '\0';
        b->person = false;
        b->ttl_ms = 0;
    }
}

/* Carries out the effects of a step on the record. */
static void binding_carry(struct amp_binding *b, const struct amp_binding_step *step,
                          const struct amp_fsm_result *r)
{
    const struct amp_binding *with = &step->with;
    if (r->effects & AMP_BINDING_DO_RECORD_PLACE) {
        memcpy(b->repo, with->repo, sizeof b->repo);
        memcpy(b->worktree, with->worktree, sizeof b->worktree);
        memcpy(b->branch, with->branch, sizeof b->branch);
        memcpy(b->base, with->base, sizeof b->base);
    }
    if (r->to != b->state) {
        b->since_ms = step->now_ms;
        b->due_ms = 0;
    }
    failure_carry(b, step, r);
    switch_carry(b, step, r);
    if (r->effects & AMP_BINDING_DO_RELEASE)
        b->worktree[0] = b->branch[0] = b->base[0] = '\0';
    if (r->to == AMP_BINDING_BIND_FAILED)
        b->due_ms = earlier(b->retry_ms, b->notice_ms);
    b->state = r->to;
}

static int update_binding(void *ctx, const struct amp_store_rec *now,
                          struct amp_store_change *change, struct amp_error *err)
{
    struct update *u = ctx;
    const struct amp_binding_step *step = u->step;
    struct amp_binding b;
    struct amp_fsm_result r;
    if (binding_read(now, step->agent, &b, err) < 0)
        return -1;
    bool same = strcmp(b.worktree, step->with.worktree) == 0;
    if (step->event == AMP_BINDING_EV_UNBIND && b.state == AMP_BINDING_UNBOUND) {
        *u->out = b; /* applied already */
        return 1;
    }
    if (step->event == AMP_BINDING_EV_BIND && b.state == AMP_BINDING_BOUND_HOME && !same)
        return amp_fail(err, AMP_NOPERM, permission_denied, "%s is already bound to %s",
                        step->agent, b.worktree);
    if (amp_fsm_step(&amp_binding_fsm, b.state, (uint8_t)step->event,
                     same ? AMP_BINDING_IF_SAME : 0, &r, err))
        return -1;
    bool nothing = r.to == b.state && !r.effects;
    binding_carry(&b, step, &r);
    b.found = true;
    if (nothing) {
        *u->out = b;
        return 1;
    }
    amp_buf_reset(&u->json);
    if (amp_rec_write(&binding_rec, &b, &u->json, err) < 0)
        return -1;
    change->event = amp_binding_fsm.events[step->event].name;
    change->to = amp_binding_fsm.states[r.to].name;
    change->json = amp_buf_span(&u->json);
    change->due_ms = b.due_ms;
    if (step->emit) {
        change->actor = step->actor;
        change->emits = step->emit;
        change->n_emits = 1;
    }
    *u->out = b;
    return 0;
}

/* Refuses a worktree that another agent holds. */
static int step_check(struct amp_store *s, const struct amp_binding_step *step,
                      struct amp_error *err)
{
    char holder[128];
    const char *path = step->event == AMP_BINDING_EV_BIND             ? step->with.worktree
                       : step->event == AMP_BINDING_EV_SWITCH_APPROVE ? step->with.other
                                                                      : "";
    int held = *path ? amp_binding_holder(s, path, step->agent, false, holder, err) : 0;
    if (held > 0)
        amp_fail(err, AMP_NO, worktree_locked, "%s: held by %s", path, holder);
    return held ? -1 : 0;
}

int amp_binding_step(struct amp_store *s, const struct amp_binding_step *step,
                     struct amp_binding *out, struct amp_error *err)
{
    struct amp_binding b = {0};
    struct update u = {.step = step, .out = &b};
    enum amp_store_outcome outcome;
    amp_buf_init(&u.json, RECORD_MAX);
    /* One turn for the check and the step: two agents cannot both find the worktree free. */
    if (amp_store_begin(s, err) < 0)
        return -1;
    int rc = step_check(s, step, err);
    if (rc == 0)
        rc = amp_store_update(s, AMP_KEY(AMP_BINDING_KIND, amp_span_str(step->agent)), step->input,
                              update_binding, &u, &outcome, err);
    amp_store_end(s);
    if (rc == 0 && outcome == AMP_STORE_REDELIVERED)
        rc = amp_binding_get(s, step->agent, &b, err);
    amp_buf_release(&u.json);
    if (rc)
        return -1;
    *out = b;
    return 0;
}

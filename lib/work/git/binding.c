/* Bindings in the store: one record for each agent, changed by the machine under compare-and-set.
 */
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/codes.h"
#include "base/words.h"
#include "message/record/subject.h"
#include "work/git/binding.h"

AMP_WORDS(reasons, AMP_BIND_REASONS);

const char *amp_bind_reason_name(int reason)
{
    return reason < AMP_BIND_REASON_COUNT ? reasons[reason] : "";
}

static const struct amp_rec_words reason_words = {.list = reasons};

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

bool amp_binding_is_bound(const struct amp_binding *b)
{
    return b->state == AMP_BINDING_BOUND_HOME || b->state == AMP_BINDING_BOUND_NON_HOME ||
           b->state == AMP_BINDING_SWITCH_PENDING;
}

/* The earlier of two times, 0 for none. */
static int64_t earlier(int64_t a, int64_t b)
{
    return !a || (b && b < a) ? b : a;
}

/* The effects of a failed bind. */
static void failure_carry(struct amp_binding *b, const struct amp_binding_step *step,
                          const struct amp_subject_turn *t)
{
    static const struct amp_backoff pause = {AMP_BINDING_RETRY_MS, AMP_BINDING_RETRY_MOST_MS};
    const struct amp_binding *with = &step->with;
    if (t->effects & AMP_BINDING_DO_RECORD_REASON) {
        b->reason = with->reason;
        memcpy(b->why, with->why, sizeof b->why);
        b->tries++;
    }
    if (t->effects & AMP_BINDING_DO_CLEAR_REASON) {
        b->reason = AMP_BIND_NONE;
        b->why[0] = '\0';
        b->tries = 0;
    }
    /* A retry that fails does not delay the notice. */
    if (t->effects & AMP_BINDING_DO_ARM_RECOVERY && b->state != t->from)
        b->notice_ms = step->now_ms + AMP_BINDING_RECOVERY_MS;
    if (t->effects & AMP_BINDING_DO_ARM_RETRY) {
        uint32_t done = AMP_BINDING_RETRIES - (uint32_t)with->retries;
        b->retries = with->retries;
        b->retry_ms = with->retries > 0 ? step->now_ms + amp_backoff_nth(&pause, done) : 0;
    }
    if (t->effects & AMP_BINDING_DO_NOTIFY_OPERATOR)
        b->notice_ms = 0;
    if (b->state != AMP_BINDING_BIND_FAILED)
        b->retries = b->retry_ms = b->notice_ms = 0;
}

/* The effects on a switch. */
static void switch_carry(struct amp_binding *b, const struct amp_binding_step *step,
                         const struct amp_subject_turn *t)
{
    const struct amp_binding *with = &step->with;
    b->invocation[0] = '\0';
    if (t->effects & AMP_BINDING_DO_ASK_APPROVAL) {
        memcpy(b->other, with->other, sizeof b->other);
        memcpy(b->invocation, with->invocation, sizeof b->invocation);
        b->person = with->person;
        b->ttl_ms = with->ttl_ms;
    }
    if (t->effects & AMP_BINDING_DO_ARM_TTL) {
        int64_t ttl = step->ttl_ms ? step->ttl_ms : b->ttl_ms;
        b->due_ms = step->now_ms + (ttl ? ttl : AMP_BINDING_SWITCH_TTL_MS);
        memcpy(b->by, with->by, sizeof b->by);
    }
    if (t->effects & (AMP_BINDING_DO_GO_HOME | AMP_BINDING_DO_RELEASE)) {
        b->other[0] = b->by[0] = '\0';
        b->person = false;
        b->ttl_ms = 0;
    }
}

static bool names_home(const struct amp_binding *b, const struct amp_binding_step *step)
{
    return strcmp(b->worktree, step->with.worktree) == 0;
}

static int binding_check(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_binding_step *step = t->step->with;
    const struct amp_binding *b = rec;

    if (step->event == AMP_BINDING_EV_UNBIND && b->state == AMP_BINDING_UNBOUND)
        return 1; /* applied already */
    if (step->event == AMP_BINDING_EV_BIND && b->state == AMP_BINDING_BOUND_HOME &&
        !names_home(b, step))
        return amp_fail(err, AMP_NOPERM, permission_denied, "%s is already bound to %s",
                        step->agent, b->worktree);
    return 0;
}

static uint32_t facts_of(const void *rec, const struct amp_subject_turn *t)
{
    return names_home(rec, t->step->with) ? AMP_BINDING_IF_SAME : 0;
}

/* Carries out the effects of a step on the record. */
static int binding_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_binding_step *step = t->step->with;
    const struct amp_binding *with = &step->with;
    struct amp_binding *b = rec;

    (void)err;
    if (b->state == t->from && !t->effects)
        return 1;
    amp_span_copy(amp_span_str(step->agent), b->agent, sizeof b->agent);
    if (t->effects & AMP_BINDING_DO_RECORD_PLACE) {
        memcpy(b->repo, with->repo, sizeof b->repo);
        memcpy(b->worktree, with->worktree, sizeof b->worktree);
        memcpy(b->branch, with->branch, sizeof b->branch);
        memcpy(b->base, with->base, sizeof b->base);
    }
    if (b->state != t->from) {
        b->since_ms = step->now_ms;
        b->due_ms = 0;
    }
    failure_carry(b, step, t);
    switch_carry(b, step, t);
    if (t->effects & AMP_BINDING_DO_RELEASE)
        b->worktree[0] = b->branch[0] = b->base[0] = '\0';
    if (b->state == AMP_BINDING_BIND_FAILED)
        b->due_ms = earlier(b->retry_ms, b->notice_ms);
    return 0;
}

static const struct amp_subject bindings = {.kind = AMP_BINDING_KIND,
                                            .table = &binding_rec,
                                            .machine = &amp_binding_fsm,
                                            .state = AMP_SUBJECT_AT(struct amp_binding, state),
                                            .rev = AMP_SUBJECT_AT(struct amp_binding, rev),
                                            .due = AMP_SUBJECT_AT(struct amp_binding, due_ms),
                                            .check = binding_check,
                                            .facts = facts_of,
                                            .carry = binding_carry};

int amp_binding_get(struct amp_store *s, const char *agent, struct amp_binding *out,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};

    if (amp_subject_find(&bindings, s, AMP_KEY(bindings.kind, amp_span_str(agent)), &mem, out,
                         err) < 0)
        return -1;
    amp_span_copy(amp_span_str(agent), out->agent, sizeof out->agent);
    return 0;
}

struct each {
    amp_binding_fn fn;
    void *ctx;
};

static int on_binding(void *ctx, const void *rec, struct amp_error *err)
{
    const struct each *e = ctx;

    return e->fn(e->ctx, rec, err);
}

int amp_binding_each(struct amp_store *s, amp_binding_fn fn, void *ctx, struct amp_error *err)
{
    return amp_subject_each(&bindings, s, NULL, on_binding, &(struct each){fn, ctx}, err);
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

    (void)err;
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

    return amp_binding_each(s, is_holder, &h, err) < 0 ? -1 : h.found;
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
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    const struct amp_subject_step one = {.key = AMP_KEY(bindings.kind, amp_span_str(step->agent)),
                                         .event = step->event,
                                         .with = step,
                                         .actor = step->emit ? step->actor : NULL,
                                         .input = step->input,
                                         .emits = step->emit,
                                         .n_emits = step->emit != NULL};

    /* One turn for the check and the step: two agents cannot both find the worktree free. */
    if (amp_store_begin(s, err) < 0)
        return -1;
    int rc = step_check(s, step, err);
    if (rc == 0)
        rc = amp_subject_step(&bindings, s, &one, &mem, out, NULL, err);
    amp_store_end(s);
    return rc < 0 ? -1 : 0;
}

/* Bindings in the store: one record an agent, stepped by the machine under compare-and-set. */
#include <stdio.h>
#include <string.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "worktree/worktree.h"

#define RECORD_MAX (64u << 10)

static const char *const reasons[] = {
#define X(id, name) name,
    AMP_BIND_REASONS(X)
#undef X
};

const char *amp_bind_reason_name(enum amp_bind_reason r)
{
    return r < AMP_BIND_REASON_COUNT ? reasons[r] : "";
}

enum amp_bind_reason amp_bind_reason_of(const struct amp_error *err)
{
    static const struct {
        const char *code;
        enum amp_bind_reason reason;
    } table[] = {
        {"worktree_not_found", AMP_BIND_WORKTREE_NOT_FOUND},
        {"repo_not_git", AMP_BIND_WORKTREE_NOT_FOUND},
        {"unknown_revision", AMP_BIND_WORKTREE_NOT_FOUND},
        {"branch_violation", AMP_BIND_PERMISSION_DENIED},
        {"permission_denied", AMP_BIND_PERMISSION_DENIED},
        {"path_escape", AMP_BIND_PERMISSION_DENIED},
        {"repo_not_owned", AMP_BIND_PERMISSION_DENIED},
        {"eacces", AMP_BIND_PERMISSION_DENIED},
        {"eperm", AMP_BIND_PERMISSION_DENIED},
        {"worktree_locked", AMP_BIND_WORKTREE_LOCKED},
        {"branch_checked_out", AMP_BIND_WORKTREE_LOCKED},
        {"git_locked", AMP_BIND_WORKTREE_LOCKED},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(err->code, table[i].code) == 0)
            return table[i].reason;
    return AMP_BIND_FILESYSTEM_ERROR;
}

static void copy_field(const struct amp_tape *t, const char *key, char *out, size_t size)
{
    AMP_BUF struct amp_buf arena = {0};
    amp_buf_init(&arena, RECORD_MAX);
    struct amp_span text = {NULL, 0};
    uint32_t tok = amp_tape_get(t, 0, amp_span_str(key));
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING ||
        amp_tok_text(t, tok, &arena, &text, NULL))
        text = (struct amp_span){NULL, 0};
    amp_span_copy(text, out, size);
}

static int64_t int_field(const struct amp_tape *t, const char *key)
{
    int64_t n = 0;
    uint32_t tok = amp_tape_get(t, 0, amp_span_str(key));
    return tok != AMP_TOK_NONE && amp_tok_int(t, tok, &n) ? n : 0;
}

static int decode(const struct amp_store_rec *rec, const char *agent, struct amp_binding *out,
                  struct amp_error *err)
{
    struct amp_binding b = {.state = AMP_BINDING_UNBOUND};
    amp_span_copy(amp_span_str(agent), b.agent, sizeof b.agent);
    if (!rec->found) {
        *out = b;
        return 0;
    }
    struct amp_tape t;
    struct amp_json_fault fault;
    char reason[32];
    int state = amp_fsm_state(&amp_binding_fsm, rec->state);
    amp_tape_init(&t, NULL);
    if (state < 0 || amp_tape_scan(&t, rec->json.p, rec->json.n, &fault)) {
        amp_tape_release(&t);
        return amp_fail(err, AMP_INTERNAL, "bad_record", "binding.%s is not understood", agent);
    }
    b.found = true;
    b.state = (uint8_t)state;
    copy_field(&t, "repo", b.repo, sizeof b.repo);
    copy_field(&t, "worktree", b.worktree, sizeof b.worktree);
    copy_field(&t, "other", b.other, sizeof b.other);
    copy_field(&t, "branch", b.branch, sizeof b.branch);
    copy_field(&t, "why", b.why, sizeof b.why);
    copy_field(&t, "invocation", b.invocation, sizeof b.invocation);
    copy_field(&t, "reason", reason, sizeof reason);
    for (int i = 0; i < AMP_BIND_REASON_COUNT; i++)
        if (strcmp(reason, reasons[i]) == 0)
            b.reason = (enum amp_bind_reason)i;
    b.tries = int_field(&t, "tries");
    b.since_ms = int_field(&t, "since_ms");
    b.due_ms = rec->due_ms;
    amp_tape_release(&t);
    *out = b;
    return 0;
}

static int encode(const struct amp_binding *b, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    const struct {
        const char *key, *value;
    } texts[] = {
        {"agent", b->agent},       {"repo", b->repo},
        {"worktree", b->worktree}, {"other", b->other},
        {"branch", b->branch},     {"reason", amp_bind_reason_name(b->reason)},
        {"why", b->why},           {"invocation", b->invocation},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        amp_jw_key(&w, texts[i].key);
        amp_jw_str(&w, amp_span_str(texts[i].value));
    }
    amp_jw_key(&w, "tries");
    amp_jw_int(&w, b->tries);
    amp_jw_key(&w, "since_ms");
    amp_jw_int(&w, b->since_ms);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int amp_binding_get(struct amp_store *s, const char *agent, struct amp_binding *out,
                    struct amp_error *err)
{
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_BINDING_KIND, amp_span_str(agent), &rec, err))
        return -1;
    return decode(&rec, agent, out, err);
}

struct each {
    amp_binding_fn fn;
    void *ctx;
    struct amp_error *err;
    int rc;
};

static int each_record(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct each *e = ctx;
    struct amp_binding b;
    char agent[sizeof b.agent];
    amp_span_copy(id, agent, sizeof agent);
    e->rc = decode(rec, agent, &b, e->err);
    return e->rc ? 1 : e->fn(e->ctx, &b);
}

int amp_binding_each(struct amp_store *s, amp_binding_fn fn, void *ctx, struct amp_error *err)
{
    struct each e = {fn, ctx, err, 0};
    if (amp_store_each(s, AMP_BINDING_KIND, NULL, each_record, &e, err))
        return -1;
    return e.rc;
}

struct holder {
    const char *path, *agent;
    bool visiting, found;
    char *name;
};

static int is_holder(void *ctx, const struct amp_binding *b)
{
    struct holder *h = ctx;
    bool home = !h->visiting &&
                (b->state == AMP_BINDING_BOUND_HOME || b->state == AMP_BINDING_BOUND_NON_HOME ||
                 b->state == AMP_BINDING_SWITCH_PENDING) &&
                strcmp(b->worktree, h->path) == 0;
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

/* What one update works on: lives until amp_store_update returns. */
struct update {
    const struct amp_binding_step *step;
    struct amp_binding *out;
    struct amp_buf json;
};

/* Carries out the effects of a step on the record. */
static void binding_carry(struct amp_binding *b, const struct amp_binding_step *step,
                          const struct amp_fsm_result *r)
{
    const struct amp_binding *with = &step->with;
    if (r->to != b->state) {
        b->since_ms = step->now_ms;
        b->due_ms = 0;
    }
    if (r->effects & AMP_BINDING_DO_RECORD_PLACE) {
        memcpy(b->repo, with->repo, sizeof b->repo);
        memcpy(b->worktree, with->worktree, sizeof b->worktree);
        memcpy(b->branch, with->branch, sizeof b->branch);
    }
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
    if (r->effects & AMP_BINDING_DO_ARM_RECOVERY)
        b->due_ms = step->now_ms + AMP_BINDING_RECOVERY_MS;
    if (r->effects & AMP_BINDING_DO_NOTIFY_OPERATOR)
        b->due_ms = 0;
    b->invocation[0] = '\0';
    if (r->effects & AMP_BINDING_DO_ASK_APPROVAL) {
        memcpy(b->other, with->other, sizeof b->other);
        memcpy(b->invocation, with->invocation, sizeof b->invocation);
    }
    if (r->effects & AMP_BINDING_DO_ARM_TTL)
        b->due_ms = step->now_ms + (step->ttl_ms ? step->ttl_ms : AMP_BINDING_SWITCH_TTL_MS);
    if (r->effects & AMP_BINDING_DO_GO_HOME)
        b->other[0] = '\0';
    if (r->effects & AMP_BINDING_DO_RELEASE)
        b->worktree[0] = b->other[0] = b->branch[0] = '\0';
    b->state = r->to;
}

static int update_binding(void *ctx, const struct amp_store_rec *now,
                          struct amp_store_change *change, struct amp_error *err)
{
    struct update *u = ctx;
    const struct amp_binding_step *step = u->step;
    struct amp_binding b;
    struct amp_fsm_result r;
    if (decode(now, step->agent, &b, err))
        return -1;
    bool same = strcmp(b.worktree, step->with.worktree) == 0;
    if (step->event == AMP_BINDING_EV_UNBIND && b.state == AMP_BINDING_UNBOUND) {
        *u->out = b; /* applied already */
        return 1;
    }
    if (step->event == AMP_BINDING_EV_BIND && b.state == AMP_BINDING_BOUND_HOME && !same)
        return amp_fail(err, AMP_NOPERM, "permission_denied", "%s is bound to %s already",
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
    if (encode(&b, &u->json, err))
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

int amp_binding_step(struct amp_store *s, const struct amp_binding_step *step,
                     struct amp_binding *out, enum amp_store_outcome *outcome,
                     struct amp_error *err)
{
    struct amp_binding b = {0};
    struct update u = {.step = step, .out = &b};
    enum amp_store_outcome o;
    amp_buf_init(&u.json, RECORD_MAX);
    int rc = amp_store_update(s, AMP_BINDING_KIND, amp_span_str(step->agent), step->input,
                              update_binding, &u, &o, err);
    if (rc == 0 && o == AMP_STORE_REDELIVERED)
        rc = amp_binding_get(s, step->agent, &b, err);
    amp_buf_release(&u.json);
    if (rc)
        return -1;
    *out = b;
    if (outcome)
        *outcome = o;
    return 0;
}

/*
 * The filter: WORKTREE_CONTROL messages in, one acknowledgement out for each, whose result is the
 * agent's binding. Paths in messages are checked: a repository must be given on the command line
 * (or be that of --repo), and a worktree must be inside the directory for worktrees.
 *
 * payload: {operation, agent_id, repo_id?, worktree_id?, branch?, base?, target_worktree_id?,
 * ttl_ms?, requires_hitl?, reason?}; agent_id may be missing if the message's recipient is the
 * agent. For a switch that requires a person, the filter writes a HITL_INVOCATION, and only the
 * HITL_DECISION that answers it allows or refuses the switch.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "base/loop.h"
#include "bind.h"
#include "message/delivery/intake.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/settle/answer.h"
#include "message/protocol/compose/answer.h"
#include "shared/finding.h"
#include "work/git/bindings.h"
#include "work/git/person.h"

#define TTL_MAX_MS (24 * 3600 * 1000)

/* The payload of a message. */
struct control {
    char operation[32], agent[128], repo_id[PATH_MAX], worktree_id[PATH_MAX], target[PATH_MAX];
    char branch[256], base[256];
    int64_t ttl_ms;
    bool needs_person;
};

/* A message that is carried out. */
struct work {
    struct binder *s;
    const struct amp_view *v;
    struct control c;
    struct amp_store_input input;
    char from[128];        /* the sender */
    bool ran;              /* its operation was tried */
    struct amp_binding *b; /* the binding afterwards */
};

static void text_field(const struct amp_view *v, const char *key, char *out, size_t size)
{
    AMP_BUF struct amp_buf arena = {0};
    struct amp_span text = {NULL, 0};
    amp_buf_init(&arena, 1 << 20);
    out[0] = '\0';
    if (v->payload == AMP_TOK_NONE || v->tape->tok[v->payload].type != AMP_JSON_OBJECT)
        return;
    uint32_t tok = amp_tape_get(v->tape, v->payload, amp_span_str(key));
    if (tok != AMP_TOK_NONE && v->tape->tok[tok].type == AMP_JSON_STRING &&
        amp_tok_text(v->tape, tok, &arena, &text, NULL) == 0)
        amp_span_copy(text, out, size);
}

#define TEXT(v, key, field) text_field((v), (key), (field), sizeof(field))

static int control_read(const struct amp_view *v, struct control *c, struct amp_error *err)
{
    *c = (struct control){.ttl_ms = 0};
    TEXT(v, "operation", c->operation);
    TEXT(v, "agent_id", c->agent);
    TEXT(v, "repo_id", c->repo_id);
    TEXT(v, "worktree_id", c->worktree_id);
    TEXT(v, "target_worktree_id", c->target);
    TEXT(v, "branch", c->branch);
    TEXT(v, "base", c->base);
    if (!c->agent[0] && v->n_to == 1)
        amp_span_copy(v->to[0], c->agent, sizeof c->agent);
    c->needs_person = v->body.worktree.needs_human;
    uint32_t ttl =
        c->operation[0] ? amp_tape_get(v->tape, v->payload, AMP_SPAN("ttl_ms")) : AMP_TOK_NONE;
    if (ttl != AMP_TOK_NONE &&
        (!amp_tok_int(v->tape, ttl, &c->ttl_ms) || c->ttl_ms < 1 || c->ttl_ms > TTL_MAX_MS))
        return amp_fail(err, AMP_NO, validation_error, "ttl_ms: from 1 to %d", TTL_MAX_MS);
    if (!amp_id_is_safe(amp_span_str(c->agent)))
        return amp_fail(err, AMP_NO, validation_error, "agent_id: missing, or not a name");
    return 0;
}

/* True if a repo_id names the repository of --repo, by its path or by the last part of the path. */
static bool is_own_repo(const struct binder *s, const char *repo_id)
{
    char top[PATH_MAX], real[PATH_MAX];
    amp_span_copy(amp_span_str(s->info.common), top, sizeof top);
    size_t n = strlen(top);
    if (n > 5 && strcmp(top + n - 5, "/.git") == 0)
        top[n - 5] = '\0';
    if (strcmp(strrchr(top, '/') + 1, repo_id) == 0)
        return true;
    return repo_id[0] == '/' && amp_path_canonical(repo_id, real, NULL) == 0 &&
           strcmp(real, top) == 0;
}

/* The repository of a repo_id; "" is that of --repo. */
static int find_repo(const struct binder *s, const struct control *c, const char **repo,
                     struct amp_error *err)
{
    size_t n = strlen(c->repo_id);
    *repo = opt.repo;
    if (!n)
        return 0;
    for (int i = 0; i < opt.repos.n; i++)
        if (strncmp(opt.repos.v[i], c->repo_id, n) == 0 && opt.repos.v[i][n] == '=') {
            *repo = opt.repos.v[i] + n + 1;
            return 0;
        }
    if (is_own_repo(s, c->repo_id))
        return 0;
    return amp_fail(err, AMP_NO, worktree_not_found,
                    "repo_id %s: not this repository, and --repo-id does not name it", c->repo_id);
}

static int agent_bind(struct work *w, struct amp_error *err)
{
    const struct control *c = &w->c;
    char path[PATH_MAX];
    struct amp_bind_spec spec = {.agent = c->agent,
                                 .branch = c->branch[0] ? c->branch : NULL,
                                 .base = c->base[0] ? c->base : NULL,
                                 .retries = AMP_BINDING_RETRIES,
                                 .now_ms = amp_now_ms(),
                                 .prepare = &opt.prepare,
                                 .input = &w->input};
    struct amp_error place;
    if (find_repo(w->s, c, &spec.repo, &place) < 0) {
        spec.misplaced = &place;
    } else if (c->worktree_id[0]) {
        if (amp_switch_path(w->s->git, spec.repo, opt.worktrees, c->worktree_id, path, NULL,
                            &place) < 0)
            spec.misplaced = &place;
        else
            spec.path = path;
    }
    return amp_bind(w->s->store, w->s->git, &spec, w->b, err);
}

static int agent_unbind(struct work *w, struct amp_error *err)
{
    const struct amp_unbind_spec spec = {.agent = w->c.agent,
                                         .repo = opt.state || opt.repos.n ? NULL : opt.repo,
                                         .now_ms = amp_now_ms(),
                                         .input = &w->input};
    return amp_unbind(w->s->store, w->s->git, &spec, w->b, err);
}

static struct amp_switch_spec switch_spec(const struct work *w)
{
    return (struct amp_switch_spec){.agent = w->c.agent,
                                    .repo = opt.repo,
                                    .root = opt.worktrees,
                                    .target = w->c.target,
                                    .ttl_ms = w->c.ttl_ms,
                                    .person = w->c.needs_person,
                                    .by = w->from,
                                    .now_ms = amp_now_ms(),
                                    .input = &w->input};
}

/* Whether a principal is the agent: its name, or ROLE/NAME. */
static bool is_agent(const char *principal, const char *agent)
{
    const char *slash = strrchr(principal, '/');
    return strcmp(slash ? slash + 1 : principal, agent) == 0;
}

/* Whether the key that signed may decide: an operator's, or for SWITCH_APPROVE one that may speak
 * for the sender, which the configuration lists. */
static int check_signer(const struct work *w, struct amp_error *err)
{
    struct amp_identities *ids = w->s->ids;
    const struct amp_view *v = w->v;
    const struct amp_sig sig = {v->sig.key, v->sig.alg, v->sig.time, v->sig.value};
    struct amp_said said;
    struct amp_view bare = *v;
    bare.sig.key = (struct amp_span){NULL, 0};
    if (!ids)
        return 0;
    bool trusted = amp_input_is_trusted(NULL);
    if (v->sig.key.n == 0)
        return amp_identities_who(ids, v, trusted, &said, err, err) == 1 ? 0 : -1;
    struct amp_identity who;
    if (amp_verifier_message(amp_identities_verifier(ids), &sig, v->message, AMP_SPAN(""),
                             amp_now_ms(), &who, err) < 0) {
        /* A key that only another state has: the message is worth what its input is. */
        bool unknown = err->status == AMP_NO && amp_code_is(err->code, unknown_key);
        return unknown && amp_identities_who(ids, &bare, trusted, &said, err, err) == 1 ? 0 : -1;
    }
    if (is_agent(who.principal, w->c.agent))
        return amp_fail(err, AMP_NOPERM, permission_denied,
                        "%s: an agent cannot approve its own switch", w->c.agent);
    if (amp_identities_is_operator(ids, v->sig.key, who.time_ms))
        return 0;
    if (amp_span_is(v->type, "WORKTREE_CONTROL"))
        return amp_identities_who(ids, v, trusted, &said, err, err) == 1 ? 0 : -1;
    return amp_fail(err, AMP_NO, bad_sender, "the decision is signed by %s, not by an operator",
                    who.principal);
}

/* The agent that requests a switch must not approve it. */
static int check_approver(const struct work *w, struct amp_error *err)
{
    if (amp_span_is(w->v->from, w->c.agent))
        return amp_fail(err, AMP_NOPERM, permission_denied,
                        "%s: an agent cannot approve its own switch", w->c.agent);
    return amp_person_only(environ, "approve a switch", err) < 0 ? -1 : check_signer(w, err);
}

static int agent_switch(struct work *w, struct amp_error *err)
{
    struct amp_switch_spec spec = switch_spec(w);
    if (spec.ttl_ms == 0)
        spec.ttl_ms = opt.switch_ms;
    return switch_request(w->s, &spec, w->b, err);
}

static int switch_approve(struct work *w, struct amp_error *err)
{
    const struct amp_switch_spec spec = switch_spec(w);
    struct amp_binding now;
    bool approver = false;
    if (check_approver(w, err) || amp_binding_get(w->s->store, w->c.agent, &now, err) < 0)
        return -1;
    for (int i = 0; i < opt.approvers.n; i++)
        approver = approver || strcmp(opt.approvers.v[i], w->from) == 0;
    if (now.state == AMP_BINDING_SWITCH_PENDING && (now.person || !approver))
        return amp_fail(
            err, AMP_NOPERM, permission_denied,
            "%s: %s: answer HITL_INVOCATION %s, or use worktree-bind approve", w->c.agent,
            now.person ? "the switch requires a person" : "the sender is not in worktree.approvers",
            now.invocation);
    return amp_switch_approve(w->s->store, w->s->git, &spec, w->b, err);
}

static int switch_stop(struct work *w, uint8_t event, struct amp_error *err)
{
    const struct amp_switch_spec spec = switch_spec(w);
    return amp_switch_end(w->s->store, w->s->git, &spec, event, w->b, err);
}

static int switch_reject(struct work *w, struct amp_error *err)
{
    return switch_stop(w, AMP_BINDING_EV_SWITCH_REJECT, err);
}

static int switch_revoke(struct work *w, struct amp_error *err)
{
    return switch_stop(w, AMP_BINDING_EV_SWITCH_REVOKE, err);
}

static int binding_read(struct work *w, struct amp_error *err)
{
    return amp_binding_get(w->s->store, w->c.agent, w->b, err);
}

static int operation_run(struct work *w, struct amp_error *err)
{
    static const struct {
        const char *name;
        int (*run)(struct work *w, struct amp_error *err);
    } operations[] = {
        {"BIND", agent_bind},
        {"UNBIND", agent_unbind},
        {"SWITCH_REQUEST", agent_switch},
        {"SWITCH_APPROVE", switch_approve},
        {"SWITCH_REJECT", switch_reject},
        {"SWITCH_REVOKE", switch_revoke},
        {"STATUS", binding_read},
    };
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strcmp(w->c.operation, operations[i].name) == 0)
            return operations[i].run != binding_read &&
                           amp_person_or_self(environ, w->c.agent, "change its binding", err) < 0
                       ? -1
                       : operations[i].run(w, err);
    return amp_fail(err, AMP_NO, validation_error, "operation: BIND, UNBIND, STATUS or a SWITCH_*");
}

/* Whether the failure refuses one message; others are failures of the state and end the run. */
static bool is_refusal(const struct amp_error *err)
{
    return err->status == AMP_NO || err->status == AMP_NOPERM || err->status == AMP_DATAERR ||
           err->status == AMP_USAGE || err->status == AMP_CANTCREAT || err->status == AMP_IOERR ||
           err->status == AMP_UNAVAILABLE || err->status == AMP_TIMEDOUT;
}

/* Takes the agent of the binding that waits for this decision. */
static int is_asked(void *ctx, const struct amp_binding *b, struct amp_error *err)
{
    struct work *w = ctx;
    if (!b->invocation[0] || !amp_span_is(w->v->body.decision.ref, b->invocation))
        return 0;
    memcpy(w->c.agent, b->agent, sizeof w->c.agent);
    return 1;
}

/* Applies a person's decision about a switch; other words than approve and deny leave it pending.
 */
static int decision_apply(struct work *w, struct amp_error *err)
{
    struct amp_span ref = w->v->body.decision.ref, action = w->v->body.decision.action;
    if (amp_binding_each(w->s->store, is_asked, w, err) < 0)
        return -1;
    if (!*w->c.agent)
        return amp_fail(err, AMP_NO, validation_error, "%.*s: no switch waits for this decision",
                        (int)ref.n, ref.p);
    if (check_approver(w, err))
        return -1;
    if (amp_span_is(action, "approve")) {
        const struct amp_switch_spec spec = switch_spec(w);
        return amp_switch_approve(w->s->store, w->s->git, &spec, w->b, err);
    }
    return amp_span_is(action, "deny") ? switch_reject(w, err) : binding_read(w, err);
}

/* A message that was applied already. A crash may have come between a request and its approval by
 * the policy. */
static int message_repeat(struct work *w, struct amp_error *err)
{
    const struct amp_switch_spec spec = switch_spec(w);
    if (binding_read(w, err) < 0)
        return -1;
    return strcmp(w->c.operation, "SWITCH_REQUEST") == 0 ? switch_decide(w->s, &spec, w->b, err)
                                                         : 0;
}

/* Acknowledges a message for its recipient to its sender, and in the ledger if it has the message.
 * A refused one may be forged, so that it says nothing about the message of the ledger. failure:
 * NULL, or why it is refused. */
static int message_acknowledge(const struct work *w, const char *id,
                               const struct amp_error *failure, struct amp_error *err)
{
    AMP_BUF struct amp_buf record = {0}, line = {0};
    const char *code = failure ? failure->code : "";
    char by[128];
    bool failed = failure && w->ran && w->b->state == AMP_BINDING_BIND_FAILED;
    struct amp_answer a = {.stage = failed    ? AMP_STAGE_FAILED
                                    : failure ? AMP_STAGE_REJECTED
                                              : AMP_STAGE_FULFILLED,
                           .by = by,
                           .code = code,
                           .note = failure ? failure->what : NULL,
                           .now_ms = amp_now_ms()};
    amp_buf_init(&record, 64 << 10);
    amp_buf_init(&line, 1 << 20);
    amp_span_copy(w->v->n_to == 1 && w->v->to[0].n < sizeof by ? w->v->to[0]
                                                               : amp_span_str(amp_cli_name()),
                  by, sizeof by);
    if (*w->b->agent && binding_record(w->b, id, failure, &record, err) < 0)
        return -1;
    record.len -= record.len > 0; /* its LF */
    a.result = amp_buf_span(&record);
    return amp_sequence_answer(w->s->store, w->v, a.by, &a, err) < 0 ||
                   (a.stage != AMP_STAGE_REJECTED &&
                    amp_settle_known(w->s->store, w->v->id, a.stage, a.by, amp_span_str(code),
                                     a.now_ms, err) < 0) ||
                   amp_store_sync(w->s->store, err) < 0 || amp_answer_line(w->v, &a, &line, err) < 0
               ? -1
               : amp_out(amp_buf_span(&line), err);
}

/* Carries out a message and acknowledges it, also when it is refused. */
static int message_answer(struct binder *s, const struct amp_view *v, struct amp_error *err)
{
    struct amp_binding b = {0};
    struct work w = {.s = s, .v = v, .input = {"worktree-bind", v->id, v->message}, .b = &b};
    struct amp_error failed;
    char id[256];
    amp_span_copy(v->id, id, sizeof id);
    amp_span_copy(v->from, w.from, sizeof w.from);
    /* The answer to a HITL_INVOCATION is preceded by its acknowledgement. */
    if (amp_span_is(v->type, "ACKNOWLEDGEMENT"))
        return 0;
    bool decision = amp_span_is(v->type, "HITL_DECISION");
    if (!decision && !amp_span_is(v->type, "WORKTREE_CONTROL")) {
        amp_status_note(AMP_NO);
        amp_warn("%s: neither a WORKTREE_CONTROL message nor a HITL_DECISION", id);
        return 0;
    }
    if (binder_expire(s, err))
        return -1;
    int rc = decision ? 0 : control_read(v, &w.c, &failed);
    int seen = rc == 0 ? amp_store_seen(s->store, &w.input, err) : AMP_STORE_NOT_SEEN;
    if (seen < 0)
        return -1;
    if (seen == AMP_STORE_SEEN &&
        decision) /* applied already: the binding may have changed since */
        rc = 0;
    else if (seen == AMP_STORE_SEEN) /* applied already: the same answer, no second effect */
        rc = message_repeat(&w, &failed);
    else if (seen == AMP_STORE_SEEN_OTHER)
        rc =
            amp_fail(&failed, AMP_NO, duplicate_msg_id, "%s: already used with other contents", id);
    else if (decision)
        rc = decision_apply(&w, &failed);
    else if (rc == 0) {
        w.ran = true;
        rc = operation_run(&w, &failed);
    }
    if (rc && !is_refusal(&failed)) {
        *err = failed;
        return -1;
    }
    if (rc) {
        amp_status_note(failed.status == AMP_NOPERM ? AMP_NOPERM : AMP_NO);
        if (failed.status != AMP_NO || !s->ids)
            amp_complain(&failed);
        else if (amp_intake_refuse(s->intake, v, &failed, err) < 0)
            return -1;
        if (w.c.agent[0] && binding_read(&w, err))
            return -1;
    }
    if (message_acknowledge(&w, id, rc ? &failed : NULL, err) < 0)
        return -1;
    return rc == 0 && b.invocation[0] && strcmp(w.c.operation, "SWITCH_REQUEST") == 0
               ? print_question(&b, err)
               : 0;
}

static int input_drain(struct binder *s, struct amp_intake *in, struct amp_error *err)
{
    struct amp_view v;
    for (;;) {
        enum amp_intake_got got = amp_intake_next(in, &v, err);
        if (got <= AMP_INTAKE_NONE)
            return (int)got;
        if (got == AMP_INTAKE_BAD)
            amp_status_note(AMP_NO);
        else if (message_answer(s, &v, err))
            return -1;
    }
}

/* Answers messages until the end of the input, or a signal. */
static int input_follow(struct binder *s, struct amp_intake *in, struct amp_error *err)
{
    for (;;) {
        struct pollfd fd;
        struct amp_loop turn = amp_loop_turn(&fd, 1, &amp_stop, NULL);
        if (amp_identities_refresh(s->ids, err) < 0 || input_drain(s, in, err) < 0 ||
            amp_out_flush(err) < 0)
            return -1;
        if (amp_stop)
            return AMP_INTERRUPTED;
        if (in->lines.eof)
            return 0;
        amp_loop_add(&turn, STDIN_FILENO, POLLIN);
        int ended = amp_loop_wait(&turn, err);
        if (ended < 0 ||
            (ended == AMP_LOOP_READY && amp_lines_fill(&in->lines, STDIN_FILENO, err) < 0))
            return -1;
    }
}

static int verb_filter(struct amp_command *c, struct amp_error *err)
{
    struct binder *s = c->own;
    struct amp_intake in;
    const struct amp_identity_tool tool = {.state = c->state, .config = opt.config};
    if (amp_intake_init(&in, s->store, amp_cli_name(), err) < 0)
        return -1;
    in.say = amp_finding_print;
    s->intake = &in;
    int rc = amp_identity_cli_open(&opt.identity, &tool, &s->ids, err);
    if (rc == 0) {
        amp_note_terminal(NULL);
        rc = input_follow(s, &in, err);
    }
    amp_intake_release(&in);
    return rc;
}

static const struct amp_opt filter_opts[] = {
    {0, "repo-id", AMP_OPT_LIST, &opt.repos, "ID=DIR",
     .doc = "repository for the repo_id of a message"},
    WORKTREES,
    ALLOW_SWITCH,
    {0, "approver", AMP_OPT_LIST, &opt.approvers, "NAME",
     .doc = "producer whose SWITCH_APPROVE counts", .config = "worktree.approvers"},
    SWITCH_TTL,
    AMP_OPT_PREPARE(opt.prepare),
    AMP_OPT_IDENTITIES(opt.identity),
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_END,
};

const struct amp_verb control_verbs[] = {
    {NULL, "", "WORKTREE_CONTROL messages on stdin, binding states on stdout", filter_opts,
     verb_filter, .opens = AMP_OPENS_MADE, .signals = true, .who = AMP_WHO_SELF},
    {0},
};

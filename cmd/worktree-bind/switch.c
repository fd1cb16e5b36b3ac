/* switch, approve, reject, revoke; and the policy, which the messages share. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "bind.h"
#include "work/git/bindings.h"
#include "work/git/person.h"

/* Whether a setting of the person who runs this process allows the switch. A process of an agent
 * could name a configuration of its own. */
static int is_allowed(struct binder *s, const struct amp_binding *b, struct amp_error *err)
{
    struct amp_agent_caller caller;
    char path[PATH_MAX];
    const char *name = "";
    if (opt.switches.n == 0 || amp_agent_calls(environ, &caller))
        return 0;
    if (amp_switch_path(s->git, b->repo, opt.worktrees, b->other, path, &name, err) < 0)
        return -1;
    for (int i = 0; i < opt.switches.n; i++) {
        const char *pair = opt.switches.v[i], *eq = strchr(pair, '=');
        if (!eq)
            return amp_fail(err, AMP_USAGE, bad_value, "%s: AGENT=WORKTREE expected", pair);
        if (amp_span_glob(amp_span_str(b->agent), (struct amp_span){pair, (size_t)(eq - pair)}) &&
            amp_span_glob(amp_span_str(name), amp_span_str(eq + 1)))
            return 1;
    }
    return 0;
}

int switch_decide(struct binder *s, const struct amp_switch_spec *spec, struct amp_binding *b,
                  struct amp_error *err)
{
    struct amp_switch_spec approve = *spec;
    if (b->state != AMP_BINDING_SWITCH_PENDING || b->person)
        return 0;
    int allowed = is_allowed(s, b, err);
    if (allowed <= 0)
        return allowed;
    approve.target = NULL;
    approve.ttl_ms = 0;
    approve.by = "policy:worktree.switches";
    approve.input = NULL;
    return amp_switch_approve(s->store, s->git, &approve, b, err);
}

int switch_request(struct binder *s, const struct amp_switch_spec *spec, struct amp_binding *b,
                   struct amp_error *err)
{
    return amp_switch_request(s->store, s->git, spec, b, err) < 0 ||
                   switch_decide(s, spec, b, err) < 0
               ? -1
               : 0;
}

int print_question(const struct amp_binding *b, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 1 << 20);
    return amp_binding_ask(b, amp_cli_name(), amp_now_ms(), &line, err) ||
                   amp_out(amp_buf_span(&line), err)
               ? -1
               : 0;
}

static struct amp_switch_spec spec_of(const char *agent)
{
    return (struct amp_switch_spec){.agent = agent,
                                    .repo = opt.repo,
                                    .root = opt.worktrees,
                                    .ttl_ms = opt.switch_ms,
                                    .by = amp_cli_login("unknown"),
                                    .now_ms = amp_now_ms()};
}

static int verb_switch(struct amp_command *c, struct amp_error *err)
{
    struct binder *s = c->own;
    struct amp_binding b;
    struct amp_switch_spec spec = spec_of(c->argv[0]);
    spec.target = c->argv[1];
    if (switch_request(s, &spec, &b, err) < 0 || amp_store_sync(s->store, err) < 0)
        return -1;
    bool pending = b.state == AMP_BINDING_SWITCH_PENDING;
    if (pending)
        amp_note("%s: %s: worktree-bind approve %s allows it%s", b.agent,
                 amp_binding_fsm.states[b.state].name, b.agent,
                 opt.print ? ", or pass the question to hitl-prompt and its answer to worktree-bind"
                           : "; with --print the question goes to hitl-prompt");
    return pending && opt.print ? print_question(&b, err) : binding_show(&b, err);
}

static int verb_approve(struct amp_command *c, struct amp_error *err)
{
    const struct binder *s = c->own;
    struct amp_binding b;
    struct amp_switch_spec spec = spec_of(c->argv[0]);
    if (amp_binding_get(s->store, spec.agent, &b, err) < 0)
        return -1;
    spec.ttl_ms = b.ttl_ms > opt.most_ms ? opt.most_ms : 0;
    return amp_switch_approve(s->store, s->git, &spec, &b, err) < 0 ||
                   amp_store_sync(s->store, err) < 0
               ? -1
               : binding_show(&b, err);
}

static int switch_stop(struct amp_command *c, uint8_t event, struct amp_error *err)
{
    const struct binder *s = c->own;
    struct amp_binding b;
    const struct amp_switch_spec spec = spec_of(c->argv[0]);
    return amp_switch_end(s->store, s->git, &spec, event, &b, err) < 0 ||
                   amp_store_sync(s->store, err) < 0
               ? -1
               : binding_show(&b, err);
}

static int verb_reject(struct amp_command *c, struct amp_error *err)
{
    return switch_stop(c, AMP_BINDING_EV_SWITCH_REJECT, err);
}

static int verb_revoke(struct amp_command *c, struct amp_error *err)
{
    return switch_stop(c, AMP_BINDING_EV_SWITCH_REVOKE, err);
}

static const struct amp_opt switch_opts[] = {
    WORKTREES,
    ALLOW_SWITCH,
    SWITCH_TTL,
    AMP_OPT_CONFIG(opt.config),
    {0, "print", AMP_OPT_FLAG, &opt.print, NULL,
     .doc = "write the question to a person to standard output, for a pipe"},
    AMP_OPT_END,
};

static const struct amp_opt approve_opts[] = {
    WORKTREES,
    {0, "at-most", AMP_OPT_DURATION, &opt.most_ms, "TIME",
     .doc = "longest time, if more was requested (default: 24h)", .min = 1,
     .max = AMP_BINDING_SWITCH_MAX_MS},
    AMP_OPT_END,
};

const struct amp_verb switch_verbs[] = {
    {"switch", "AGENT WORKTREE", "request that an agent works in another worktree for a time",
     switch_opts, verb_switch, .least = 2, .most = 2,
     .usage = "exactly one AGENT and one WORKTREE are required",
     .opens = AMP_OPENS_MADE | BIND_OPENS_EXPIRED, .act = "request its switch", .values = "binding",
     .group = "Switching", .who = AMP_WHO_SELF},
    {"approve", "AGENT", "approve a requested switch", approve_opts, verb_approve, BIND_ONE_AGENT,
     .opens = AMP_OPENS_MADE | BIND_OPENS_EXPIRED, .act = "approve a switch", .values = "binding",
     .who = AMP_WHO_PERSON},
    {"reject", "AGENT", "reject a requested switch", NULL, verb_reject, BIND_ONE_AGENT,
     .opens = AMP_OPENS_MADE | BIND_OPENS_EXPIRED, .act = "reject its switch", .values = "binding",
     .who = AMP_WHO_SELF},
    {"revoke", "AGENT", "end a switch", NULL, verb_revoke, BIND_ONE_AGENT,
     .opens = AMP_OPENS_MADE | BIND_OPENS_EXPIRED, .act = "revoke its switch", .values = "binding",
     .who = AMP_WHO_SELF},
    {0},
};

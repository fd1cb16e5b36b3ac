/* switch, approve, reject, revoke; and the policy, which the messages share. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "bind.h"
#include "flow/bindings.h"
#include "worktree/person.h"

/* Whether a setting of the person who runs this process allows the switch. A process of an agent
 * could name a configuration of its own. */
static int is_allowed(struct session *s, const struct amp_binding *b, struct amp_error *err)
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

int switch_decide(struct session *s, const struct amp_switch_spec *spec, struct amp_binding *b,
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

int switch_request(struct session *s, const struct amp_switch_spec *spec, struct amp_binding *b,
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

int verb_switch(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err;
    struct amp_binding b;
    if (argc != 2)
        amp_die_usage("exactly one AGENT and one WORKTREE are required");
    struct amp_switch_spec spec = spec_of(argv[0]);
    spec.target = argv[1];
    if (amp_person_or_self(environ, argv[0], "request its switch", &err) ||
        session_open(&s, true, &err) || session_expire(&s, &err) ||
        switch_request(&s, &spec, &b, &err) || amp_store_sync(s.store, &err))
        return amp_complain(&err);
    bool pending = b.state == AMP_BINDING_SWITCH_PENDING;
    if (pending)
        amp_note("%s: %s: worktree-bind approve %s allows it%s", b.agent,
                 amp_binding_fsm.states[b.state].name, b.agent,
                 opt.print ? ", or pass the question to hitl-prompt and its answer to worktree-bind"
                           : "; with --print the question goes to hitl-prompt");
    return (pending && opt.print ? print_question(&b, &err) : binding_show(&b, &err))
               ? amp_complain(&err)
               : 0;
}

static const char *one_agent(int argc, char **argv)
{
    if (argc != 1)
        amp_die_usage("exactly one AGENT is required");
    return argv[0];
}

int verb_approve(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err;
    struct amp_binding b;
    struct amp_switch_spec spec = spec_of(one_agent(argc, argv));
    if (amp_person_only(environ, "approve a switch", &err) || session_open(&s, true, &err) ||
        session_expire(&s, &err) || amp_binding_get(s.store, spec.agent, &b, &err))
        return amp_complain(&err);
    spec.ttl_ms = b.ttl_ms > opt.most_ms ? opt.most_ms : 0;
    if (amp_switch_approve(s.store, s.git, &spec, &b, &err) || amp_store_sync(s.store, &err) ||
        binding_show(&b, &err))
        return amp_complain(&err);
    return 0;
}

static int switch_stop(const char *agent, uint8_t event, const char *act)
{
    SESSION s = {0};
    struct amp_error err;
    struct amp_binding b;
    const struct amp_switch_spec spec = spec_of(agent);
    if (amp_person_or_self(environ, agent, act, &err) || session_open(&s, true, &err) ||
        session_expire(&s, &err) || amp_switch_end(s.store, s.git, &spec, event, &b, &err) ||
        amp_store_sync(s.store, &err) || binding_show(&b, &err))
        return amp_complain(&err);
    return 0;
}

int verb_reject(int argc, char **argv)
{
    return switch_stop(one_agent(argc, argv), AMP_BINDING_EV_SWITCH_REJECT, "reject its switch");
}

int verb_revoke(int argc, char **argv)
{
    return switch_stop(one_agent(argc, argv), AMP_BINDING_EV_SWITCH_REVOKE, "revoke its switch");
}

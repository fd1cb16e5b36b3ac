/*
 * suspend and resume, the emergency stop. A suspension is one commit; the log wakes the tools,
 * which end their agents. Processes that still run after a while are killed here, so that a tool
 * that is stuck does not keep its agent alive.
 */
#include "hitl.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "cli/list.h"
#include "message/delivery/sender/identity.h"
#include "message/pause/watch.h"
#include "message/protocol/amp/amp.h"
#include "people/pause/end.h"
#include "people/pause/publish.h"
#include "people/question/operators/operators.h"
#include "work/agent/work.h"
#include "work/task/task.h"

#define LIST_MAX    65536
#define SUSPEND_ACT "suspend and resume work"

static const char *reason;
static bool all, is_task, is_agent, list;

#define OPT_COMMON                                                                                 \
    {0, "reason", AMP_OPT_STRING, &reason, "TEXT", .doc = "record why"},                           \
        {0, "task", AMP_OPT_FLAG, &is_task, NULL, .doc = "the operands are tasks"},                \
    {                                                                                              \
        0, "agent", AMP_OPT_FLAG, &is_agent, NULL, .doc = "the operands are agents"                \
    }

static const struct amp_opt suspend_opts[] = {
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "suspend everything in the state directory"},
    {'l', "list", AMP_OPT_FLAG, &list, NULL, .doc = "list what people suspended"},
    AMP_OPT_JSON("with --list: print one JSON object per line"),
    OPT_COMMON,
    AMP_OPT_END,
};

static const struct amp_opt resume_opts[] = {
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "resume everything that people suspended"},
    OPT_COMMON,
    AMP_OPT_END,
};

struct act {
    struct amp_store *store;
    struct amp_pause who; /* the person; scope and name are those of the current operand */
    char dir[PATH_MAX];
    struct amp_identities *ids; /* NULL: identities are off, or the key is not available */
    char alg[64], signature[AMP_SSHSIG_BASE64_MAX];
};

/* ---- who, and what ---- */

/* The emergency stop does not wait for a key: without one it is not signed. */
static void identities_find(struct act *a)
{
    struct amp_error why;

    if (hitl_identities(&a->ids, &why) == 0)
        return;
    amp_warn("this is not signed: %s", why.what);
    amp_identities_close(a->ids);
    a->ids = NULL;
}

/* Signs what a->who says. */
static void pause_sign(struct act *a, bool resume)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_signer *by = amp_identities_signer(a->ids);
    struct amp_error why;

    a->who.alg = a->who.key = a->who.signature = AMP_SPAN("");
    if (!by)
        return;
    amp_buf_init(&text, LIST_MAX);
    if (amp_pause_text(&a->who, resume, &text, &why) < 0 ||
        amp_signer_sign(by, AMP_PAUSE_NAMESPACE, amp_buf_span(&text), a->signature, &why) < 0) {
        amp_warn("this is not signed: %s", why.what);
        return;
    }
    snprintf(a->alg, sizeof a->alg, "%s", amp_signer_alg(by));
    a->who.alg = amp_span_str(a->alg);
    a->who.key = amp_span_str(amp_signer_public(by)->fingerprint);
    a->who.signature = amp_span_str(a->signature);
}

static int person_find(struct act *a, struct amp_error *err)
{
    identities_find(a);
    if (hitl_author.how != AMP_KNOWN_BY_KEY)
        hitl_author.how = AMP_KNOWN_BY_LOGIN;
    const struct amp_answerer who = {.name = hitl_operator,
                                     .principal = hitl_author.principal,
                                     .key = hitl_author.key,
                                     .login = hitl_people.login,
                                     .by = hitl_author.how};
    if (!amp_operators_is(hitl_people.operators, &who, err))
        return -1;
    a->who = (struct amp_pause){.person = amp_span_str(who.name),
                                .by = amp_span_str(amp_known_by_name(who.by)),
                                .channel = AMP_SPAN("command"),
                                .reason = amp_span_str(reason),
                                .since_ms = amp_now_ms()};
    return 0;
}

/* Whether an operand is a task or an agent. */
static int operand_find(struct act *a, const char *name, struct amp_error *err)
{
    struct amp_agent_status agent;
    struct amp_task_status task;

    a->who.name = amp_span_str(name);
    if (is_task || is_agent) {
        a->who.scope = is_task ? AMP_PAUSE_TASK : AMP_PAUSE_AGENT;
        return 0;
    }
    if (amp_agent_status(a->store, name, &agent, err) < 0 ||
        amp_task_status(a->store, a->who.name, &task, err) < 0)
        return -1;
    bool tasks = task.found || amp_is_task_id(a->who.name);
    if (agent.found && tasks)
        return amp_fail(err, AMP_USAGE, ambiguous,
                        "\"%.100s\" is a task and an agent: give --task or --agent", name);
    if (!agent.found && !tasks)
        return amp_fail(err, AMP_NO, unknown_subject,
                        "\"%.100s\" is neither a task nor an agent of %s (--task or --agent "
                        "suspends it nevertheless)",
                        name, hitl_state);
    a->who.scope = tasks ? AMP_PAUSE_TASK : AMP_PAUSE_AGENT;
    return 0;
}

/* ---- suspend ---- */

static int one_suspend(struct act *a, struct amp_error *err)
{
    bool changed;
    char said[AMP_PAUSE_SAID_MAX];

    pause_sign(a, false);
    if (amp_pause_suspend(a->store, &a->who, &changed, err) < 0)
        return -1;
    amp_pause_say(&a->who, said);
    if (changed)
        amp_note("%s", said);
    else
        amp_note("%s %.*s is suspended already", amp_pause_scope_name((int)a->who.scope),
                 AMP_CLIP(a->who.name, 200));
    return 0;
}

/* All names are looked up before the first is suspended. */
static int names_act(struct act *a, int argc, char **argv,
                     int (*fn)(struct act *a, struct amp_error *err), struct amp_error *err)
{
    for (int i = 0; i < argc; i++)
        if (operand_find(a, argv[i], err) < 0)
            return -1;
    for (int i = 0; i < argc; i++)
        if (operand_find(a, argv[i], err) < 0 || fn(a, err) < 0)
            return -1;
    if (argc == 0) {
        a->who.scope = AMP_PAUSE_ALL;
        a->who.name = AMP_SPAN("");
        if (fn(a, err) < 0)
            return -1;
    }
    return amp_store_sync(a->store, err);
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct amp_pause, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct amp_pause, key, head, member)
static const struct amp_column columns[] = {
    EVER(TIME, "since", "SINCE", since_ms),
    AMP_COLUMN_WORD(struct amp_pause, "scope", "SCOPE", scope, amp_pause_scope_name),
    SOME(TEXT, "name", "NAME", name),
    EVER(TEXT, "operator", "BY", person),
    EVER(TEXT, "by", NULL, by),
    SOME(TEXT, "key", NULL, key),
    EVER(TEXT, "channel", NULL, channel),
    SOME(TEXT, "reason", "REASON", reason),
    {0},
};

static int pauses_list(const struct amp_pauses *p, struct amp_listing *l, struct amp_error *err)
{
    for (uint32_t i = 0; i < p->n_v; i++)
        if (amp_listing_row(l, &p->v[i], err) < 0)
            return -1;
    return 0;
}

static int suspend_act(struct act *a, struct amp_command *c, struct amp_error *err)
{
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses now = {0};

    amp_pauses_init(&now);
    if (list)
        return amp_pauses_read(a->store, &now, err) < 0 || pauses_list(&now, c->list, err) < 0 ? -1
                                                                                               : 0;
    if (!realpath(hitl_state, a->dir))
        return amp_fail_errno(err, AMP_IOERR, "%s", hitl_state);
    if (person_find(a, err) < 0 || names_act(a, c->argc, c->argv, one_suspend, err) < 0 ||
        amp_pauses_read(a->store, &now, err) < 0)
        return -1;
    int left = amp_pause_end(a->dir, &now, amp_note);
    if (amp_pause_publish(a->store, &now, amp_warn, err) < 0)
        return -1;
    return left == 0 ? 0
                     : amp_fail(err, AMP_TEMPFAIL, still_running,
                                "%d process%s of suspended agents still run%s", left,
                                left == 1 ? "" : "es", left == 1 ? "s" : "");
}

static int suspend_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if ((c->argc > 0) + all + list != 1)
        amp_die_usage("give tasks and agents, or --all, or --list");
    if (is_task && is_agent)
        amp_die_usage("--task and --agent exclude each other");
    if (!list) {
        c->act = SUSPEND_ACT;
        c->none = NULL;
        return 0;
    }
    c->opens = AMP_OPENS_LOOK;
    return 0;
}

static int hitl_suspend(struct amp_command *c, struct amp_error *err)
{
    struct act a = {.store = c->store};

    int rc = suspend_act(&a, c, err);
    amp_identities_close(a.ids);
    return rc;
}

/* ---- resume ---- */

static int one_resume(struct act *a, struct amp_error *err)
{
    uint32_t n;

    pause_sign(a, true);
    if (amp_pause_resume(a->store, &a->who, &n, err) < 0)
        return -1;
    if (a->who.scope != AMP_PAUSE_ALL)
        amp_note("%s %.*s %s", amp_pause_scope_name((int)a->who.scope), AMP_CLIP(a->who.name, 200),
                 n ? "is resumed" : "is not suspended by a person");
    else if (n)
        amp_note("everything is resumed (%u suspension%s)", n, n == 1 ? "" : "s");
    else
        amp_note("nothing is suspended by people");
    return 0;
}

static int resume_act(struct act *a, struct amp_command *c, struct amp_error *err)
{
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses now = {0};

    amp_pauses_init(&now);
    if (person_find(a, err) < 0 || names_act(a, c->argc, c->argv, one_resume, err) < 0 ||
        amp_pauses_read(a->store, &now, err) < 0 ||
        amp_pause_publish(a->store, &now, amp_warn, err) < 0)
        return -1;
    const struct amp_pause *still = amp_pauses_find(&now, AMP_SPAN(""), AMP_SPAN(""));
    if (still)
        amp_note("everything is still suspended; hitl-prompt resume --all ends that");
    return 0;
}

static int resume_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if ((c->argc > 0) + all != 1)
        amp_die_usage("give tasks and agents, or --all");
    if (is_task && is_agent)
        amp_die_usage("--task and --agent exclude each other");
    return 0;
}

static int hitl_resume(struct amp_command *c, struct amp_error *err)
{
    struct act a = {.store = c->store};

    int rc = resume_act(&a, c, err);
    amp_identities_close(a.ids);
    return rc;
}

const struct amp_verb suspend_verbs[] = {
    {"suspend", "[TASK|AGENT…]", "stop agents at once", suspend_opts, hitl_suspend,
     .check = suspend_check, .opens = AMP_OPENS_FOUND | HITL_OPENS_PEOPLE, .lists = columns,
     .none = "nothing is suspended by people", .signals = true, .finds_state = true,
     .values = "task agent", .who = AMP_WHO_PERSON},
    {"resume", "[TASK|AGENT…]", "let suspended work go on", resume_opts, hitl_resume,
     .check = resume_check, .opens = AMP_OPENS_FOUND | HITL_OPENS_PEOPLE, .act = SUSPEND_ACT,
     .signals = true, .finds_state = true, .values = "task agent", .who = AMP_WHO_PERSON},
    {0},
};

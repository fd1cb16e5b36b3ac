/* Finds the verb of the command line, and suggestions for an unknown verb or option. */
#include "cli/private.h"

#include <string.h>

#include "base/codes.h"
#include "base/nearest.h"

/* The number of words at args that are the verb's name; 0: it is another verb. */
static int verb_matches(const char *name, char **args)
{
    size_t n = strcspn(name, " ");
    if (strncmp(name, args[0], n) != 0 || args[0][n] != '\0')
        return 0;
    if (!name[n])
        return 1;
    return args[1] && strcmp(name + n + 1, args[1]) == 0 ? 2 : 0;
}

static void command_match(struct cli_command *c)
{
    CLI_EACH_VERB (v, at) {
        int w = v->name ? verb_matches(v->name, c->at) : 0;
        if (w > c->words) {
            c->words = w;
            c->verb = v;
        }
    }
}

struct cli_command cli_find_verb(char **args)
{
    struct cli_command c = {0};
    CLI_EACH_VERB (v, at)
        if (!v->name)
            c.verb = v;
    /* Only options of the tool may precede a verb; others belong to the verbless form. */
    struct cli_parse p = {
        .tables = {cli_standard_opts, cli_machine_opts, cli_tool->redact ? cli_redact_opts : NULL,
                   cli_tool->values ? cli_values_opts : NULL, cli_tool->opts, NULL}};
    for (; *args && (*args)[0] == '-' && (*args)[1] && strcmp(*args, "--") != 0; args++) {
        const char *a = *args;
        bool lng = a[1] == '-';
        size_t n = lng ? strcspn(a + 2, "=") : 1;
        int i = cli_opt_find(&p, lng ? 0 : a[1], (struct amp_span){a + 2, n});
        if (i < 0)
            return c;
        bool joined = lng ? a[2 + n] == '=' : a[2] != '\0';
        if (cli_opt_takes_arg(cli_opt_at(&p, i)) && !joined && args[1])
            args++;
    }
    if (!*args || strcmp(*args, "--") == 0)
        return c;
    c.at = args;
    command_match(&c);
    return c;
}

static bool takes_operands(const struct amp_verb *v)
{
    return v && v->args && *v->args;
}

/* Whether the verb has two words and the first is this one. */
static bool in_group(const struct amp_verb *v, const char *group)
{
    size_t n = strlen(group);
    return v->name && strncmp(v->name, group, n) == 0 && v->name[n] == ' ';
}

const char *cli_verb_group(const struct cli_command *c)
{
    if (!c->at || c->words > 0 || takes_operands(c->verb))
        return NULL;
    CLI_EACH_VERB (v, at)
        if (in_group(v, c->at[0]))
            return c->at[0];
    return NULL;
}

bool cli_verb_listed(const struct amp_verb *v, const char *group)
{
    return v->name && (!group || in_group(v, group));
}

/* Whether the verb before it has the same first word. */
static bool is_of_group(const struct amp_verb *const *at)
{
    const char *name = (*at)->name;
    size_t n = strcspn(name, " ");
    return at > cli_verbs && at[-1]->name && strncmp(at[-1]->name, name, n) == 0 &&
           (at[-1]->name[n] == ' ' || at[-1]->name[n] == '\0');
}

enum { VERBS_MOST = 350 };

/* "list, show": the second words of a group, or all verbs; their first words if all are too long
 * for an error. */
static void list_verbs(const char *group, char *out, size_t size)
{
    size_t n = SIZE_MAX;
    for (int heads = 0; heads < 2 && n > VERBS_MOST; heads++) {
        n = 0;
        out[0] = '\0';
        CLI_EACH_VERB (v, at) {
            if (!cli_verb_listed(v, group) || n >= size || (heads && is_of_group(at)))
                continue;
            const char *name = v->name + (group ? strlen(group) + 1 : 0);
            n += (size_t)snprintf(out + n, size - n, "%s%.*s", n ? ", " : "",
                                  (int)(heads ? strcspn(name, " ") : strlen(name)), name);
        }
    }
}

/* Words that people try as verbs, after other tools, and the command that does it. */
static const struct guess {
    const char *tool, *word, *command;
} guesses[] = {
    {"agent-registry", "add", "agent-registry register"},
    {"agent-registry", "describe", "agent-registry show"},
    {"agent-registry", "get", "agent-registry show"},
    {"agent-registry", "info", "agent-registry show"},
    {"agent-registry", "join", "agent-registry register"},
    {"agent-registry", "leave", "agent-registry deregister"},
    {"agent-registry", "ping", "agent-registry heartbeat"},
    {"agent-registry", "remove", "agent-registry deregister"},
    {"agent-registry", "rm", "agent-registry deregister"},
    {"agent-registry", "skills", "agent-registry capabilities"},
    {"agent-registry", "status", "agent-registry list"},
    {"amp-ack", "ack", "amp-ack send"},
    {"amp-ack", "approve", "hitl-prompt answer ID approve"},
    {"amp-ack", "check", "amp-ack doctor"},
    {"amp-ack", "dead delete", "amp-ack dead purge"},
    {"amp-ack", "dead remove", "amp-ack dead purge"},
    {"amp-ack", "dead resend", "amp-ack dead requeue"},
    {"amp-ack", "dead retry", "amp-ack dead requeue"},
    {"amp-ack", "dead rm", "amp-ack dead purge"},
    {"amp-ack", "done", "amp-ack complete"},
    {"amp-ack", "fsck", "amp-ack doctor"},
    {"amp-ack", "history", "amp-ack log"},
    {"amp-ack", "inbox", "amp-route inbox"},
    {"amp-ack", "list", "amp-ack status --all"},
    {"amp-ack", "ls", "amp-ack status --all"},
    {"amp-ack", "nack", "amp-ack fail"},
    {"amp-ack", "reject", "amp-ack fail"},
    {"amp-ack", "requeue", "amp-ack dead requeue"},
    {"amp-ack", "resend", "amp-ack dead requeue"},
    {"amp-ack", "retry", "amp-ack dead requeue"},
    {"amp-ack", "tail", "amp-ack log --follow"},
    {"amp-ack", "top", "amp-top"},
    {"amp-ack", "verify", "amp-ack audit --verify"},
    {"amp-route", "deliver", "amp-route -r RULE"},
    {"amp-route", "pub", "amp-route -r RULE"},
    {"amp-route", "publish", "amp-route -r RULE"},
    {"amp-route", "read", "amp-route inbox"},
    {"amp-route", "receive", "amp-route inbox"},
    {"amp-route", "send", "amp-route -r RULE"},
    {"amp-route", "sub", "amp-route inbox AGENT --follow"},
    {"amp-route", "subscribe", "amp-route inbox AGENT --follow"},
    {"amp-route", "tail", "amp-route inbox AGENT --follow"},
    {"amp-sign", "add", "amp-sign trust add"},
    {"amp-sign", "check", "amp-sign verify"},
    {"amp-sign", "generate", "amp-sign keygen"},
    {"amp-sign", "keys", "amp-sign trust list"},
    {"amp-sign", "list", "amp-sign trust list"},
    {"amp-sign", "ls", "amp-sign trust list"},
    {"amp-sign", "sign", "amp-sign"},
    {"hitl-prompt", "allow", "hitl-prompt answer ID approve"},
    {"hitl-prompt", "approve", "hitl-prompt answer ID approve"},
    {"hitl-prompt", "continue", "hitl-prompt resume"},
    {"hitl-prompt", "deny", "hitl-prompt answer ID deny"},
    {"hitl-prompt", "history", "hitl-prompt audit"},
    {"hitl-prompt", "kill", "hitl-prompt suspend"},
    {"hitl-prompt", "log", "hitl-prompt audit"},
    {"hitl-prompt", "no", "hitl-prompt answer ID deny"},
    {"hitl-prompt", "pause", "hitl-prompt suspend"},
    {"hitl-prompt", "reject", "hitl-prompt answer ID deny"},
    {"hitl-prompt", "stop", "hitl-prompt suspend"},
    {"hitl-prompt", "yes", "hitl-prompt answer ID approve"},
    {"agent-handoff", "list", "agent-handoff pending"},
    {"agent-handoff", "ls", "agent-handoff pending"},
    {"aof-board", "add", "aof-board new"},
    {"aop-session", "ls", "aop-session list"},
    {"task-dispatch", "activity purge", "agent-handoff activity purge"},
    {"task-dispatch", "activity", "agent-handoff activity"},
    {"task-dispatch", "add", "task-dispatch new"},
    {"task-dispatch", "again", "task-dispatch retry"},
    {"task-dispatch", "aof end", "aof-board end"},
    {"task-dispatch", "aof new", "aof-board new"},
    {"task-dispatch", "aof poll", "aof-board poll"},
    {"task-dispatch", "aof", "aof-board"},
    {"task-dispatch", "approve", "hitl-prompt answer ID approve"},
    {"task-dispatch", "cd", "task-dispatch open"},
    {"task-dispatch", "checkout", "task-dispatch open"},
    {"task-dispatch", "create", "task-dispatch new"},
    {"task-dispatch", "delete", "task-dispatch cancel"},
    {"task-dispatch", "describe", "task-dispatch show"},
    {"task-dispatch", "handoff accept", "agent-handoff accept"},
    {"task-dispatch", "handoff complete", "agent-handoff complete"},
    {"task-dispatch", "handoff pending", "agent-handoff pending"},
    {"task-dispatch", "handoff reject", "agent-handoff reject"},
    {"task-dispatch", "handoff request", "agent-handoff request"},
    {"task-dispatch", "handoff", "agent-handoff"},
    {"task-dispatch", "info", "task-dispatch show"},
    {"task-dispatch", "kill", "task-dispatch cancel"},
    {"task-dispatch", "ls", "task-dispatch list"},
    {"task-dispatch", "merge", "task-dispatch land"},
    {"task-dispatch", "override", "task-queue override"},
    {"task-dispatch", "pause", "hitl-prompt suspend"},
    {"task-dispatch", "preempt", "task-queue preempt"},
    {"task-dispatch", "ps", "task-queue status"},
    {"task-dispatch", "queue accounts", "task-queue accounts"},
    {"task-dispatch", "queue rank", "task-queue rank"},
    {"task-dispatch", "queue show", "task-queue show"},
    {"task-dispatch", "queue", "task-queue list"},
    {"task-dispatch", "remove", "task-dispatch cancel"},
    {"task-dispatch", "rm", "task-dispatch cancel"},
    {"task-dispatch", "session escalate", "aop-session escalate"},
    {"task-dispatch", "session list", "aop-session list"},
    {"task-dispatch", "session report", "aop-session report"},
    {"task-dispatch", "session rollback", "aop-session rollback"},
    {"task-dispatch", "session show", "aop-session show"},
    {"task-dispatch", "session", "aop-session list"},
    {"task-dispatch", "setup", "task-dispatch init"},
    {"task-dispatch", "shutdown", "task-queue shutdown"},
    {"task-dispatch", "start", "task-dispatch loop"},
    {"task-dispatch", "status", "task-queue status"},
    {"task-dispatch", "stop", "task-dispatch cancel"},
    {"task-dispatch", "submit", "task-queue submit"},
    {"task-dispatch", "switch", "task-dispatch open"},
    {"task-dispatch", "up", "task-dispatch loop"},
    {"task-dispatch", "view", "task-dispatch show"},
    {"task-dispatch", "watch", "amp-top"},
    {"task-dispatch", "work", "task-queue work"},
    {"task-queue", "add", "task-queue submit"},
    {"task-queue", "delete", "task-queue cancel"},
    {"task-queue", "drain", "task-queue work --drain"},
    {"task-queue", "kill", "task-queue cancel"},
    {"task-queue", "ls", "task-queue list"},
    {"task-queue", "ps", "task-queue status"},
    {"task-queue", "put", "task-queue submit"},
    {"task-queue", "remove", "task-queue cancel"},
    {"task-queue", "rm", "task-queue cancel"},
    {"task-queue", "run", "task-queue work"},
    {"task-queue", "stop", "task-queue shutdown"},
    {"worktree-bind", "add", "worktree-bind bind"},
    {"worktree-bind", "cd", "worktree-bind path"},
    {"worktree-bind", "clean", "worktree-bind gc --apply"},
    {"worktree-bind", "create", "worktree-bind bind"},
    {"worktree-bind", "install", "worktree-bind hooks install"},
    {"worktree-bind", "ls", "worktree-bind list"},
    {"worktree-bind", "new", "worktree-bind bind"},
    {"worktree-bind", "protect", "worktree-bind hooks install"},
    {"worktree-bind", "prune", "worktree-bind gc --apply"},
    {"worktree-bind", "remove", "worktree-bind unbind"},
    {"worktree-bind", "rm", "worktree-bind unbind"},
    {"worktree-bind", "run", "worktree-bind exec"},
};

/* The command that the word means, or NULL. */
static const char *word_guess(const char *word)
{
    for (size_t i = 0; i < sizeof guesses / sizeof guesses[0]; i++)
        if (strcmp(guesses[i].tool, cli_tool->name) == 0 && strcmp(guesses[i].word, word) == 0)
            return guesses[i].command;
    return NULL;
}

/* The verb, or the group of verbs, nearest to the text; "": none. */
static void guess_verb(const char *text, struct amp_nearest *near)
{
    amp_nearest_init(near, amp_span_str(text));
    CLI_EACH_VERB (v, at)
        if (v->name) {
            amp_nearest_try(near, amp_span_str(v->name));
            amp_nearest_try(near, (struct amp_span){v->name, strcspn(v->name, " ")});
        }
    size_t n = strlen(text);
    CLI_EACH_VERB (v, at)
        if (!near->word[0] && v->name && n >= 3 && strncmp(v->name, text, n) == 0)
            amp_span_copy(amp_span_str(v->name), near->word, sizeof near->word);
}

static bool has_verbs(void)
{
    CLI_EACH_VERB (v, at)
        if (v->name)
            return true;
    return false;
}

static int unknown_verb(const struct amp_verb *verb, char **at, struct amp_error *err)
{
    char both[130], all[400];
    struct amp_nearest near = {.word = ""};
    struct cli_command c = {.at = at};
    const char *group = cli_verb_group(&c);
    const char *second = at[1] && at[1][0] != '-' ? at[1] : NULL;
    snprintf(both, sizeof both, "%.64s%s%.64s", at[0], second ? " " : "", second ? second : "");
    const char *pair = second ? word_guess(both) : NULL;
    const char *command = pair ? pair : word_guess(at[0]);
    if (command && !group)
        return amp_fail(err, AMP_USAGE, unknown_verb, "unknown verb '%s': use '%s'",
                        pair ? both : at[0], command);
    if (second)
        guess_verb(both, &near);
    list_verbs(group, all, sizeof all);
    if (group && !second)
        return amp_fail(err, AMP_USAGE, missing_verb, "'%s' needs a verb: %s", group, all);
    if (near.word[0])
        return amp_fail(err, AMP_USAGE, unknown_verb, "unknown verb '%s' (did you mean '%s'?)",
                        both, near.word);
    if (command)
        return amp_fail(err, AMP_USAGE, unknown_verb, "unknown verb '%s': use '%s'",
                        pair ? both : at[0], command);
    if (strcmp(at[0], "version") == 0)
        return amp_fail(err, AMP_USAGE, unknown_verb, "unknown verb 'version': use '%s --version'",
                        cli_tool->name);
    if (group)
        return amp_fail(err, AMP_USAGE, unknown_verb, "unknown verb '%s': '%s' has %s", both, group,
                        all);
    if (!near.word[0])
        guess_verb(at[0], &near);
    if (near.word[0])
        return amp_fail(err, AMP_USAGE, unknown_verb, "unknown verb '%.64s' (did you mean '%s'?)",
                        at[0], near.word);
    if (verb && verb->operand_hint)
        return amp_fail(err, AMP_USAGE, unknown_verb, "unknown verb '%.64s': %s", at[0],
                        verb->operand_hint);
    return amp_fail(err, AMP_USAGE, unknown_verb, "unknown verb '%.64s': the verbs are %s", at[0],
                    all);
}

int cli_check_verb(const struct cli_command *c, struct amp_error *err)
{
    char all[400];
    if (c->words > 0 || takes_operands(c->verb) || !has_verbs())
        return 0;
    if (c->at)
        return unknown_verb(c->verb, c->at, err);
    if (c->verb)
        return 0;
    list_verbs(NULL, all, sizeof all);
    return amp_fail(err, AMP_USAGE, missing_verb, "a verb is missing: %s", all);
}

int cli_check_operands(const struct amp_verb *verb, const struct amp_list *operands,
                       struct amp_error *err)
{
    struct cli_command c = {0};
    if (operands->n == 0 || takes_operands(verb))
        return 0;
    memcpy(&c.at, &operands->v, sizeof c.at);
    if (!verb->name && has_verbs()) {
        command_match(&c);
        return c.words > 0 ? amp_fail(err, AMP_USAGE, misplaced_verb,
                                      "the verb '%s' must come before its options", c.verb->name)
                           : unknown_verb(verb, c.at, err);
    }
    return amp_fail(err, AMP_USAGE, unexpected_operand, "%s%sunexpected operand '%.64s'%s%s",
                    verb->name ? verb->name : "", verb->name ? ": " : "", operands->v[0],
                    verb->operand_hint ? ": " : "", verb->operand_hint ? verb->operand_hint : "");
}

/* A verb that has this option; a named one rather than the verbless form. */
static const struct amp_verb *other_owner(struct amp_span name)
{
    const struct amp_verb *found = NULL;
    CLI_EACH_VERB (v, at)
        for (const struct amp_opt *o = v->opts; o && (o->name || o->letter); o++)
            if (o->name && amp_span_is(name, o->name) && (!found || !found->name))
                found = v;
    return found;
}

int cli_unknown_option(const struct cli_parse *p, struct amp_span name, struct amp_error *err)
{
    const struct amp_opt *o;
    struct amp_nearest near;
    int n = name.n > 64 ? 64 : (int)name.n;
    const struct amp_verb *other = other_owner(name);
    if (other && other->name)
        return amp_fail(err, AMP_USAGE, unknown_option, "unknown option --%.*s ('%s' has it)", n,
                        name.p, other->name);
    if (other)
        return amp_fail(err, AMP_USAGE, unknown_option,
                        "unknown option --%.*s (only without a verb)", n, name.p);
    amp_nearest_init(&near, name);
    for (int i = 0; (o = cli_opt_at(p, i)); i++)
        if (o->name)
            amp_nearest_try(&near, amp_span_str(o->name));
    for (int i = 0; !near.word[0] && name.n >= 3 && (o = cli_opt_at(p, i)); i++)
        if (o->name && strncmp(o->name, name.p, name.n) == 0)
            amp_span_copy(amp_span_str(o->name), near.word, sizeof near.word);
    if (near.word[0])
        return amp_fail(err, AMP_USAGE, unknown_option,
                        "unknown option --%.*s (did you mean '--%s'?)", n, name.p, near.word);
    return amp_fail(err, AMP_USAGE, unknown_option, "unknown option --%.*s", n, name.p);
}

/* hooks install, uninstall, check, override. Only people may use the verbs that change the guard.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "../bind.h"
#include "base/codes.h"
#include "work/git/hooks.h"
#include "work/git/override.h"
#include "work/git/paths/glob.h"

static int hooks_find(const struct binder *s, struct amp_hooks *h, struct amp_error *err)
{
    if (amp_hooks_find(s->git, opt.repo, opt.hooks_dir, h, err) < 0)
        return -1;
    h->server = opt.server;
    return 0;
}

static int list_copy(const char *to[AMP_RULE_PATTERNS_MAX + 1], const struct amp_list *from,
                     struct amp_error *err)
{
    for (int i = 0; i < from->n; i++) {
        if (i == AMP_RULE_PATTERNS_MAX)
            return amp_fail(err, AMP_USAGE, bad_value, "more than %d", AMP_RULE_PATTERNS_MAX);
        if (!*from->v[i] || strpbrk(from->v[i], "\n\r"))
            return amp_fail(err, AMP_USAGE, bad_value, "'%s' cannot be a pattern or a name",
                            from->v[i]);
        to[i] = from->v[i];
        to[i + 1] = NULL;
    }
    return 0;
}

/* "ROLE=PATTERN" becomes "ROLE PATTERN", as in the policy; text has the copies. */
static int roles_copy(const char *to[AMP_RULE_PATTERNS_MAX + 1], const struct amp_list *from,
                      struct amp_buf *text, struct amp_error *err)
{
    for (int i = 0; i < from->n; i++) {
        const char *v = from->v[i], *sign = strchr(v, '=');
        if (!sign || sign == v || !sign[1] || strpbrk(v, " \n\r"))
            return amp_fail(err, AMP_USAGE, bad_value, "'%s': ROLE=PATTERN expected", v);
        if (amp_buf_fmt(text, err, "%.*s %s", (int)(sign - v), v, sign + 1) < 0 ||
            amp_buf_add(text, "", 1, err) < 0)
            return -1;
    }
    const char *p = text->data;
    for (int i = 0; i < from->n; i++, p += strlen(p) + 1) {
        if (i == AMP_RULE_PATTERNS_MAX)
            return amp_fail(err, AMP_USAGE, bad_value, "more than %d", AMP_RULE_PATTERNS_MAX);
        to[i] = p;
        to[i + 1] = NULL;
    }
    return 0;
}

static int trailers_check(struct amp_error *err)
{
    for (int i = 0; i < opt.trailers.n; i++) {
        const char *v = opt.trailers.v[i];
        if (strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") !=
            strlen(v))
            return amp_fail(err, AMP_USAGE, bad_value, "'%s' cannot be a trailer's name", v);
    }
    return 0;
}

static int paths_check(struct amp_error *err)
{
    for (int i = 0; i < opt.paths.n; i++)
        if (amp_glob_check(amp_span_str(opt.paths.v[i]), err) < 0)
            return -1;
    return 0;
}

/* The policy of the options; text has the strings that are not in them. */
static int rule_make(struct amp_rule *rule, struct amp_buf *text, struct amp_error *err)
{
    amp_rule_default(rule);
    rule->humans_refuse = strcmp(opt.humans, "refuse") == 0;
    rule->server_all = opt.server;
    rule->bound = opt.bound;
    rule->max_file = opt.max_file;
    rule->max_commit = opt.max_commit;
    return list_copy(rule->patterns, &opt.protect, err) < 0 ||
                   list_copy(rule->pushers, &opt.pushers, err) < 0 ||
                   list_copy(rule->trailers, &opt.trailers, err) < 0 || trailers_check(err) < 0 ||
                   list_copy(rule->paths, &opt.paths, err) < 0 || paths_check(err) < 0 ||
                   roles_copy(rule->roles, &opt.roles, text, err) < 0
               ? -1
               : 0;
}

/* Prints one line on stdout, or with --json one record of members (names and values, NULL ends). */
static void print_record(const char *word, const char *path, const char *note,
                         const char *const *members, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_jw w;
    int rc;
    amp_buf_init(&out, 64 << 10);
    if (!amp_listing_json) {
        rc = amp_buf_fmt(&out, err, "%s: ", word) < 0 ||
             amp_text_safe(amp_span_str(path), 0, &out, err) < 0 ||
             amp_buf_str(&out, *note ? ": " : "", err) < 0 ||
             amp_text_safe(amp_span_str(note), 0, &out, err) < 0;
    } else {
        amp_jw_init(&w, &out);
        amp_jw_open(&w, '{');
        for (; *members; members += 2)
            amp_jw_member_text(&w, members[0], members[1]);
        amp_jw_close(&w, '}');
        rc = amp_jw_end(&w, err);
    }
    if (rc || amp_buf_str(&out, "\n", err) < 0 || amp_out(amp_buf_span(&out), err) < 0)
        amp_status_note((int)err->status);
}

static void print_step(void *ctx, const char *did, const char *path, const char *note)
{
    const char *const members[] = {"action", did, "path", path, "message", note, NULL};
    print_record(did, path, note, members, ctx);
}

static int install_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    if (opt.pushers.n && !opt.server)
        amp_die_usage("--pusher needs --server");
    return 0;
}

static int verb_hooks_install(struct amp_command *c, struct amp_error *err)
{
    struct amp_error late;
    struct amp_hooks h;
    struct amp_rule rule;
    char program[PATH_MAX];
    AMP_BUF struct amp_buf text = {.max = AMP_RULE_FILE_MAX};
    if (rule_make(&rule, &text, err) < 0 ||
        amp_helper_path(AMP_HOOK_PROGRAM, program, sizeof program, err) < 0 ||
        hooks_find(c->own, &h, err) < 0 ||
        amp_hooks_install(&h, &rule, program, print_step, &late, err) < 0)
        return -1;
    amp_note("protected in %s: main, master%s", h.common,
             opt.protect.n ? " and the given patterns" : "");
    return 0;
}

static int verb_hooks_uninstall(struct amp_command *c, struct amp_error *err)
{
    struct amp_error late;
    struct amp_hooks h;
    return hooks_find(c->own, &h, err) < 0 ? -1 : amp_hooks_uninstall(&h, print_step, &late, err);
}

static void print_finding(void *ctx, const struct amp_hook_finding *f)
{
    const char *severity = f->severity == AMP_HOOK_ERROR ? "error" : "warning";
    const char *const members[] = {"severity", severity,  "code",  f->code, "path",
                                   f->path,    "message", f->what, NULL};
    print_record(severity, f->path, f->what, members, ctx);
}

void prove_print(bool holds, const char *rule, const char *code, bool refused, bool passed,
                 const char *text, struct amp_error *err)
{
    const char *const members[] = {"rule",    rule,
                                   "holds",   holds ? "yes" : "no",
                                   "code",    code,
                                   "refused", refused ? "yes" : "no",
                                   "passes",  passed ? "yes" : "no",
                                   "message", text,
                                   NULL};
    print_record(holds ? "holds" : "fails", rule, text, members, err);
}

/* 1: the check found an error, or a rule does not hold. */
static int verb_hooks_check(struct amp_command *c, struct amp_error *err)
{
    const struct binder *s = c->own;
    struct amp_hooks h;
    char program[PATH_MAX];
    if (hooks_find(s, &h, err) < 0)
        return -1;
    if (s->info.bare && !h.server) {
        char update[PATH_MAX + 16];
        snprintf(update, sizeof update, "%s/update", amp_hooks_where_git_looks(&h));
        h.server = access(update, F_OK) == 0;
    }
    bool known = amp_helper_path(AMP_HOOK_PROGRAM, program, sizeof program, NULL) == 0;
    int errors =
        amp_hooks_check(&h, known ? program : NULL, getenv("PATH"), print_finding, err, err);
    if (errors < 0)
        return -1;
    if (opt.prove && !known)
        return amp_fail(err, AMP_UNAVAILABLE, helper_missing, AMP_HOOK_PROGRAM " is not installed");
    int broken = opt.prove ? hooks_prove(&h, program, err) : 0;
    return broken < 0 ? -1 : errors > 0 || broken > 0 ? AMP_NO : 0;
}

static int override_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    if (!opt.reason || !*opt.reason)
        amp_die_usage("--reason is required: it goes into the log");
    return 0;
}

static int verb_hooks_override(struct amp_command *c, struct amp_error *err)
{
    struct amp_hooks h;
    char id[AMP_UUID_MAX], name[64] = "";
    if (hooks_find(c->own, &h, err) < 0)
        return -1;
    amp_uuid4(id);
    if (getlogin_r(name, sizeof name) != 0)
        snprintf(name, sizeof name, "uid %ld", (long)getuid());
    const struct amp_hook_override o = {c->argv[0], opt.agent, id, amp_now_ms() + opt.ttl_ms};
    const struct amp_override rec = {o.branch, o.agent, o.until_ms, opt.reason, name};
    return amp_override_record(c->store, id, &rec, err) < 0 ? -1 : amp_hooks_override(&h, &o, err);
}

/* Runs the guard in the place of git's hook. */
static int verb_hooks_run(struct amp_command *c, struct amp_error *err)
{
    struct amp_child child;
    struct amp_child_end end = {0};
    char program[PATH_MAX];
    AMP_FREE const char **args = calloc((size_t)c->argc + 3, sizeof *args);
    if (!args)
        return amp_fail_memory(err);
    args[0] = program;
    args[1] = "--hook";
    for (int i = 0; i < c->argc; i++)
        args[i + 2] = c->argv[i];
    const struct amp_child_spec spec = {.argv = args,
                                        .fd_in = STDIN_FILENO,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true,
                                        .dies_with_us = true};
    if (amp_helper_path(AMP_HOOK_PROGRAM, program, sizeof program, err) < 0 ||
        amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, -1, 0, NULL, &end, err) < 0)
        return -1;
    return end.exited ? end.exit_code : AMP_NO;
}

static const char *const humans_choices[] = {"allow", "refuse", NULL};

#define HOOKS_DIR                                                                                  \
    AMP_OPT_ROW(0, "hooks-dir", AMP_OPT_DIR, &opt.hooks_dir, "DIR",                                \
                "hooks directory (default: hooks in the common git directory)")
#define SERVER                                                                                     \
    AMP_OPT_ROW(0, "server", AMP_OPT_FLAG, &opt.server, NULL,                                      \
                "also install the update hook, for a server")

static const struct amp_opt install_opts[] = {
    HOOKS_DIR,
    SERVER,
    {0, "protect", AMP_OPT_LIST, &opt.protect, "PATTERN",
     .doc = "protected branch, in addition to main and master (* and ? match)",
     .config = "branches.protected"},
    {0, "humans", AMP_OPT_CHOICE, &opt.humans, "WORD",
     .doc = "whether people may change protected branches here", .choices = humans_choices,
     .config = "guard.humans"},
    {0, "pusher", AMP_OPT_LIST, &opt.pushers, "NAME",
     .doc = "with --server: who may push to protected branches", .config = "guard.pushers"},
    {0, "role", AMP_OPT_LIST, &opt.roles, "ROLE=PATTERN",
     .doc = "agents of the role (*: every role) move only branches that match one of its patterns",
     .config = "guard.roles"},
    {0, "bound", AMP_OPT_FLAG, &opt.bound, NULL,
     .doc = "agents move only the branch that their worktree is bound to", .config = "guard.bound"},
    {0, "trailer", AMP_OPT_LIST, &opt.trailers, "NAME",
     .doc = "trailer that each commit of an agent must have (Task, Agent)",
     .config = "guard.trailers"},
    {0, "forbid", AMP_OPT_LIST, &opt.paths, "PATTERN",
     .doc = "files that agents may not change (as in gitignore)", .config = "guard.forbidden"},
    {0, "max-file", AMP_OPT_SIZE, &opt.max_file, "SIZE",
     .doc = "largest file that an agent may commit (default: no limit)",
     .config = "guard.max_file"},
    {0, "max-commit", AMP_OPT_SIZE, &opt.max_commit, "SIZE",
     .doc = "most bytes in the files that one commit changes (default: no limit)",
     .config = "guard.max_commit"},
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_END,
};
static const struct amp_opt uninstall_opts[] = {HOOKS_DIR, AMP_OPT_END};
static const struct amp_opt check_opts[] = {
    HOOKS_DIR,
    SERVER,
    {0, "prove", AMP_OPT_FLAG, &opt.prove, NULL,
     .doc = "also try each rule on a scratch clone, which is removed afterwards"},
    AMP_OPT_END,
};
static const struct amp_opt override_opts[] = {
    {0, "agent", AMP_OPT_STRING, &opt.agent, "AGENT",
     .doc = "only this agent may use it (default: any agent)", .values = "agent"},
    {0, "for", AMP_OPT_DURATION, &opt.ttl_ms, "TIME",
     .doc = "how long the override can be used (default: 10m)", .min = 1000, .max = 86400000},
    {0, "reason", AMP_OPT_STRING, &opt.reason, "TEXT", .doc = "reason, for the log; required"},
    AMP_OPT_END,
};

const struct amp_verb hooks_verbs[] = {
    {"hooks install", "", "install the hooks that guard protected branches", install_opts,
     verb_hooks_install, .check = install_check, .opens = BIND_OPENS_GIT, .act = "change the guard",
     .group = "Guard", .who = AMP_WHO_PERSON},
    {"hooks uninstall", "", "restore the previous hooks", uninstall_opts, verb_hooks_uninstall,
     .opens = BIND_OPENS_GIT, .act = "change the guard", .who = AMP_WHO_PERSON},
    {"hooks check", "", "check that the guard is installed and works", check_opts, verb_hooks_check,
     .opens = BIND_OPENS_GIT},
    {"hooks override", "BRANCH", "allow one change of a protected branch, once", override_opts,
     verb_hooks_override, .least = 1, .most = 1, .usage = "exactly one BRANCH is required",
     .check = override_check, .opens = AMP_OPENS_MADE, .act = "change the guard",
     .who = AMP_WHO_PERSON},
    {"hooks run", "HOOK [ARG…]", "run the guard as one hook, for hook managers", NULL,
     verb_hooks_run, .least = 1, .usage = "the name of a HOOK is required"},
    {0},
};

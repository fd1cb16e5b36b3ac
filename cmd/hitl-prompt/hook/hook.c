/*
 * hitl-prompt hook: decides about a tool call of a coding agent, first by the rules of amp.json,
 * then by asking a person. Whatever goes wrong, the call is blocked.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "../hitl.h"
#include "base/codes.h"
#include "base/file/repository.h"
#include "base/words.h"
#include "cli/config.h"
#include "message/protocol/compose/json.h"
#include "people/question/hook/ask.h"
#include "replay.h"
#include "shared/state.h"
#include "work/agent/contract/ask.h"
#include "work/git/call/call.h"

enum { WORKER_TEXT = 8 << 10, GRANT_ID = 19, CHECK_OPTIONS = 60 };
#define WITHDRAW_MS  2000 /* for the worker to take a question back */
#define SESSION_MOST (24 * INT64_C(3600000))

static const char *cli;
static const char *revoked, *checked, *replayed;
static bool grants, json;
static int64_t deadline_ms = 540000, session_ms = 3600000;

AMP_WORDS(clis, AMP_CALL_CLI_LIST);

static const struct amp_opt hook_opts[] = {
    {0, "cli", AMP_OPT_CHOICE, &cli, "NAME",
     "coding agent that gives the event (default: recognised from the event)", .choices = clis},
    {0, "deadline", AMP_OPT_DURATION, &deadline_ms, "TIME",
     "deny if no person decides within TIME (default: 9m)", 1000, 24 * 3600000LL,
     .config = "hitl.hook.deadline"},
    {0, "check", AMP_OPT_STRING, &checked, "CLI",
     "prove that this installed coding agent calls the hook and obeys it; its options follow --"},
    {0, "replay", AMP_OPT_STRING, &replayed, "FILE",
     "print what the rules would have decided about the calls of a recording ('-': stdin)"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, "with --replay: print JSON"},
    {0, "grants", AMP_OPT_FLAG, &grants, NULL,
     "list what persons allowed for a session, and decide nothing"},
    {0, "revoke", AMP_OPT_STRING, &revoked, "ID",
     "end what persons allowed for a session: ID of --grants, or all"},
    AMP_OPT_END,
};

/* ---- failing closed ---- */

/* The event and the last failure; a CLI that goes on after a status other than 0 gets a reply. */
static struct amp_call_event event = {.cli = AMP_CLI_NONE};
static char failure[512] = "the hook failed; its standard error has the reason";
static bool begun, answered; /* the reply */
static bool no_call;         /* --replay, --grants, --revoke, --check: there is no call to block */

static void call_block(int status, void *unused)
{
    AMP_BUF struct amp_buf out = {0};
    (void)unused;
    if (status == 0 || no_call)
        return;
    if (amp_call_failure_status(event.cli) == 0 && !answered) {
        amp_buf_init(&out, 1 << 16);
        if (amp_call_reply(&event, AMP_CALL_DENY, failure, (struct amp_span){0}, &out, NULL) == 0 &&
            write(STDOUT_FILENO, out.data, out.len) == (ssize_t)out.len) {
            amp_buf_release(&out);
            _exit(0);
        }
    }
    _exit(2);
}

/* The variables of the toolkit, but for those that say who the agent is. */
static void environment_clear(void)
{
    static const char *const kept[] = {"AMP_AGENT=", "AMP_ROLE=", "AMP_TASK_ID=", "AMP_CONTROL="};
    for (char **v = environ; *v;) {
        char name[128];
        bool keep = strncmp(*v, "AMP_", 4) != 0;
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            keep |= strncmp(*v, kept[i], strlen(kept[i])) == 0;
        if (keep || !amp_span_copy((struct amp_span){*v, strcspn(*v, "=")}, name, sizeof name)) {
            v++;
            continue;
        }
        unsetenv(name);
        v = environ;
    }
}

void hitl_hook_prepare(char **args)
{
    bool config = false;
    for (char **a = args; *a; a++)
        if (strncmp(*a, "--check", 7) == 0)
            return; /* the agent that it starts has this environment */
    on_exit(call_block, NULL);
    for (char **a = args; *a; a++) {
        if (strcmp(*a, "--cli") == 0 && a[1])
            event.cli = amp_call_cli_find(a[1]);
        else if (strncmp(*a, "--cli=", 6) == 0)
            event.cli = amp_call_cli_find(*a + 6);
        config |= strncmp(*a, "-c", 2) == 0 || strncmp(*a, "--config", 8) == 0;
        no_call |= strncmp(*a, "--replay", 8) == 0;
    }
    environment_clear();
    if (config)
        return;
    const struct passwd *pw = getpwuid(getuid());
    unsetenv("XDG_CONFIG_HOME");
    if (!pw || !pw->pw_dir || setenv("HOME", pw->pw_dir, 1) != 0)
        unsetenv("HOME");
}

/* ---- the configuration ---- */

static struct amp_hook_rules rules;
static bool refuses; /* calls that no rule decides are denied */
static enum { ASKS_PERSON, ASKS_CLI, ASKS_WORKER } asks;
static const char *state_set;

static int rule_add(void *arg, const char *text, struct amp_error *err)
{
    return amp_hook_rules_add(&rules, amp_span_str(text), err);
}

static int undecided_set(void *arg, const char *text, struct amp_error *err)
{
    refuses = strcmp(text, "deny") == 0;
    return 0;
}

static int unread_set(void *arg, const char *text, struct amp_error *err)
{
    return amp_hook_unread_set(&rules, amp_span_str(text), err);
}

static int ask_set(void *arg, const char *text, struct amp_error *err)
{
    asks = strcmp(text, "cli") == 0      ? ASKS_CLI
           : strcmp(text, "worker") == 0 ? ASKS_WORKER
                                         : ASKS_PERSON;
    return 0;
}

static int session_set(void *arg, const char *text, struct amp_error *err)
{
    return amp_num_duration(amp_span_str(text), 0, SESSION_MOST, &session_ms, err);
}

static int state_note(void *arg, const char *text, struct amp_error *err)
{
    state_set = text;
    return 0;
}

static bool is_below(const char *path, const char *dir)
{
    size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* The state directory that `task-dispatch init` makes: amp in the git directory. It is in the
 * worktree, but no wildcard of a rule that allows stands for .git. */
static bool is_of_repository(const char *real, const char *top)
{
    size_t n = strlen(top);
    return is_below(real, top) && strcmp(real + n, "/.git/amp") == 0;
}

/* Whether a file or directory is out of the agent's reach as far as can be seen: not in the
 * worktree of the call, not in a linked worktree, owned by this user or root, and not writable by
 * others. */
static int place_check(const char *path, const struct amp_hook_place *at, struct amp_error *err)
{
    char real[PATH_MAX], git[PATH_MAX + 8];
    struct stat st;
    if (!realpath(path, real) || stat(real, &st) != 0)
        return amp_fail_errno(err, AMP_CONFIG, "%s", path);
    if ((is_below(real, at->top) || is_below(real, at->cwd)) && !is_of_repository(real, at->top))
        return amp_fail(err, AMP_CONFIG, bad_config,
                        "%s is in the worktree of the call, where the agent could change it", path);
    if ((st.st_uid != getuid() && st.st_uid != 0) || (st.st_mode & 022))
        return amp_fail(err, AMP_CONFIG, bad_config, "%s: others could change it", path);
    for (char *slash; (slash = strrchr(real, '/')) != NULL;) {
        *slash = '\0';
        snprintf(git, sizeof git, "%s/.git", real);
        if (lstat(git, &st) == 0 && S_ISREG(st.st_mode))
            return amp_fail(err, AMP_CONFIG, bad_config,
                            "%s is in a worktree, where agents could change it", path);
    }
    return 0;
}

/* at: of the call, or NULL: a replay, which may try rules of any place. */
static int config_read(const struct amp_hook_place *at, struct amp_error *err)
{
    static const struct {
        const char *key;
        int (*set)(void *arg, const char *text, struct amp_error *err);
    } settings[] = {{"hitl.hook.rules", rule_add},      {"hitl.hook.undecided", undecided_set},
                    {"hitl.hook.unread", unread_set},   {"hitl.hook.ask", ask_set},
                    {"hitl.hook.session", session_set}, {"hitl.hook.state", state_note}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (amp_config_values(hitl_config_path(), NULL, settings[i].key, settings[i].set, NULL,
                              err) < 0)
            return -1;
    const struct amp_config_files files = amp_config_files();
    if (!files.user.n)
        return amp_fail(err, AMP_CONFIG, bad_config,
                        "no configuration: %s does not exist; give --config FILE",
                        *files.user_path ? files.user_path : "amp.json");
    if (at && place_check(files.user_path, at, err) < 0)
        return -1;
    if (!rules.n)
        return amp_fail(err, AMP_CONFIG, bad_config, "%s has no hitl.hook.rules", files.user_path);
    if (!hitl_state)
        hitl_state = state_set;
    return 0;
}

/* ---- the decision ---- */

static int reply(enum amp_call_verdict v, const char *why, struct amp_span input,
                 struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, 2 * (size_t)AMP_CALL_INPUT_MAX);
    if (amp_call_reply(&event, v, why, input, &out, err) < 0)
        return -1;
    begun = true;
    if (amp_out(amp_buf_span(&out), err) < 0 || amp_out_flush(err) < 0)
        return -1;
    answered = true;
    return 0;
}

/* A person changed the input; the rules that deny still count. */
static int changed_check(struct amp_hook_answer *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_CALL_EVENT struct amp_call_event changed = {0};
    struct amp_hook_place at;
    struct amp_hook_result r;
    if (a->verdict != AMP_CALL_ALLOW || !a->input.len)
        return 0;
    amp_buf_init(&text, AMP_CALL_INPUT_MAX);
    if (amp_call_event_change(&event, amp_buf_span(&a->input), &text, err) < 0 ||
        amp_call_event_read(amp_buf_span(&text), event.cli, &changed, err) < 0 ||
        amp_hook_place_find(changed.cwd, &at, err) < 0 ||
        amp_hook_decide(&rules, &changed, &at, &r, err) < 0)
        return -1;
    if (r.decision == AMP_HOOK_DENY) {
        a->verdict = AMP_CALL_DENY;
        snprintf(a->why, sizeof a->why, "the changed call is denied: %.400s", r.why);
    }
    return 0;
}

/* 1: a person allowed the call for the session, which was replied. */
static int grant_use(struct amp_store *s, const struct amp_hook_scope *scope, struct amp_error *err)
{
    struct amp_hook_grant g;
    char why[512], at[AMP_TIME_MAX];
    int rc = amp_hook_grant_find(s, scope, amp_now_ms(), &g, err);
    if (rc <= 0)
        return rc;
    amp_time_format(g.until_ms, at);
    snprintf(why, sizeof why, "approved for this session by %.100s until %.19sZ", g.who, at);
    return reply(AMP_CALL_ALLOW, why, (struct amp_span){0}, err) < 0 ? -1 : 1;
}

/* Finds the state directory of the call's repository. A sandbox does not show the repository. */
static bool state_find(const struct amp_hook_place *at)
{
    static char dir[PATH_MAX + 8];
    struct amp_repository r;
    struct stat st;
    if (getenv("AMP_CONTROL") || amp_repository_find(at->cwd, &r, NULL) < 0 || !*r.top)
        return false;
    snprintf(dir, sizeof dir, "%s/amp", r.common);
    if (lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    hitl_state = dir;
    return true;
}

/* The verb declares no state directory: only some calls need one, and it is found here. */
static int store_open(struct amp_command *c, struct amp_error *err)
{
    c->state = hitl_state;
    c->opens = AMP_OPENS_MADE;
    return amp_state_open(c, err);
}

static int person_ask(struct amp_command *c, const struct amp_hook_place *at,
                      const struct amp_hook_result *r, struct amp_error *err)
{
    struct amp_hook_scope scope;
    struct amp_hook_question q = {.event = &event,
                                  .at = at,
                                  .why = r->why,
                                  .agent = getenv("AMP_AGENT"),
                                  .role = getenv("AMP_ROLE"),
                                  .task = getenv("AMP_TASK_ID"),
                                  .session_ms = session_ms,
                                  .deadline_ms = deadline_ms,
                                  .stop = &amp_stop,
                                  .note = amp_note};
    struct amp_hook_answer answer = {0};
    struct stat st;
    if (!hitl_state && !state_find(at))
        return amp_fail(err, AMP_NOPERM, hitl_unavailable,
                        "there is no state directory: --state, hitl.hook.state, or 'task-dispatch "
                        "init' in the repository");
    if (stat(hitl_state, &st) != 0)
        return amp_fail_errno(err, AMP_NOPERM, "%s", hitl_state);
    if (place_check(hitl_state, at, err) < 0 || store_open(c, err) < 0)
        return -1;
    if (session_ms > 0 && amp_hook_scope_of(c->store, &event, at, r, q.agent, q.task, &scope))
        q.scope = &scope;
    int rc = q.scope ? grant_use(c->store, q.scope, err) : 0;
    if (rc == 0) {
        rc = amp_hook_ask(c->store, &q, &answer, err);
        if (rc == 0)
            rc = changed_check(&answer, err);
        if (rc == 0)
            rc = reply(answer.verdict, answer.why, amp_buf_span(&answer.input), err);
    }
    amp_buf_release(&answer.input);
    return rc < 0 ? -1 : 0;
}

/* Waits for the decision. A question that is not waited for any more is withdrawn; a decision that
 * came meanwhile counts. */
static int answer_wait(struct amp_ask_control *c, const char *id, json_t **answer,
                       struct amp_error *err)
{
    char wid[AMP_ASK_ID_MAX];
    json_auto_t *gone = NULL;
    struct amp_error why;
    int rc = amp_ask_wait(c, id, "decision", amp_now_ms() + deadline_ms, &amp_stop, answer, err);

    if (rc > 0 || (rc < 0 && err->status != AMP_INTERRUPTED))
        return rc;
    if (amp_ask_withdraw(c, id, rc < 0 ? "the hook was interrupted" : "no person decided in time",
                         wid, &why) < 0)
        return rc;
    if (amp_ask_wait(c, wid, NULL, amp_now_ms() + WITHDRAW_MS, NULL, &gone, &why) < 0 &&
        amp_code_is(why.code, already_decided))
        return amp_ask_wait(c, id, "decision", amp_now_ms() + WITHDRAW_MS, NULL, answer, err);
    return rc;
}

/* A confined agent has no state directory. Its worker, which is outside, asks; a question is at
 * most one line of the control FIFO, and what does not fit is not asked. */
static int worker_ask(const struct amp_hook_place *at, const struct amp_hook_result *r,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char id[AMP_ASK_ID_MAX], why[512];
    struct amp_ask_control c = {-1, -1, -1};
    json_auto_t *answer = NULL;
    amp_buf_init(&text, WORKER_TEXT);
    if (amp_buf_fmt(&text, err,
                    "May %.100s call the tool %.*s in %s? \"resume\" allows this call, every other "
                    "decision denies it. It is asked because: %s. The input: %.*s",
                    amp_call_cli_name(event.cli), AMP_CLIP(event.tool, 100), at->cwd, r->why,
                    (int)(event.input.n < WORKER_TEXT ? event.input.n : WORKER_TEXT),
                    event.input.n ? event.input.p : "") < 0)
        return amp_fail(err, AMP_NOPERM, hitl_unavailable,
                        "the call is too large to ask a person through the worker");
    json_auto_t *request = json_pack("{s:s,s:s%,s:[s]}", "type", "question", "text", text.data,
                                     text.len, "suggestions", "resume");
    if (!request)
        return amp_fail_memory(err);
    int rc = amp_ask_open(&c, getenv("AMP_CONTROL"), err);
    if (rc == 0)
        rc = amp_ask_send(&c, request, id, err);
    if (rc == 0)
        rc = answer_wait(&c, id, &answer, err);
    amp_ask_close(&c);
    if (rc < 0)
        return -1;
    const char *decision = answer ? amp_json_str(answer, "decision") : "";
    bool allows = strcmp(decision, "resume") == 0;
    snprintf(why, sizeof why, "%s%s%.400s",
             !answer  ? "no person decided in time"
             : allows ? "approved by a person"
                      : "denied by a person",
             answer && *amp_json_str(answer, "note") ? ": " : "",
             answer ? amp_json_str(answer, "note") : "");
    return reply(allows ? AMP_CALL_ALLOW : AMP_CALL_DENY, why, (struct amp_span){0}, err);
}

/* Denies a call about which no person can be asked, in words that the model reads. */
static int unasked_deny(const struct amp_hook_result *r, struct amp_error *err)
{
    char why[sizeof failure];
    amp_complain(err);
    snprintf(why, sizeof why, "%.200s, and no person can be asked: %.250s", r->why, err->what);
    return reply(AMP_CALL_DENY, why, (struct amp_span){0}, err);
}

/* ---- what was allowed for a session ---- */

static int grant_print(void *ctx, const struct amp_hook_grant_row *g, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    char at[AMP_TIME_MAX];
    (void)ctx;
    amp_time_format(g->until_ms, at);
    amp_buf_init(&line, 65536);
    if (amp_buf_fmt(&line, err, "%.*s  until %.19sZ  ", AMP_CLIP(g->id, GRANT_ID), at) < 0 ||
        amp_text_safe(g->scope, 0, &line, err) < 0 || amp_buf_str(&line, "\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&line), err);
}

static int grants_serve(struct amp_command *c, struct amp_error *err)
{
    struct amp_hook_place here;
    uint32_t n = 0;
    bool all = revoked && strcmp(revoked, "all") == 0;
    no_call = true;
    if (hitl_state == NULL &&
        amp_config_values(hitl_config_path(), NULL, "hitl.hook.state", state_note, NULL, err) < 0)
        return -1;
    if (!hitl_state)
        hitl_state = state_set;
    if (!hitl_state &&
        (amp_hook_place_find((struct amp_span){0}, &here, err) < 0 || !state_find(&here)))
        amp_die_no_state();
    if (store_open(c, err) < 0 ||
        (grants && amp_hook_grants_each(c->store, grant_print, NULL, err) < 0) ||
        (revoked && amp_hook_grants_revoke(c->store, all ? "" : revoked, "hook", &n, err) < 0))
        return -1;
    if (revoked && n == 0 && !all)
        return amp_fail(err, AMP_NO, unknown_grant, "nothing is allowed under the id %.100s",
                        revoked);
    return amp_out_flush(err);
}

static int replay_serve(struct amp_error *err)
{
    struct replay_spec spec = {.path = replayed,
                               .cli = cli ? amp_call_cli_find(cli) : AMP_CLI_NONE,
                               .rules = &rules,
                               .json = json};
    uint64_t calls;
    if (config_read(NULL, err) < 0)
        return -1;
    spec.refuses = refuses;
    if (replay_run(&spec, &calls, err) < 0)
        return -1;
    if (!calls)
        return amp_fail(err, AMP_NO, not_found, "%s has no tool call of a form that is known",
                        strcmp(replayed, "-") == 0 ? "standard input" : replayed);
    return 0;
}

/* ---- the call ---- */

/* Denies the call of --check, whatever the rules say. 0: it is another call. */
static int check_deny(struct amp_error *err)
{
    static const char marker[] = "hitl-prompt hook --check ";
    char why[128];
    const char *at =
        event.input.n ? memmem(event.input.p, event.input.n, marker, sizeof marker - 1) : NULL;
    if (!at)
        return 0;
    at += sizeof marker - 1;
    size_t left = event.input.n - (size_t)(at - event.input.p), n = 0;
    while (n < left && n < 16 && strchr("0123456789abcdef", at[n]) && at[n])
        n++;
    if (n < 16)
        return 0;
    snprintf(why, sizeof why, "hook check %.16s: hitl-prompt denies this call", at);
    return reply(AMP_CALL_DENY, why, (struct amp_span){0}, err) < 0 ? -1 : 1;
}

static int event_decide(struct amp_command *c, struct amp_error *err)
{
    struct amp_hook_place at;
    struct amp_hook_result r;
    struct amp_call_refusal stopped;
    if (amp_hook_place_find(event.cwd, &at, err) < 0 || config_read(&at, err) < 0)
        return -1;
    int check = check_deny(err);
    if (check)
        return check < 0 ? -1 : 0;
    const struct amp_call call = {getenv("AMP_AGENT"), getenv("AMP_ROLE"), at.cwd};
    int suspended = amp_call_suspended(&call, &stopped, err);
    if (suspended)
        return suspended < 0 ? -1 : reply(AMP_CALL_DENY, stopped.what, (struct amp_span){0}, err);
    if (amp_hook_decide(&rules, &event, &at, &r, err) < 0)
        return -1;
    if (r.decision == AMP_HOOK_ALLOW)
        return reply(AMP_CALL_ALLOW, r.why, (struct amp_span){0}, err);
    if (r.decision == AMP_HOOK_DENY || (r.decision == AMP_HOOK_UNDECIDED && refuses))
        return reply(AMP_CALL_DENY, r.why, (struct amp_span){0}, err);
    if (asks == ASKS_CLI && amp_call_can_ask(&event))
        return reply(AMP_CALL_ASK, r.why, (struct amp_span){0}, err);
    int rc = asks == ASKS_WORKER ? worker_ask(&at, &r, err) : person_ask(c, &at, &r, err);
    return rc < 0 && !begun ? unasked_deny(&r, err) : rc;
}

static int input_read(struct amp_buf *in, struct amp_error *err)
{
    amp_buf_init(in, AMP_CALL_INPUT_MAX + 65536);
    while (in->len <= AMP_CALL_INPUT_MAX) {
        if (amp_buf_reserve(in, 32768, err) < 0)
            return -1;
        ssize_t n = read(STDIN_FILENO, in->data + in->len, 32768);
        if (n == 0)
            return 0;
        if (n > 0)
            in->len += (size_t)n;
        else if (errno != EINTR)
            return amp_fail_errno(err, AMP_IOERR, "standard input");
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "the hook was interrupted");
    }
    return amp_fail(err, AMP_DATAERR, call_malformed, "the input of the hook: more than 16 MiB");
}

/* --check: the helper does it, and its status is ours. */
static int check_run(int argc, char **argv, struct amp_error *err)
{
    char helper[PATH_MAX];
    const char *args[64] = {helper, checked};
    const struct amp_child_spec spec = {.argv = args,
                                        .fd_in = -1,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true,
                                        .dies_with_us = true};
    struct amp_child child;
    struct amp_child_end end;
    if (argc > CHECK_OPTIONS)
        return amp_fail(err, AMP_USAGE, bad_value, "%d options, more than %d", argc, CHECK_OPTIONS);
    memcpy(args + 2, argv, (size_t)argc * sizeof *argv);
    if (amp_helper_path("hook-check", helper, sizeof helper, err) < 0 ||
        amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, -1, 1000, &amp_stop, &end, err) < 0)
        return -1;
    return end.exited ? end.exit_code : AMP_INTERRUPTED;
}

static int hook_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (c->argc && !checked)
        amp_die_usage("unexpected operand '%s'", c->argv[0]);
    if (json && !replayed && !checked)
        amp_die_usage("--json needs --replay");
    return 0;
}

static int call_serve(struct amp_command *c, struct amp_error *err)
{
    static struct amp_buf input; /* the event refers to it, also at the end of the process */
    enum amp_call_cli expected = cli ? amp_call_cli_find(cli) : AMP_CLI_NONE;

    amp_note_terminal(NULL);
    if (input_read(&input, err) < 0 ||
        amp_call_event_read(amp_buf_span(&input), expected, &event, err) < 0)
        return -1;
    if (event.cli == AMP_CLI_NONE)
        return amp_fail(err, AMP_DATAERR, call_malformed,
                        "the input of the hook is not a tool call of a known coding agent");
    return event_decide(c, err);
}

static int hitl_hook(struct amp_command *c, struct amp_error *err)
{
    int rc = checked             ? check_run(c->argc, c->argv, err)
             : replayed          ? replay_serve(err)
             : grants || revoked ? grants_serve(c, err)
                                 : call_serve(c, err);

    amp_hook_rules_release(&rules);
    if (rc < 0)
        snprintf(failure, sizeof failure, "%s", err->what);
    return rc;
}

const struct amp_verb hook_verbs[] = {
    {"hook", "[-- OPTION...]", "decide about a tool call of a coding agent (JSON on stdin)",
     hook_opts, hitl_hook, .check = hook_check, .signals = true},
    {0},
};

/* Path rules, the branch rule, bindings in a store, the environment that refuses pushes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../tap.h"
#include "work/git/rule.h"
#include "work/git/worktree.h"

static char dir[256];

static int sh(const char *command)
{
    char text[2048];
    snprintf(text, sizeof text, "cd %s && { %s; } >/dev/null 2>&1", dir, command);
    return system(text);
}

static const char *at(const char *name)
{
    static char text[4][PATH_MAX];
    static int next;
    char *out = text[next++ % 4];
    snprintf(out, PATH_MAX, "%s/%s", dir, name);
    return out;
}

static const char *normal(const char *path)
{
    static char out[64];
    return amp_path_normal(amp_span_str(path), out, sizeof out) ? out : "no";
}

static bool inside(const char *path)
{
    struct amp_error err = {0};
    int rc = amp_path_inside(at("root"), path, NULL, &err);
    if (rc && strcmp(err.code, "path_escape") != 0)
        printf("# %s: %s\n", err.code, err.what);
    return rc == 0;
}

static void paths(void)
{
    TAP_STR(normal("/a//b/./c/"), "/a/b/c", "empty and dot components go");
    TAP_STR(normal("/a/b/../c"), "/a/c", "dot-dot goes up");
    TAP_STR(normal("/a/.."), "/", "up to the root");
    TAP_STR(normal("/.."), "no", "but not out of it");
    TAP_STR(normal("a/b"), "no", "only absolute paths");

    sh("mkdir -p root/sub root-2 out && ln -s ../out root/link && ln -s sub root/good && "
       "ln -s ../nowhere root/dangling && mkfifo root/fifo && echo x >root/file");
    TAP_OK(inside("sub"), "a directory inside");
    TAP_OK(inside("sub/new/deep"), "what does not exist yet, inside");
    TAP_OK(inside(at("root/sub")), "an absolute path inside");
    TAP_OK(inside("."), "the root itself");
    TAP_OK(!inside(".."), "above it");
    TAP_OK(!inside(at("root-2")), "a neighbour whose name begins alike");
    TAP_OK(!inside("link"), "a link out");
    TAP_OK(!inside("link/new"), "a path through a link out");
    TAP_OK(inside("good/x"), "a link that stays inside");
    TAP_OK(!inside("dangling/x"), "a link that leads nowhere");
    TAP_OK(!inside("new/../../out"), "dot-dot behind what does not exist");
    TAP_OK(!inside("/etc/passwd"), "elsewhere");
}

static const char zeros[] = "0000000000000000000000000000000000000000";

static enum amp_rule_verdict decide(const struct amp_rule *r, const char *agent, const char *ref,
                                    const char *now, const char *packed, const char *to, bool lock)
{
    struct amp_ref_update u = {amp_span_str(ref), amp_span_str(now), amp_span_str(packed),
                               amp_span_str(to), lock};
    struct amp_rule_caller c = {.agent = agent};
    amp_span_copy(amp_span_str(agent), c.name, sizeof c.name);
    return amp_rule_decide(r, &c, &u);
}

static void rules(void)
{
    struct amp_rule r;
    struct amp_error err;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, AMP_RULE_FILE_MAX);
    amp_rule_default(&r);
    const char *m = "refs/heads/main";
    TAP_INT(decide(&r, NULL, m, "a", "", "b", false), AMP_RULE_ALLOW, "people are free");
    TAP_INT(decide(&r, "bob", m, "a", "", "b", false), AMP_RULE_REFUSE, "agents are not");
    TAP_INT(decide(&r, "bob", "refs/heads/x", "a", "", "b", false), AMP_RULE_ALLOW, "elsewhere");
    TAP_INT(decide(&r, "bob", "refs/tags/main", "a", "", "b", false), AMP_RULE_ALLOW, "no branch");
    TAP_INT(decide(&r, "bob", m, "a", "", "a", false), AMP_RULE_NOOP, "the same value");
    TAP_INT(decide(&r, "bob", m, "", "", zeros, false), AMP_RULE_NOOP, "none stays none");
    TAP_INT(decide(&r, "bob", m, "", "", "b", false), AMP_RULE_REFUSE, "making it");
    TAP_INT(decide(&r, "bob", m, "a", "a", zeros, false), AMP_RULE_PRUNE, "pruning a loose copy");
    TAP_INT(decide(&r, "bob", m, "a", "a", zeros, true), AMP_RULE_REFUSE, "a real deletion");
    TAP_INT(decide(&r, "bob", m, "a", "b", zeros, false), AMP_RULE_REFUSE, "packed is older");
    TAP_OK(amp_rule_protects(&r, AMP_SPAN("main")), "short names");
    TAP_OK(amp_rule_protects(&r, AMP_SPAN("heads/master")), "half names");
    TAP_OK(!amp_rule_protects(&r, AMP_SPAN("maintenance")), "not a prefix");
    r.patterns[0] = "release/*";
    r.patterns[1] = NULL;
    r.humans_refuse = true;
    TAP_OK(amp_rule_format(&r, &text, &err) == 0, "written");
    struct amp_rule back;
    TAP_OK(amp_rule_parse(&back, amp_buf_span(&text), &err) == 0 && back.humans_refuse, "and read");
    TAP_OK(amp_rule_protects(&back, AMP_SPAN("refs/heads/release/1.2/x")), "a pattern holds");
    static const char *const bad[] = {
        "",
        "amp-guard 2\n",
        "amp-guard 1\nbranch",
        "amp-guard 1\nhumans maybe\n",
        "amp-guard 1\nbranch \n",
        "branch main\n",
        "amp-guard 1\n\n",
    };
    int refused = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused += amp_rule_parse(&back, amp_span_str(bad[i]), &err) != 0;
    TAP_INT(refused, (int)(sizeof bad / sizeof *bad), "what is not understood is refused");
}

static void roles(void)
{
    struct amp_error err;
    struct amp_rule r;
    struct amp_rule_caller bob = {.agent = true, .name = "bob", .role = "executor"};
    const struct amp_rule_caller person = {.agent = false};
    TAP_OK(amp_rule_parse(&r,
                          AMP_SPAN("amp-guard 1\nrole executor task/*\nrole * wip/*\nbound on\n"
                                   "trailer Task\npath *.pem\nmax-file 10\nmax-commit 20\n"),
                          &err) == 0,
           "every kind of line");
    TAP_OK(r.bound && r.max_file == 10 && r.max_commit == 20, "its values");
    r.bound = false;
    struct amp_span task = AMP_SPAN("refs/heads/task/a"), wip = AMP_SPAN("refs/heads/wip/a");
    TAP_INT(amp_rule_allows(&r, &bob, task), AMP_RULE_ALLOW, "a branch of the role");
    TAP_INT(amp_rule_allows(&r, &bob, wip), AMP_RULE_ALLOW, "a branch of every role");
    TAP_INT(amp_rule_allows(&r, &bob, AMP_SPAN("refs/heads/x")), AMP_RULE_REFUSE_ROLE, "no branch");
    TAP_INT(amp_rule_allows(&r, &bob, AMP_SPAN("refs/tags/x")), AMP_RULE_ALLOW, "a tag");
    TAP_INT(amp_rule_allows(&r, &person, AMP_SPAN("refs/heads/x")), AMP_RULE_ALLOW, "a person");
    bob.role[0] = '\0';
    TAP_INT(amp_rule_allows(&r, &bob, task), AMP_RULE_REFUSE_ROLE, "a role that is unknown");
    r.roles[0] = NULL;
    r.bound = true;
    TAP_INT(amp_rule_allows(&r, &bob, task), AMP_RULE_REFUSE_BOUND, "no marker");
    bob.marked = true;
    snprintf(bob.branch, sizeof bob.branch, "task/a");
    TAP_INT(amp_rule_allows(&r, &bob, task), AMP_RULE_ALLOW, "the bound branch");
    TAP_INT(amp_rule_allows(&r, &bob, wip), AMP_RULE_REFUSE_BOUND, "another branch");
    TAP_STR(amp_rule_code(AMP_RULE_REFUSE_BOUND), "branch_not_bound", "its code");
}

static void markers(void)
{
    struct amp_error err;
    struct amp_rule_caller c;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 4096);
    char temp[] = "/tmp/amp-marker-XXXXXX";
    AMP_CLOSE int fd = mkdtemp(temp) ? open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    amp_rule_caller(NULL, "executor", fd, &c);
    TAP_OK(!c.agent && !c.role[0], "without a marker and AMP_AGENT: a person");
    amp_marker_format("bob", "task/a", "executor", &text, &err);
    TAP_INT(amp_file_write_atomic(fd, AMP_AGENT_MARKER, 0600, amp_buf_span(&text), &err), 0,
            "a marker");
    amp_rule_caller(NULL, "admin", fd, &c);
    TAP_OK(c.agent && c.marked && strcmp(c.name, "bob") == 0, "names the agent");
    TAP_STR(c.branch, "task/a", "its branch");
    TAP_STR(c.role, "executor", "its role, whatever AMP_ROLE is");
    amp_rule_caller("", NULL, fd, &c);
    TAP_OK(c.marked && strcmp(c.name, "bob") == 0, "an empty AMP_AGENT hides nothing");
    amp_rule_caller("eve", NULL, fd, &c);
    TAP_OK(c.agent && !c.marked && !c.branch[0] && !c.role[0], "another agent's worktree");
    TAP_STR(c.name, "eve", "whose name is its own");
    unlinkat(fd, AMP_AGENT_MARKER, 0);
    rmdir(temp);
}

static int step(struct amp_store *s, uint8_t e, const char *worktree, struct amp_binding *b,
                struct amp_error *err)
{
    struct amp_binding_step st = {.agent = "bob", .event = e, .now_ms = 1000};
    amp_span_copy(amp_span_str(worktree), st.with.worktree, sizeof st.with.worktree);
    amp_span_copy(amp_span_str(worktree), st.with.other, sizeof st.with.other);
    st.with.reason = AMP_BIND_WORKTREE_LOCKED;
    return amp_binding_step(s, &st, b, err);
}

static void bindings(void)
{
    struct amp_store *s = NULL;
    struct amp_binding b;
    struct amp_error err = {0};
    struct amp_store_options options = {.lock_timeout_ms = 5000};
    if (!TAP_OK(amp_store_open(at("state"), &options, &s, &err) == 0, "a store"))
        return;
    amp_binding_get(s, "bob", &b, &err);
    TAP_OK(!b.rev && b.state == AMP_BINDING_UNBOUND, "unbound at first");
    TAP_OK(step(s, AMP_BINDING_EV_BIND_ERROR, "/w", &b, &err) == 0, "a bind that fails");
    TAP_OK(b.state == AMP_BINDING_BIND_FAILED && b.tries == 1 && b.due_ms == 61000, "is recorded");
    TAP_STR(amp_bind_reason_name(b.reason), "worktree_locked", "with its reason");
    TAP_OK(step(s, AMP_BINDING_EV_BIND, "/w", &b, &err) == 0 && b.state == AMP_BINDING_BOUND_HOME,
           "a bind that works");
    TAP_OK(b.reason == AMP_BIND_NONE && b.tries == 0 && b.due_ms == 0, "clears it");
    TAP_OK(step(s, AMP_BINDING_EV_BIND, "/w", &b, &err) == 0, "again the same");
    TAP_OK(step(s, AMP_BINDING_EV_BIND, "/v", &b, &err) == -1, "another is refused");
    TAP_STR(err.code, "permission_denied", "its code");
    TAP_OK(step(s, AMP_BINDING_EV_SWITCH_APPROVE, "/v", &b, &err) == -1, "nothing was asked for");
    TAP_STR(err.code, "illegal_transition", "its code");
    step(s, AMP_BINDING_EV_SWITCH_REQUEST, "/v", &b, &err);
    TAP_OK(step(s, AMP_BINDING_EV_SWITCH_APPROVE, "/v", &b, &err) == 0 &&
               b.due_ms == 1000 + AMP_BINDING_SWITCH_TTL_MS,
           "a switch has an end");
    amp_binding_get(s, "bob", &b, &err);
    TAP_STR(b.other, "/v", "and is remembered");
    TAP_OK(step(s, AMP_BINDING_EV_TTL_EXPIRED, "", &b, &err) == 0 && !b.other[0], "home again");
    TAP_OK(step(s, AMP_BINDING_EV_UNBIND, "", &b, &err) == 0 && !b.worktree[0], "unbound");
    TAP_OK(step(s, AMP_BINDING_EV_UNBIND, "", &b, &err) == 0, "unbound twice is no error");
    amp_store_close(s);
}

static void pushes(void)
{
    char command[2048] = "env";
    for (const char *const *e = amp_agent_git_env(); *e; e++) {
        strncat(command, " \"", sizeof command - strlen(command) - 1);
        strncat(command, *e, sizeof command - strlen(command) - 1);
        strncat(command, "\"", sizeof command - strlen(command) - 1);
    }
    sh("git init -q -b main r && git init -q --bare o && cd r && "
       "git -c user.name=t -c user.email=t@x commit -q --allow-empty -m one && "
       "git remote add origin ../o && git push -q origin main");
    char text[2200];
    snprintf(text, sizeof text, "cd r && %s git push origin HEAD:x", command);
    TAP_OK(sh(text) != 0, "an agent's push is refused");
    snprintf(text, sizeof text, "cd r && %s git push ../o HEAD:x", command);
    TAP_OK(sh(text) != 0, "to a path as well");
    snprintf(text, sizeof text, "cd r && %s git fetch -q origin", command);
    TAP_OK(sh(text) == 0, "a fetch works");
    TAP_OK(sh("cd r && git push -q origin HEAD:x") == 0, "and without that, so does the push");
}

int main(void)
{
    char template[] = "/tmp/amp-worktree-test.XXXXXX";
    if (!mkdtemp(template))
        return 1;
    amp_span_copy(amp_span_str(template), dir, sizeof dir);
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    paths();
    rules();
    roles();
    markers();
    bindings();
    pushes();
    sh("cd / && rm -rf \"$OLDPWD\"");
    return tap_done();
}

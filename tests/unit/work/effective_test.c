/* The effective access of an AOP TASK is what a confined command gets. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../scratch.h"
#include "../tap.h"
#include "work/confine/effective.h"

static struct amp_reader *reader;
static struct amp_view v;
static const char *top;

#define TASK(target, access)                                                                       \
    "{\"aop_version\":\"2.0.2-C\",\"schema_version\":\"2.0.2\",\"protocol_family\":\"AOP\","       \
    "\"message_type\":\"TASK\","                                                                   \
    "\"session\":{\"session_id\":\"s\",\"created_at\":\"2026-02-26T14:00:00Z\","                   \
    "\"orchestrator\":\"o\",\"origin\":\"CLI\"},\"target\":{\"agent_name\":\"a\","                 \
    "\"role\":\"EXECUTOR\",\"provider\":\"LOCAL\",\"model\":\"m\"" target "},"                     \
    "\"task\":{\"task_id\":\"t\",\"objective\":\"o\",\"category\":\"OTHER\","                      \
    "\"complexity\":\"LOW\",\"environment\":{\"workspace_root\":\"/w\"}" access "}}"

static int restricted(const char *line, enum amp_network network, struct amp_confine_policy *p)
{
    struct amp_error err;
    amp_confine_policy_init(p);
    p->network = network;
    TAP_INT(amp_reader_line(reader, amp_span_str(line), NULL, &v, NULL, NULL, &err), 1, "valid");
    return amp_access_restrict(&v, p, &err);
}

static const char *joined(char **list)
{
    static char out[256];
    out[0] = '\0';
    if (!list)
        return "all";
    for (; *list; list++)
        snprintf(out + strlen(out), sizeof out - strlen(out), "[%s]", *list);
    return out;
}

static void values(void)
{
    struct amp_confine_policy p;
    TAP_INT(restricted(TASK("", ""), AMP_NETWORK_FULL_ACCESS, &p), 0, "a task has a policy");
    TAP_STR(joined(p.only_read), "all", "files are not limited");
    TAP_INT(p.network, AMP_NETWORK_EGRESS_RESTRICTED, "the protocol's default is RESTRICTED");
    amp_access_release(&p);
    restricted(TASK("", ",\"access\":{\"filesystem\":{\"read_paths\":[\"src\",\"/w/doc/\","
                        "\"/etc\",\"/wide\"],\"write_paths\":[\"src/gen\"]},\"network\":\"FULL\"}"),
               AMP_NETWORK_DENY_ALL, &p);
    TAP_STR(joined(p.only_read), "[src][doc]", "paths of the workspace, no others");
    TAP_STR(joined(p.only_write), "[src/gen]", "for writing");
    TAP_INT(p.network, AMP_NETWORK_DENY_ALL, "a message never widens the network");
    amp_access_release(&p);
    restricted(TASK("", ",\"access\":{\"network\":\"NONE\"},"
                        "\"constraints\":{\"read_only_mode\":true}"),
               AMP_NETWORK_FULL_ACCESS, &p);
    TAP_OK(p.read_only, "read-only");
    TAP_INT(p.network, AMP_NETWORK_DENY_ALL, "NONE is DENY_ALL");
    amp_access_release(&p);
}

static void no_policy(void)
{
    struct amp_confine_policy p;
    struct amp_error err;
    amp_confine_policy_init(&p);
    amp_reader_line(reader, amp_span_str("{}"), NULL, &v, NULL, NULL, &err);
    TAP_INT(amp_access_restrict(&v, &p, &err), 1, "another line has none");
    TAP_STR(joined(p.only_write), "all", "and restricts nothing");
}

/* Runs a script in the worktree with the policy; its output. */
static const char *run(const struct amp_confine_report *report,
                       const struct amp_confine_policy *policy, const char *script)
{
    static char out[512];
    const char *const argv[] = {"sh", "-c", script, NULL};
    const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    int ends[2];
    struct amp_child child;
    struct amp_child_end end;
    struct amp_error err = {0};
    const struct amp_confine c = {
        .policy = policy, .report = report, .worktree = top, .gate_fd = -1};
    size_t n = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return "no pipe";
    const struct amp_child_spec spec = {.argv = argv,
                                        .envp = envp,
                                        .cwd = top,
                                        .fd_in = -1,
                                        .fd_out = ends[1],
                                        .fd_err = -1,
                                        .dies_with_us = true};
    int rc = amp_confine_start(&c, &spec, &child, &err);
    close(ends[1]);
    if (rc == 0) {
        for (ssize_t got; (got = read(ends[0], out + n, sizeof out - 1 - n)) > 0;)
            n += (size_t)got;
        amp_child_wait(&child, 20000, 0, NULL, &end, &err);
    }
    close(ends[0]);
    out[n] = '\0';
    if (rc)
        snprintf(out, sizeof out, "%s", err.what);
    return out;
}

static bool is_absent(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", top, name);
    return access(path, F_OK) != 0;
}

static void enforced(enum amp_confine_level level)
{
    struct amp_confine_policy p;
    struct amp_confine_report r;
    struct amp_error err;
    restricted(TASK("", ",\"access\":{\"filesystem\":{\"read_paths\":[\"src\"],"
                        "\"write_paths\":[\"src/gen\",\"absent\",\"link\"]}}"),
               AMP_NETWORK_DENY_ALL, &p);
    if (amp_confine_choose(AMP_CONFINE_BEST_EFFORT, &p, &r, &err) < 0 || r.level < level) {
        tap_skip(4, "this machine cannot confine at this level");
        amp_access_release(&p);
        return;
    }
    if (level == AMP_LEVEL_LANDLOCK)
        r.means.namespaces = false;
    TAP_STR(run(&r, &p,
                "cat src/a secret; echo x >src/a && echo wrote; echo y >src/gen/b && echo "
                "generated; echo z >c; cat link/d"),
            "text\ngenerated\n", "only its paths are there");
    /* In a root of its own, the rest of the directory is a new one. */
    TAP_OK(is_absent("c") && !is_absent("src/gen/b"), "and what it writes is written there");
    amp_access_release(&p);
    restricted(TASK("", ",\"access\":{\"filesystem\":{\"read_paths\":[]}}"), AMP_NETWORK_DENY_ALL,
               &p);
    TAP_STR(run(&r, &p, "ls; cat src/a; echo x >e"), "", "an empty list is nothing");
    TAP_OK(is_absent("e"), "also for writing");
    amp_access_release(&p);
}

static void file_put(const char *name, const char *text)
{
    char path[256];
    struct amp_error err;
    snprintf(path, sizeof path, "%s/%s", top, name);
    if (amp_file_write_atomic(AT_FDCWD, path, 0644, amp_span_str(text), &err) < 0)
        printf("# %s\n", err.what);
}

int main(void)
{
    char path[256];
    struct amp_error err;
    if (!(reader = amp_reader_new(NULL, &err)))
        return 1;
    top = scratch();
    const char *const dirs[] = {"src", "src/gen", "elsewhere"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", top, dirs[i]);
        mkdir(path, 0755);
    }
    file_put("src/a", "text\n");
    file_put("secret", "secret\n");
    snprintf(path, sizeof path, "%s/link", top);
    if (symlink("/etc", path) < 0)
        return 1;
    values();
    no_policy();
    enforced(AMP_LEVEL_FULL);
    enforced(AMP_LEVEL_LANDLOCK);
    amp_reader_free(reader);
    return tap_done();
}

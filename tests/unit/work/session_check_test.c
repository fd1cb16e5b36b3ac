/* Checks of the work on a TASK: expectations, paths, artifacts, the size of what is kept. */
#include "work/aop/session/check.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/protocol/compose/json.h"

static struct amp_error err;

static void stream_read(int fd, struct amp_kept_output *to)
{
    char b[4096];
    ssize_t n;

    lseek(fd, 0, SEEK_SET);
    while ((n = read(fd, b, sizeof b)) > 0)
        amp_kept_add(to, (struct amp_span){b, (size_t)n});
}

/* Runs a command without confinement; its output goes through files. */
static int run_plain(void *ctx, struct amp_walled_check *c, struct amp_error *e)
{
    AMP_CLOSE int out = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    AMP_CLOSE int errs = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct amp_child child;
    int *n = ctx;

    (*n)++;
    const struct amp_child_spec spec = {.argv = c->argv,
                                        .cwd = c->cwd,
                                        .fd_in = -1,
                                        .fd_out = out,
                                        .fd_err = errs,
                                        .owns_tree = true};
    if (amp_child_start(&spec, &child, e) < 0) {
        snprintf(c->trouble, sizeof c->trouble, "%s", e->code);
        return 0;
    }
    int rc = amp_child_wait(&child, c->limit_ms, 100, NULL, &c->end, e);
    stream_read(out, &c->out);
    stream_read(errs, &c->errs);
    return rc;
}

static char dir[PATH_MAX];
static int runs;
static struct amp_checks x = {
    .root = "C:/ws", .limit_ms = 5000, .clip = 200, .run = run_plain, .ctx = &runs};

static void file_write(const char *name, const char *text)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static void validates(const char *command, const char *expects, bool passed, const char *why)
{
    AMP_CLEANUP(amp_checked_release) struct amp_checked c = {0};
    json_auto_t *v = json_pack("{s:s, s:s}", "command", command, "expects", expects);
    int rc = amp_checks_validate(&x, v, &c, &err);
    TAP_OK(rc == 0 && c.passed == passed && strstr(c.why, why), "%s %s: %s", expects, command,
           rc ? err.what : c.why);
}

static void path_is(const char *root, const char *path, const char *want)
{
    AMP_BUF struct amp_buf out = {.max = 4096};
    int rc = amp_checks_path(root, path, &out, &err);
    TAP_OK(want ? rc == 0 && amp_span_is(amp_buf_span(&out), want)
                : rc < 0 && strcmp(err.code, "E_PERMISSION_DENIED") == 0,
           "the path %s in %s", path, root);
}

/* The status and the number of pieces of evidence. */
static void point_is(const char *point, const char *claim, const char *status, size_t evidence)
{
    json_auto_t *p = json_loads(point, 0, NULL);
    json_auto_t *said = claim ? json_loads(claim, 0, NULL) : NULL;
    json_auto_t *result = NULL;
    char why[AMP_CHECKS_WHY];
    int rc = amp_checks_checkpoint(&x, p, said, &result, why, &err);
    TAP_OK(rc == 0 && strcmp(amp_json_str(result, "status"), status) == 0 &&
               (*why != '\0') == (strcmp(status, "FAIL") == 0 && evidence > 0) &&
               json_array_size(json_object_get(result, "evidence")) == evidence,
           "%s is %s", point, rc ? err.what : amp_json_str(result, "status"));
}

static void output_is_clipped(void)
{
    AMP_CLEANUP(amp_checked_release) struct amp_checked c = {0};
    json_auto_t *v = json_pack("{s:s, s:s}", "command", "seq 100000", "expects", "EXIT_CODE_0");
    int rc = amp_checks_validate(&x, v, &c, &err);
    TAP_OK(rc == 0 && c.passed && c.output.len <= x.clip &&
               strncmp(c.output.data, "1\n2\n", 4) == 0 && strstr(c.output.data, "99999\n100000") &&
               strstr(c.output.data, " bytes]\n"),
           "of a long output the beginning and the end are kept");
    amp_checked_release(&c);
    json_auto_t *bytes = json_pack("{s:s, s:s}", "command", "printf 'a\\377\\001\\342\\202\\254'",
                                   "expects", "MATCH_FOUND");
    rc = amp_checks_validate(&x, bytes, &c, &err);
    TAP_OK(rc == 0 && c.passed && strcmp(c.output.data, "a??\xe2\x82\xac") == 0,
           "what is not text is replaced");
}

static void ready_is(const char *task, const char *what)
{
    json_auto_t *t = json_loads(task, 0, NULL);
    int rc = amp_checks_ready(t, &err);
    TAP_OK(what ? rc < 0 && strcmp(err.code, "bad_command") == 0 && strstr(err.what, what)
                : rc == 0,
           "%s", rc ? err.what : "all commands can be carried out");
}

int main(void)
{
    char outside[PATH_MAX + 32], link[PATH_MAX + 64];

    snprintf(dir, sizeof dir, "%s/ws", scratch());
    mkdir(dir, 0700);
    snprintf(outside, sizeof outside, "%s/../secret", dir);
    FILE *f = fopen(outside, "w");
    if (f)
        fclose(f);
    file_write("a.txt", "config.get\n");
    snprintf(link, sizeof link, "%s/link", dir);
    if (symlink("../secret", link) < 0)
        return 1;
    x.dir = dir;
    x.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    path_is("C:/ws", "C:/ws/a/../b", "b");
    path_is("C:/ws", "a.txt", "a.txt");
    path_is("C:/ws", "C:\\ws\\a\\b", "a/b");
    path_is("C:/ws", "C:/ws", ".");
    path_is("/", "/a", "a");
    path_is("C:/ws", "C:/ws2/a", NULL);
    path_is("C:/ws", "../secret", NULL);
    path_is("C:/ws", "/etc/passwd", NULL);

    validates("true", "EXIT_CODE_0", true, "exit 0");
    validates("false", "EXIT_CODE_0", false, "exit 1, expected exit 0");
    validates("grep -n 'config.get' a.txt", "MATCH_FOUND", true, "exit 0, output");
    validates("grep -n 'config.get' C:/ws/a.txt", "MATCH_FOUND", true, "exit 0");
    validates("grep -c other a.txt", "MATCH_FOUND", false, "exit 1");
    validates("true", "MATCH_FOUND", false, "exit 0, expected exit 0 and output");
    validates("grep other a.txt", "NO_MATCH", true, "exit 1");
    validates("grep config a.txt", "NO_MATCH", false, "expected no output");
    validates("grep x missing.txt", "NO_MATCH", false, "exit 2");
    validates("a.txt", "FILE_EXISTS", true, "a.txt exists");
    validates("C:/ws/a.txt", "FILE_EXISTS", true, "exists");
    validates("C:\\ws\\a.txt", "FILE_EXISTS", true, "exists");
    validates("b.txt", "FILE_EXISTS", false, "does not exist");
    validates("../secret", "FILE_EXISTS", false, "");
    validates("link", "FILE_EXISTS", false, "symbolic link");
    validates("test -f a.txt", "FILE_EXISTS", true, "exit 0");
    validates("test -f b.txt", "FILE_EXISTS", false, "exit 1");
    validates("no-such-program", "NO_MATCH", false, "command_not_found");
    int before = runs;
    validates("cat a.txt | wc", "EXIT_CODE_0", false, "an operator of the shell");
    TAP_OK(runs == before, "nothing is run of a line that a shell would interpret");
    x.limit_ms = 200;
    validates("sleep 60", "EXIT_CODE_0", false, "ended after 0 s");
    x.limit_ms = 5000;
    output_is_clipped();

    point_is("{\"checkpoint_id\":\"a\"}", NULL, "SKIP", 0);
    point_is("{\"checkpoint_id\":\"a\"}", "{\"status\":\"PASS\"}", "PASS", 0);
    point_is("{\"checkpoint_id\":\"a\"}", "{\"status\":\"PENDING\"}", "SKIP", 0);
    point_is(
        "{\"checkpoint_id\":\"a\",\"expected_artifacts\":[{\"type\":\"FILE\",\"path\":\"a.txt\"}]}",
        "{\"status\":\"FAIL\"}", "PASS", 2);
    point_is(
        "{\"checkpoint_id\":\"a\",\"expected_artifacts\":[{\"type\":\"FILE\",\"path\":\".\"}]}",
        NULL, "FAIL", 1);
    point_is(
        "{\"checkpoint_id\":\"a\",\"expected_artifacts\":[{\"type\":\"FILE\",\"path\":\"link\"}]}",
        "{\"status\":\"PASS\"}", "FAIL", 2);
    point_is(
        "{\"checkpoint_id\":\"a\",\"expected_artifacts\":[{\"type\":\"FILE\",\"path\":\"a.txt\","
        "\"validation\":{\"command\":\"false\",\"expects\":\"EXIT_CODE_0\"}}],"
        "\"validation\":{\"command\":\"true\",\"expects\":\"EXIT_CODE_0\"}}",
        NULL, "FAIL", 3);

    ready_is("{\"task\":{},\"phases\":[]}", NULL);
    ready_is("{\"task\":{\"expected_outputs\":[{},{\"validation\":{\"command\":\"a > b\"}}]}}",
             "expected output 2");
    ready_is(
        "{\"phases\":[{\"checkpoints\":[{\"checkpoint_id\":\"CP-1\",\"validation\":{\"command\":"
        "\"a $b\"}}]}]}",
        "checkpoint CP-1 has an expansion ($)");
    close(x.fd);
    return tap_done();
}

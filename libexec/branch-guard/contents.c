/*
 * The rules that need the contents of commits: trailers, paths, sizes, reserved paths. They read
 * them with git's plumbing, which runs nothing of the repository: no hook, filter, text conversion,
 * external diff, signature check or transport. Replaced objects and grafts are not used, because
 * they would show other contents than those that are stored.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "guard.h"
#include "work/git/paths/glob.h"
#include "work/git/paths/reserved.h"

#define OUTPUT_MAX  (256u << 20)
#define COMMITS_MAX 100000
#define ARGS_MAX    (4 * AMP_RULE_PATTERNS_MAX)
#define MESSAGE_MAX (1u << 20)
#define TIME_MS     60000

#define ASK_POLICY "leave this change out, or ask a person to change the policy"

static int guard_failed(const char *what)
{
    return guard_refuse(AMP_CODE(guard_failed), "without this check, the change is refused", "%s",
                        what);
}

/* ---- running git ---- */

/* This process's environment without the variables that change what the plumbing reads or runs. */
static const char **plumbing_env(struct amp_error *err)
{
    static const char *const fixed[] = {
        "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
        "GIT_ALLOW_PROTOCOL=none",  "GIT_GRAFT_FILE=/nonexistent",
        "GIT_OPTIONAL_LOCKS=0",     "GIT_TERMINAL_PROMPT=0",
        "GIT_LITERAL_PATHSPECS=1",  "LC_ALL=C",
    };
    static const char *const dropped[] = {"GIT_REPLACE_REF_BASE=", "GIT_TRACE",
                                          "GIT_EXTERNAL_DIFF=", "GIT_DIFF_OPTS="};
    size_t n = 0, out = 0, n_fixed = sizeof fixed / sizeof *fixed;
    while (environ[n])
        n++;
    const char **v = calloc(n + n_fixed + 1, sizeof *v);
    if (!v) {
        amp_fail_memory(err);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        bool drop = false;
        for (size_t k = 0; k < n_fixed; k++)
            drop |= strncmp(environ[i], fixed[k], strcspn(fixed[k], "=") + 1) == 0;
        for (size_t k = 0; k < sizeof dropped / sizeof *dropped; k++)
            drop |= strncmp(environ[i], dropped[k], strlen(dropped[k])) == 0;
        if (!drop)
            v[out++] = environ[i];
    }
    for (size_t i = 0; i < n_fixed; i++)
        v[out++] = fixed[i];
    return v;
}

static int pipe_read(int fd, struct amp_buf *out, struct amp_error *err)
{
    for (;;) {
        if (amp_buf_reserve(out, 65536, err) < 0)
            return -1;
        ssize_t n = read(fd, out->data + out->len, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return amp_fail_errno(err, AMP_IOERR, "git's output");
        if (n == 0)
            return 0;
        out->len += (size_t)n;
    }
}

/* Runs git with the arguments (NULL-terminated) and the input; out gets its output. */
static int git_run(const char *const *args, struct amp_span input, struct amp_buf *out)
{
    static const char *const first[] = {"git", "--no-pager",
                                        "-c",  "core.fsmonitor=false",
                                        "-c",  "core.hooksPath=/dev/null",
                                        "-c",  "core.attributesFile=/dev/null"};
    const char *argv[ARGS_MAX + 16];
    struct amp_error err;
    struct amp_child child;
    struct amp_child_end end = {0};
    size_t n = 0;
    int p[2];
    for (; n < sizeof first / sizeof *first; n++)
        argv[n] = first[n];
    for (; *args && n < sizeof argv / sizeof *argv - 1; args++)
        argv[n++] = *args;
    argv[n] = NULL;
    AMP_FREE const char **env = plumbing_env(&err);
    AMP_CLOSE int in = memfd_create("amp-git-input", MFD_CLOEXEC);
    if (!env || in < 0 || amp_write_all(in, input, &err) < 0 || lseek(in, 0, SEEK_SET) != 0 ||
        pipe2(p, O_CLOEXEC) != 0)
        return guard_failed("cannot prepare a run of git");
    AMP_CLOSE int from = p[0];
    AMP_CLOSE int to = p[1];
    const struct amp_child_spec spec = {.argv = argv,
                                        .envp = env,
                                        .fd_in = in,
                                        .fd_out = to,
                                        .fd_err = STDERR_FILENO,
                                        .dies_with_us = true};
    if (amp_child_start(&spec, &child, &err) < 0)
        return guard_failed(err.what);
    close(to);
    to = -1;
    amp_buf_reset(out);
    int rc = pipe_read(from, out, &err);
    if (rc < 0)
        amp_child_kill_tree(&child, SIGKILL);
    if (amp_child_wait(&child, TIME_MS, 1000, NULL, &end, rc < 0 ? NULL : &err) < 0 || rc < 0)
        return guard_failed(err.what);
    if (!end.exited || end.exit_code != 0) {
        char what[256];
        snprintf(what, sizeof what, "git %.100s failed (status %d)",
                 argv[sizeof first / sizeof *first], end.exited ? end.exit_code : 128 + end.signal);
        return guard_failed(what);
    }
    return 0;
}
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- changes of files ---- */

/* The next item that ends with NUL; false at the end. */
static bool next_item(struct amp_span *rest, struct amp_span *item)
{
    const char *nul = rest->n ? memchr(rest->p, '\0', rest->n) : NULL;
    if (!nul)
        return false;
    *item = (struct amp_span){rest->p, (size_t)(nul - rest->p)};
    rest->p += item->n + 1;
    rest->n -= item->n + 1;
    return true;
}

/* One changed file of git's raw output. */
struct change {
    struct amp_span commit; /* empty in the index */
    struct amp_span path, oid;
    bool is_blob; /* there is a new content, not a submodule */
};

/* ":OLDMODE MODE OLDOID OID LETTER", with one more colon, old mode and oid for each parent of a
 * merge. Takes the new mode and id. */
static void change_parse(struct amp_span meta, struct change *c)
{
    size_t parents = 0, field = 0;
    struct amp_span mode = {NULL, 0};
    while (parents < meta.n && meta.p[parents] == ':')
        parents++;
    for (size_t at = parents; at < meta.n; field++) {
        size_t n = 0;
        while (at + n < meta.n && meta.p[at + n] != ' ')
            n++;
        struct amp_span s = {meta.p + at, n};
        if (field == parents)
            mode = s;
        else if (field == 2 * parents + 1)
            c->oid = s;
        at += n + 1;
    }
    c->is_blob = amp_span_starts(mode, "1") && !amp_span_is(mode, "160000");
}

/* The next change of the output of diff-tree or diff-index; sets c->commit at each commit's line.
 */
static bool next_change(struct amp_span *rest, struct change *c)
{
    struct amp_span item;
    while (next_item(rest, &item)) {
        if (!item.n || item.p[0] != ':') {
            c->commit = item;
            continue;
        }
        change_parse(item, c);
        return next_item(rest, &c->path);
    }
    return false;
}

static const char *change_place(const struct change *c, char out[64])
{
    if (!c->commit.n)
        return "the index";
    snprintf(out, 64, "commit %.*s", AMP_CLIP(c->commit, 12));
    return out;
}

static int path_check(struct guard *g, const struct amp_buf *reserved, const struct change *c)
{
    char at[64];
    for (int i = 0; g->rule.paths[i]; i++)
        if (amp_glob_match(amp_span_str(g->rule.paths[i]), c->path))
            return guard_refuse(AMP_CODE(path_forbidden),
                                "unstage it with: git restore --staged -- FILE; "
                                "the policy forbids changing such files",
                                "%.*s: forbidden path (%s) in %s: refused to %s",
                                AMP_CLIP(c->path, 500), g->rule.paths[i], change_place(c, at),
                                caller_name(g));
    struct amp_reservation other;
    if (amp_reserved_by(reserved, amp_span_str(g->caller.agent ? g->caller.name : ""), c->path,
                        &other))
        return guard_refuse(AMP_CODE(path_reserved),
                            "leave it out until the reservation ends: worktree-bind release",
                            "%.*s: reserved for %.*s (%.*s) in %s: refused to %s",
                            AMP_CLIP(c->path, 500), AMP_CLIP(other.holder, 128),
                            AMP_CLIP(other.pattern, 200), change_place(c, at), caller_name(g));
    return 0;
}

/* Compares the sizes of the new contents, in the order of the changes, with the limits. */
static int sizes_check(struct guard *g, struct amp_span changes)
{
    AMP_BUF struct amp_buf ids = {0}, sizes = {0};
    struct amp_error err;
    struct amp_span rest = changes;
    struct change c = {0};
    amp_buf_init(&ids, OUTPUT_MAX);
    amp_buf_init(&sizes, OUTPUT_MAX);
    while (next_change(&rest, &c))
        if (c.is_blob &&
            (amp_buf_add(&ids, c.oid.p, c.oid.n, &err) < 0 || amp_buf_str(&ids, "\n", &err) < 0))
            return guard_failed(err.what);
    if (!ids.len)
        return 0;
    if (git_run(ARGS("cat-file", "--batch-check=%(objectsize)"), amp_buf_span(&ids), &sizes))
        return 1;
    int64_t total = 0, size;
    struct amp_span commit = {NULL, 0}, left = amp_buf_span(&sizes);
    char at[64];
    rest = changes;
    memset(&c, 0, sizeof c);
    while (next_change(&rest, &c)) {
        if (!c.is_blob)
            continue;
        const char *lf = left.n ? memchr(left.p, '\n', left.n) : NULL;
        struct amp_span text = {left.p, lf ? (size_t)(lf - left.p) : 0};
        if (!lf || amp_num_parse(text, 0, INT64_MAX, &size, NULL) < 0)
            return guard_failed("a file of the change is missing");
        left.p += text.n + 1;
        left.n -= text.n + 1;
        if (!amp_span_eq(commit, c.commit)) {
            commit = c.commit;
            total = 0;
        }
        total += size;
        if (g->rule.max_file && size > g->rule.max_file)
            return guard_refuse(AMP_CODE(file_too_large), ASK_POLICY,
                                "%.*s: %lld bytes in %s, more than %lld: refused to %s",
                                AMP_CLIP(c.path, 500), (long long)size, change_place(&c, at),
                                (long long)g->rule.max_file, caller_name(g));
        if (g->rule.max_commit && total > g->rule.max_commit)
            return guard_refuse(AMP_CODE(commit_too_large), "divide it into smaller commits",
                                "%s: its files have more than %lld bytes: refused to %s",
                                change_place(&c, at), (long long)g->rule.max_commit,
                                caller_name(g));
    }
    return 0;
}

static bool has_file_rules(const struct guard *g, const struct amp_buf *reserved)
{
    return g->rule.paths[0] || g->rule.max_file || g->rule.max_commit || reserved->len;
}

static int reserved_load(struct guard *g, struct amp_buf *reserved)
{
    struct amp_error err;
    if (g->repo.common >= 0 && amp_reserved_load(reserved, g->repo.common, &err) < 0)
        return guard_refuse(err.code, "a person repairs it with: worktree-bind reserve --list",
                            "%s", err.what);
    return 0;
}

static int changes_check(struct guard *g, const struct amp_buf *reserved, struct amp_span changes)
{
    struct amp_span rest = changes;
    struct change c = {0};
    while (next_change(&rest, &c))
        if (path_check(g, reserved, &c))
            return 1;
    return g->rule.max_file || g->rule.max_commit ? sizes_check(g, changes) : 0;
}

int contents_of_index(struct guard *g)
{
    AMP_BUF struct amp_buf out = {0}, reserved = {0};
    char head[NAME_SIZE], value[VALUE_SIZE] = "HEAD";
    if (reserved_load(g, &reserved))
        return 1;
    if (!has_file_rules(g, &reserved))
        return 0;
    amp_buf_init(&out, OUTPUT_MAX);
    if (repo_head(&g->repo, head) && !repo_value(&g->repo, amp_span_str(head), value).n) {
        if (git_run(ARGS("hash-object", "-t", "tree", "--stdin"), (struct amp_span){NULL, 0}, &out))
            return 1;
        while (out.len && out.data[out.len - 1] == '\n')
            out.len--;
        amp_span_copy(amp_buf_span(&out), value, sizeof value);
    } else {
        snprintf(value, sizeof value, "HEAD");
    }
    return git_run(ARGS("diff-index", "--cached", "--raw", "-r", "-z", "--no-renames",
                        "--no-abbrev", "--ignore-submodules=none", value, "--"),
                   (struct amp_span){NULL, 0}, &out) ||
           changes_check(g, &reserved, amp_buf_span(&out));
}

/* ---- messages ---- */

static struct amp_span span_trim(struct amp_span s)
{
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\n' || s.p[s.n - 1] == '\r' ||
                   s.p[s.n - 1] == '\t'))
        s.n--;
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.n--;
    }
    return s;
}

static bool is_blank(struct amp_span line)
{
    return span_trim(line).n == 0;
}

/* The last paragraph, unless it is the first, which is the title. */
static struct amp_span last_paragraph(struct amp_span message)
{
    message = span_trim(message);
    size_t at = message.n, from = 0;
    while (at > 0) {
        const char *lf = memrchr(message.p, '\n', at - 1);
        size_t start = lf ? (size_t)(lf - message.p) + 1 : 0;
        if (is_blank((struct amp_span){message.p + start, at - start}) && at < message.n) {
            from = at;
            break;
        }
        at = start;
    }
    return from ? (struct amp_span){message.p + from, message.n - from}
                : (struct amp_span){NULL, 0};
}

/* The values that the trailer must have; NULL: any. */
static const char *trailer_expected(const struct guard *g, const char *name)
{
    if (!g->caller.agent)
        return NULL;
    if (strcasecmp(name, "agent") == 0)
        return strcmp(g->caller.name, "unknown") == 0 ? NULL : g->caller.name;
    const char *task = strcasecmp(name, "task") == 0 ? getenv("AMP_TASK_ID") : NULL;
    return task && *task ? task : NULL;
}

static bool trailer_found(struct amp_span block, const char *name, const char *expected)
{
    size_t n = strlen(name);
    while (block.n) {
        const char *lf = memchr(block.p, '\n', block.n);
        struct amp_span line = {block.p, lf ? (size_t)(lf - block.p) : block.n};
        block.p += line.n + (lf ? 1 : 0);
        block.n -= line.n + (lf ? 1 : 0);
        if (line.n <= n || line.p[n] != ':' || strncasecmp(line.p, name, n) != 0)
            continue;
        struct amp_span value = span_trim((struct amp_span){line.p + n + 1, line.n - n - 1});
        if (value.n && (!expected || amp_span_is(value, expected)))
            return true;
    }
    return false;
}

static int message_check(const struct guard *g, struct amp_span message, const char *at)
{
    struct amp_span block = last_paragraph(message);
    for (int i = 0; g->rule.trailers[i]; i++) {
        const char *name = g->rule.trailers[i], *expected = trailer_expected(g, name);
        char hint[512];
        if (trailer_found(block, name, expected))
            continue;
        snprintf(hint, sizeof hint,
                 "git commit --amend --no-edit --trailer '%.100s: %.128s' adds it "
                 "to a commit; git commit --trailer to a new one",
                 name, expected ? expected : "VALUE");
        return guard_refuse(AMP_CODE(trailer_missing), hint,
                            "%s: no trailer \"%s: %s\": refused to %s", at, name,
                            expected ? expected : "VALUE", caller_name(g));
    }
    return 0;
}

/* Everything after git's scissors line is not part of the message. */
static struct amp_span cut_scissors(struct amp_span message)
{
    static const char mark[] = "------------------------ >8 ------------------------";
    const char *hit = message.n ? memmem(message.p, message.n, mark, strlen(mark)) : NULL;
    const char *lf = hit ? memrchr(message.p, '\n', (size_t)(hit - message.p)) : NULL;
    if (hit)
        message.n = lf ? (size_t)(lf - message.p) + 1 : 0;
    return message;
}

int contents_of_message(struct guard *g, const char *path)
{
    AMP_BUF struct amp_buf raw = {0}, text = {0};
    struct amp_error err;
    if (!g->rule.trailers[0])
        return 0;
    amp_buf_init(&raw, MESSAGE_MAX);
    amp_buf_init(&text, OUTPUT_MAX);
    if (amp_file_read(AT_FDCWD, path, MESSAGE_MAX - 1, &raw, &err) < 0)
        return guard_failed(err.what);
    /* Removes the comments that git will remove. */
    return git_run(ARGS("stripspace", "--strip-comments"), cut_scissors(amp_buf_span(&raw)),
                   &text) ||
           message_check(g, amp_buf_span(&text), "the message");
}

/* The output of cat-file --batch: "ID commit SIZE", the commit, a line feed. */
static int messages_check(struct guard *g, struct amp_span commits)
{
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, OUTPUT_MAX);
    if (git_run(ARGS("cat-file", "--batch"), commits, &out))
        return 1;
    for (struct amp_span rest = amp_buf_span(&out); rest.n;) {
        char head[128], at[64];
        long long size = 0;
        const char *lf = memchr(rest.p, '\n', rest.n);
        size_t n = lf ? (size_t)(lf - rest.p) : rest.n;
        amp_span_copy((struct amp_span){rest.p, n}, head, sizeof head);
        const char *last = strrchr(head, ' ');
        if (!lf || !last || !strstr(head, " commit ") ||
            amp_num_parse(amp_span_str(last + 1), 0, (int64_t)rest.n, (int64_t *)&size, NULL) < 0 ||
            n + 2 + (size_t)size > rest.n)
            return guard_failed("git cat-file returned no commit");
        struct amp_span commit = {lf + 1, (size_t)size};
        const char *blank = memmem(commit.p, commit.n, "\n\n", 2);
        struct amp_span message = {NULL, 0};
        if (blank)
            message = (struct amp_span){blank + 2, commit.n - (size_t)(blank + 2 - commit.p)};
        snprintf(at, sizeof at, "commit %.12s", head);
        if (message_check(g, message, at))
            return 1;
        rest.p += n + 2 + (size_t)size;
        rest.n -= n + 2 + (size_t)size;
    }
    return 0;
}

/* ---- commits ---- */

int contents_of_commits(struct guard *g, struct amp_span ids, const char *const *without)
{
    AMP_BUF struct amp_buf commits = {0}, changes = {0}, reserved = {0};
    const char *args[ARGS_MAX] = {"rev-list", "--max-count", "100001", "--stdin", "--not"};
    size_t n = 5, lines = 0;
    if (!ids.n)
        return 0;
    if (reserved_load(g, &reserved))
        return 1;
    bool files = has_file_rules(g, &reserved);
    if (!files && !g->rule.trailers[0])
        return 0;
    for (; *without && n < ARGS_MAX - 1; without++)
        args[n++] = *without;
    amp_buf_init(&commits, OUTPUT_MAX);
    amp_buf_init(&changes, OUTPUT_MAX);
    if (git_run(args, ids, &commits))
        return 1;
    for (size_t i = 0; i < commits.len; i++)
        lines += commits.data[i] == '\n';
    if (lines > COMMITS_MAX)
        return guard_failed("more than 100,000 new commits in one update");
    if (!lines)
        return 0;
    if (g->rule.trailers[0] && messages_check(g, amp_buf_span(&commits)))
        return 1;
    if (!files)
        return 0;
    return git_run(ARGS("diff-tree", "--stdin", "--raw", "-r", "-z", "-c", "--root", "--no-renames",
                        "--no-abbrev", "--no-ext-diff", "--no-textconv",
                        "--ignore-submodules=none"),
                   amp_buf_span(&commits), &changes) ||
           changes_check(g, &reserved, amp_buf_span(&changes));
}

/* The quarantine of a confined attempt: making it, and taking over the agent's branch from it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "quarantine.h"

#include "base/codes.h"

#define SMALL_MAX      (1u << 20)
#define REF_MAX        4096
#define PACKED_MAX     (16u << 20)
#define ALTERNATES_MAX 16
#define COPY_SIZE      65536

/* ---- making it ---- */

static int put_file(struct request *r, int dir, const char *name, struct amp_span text)
{
    AMP_CLOSE int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", name);
    return amp_write_all(fd, text, r->err);
}

/* Copies a regular file; a missing one is left out. */
static int copy_file(struct request *r, int from, int to, const char *name)
{
    char buf[COPY_SIZE];
    ssize_t n;
    AMP_CLOSE int in = openat(from, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (in < 0 && errno == ENOENT)
        return 0;
    if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
        return amp_fail(r->err, AMP_DATAERR, not_a_file, "%s is not a regular file", name);
    AMP_CLOSE int out =
        openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", name);
    while ((n = read(in, buf, sizeof buf)) > 0)
        if (amp_write_all(out, (struct amp_span){buf, (size_t)n}, r->err) < 0)
            return -1;
    return n < 0 ? amp_fail_errno(r->err, AMP_IOERR, "%s", name) : 0;
}

/* A value of git's configuration in quotes. */
static int put_value(struct amp_buf *b, const char *value, struct amp_error *err)
{
    int rc = amp_buf_str(b, "\"", err);
    for (; rc == 0 && *value; value++)
        if (*value == '"' || *value == '\\')
            rc = amp_buf_fmt(b, err, "\\%c", *value);
        else if (*value == '\n')
            rc = amp_buf_str(b, "\\n", err);
        else
            rc = amp_buf_add(b, value, 1, err);
    return rc < 0 ? -1 : amp_buf_str(b, "\"\n", err);
}

static int put_config(struct request *r, int dir)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, SMALL_MAX);
    if (amp_buf_str(&b,
                    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
                    "\tlogallrefupdates = true\n\tworktree = ",
                    r->err) < 0 ||
        put_value(&b, r->in.worktree, r->err) < 0 ||
        amp_buf_str(&b, "[user]\n\tname = ", r->err) < 0 || put_value(&b, r->in.name, r->err) < 0 ||
        amp_buf_str(&b, "\temail = ", r->err) < 0 || put_value(&b, r->in.email, r->err) < 0 ||
        amp_buf_str(&b,
                    "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[commit]\n\tgpgsign = false\n"
                    "[push]\n\tdefault = nothing\n",
                    r->err) < 0)
        return -1;
    return put_file(r, dir, "config", amp_buf_span(&b));
}

/* HEAD, and the branch that it names in packed-refs. *tip stays zero before the first commit. */
static int put_refs(struct request *r, git_repository *tree, int dir, git_oid *tip)
{
    char branch[1024], hex[GIT_OID_HEXSZ + 1], text[1200];
    bool born = git_reference_name_to_id(tip, tree, "HEAD") == 0;
    git_oid_tostr(hex, sizeof hex, tip);
    head_branch(tree, branch, sizeof branch);
    snprintf(text, sizeof text, "%s%s\n", *branch ? "ref: " : "", *branch ? branch : hex);
    if (put_file(r, dir, "HEAD", amp_span_str(text)) < 0)
        return -1;
    if (!born || !*branch)
        return 0;
    snprintf(text, sizeof text, "# pack-refs with: peeled fully-peeled sorted \n%s %s\n", hex,
             branch);
    return put_file(r, dir, "packed-refs", amp_span_str(text));
}

static int put_objects(struct request *r, int dir, const char *objects)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, SMALL_MAX);
    return amp_buf_fmt(&b, r->err, "%s\n", objects) < 0
               ? -1
               : put_file(r, dir, "objects/info/alternates", amp_buf_span(&b));
}

static int fill_quarantine(struct request *r, git_repository *tree, int dir, const char *objects,
                           git_oid *tip)
{
    static const char *const dirs[] = {"objects", "objects/info", "objects/pack",
                                       "refs",    "refs/heads",   "info"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        if (mkdirat(dir, dirs[i], 0700) != 0)
            return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", dirs[i]);
    AMP_CLOSE int own = open(git_repository_path(tree), O_PATH | O_DIRECTORY | O_CLOEXEC);
    AMP_CLOSE int common = open(git_repository_commondir(tree), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (own < 0 || common < 0)
        return amp_fail_errno(r->err, AMP_IOERR, "%s", git_repository_path(tree));
    return put_refs(r, tree, dir, tip) < 0 || put_objects(r, dir, objects) < 0 ||
                   copy_file(r, own, dir, "index") < 0 ||
                   copy_file(r, own, dir, "info/sparse-checkout") < 0 ||
                   copy_file(r, common, dir, "info/exclude") < 0 ||
                   copy_file(r, common, dir, "shallow") < 0 || put_config(r, dir) < 0
               ? -1
               : 0;
}

/* Lists an object directory and those that it borrows from. A path in "alternates" counts only if
 * it names an object directory, because the agent gets the right to read it. */
static int reply_objects(struct request *r, const char *objects, int depth, int *n)
{
    char real[PATH_MAX], path[2 * PATH_MAX];
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, SMALL_MAX);
    const char *last = realpath(objects, real) ? strrchr(real, '/') : NULL;
    if (!last || strcmp(last, "/objects") != 0 || depth > 5 || ++*n > ALTERNATES_MAX)
        return amp_fail(
            r->err, AMP_NOPERM, quarantine_refused,
            "%s: not an object directory, or too many of them (objects/info/alternates)", objects);
    amp_jw_str(&r->out, amp_span_str(real));
    AMP_CLOSE int fd = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(r->err, AMP_IOERR, "%s", real);
    if (amp_file_read(fd, "info/alternates", SMALL_MAX - 1, &b, NULL) < 0)
        return 0; /* there is none, or git would not read it either */
    for (size_t at = 0, end; at < b.len; at = end + 1) {
        const char *nl = memchr(b.data + at, '\n', b.len - at);
        end = nl ? (size_t)(nl - b.data) : b.len;
        int len = (int)(end - at);
        if (len == 0 || b.data[at] == '#')
            continue;
        snprintf(path, sizeof path, "%s%s%.*s", b.data[at] == '/' ? "" : real,
                 b.data[at] == '/' ? "" : "/", len < PATH_MAX ? len : PATH_MAX, b.data + at);
        if (reply_objects(r, path, depth + 1, n) < 0)
            return -1;
    }
    return 0;
}

/* The worktree of the request: a linked one, or the main one. */
static int open_any_worktree(struct request *r, git_repository **out)
{
    const char *main = git_repository_workdir(r->repo);
    bool is_main = main && !git_repository_is_worktree(r->repo) &&
                   same_dir(AT_FDCWD, main, AT_FDCWD, r->in.worktree);
    return is_main ? tree_open(r, git_repository_path(r->repo), r->in.worktree, out)
                   : open_worktree(r, out);
}

int op_quarantine_make(struct request *r)
{
    CLEANUP(git_repository_cleanup) git_repository *tree = NULL;
    char objects[PATH_MAX], common[PATH_MAX];
    const char *path = r->in.path;
    git_oid tip = {{0}};
    struct stat st;
    int n = 0;
    if (path[0] != '/')
        return amp_fail(r->err, AMP_USAGE, bad_path, "%s: not an absolute path", path);
    if (open_any_worktree(r, &tree) < 0)
        return -1;
    snprintf(objects, sizeof objects, "%sobjects", git_repository_commondir(tree));
    if (strpbrk(objects, "\n\""))
        return amp_fail(r->err, AMP_USAGE, bad_path, "%s: cannot be used as an alternate", objects);
    if (mkdir(path, 0700) != 0)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", path);
    AMP_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", path);
    amp_jw_member_open(&r->out, "objects", '[');
    int rc = reply_objects(r, objects, 0, &n);
    amp_jw_close(&r->out, ']');
    if (rc == 0)
        rc = fill_quarantine(r, tree, dir, objects, &tip);
    if (rc < 0) {
        if (fstat(dir, &st) == 0)
            linked_remove_tree(AT_FDCWD, path, st.st_dev, NULL);
        return -1;
    }
    trim_path(git_repository_commondir(tree), common, sizeof common);
    reply_text(r, "common", common);
    reply_oid(r, "head", git_oid_is_zero(&tip) ? NULL : &tip);
    return 0;
}

/* ---- taking over ---- */

/* Reads a small file below the quarantine. 0: read, 1: there is none, -1: refused. */
static int read_below(struct request *r, int dir, const char *name, size_t max, struct amp_buf *out)
{
    struct amp_error why;
    AMP_CLOSE int fd = amp_open_beneath(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, NULL);
    char self[32];
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 1;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return refuse_incoming(r, "%s is not a regular file", name);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (amp_file_read(AT_FDCWD, self, max, out, &why) < 0)
        return amp_code_is(why.code, file_too_large)
                   ? refuse_limit(r, "%s is larger than %zu bytes", name, max)
                   : refuse_incoming(r, "%s cannot be read", name);
    return 0;
}

static int parse_oid(struct request *r, struct amp_span text, const char *name, git_oid *out)
{
    char hex[GIT_OID_HEXSZ + 2];
    while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == ' '))
        text.n--;
    if (text.n != GIT_OID_HEXSZ || !amp_span_copy(text, hex, sizeof hex) ||
        git_oid_fromstr(out, hex) != 0 || git_oid_is_zero(out))
        return refuse_incoming(r, "%s is not a commit's id", name);
    return 0;
}

/* The branch in packed-refs: "<id> <name>". */
static int find_packed(struct request *r, int dir, const char *ref, git_oid *out)
{
    AMP_BUF struct amp_buf b = {0};
    size_t want = strlen(ref);
    amp_buf_init(&b, PACKED_MAX + 1);
    int rc = read_below(r, dir, "packed-refs", PACKED_MAX, &b);
    if (rc < 0)
        return -1;
    for (size_t at = 0, end; rc == 0 && at < b.len; at = end + 1) {
        const char *line = b.data + at, *nl = memchr(line, '\n', b.len - at);
        end = nl ? (size_t)(nl - b.data) : b.len;
        if (end - at == GIT_OID_HEXSZ + 1 + want && line[GIT_OID_HEXSZ] == ' ' &&
            memcmp(line + GIT_OID_HEXSZ + 1, ref, want) == 0)
            return parse_oid(r, (struct amp_span){line, GIT_OID_HEXSZ}, ref, out);
    }
    return refuse_incoming(r, "the branch %s was removed", ref);
}

static int read_branch(struct request *r, int dir, const char *ref, git_oid *out)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, REF_MAX + 1);
    int rc = read_below(r, dir, ref, REF_MAX, &b);
    if (rc < 0)
        return -1;
    return rc ? find_packed(r, dir, ref, out) : parse_oid(r, amp_buf_span(&b), ref, out);
}

/* Replies with the branch under HEAD, and whether a merge or the like was left. */
static int reply_head(struct request *r, int dir)
{
    static const char *const marks[] = {"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD",
                                        "rebase-merge", "rebase-apply"};
    static const char key[] = "ref: refs/heads/";
    AMP_BUF struct amp_buf b = {0};
    char head[256] = "";
    bool unfinished = false;
    amp_buf_init(&b, REF_MAX + 1);
    int rc = read_below(r, dir, "HEAD", REF_MAX, &b);
    if (rc)
        return rc < 0 ? -1 : refuse_incoming(r, "HEAD is missing");
    while (b.len && b.data[b.len - 1] == '\n')
        b.len--;
    if (b.len >= sizeof key - 1 && memcmp(b.data, key, sizeof key - 1) == 0)
        amp_span_copy((struct amp_span){b.data + sizeof key - 1, b.len - sizeof key + 1}, head,
                      sizeof head);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        unfinished |= faccessat(dir, marks[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    reply_text(r, "head", head);
    reply_flag(r, "unfinished", unfinished);
    return 0;
}

/* The new commit must have the fork of the task's base and the branch among its ancestors; so an
 * agent may rewrite its own commits, but not the history that it began with. */
static int check_history(struct request *r, git_repository *view, const git_oid *start,
                         const git_oid *tip)
{
    git_oid base, fork = *start;
    const char *text = r->in.base;
    if (text && *text && git_oid_fromstr(&base, text) == 0 &&
        git_merge_base(&fork, view, &base, start) != 0)
        fork = *start;
    if (git_oid_equal(&fork, tip))
        return 0;
    int rc = git_graph_descendant_of(view, tip, &fork);
    if (rc < 0)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.branch);
    return rc ? 0
              : refuse_incoming(r, "the commit %s does not descend from %s", git_oid_tostr_s(tip),
                                r->in.base && *r->in.base ? r->in.base : r->in.start);
}

/* The rule for branches and contents. */
static int check_rule(struct request *r, const char *ref, const git_oid *tip)
{
    struct amp_rule rule;
    struct amp_rule_caller caller;
    if (load_rule(r, r->repo, &rule) < 0)
        return -1;
    amp_rule_caller(r->in.name, r->in.role, -1, &caller);
    /* The quarantine has only this branch. */
    caller.marked = true;
    amp_span_copy(amp_span_str(r->in.branch), caller.branch, sizeof caller.branch);
    return check_branch(r, &rule, &caller, ref) < 0 ||
                   check_contents(r, r->repo, &rule, r->in.name, tip) < 0
               ? -1
               : 0;
}

/* Moves the branch, or keeps the new commit if somebody else has moved it. */
static int move_branch(struct request *r, const char *ref, const git_oid *start, const git_oid *tip,
                       bool *kept)
{
    CLEANUP(git_reference_cleanup) git_reference *now = NULL, *moved = NULL;
    git_repository *repo = r->repo;
    char hex[GIT_OID_HEXSZ + 1];
    if (check_rule(r, ref, tip) < 0)
        return -1;
    if (keep_tip(r, repo, start, ref, tip, r->in.keep, kept) < 0)
        return -1;
    int rc = git_reference_lookup(&now, repo, ref);
    const git_oid *is = rc == 0 ? git_reference_target(now) : NULL;
    if (is && git_oid_equal(is, start)) {
        rc = git_repository_set_ident(repo, r->in.name, r->in.email);
        if (rc == 0)
            rc = git_reference_set_target(&moved, now, tip, "amp: taken over");
        if (rc == 0 || rc != GIT_EMODIFIED)
            return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), ref) : 0;
    } else if (rc && rc != GIT_ENOTFOUND) {
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), ref);
    }
    git_oid_tostr(hex, sizeof hex, tip);
    if (!*kept && keep_tip(r, repo, tip, NULL, NULL, r->in.keep, kept) < 0)
        return -1;
    return amp_fail(r->err, AMP_NO, branch_moved,
                    "%s: moved while the agent worked; the agent's commit %.12s is kept as %s",
                    r->in.branch, hex, r->in.keep);
}

/* The index gets the tree of the new commit; entries that are equal keep their file times, and
 * files that a sparse checkout leaves out stay out. */
static int refresh_index(struct request *r, git_repository *tree, const git_oid *tip)
{
    CLEANUP(git_index_cleanup) git_index *index = NULL, *old = NULL;
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    CLEANUP(git_tree_cleanup) git_tree *files = NULL;
    int rc = git_repository_index(&index, tree);
    if (rc == 0)
        rc = git_commit_lookup(&commit, tree, tip);
    if (rc == 0)
        rc = git_commit_tree(&files, commit);
    if (rc == 0)
        rc = git_index_open(&old, git_index_path(index));
    if (rc == 0)
        rc = git_index_read_tree(index, files);
    for (size_t i = 0; rc == 0 && i < git_index_entrycount(old); i++) {
        const git_index_entry *was = git_index_get_byindex(old, i);
        const git_index_entry *is = was->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE
                                        ? git_index_get_bypath(index, was->path, 0)
                                        : NULL;
        if (!is)
            continue;
        git_index_entry entry = *is;
        entry.flags_extended |= GIT_INDEX_ENTRY_SKIP_WORKTREE;
        rc = git_index_add(index, &entry);
    }
    if (rc == 0)
        rc = git_index_write(index);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.worktree) : 0;
}

/* Checks the commit with everything that it needs, and writes that into the repository. */
static int take_objects(struct request *r, int dir, const git_oid *start, const git_oid *tip)
{
    const struct incoming_limits limits = {r->in.objects, r->in.bytes, r->in.object_bytes,
                                           r->in.tree_paths, r->in.tree_bytes};
    struct incoming_count count = {0};
    struct incoming *in = NULL;
    int rc = incoming_open(r, dir, &limits, &in);
    if (rc == 0)
        rc = incoming_check(in, tip, &count);
    if (rc == 0)
        rc = check_history(r, incoming_view(in), start, tip);
    if (rc == 0)
        rc = incoming_write(in);
    incoming_close(in);
    amp_jw_member_int(&r->out, "commits", count.commits);
    amp_jw_member_int(&r->out, "objects", count.objects);
    amp_jw_member_int(&r->out, "bytes", count.bytes);
    return rc;
}

static int take_branch(struct request *r, git_repository *tree, int dir, const char *ref,
                       const git_oid *start, const git_oid *tip)
{
    bool kept = false;
    int rc = take_objects(r, dir, start, tip);
    if (rc == 0)
        rc = move_branch(r, ref, start, tip, &kept);
    if (rc == 0)
        rc = refresh_index(r, tree, tip);
    reply_flag(r, "kept", kept);
    return rc;
}

/* Reads what the request and the quarantine say of the branch. Returns the open quarantine. */
static int read_quarantine(struct request *r, char *ref, size_t size, git_oid *start, git_oid *tip)
{
    int valid = 0;
    if (git_branch_name_is_valid(&valid, r->in.branch) || !valid ||
        git_oid_fromstr(start, r->in.start) != 0)
        return amp_fail(r->err, AMP_USAGE, bad_branch, "%s at %s: not a branch and its commit",
                        r->in.branch, r->in.start);
    snprintf(ref, size, "refs/heads/%s", r->in.branch);
    AMP_CLOSE int dir = open(r->in.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return refuse_incoming(r, "%s is not a directory", r->in.path);
    if (reply_head(r, dir) < 0 || read_branch(r, dir, ref, tip) < 0)
        return -1;
    int fd = dir;
    dir = -1;
    return fd;
}

int op_quarantine_take(struct request *r)
{
    CLEANUP(git_repository_cleanup) git_repository *tree = NULL;
    char ref[1024], under[1024];
    git_oid start, tip;
    AMP_CLOSE int dir = read_quarantine(r, ref, sizeof ref, &start, &tip);
    if (dir < 0 || open_worktree(r, &tree) < 0)
        return -1;
    head_branch(tree, under, sizeof under);
    if (strcmp(under, ref) != 0)
        return amp_fail(r->err, AMP_NO, worktree_unknown, "%s: not on the branch %s",
                        r->in.worktree, r->in.branch);
    if (!git_oid_equal(&tip, &start) && take_branch(r, tree, dir, ref, &start, &tip) < 0)
        return -1;
    reply_oid(r, "commit", &tip);
    return 0;
}

int op_quarantine_keep(struct request *r)
{
    char ref[1024];
    git_oid start, tip;
    bool kept = false;
    AMP_CLOSE int dir = read_quarantine(r, ref, sizeof ref, &start, &tip);
    if (dir < 0)
        return -1;
    if (!git_oid_equal(&tip, &start) &&
        (take_objects(r, dir, &start, &tip) < 0 || check_rule(r, ref, &tip) < 0 ||
         keep_tip(r, r->repo, &tip, "", &start, r->in.keep, &kept) < 0))
        return -1;
    reply_flag(r, "kept", kept);
    reply_oid(r, "commit", &tip);
    return 0;
}

int op_quarantine_drop(struct request *r)
{
    struct stat st, own;
    AMP_CLOSE int dir = open(r->in.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &own) < 0 || fstatat(dir, "objects", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISDIR(st.st_mode) || fstatat(dir, "HEAD", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return amp_fail(r->err, AMP_NO, quarantine_unknown, "%s: not a quarantine", r->in.path);
    linked_remove_tree(AT_FDCWD, r->in.path, own.st_dev, NULL);
    return 0;
}

/*
 * The files of a new worktree. In a sparse checkout, the new worktree gets the patterns of the main
 * worktree: entries outside have the skip-worktree bit in the index, and no file. The patterns
 * of the cone mode, as git writes them, mean the same when they are matched like all others.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "worker.h"

#define SPARSE_FILE "info/sparse-checkout"
#define SPARSE_MAX  (1u << 20)
#define SPARSE_TEXT 1024 /* of one pattern */

struct pattern {
    char *text; /* without `!` and the slashes at both ends */
    bool not, only_dirs, anchored;
};

struct sparse {
    struct amp_buf text, lines; /* the file, and a copy that is cut into patterns */
    struct pattern *patterns;
    size_t n;
    bool on, cone;
    char dir[PATH_MAX]; /* the directory that was decided last */
    bool dir_in;
};

static void sparse_release(struct sparse *s)
{
    amp_buf_release(&s->text);
    amp_buf_release(&s->lines);
    free(s->patterns);
}

/* ---- patterns ---- */

static void pattern_add(struct sparse *s, char *line)
{
    struct pattern p = {.text = line};
    size_t n = strlen(line);
    if (n && line[n - 1] == '\r')
        line[--n] = '\0';
    while (n && line[n - 1] == ' ' && (n < 2 || line[n - 2] != '\\'))
        line[--n] = '\0';
    if (*p.text == '#')
        return;
    if (*p.text == '!') {
        p.not = true;
        p.text++;
    }
    n = strlen(p.text);
    if (n && p.text[n - 1] == '/') {
        p.only_dirs = true;
        p.text[--n] = '\0';
    }
    p.anchored = strchr(p.text, '/') != NULL;
    if (*p.text == '/')
        p.text++;
    if (*p.text)
        s->patterns[s->n++] = p;
}

static int patterns_read(struct request *r, struct sparse *s)
{
    size_t lines = 2;
    for (size_t i = 0; i < s->text.len; i++)
        lines += s->text.data[i] == '\n';
    s->patterns = calloc(lines, sizeof *s->patterns);
    if (!s->patterns)
        return amp_fail_memory(r->err);
    if (amp_buf_add(&s->lines, s->text.data, s->text.len, r->err) < 0 ||
        amp_buf_add(&s->lines, "", 1, r->err) < 0)
        return -1;
    char *rest = s->lines.data;
    for (char *line; (line = strsep(&rest, "\n"));)
        pattern_add(s, line);
    return 0;
}

/* Matches a path against a pattern with slashes, component by component. */
static bool parts_match(const char *pattern, const char *path)
{
    char part[SPARSE_TEXT], name[NAME_MAX + 1];
    size_t n = strcspn(pattern, "/"), m = strcspn(path, "/");
    if (n == 2 && memcmp(pattern, "**", 2) == 0) {
        if (!pattern[n]) /* everything inside, not the directory itself */
            return *path != '\0';
        for (;; path += strcspn(path, "/") + 1) {
            if (parts_match(pattern + 3, path))
                return true;
            if (!strchr(path, '/'))
                return false;
        }
    }
    if (n >= sizeof part || m >= sizeof name || m == 0)
        return false;
    memcpy(part, pattern, n);
    memcpy(name, path, m);
    part[n] = name[m] = '\0';
    if (fnmatch(part, name, FNM_PATHNAME) != 0 || !pattern[n] != !path[m])
        return false;
    return !pattern[n] || parts_match(pattern + n + 1, path + m + 1);
}

/* The last pattern that matches decides; without one, the directory above does. */
static bool path_decide(const struct sparse *s, const char *path, bool is_dir, bool above)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    for (size_t i = s->n; i-- > 0;) {
        const struct pattern *p = &s->patterns[i];
        if ((is_dir || !p->only_dirs) &&
            (p->anchored ? parts_match(p->text, path) : fnmatch(p->text, base, 0) == 0))
            return !p->not ;
    }
    return above;
}

/* Whether the sparse checkout has the file. */
static bool sparse_has(struct sparse *s, const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    bool in = false;
    if (n >= sizeof dir)
        return true;
    memcpy(dir, path, n);
    dir[n] = '\0';
    if (n && strcmp(dir, s->dir) == 0) {
        in = s->dir_in;
    } else if (n) {
        for (size_t i = 1; i <= n; i++)
            if (path[i] == '/') {
                dir[i] = '\0';
                in = path_decide(s, dir, true, in);
                dir[i] = i < n ? '/' : '\0';
            }
        memcpy(s->dir, dir, n + 1);
        s->dir_in = in;
    }
    return path_decide(s, path, false, in);
}

/* ---- the main worktree's sparse checkout ---- */

static bool config_bool(git_config *config, const char *key, bool otherwise)
{
    int value = otherwise;
    return git_config_get_bool(&value, config, key) == 0 ? value : otherwise;
}

/* The library does not read config.worktree itself. */
static int sparse_settings(struct request *r, struct sparse *s, bool *own)
{
    CLEANUP(git_config_cleanup) git_config *config = NULL, *tree = NULL;
    char path[PATH_MAX];
    int rc = git_repository_config_snapshot(&config, r->repo);
    if (rc)
        return fail_git(r, rc, AMP_CONFIG, AMP_CODE(git_config), "core.sparseCheckout");
    s->on = config_bool(config, "core.sparsecheckout", false);
    s->cone = config_bool(config, "core.sparsecheckoutcone", true);
    *own = config_bool(config, "extensions.worktreeconfig", false);
    int n = snprintf(path, sizeof path, "%sconfig.worktree", git_repository_commondir(r->repo));
    if (!*own || n < 0 || (size_t)n >= sizeof path || access(path, F_OK) != 0)
        return 0;
    rc = git_config_open_ondisk(&tree, path);
    if (rc)
        return fail_git(r, rc, AMP_CONFIG, AMP_CODE(git_config), path);
    s->on = config_bool(tree, "core.sparsecheckout", s->on);
    s->cone = config_bool(tree, "core.sparsecheckoutcone", s->cone);
    return 0;
}

static int file_make(struct request *r, int dir, const char *name, struct amp_span text)
{
    AMP_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd < 0 ? amp_fail_errno(r->err, AMP_CANTCREAT, "%s", name)
                  : amp_write_all(fd, text, r->err);
}

/* Gives the new worktree the patterns, and the setting where each worktree has its own. Nothing
 * else of the main worktree's configuration is copied. */
static int sparse_inherit(struct request *r, const struct linked *w, struct sparse *s)
{
    char config[128];
    bool own;
    if (r->in.no_sparse)
        return 0;
    if (sparse_settings(r, s, &own) < 0)
        return -1;
    if (!s->on)
        return 0;
    AMP_CLOSE int from =
        open(git_repository_commondir(r->repo), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AMP_CLOSE int to = open(w->gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0 || to < 0)
        return amp_fail_errno(r->err, AMP_IOERR, "%s", w->gitdir);
    /* As git, which has all files if there are no patterns. */
    s->on = faccessat(from, SPARSE_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (!s->on)
        return 0;
    AMP_CLOSE int fd = amp_open_beneath(from, "info", O_RDONLY | O_DIRECTORY, 0, r->err);
    AMP_CLOSE int file =
        fd < 0 ? -1 : amp_file_open(fd, "sparse-checkout", O_RDONLY | O_NOFOLLOW, 0, r->err);
    if (file < 0 || amp_file_read(fd, "sparse-checkout", SPARSE_MAX, &s->text, r->err) < 0 ||
        patterns_read(r, s) < 0)
        return -1;
    if (mkdirat(to, "info", 0777) != 0 && errno != EEXIST)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s/info", w->gitdir);
    snprintf(config, sizeof config, "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = %s\n",
             s->cone ? "true" : "false");
    return file_make(r, to, SPARSE_FILE, amp_buf_span(&s->text)) < 0 ||
                   (own && file_make(r, to, "config.worktree", amp_span_str(config)) < 0)
               ? -1
               : 0;
}

/* Writes the index with the skip-worktree bits, and collects the paths of the files to write. */
static int sparse_index(git_repository *repo, git_tree *files, struct sparse *s,
                        git_strarray *paths)
{
    CLEANUP(git_index_cleanup) git_index *index = NULL;
    int rc = git_repository_index(&index, repo);
    if (rc == 0)
        rc = git_index_read_tree(index, files);
    size_t n = rc == 0 ? git_index_entrycount(index) : 0;
    paths->strings = rc == 0 ? calloc(n + 1, sizeof *paths->strings) : NULL;
    if (!paths->strings)
        return rc ? rc : GIT_ERROR;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        git_index_entry entry = *git_index_get_byindex(index, i);
        if (sparse_has(s, entry.path)) {
            paths->strings[paths->count] = strdup(entry.path);
            rc = paths->strings[paths->count++] ? 0 : GIT_ERROR;
            continue;
        }
        entry.flags_extended |= GIT_INDEX_ENTRY_SKIP_WORKTREE;
        rc = git_index_add(index, &entry);
    }
    return rc ? rc : git_index_write(index);
}

/* ---- writing the files ---- */

static int entry_is_attributes(const char *root, const git_tree_entry *e, void *unused)
{
    (void)root;
    (void)unused;
    return strcasecmp(git_tree_entry_name(e), ".gitattributes") == 0 ? GIT_EUSER : 0;
}

/* Whether git may convert files when it writes them: line ends or $Id$. Without attributes and
 * core.autocrlf it does not; then the library need not look for attributes for each file. */
static bool may_convert(git_repository *repo, git_tree *files)
{
    CLEANUP(git_config_cleanup) git_config *config = NULL;
    const char *value;
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%sinfo/attributes", git_repository_commondir(repo));
    return n < 0 || (size_t)n >= sizeof path || access(path, F_OK) == 0 || open_has_attributes() ||
           git_repository_config_snapshot(&config, repo) != 0 ||
           git_config_get_string(&value, config, "core.attributesfile") != GIT_ENOTFOUND ||
           git_config_get_string(&value, config, "core.autocrlf") != GIT_ENOTFOUND ||
           git_tree_walk(files, GIT_TREEWALK_PRE, entry_is_attributes, NULL) != 0;
}

/* Writes the files. As git does, without computing the hash of each object again, and without
 * reading it a second time for its entry in the index; that would be half of the time. */
static int files_write(git_repository *repo, git_tree *files, const git_checkout_options *opt)
{
    git_libgit2_opts(GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 0);
    git_libgit2_opts(GIT_OPT_ENABLE_STRICT_OBJECT_CREATION, 0);
    int rc = git_checkout_tree(repo, (git_object *)files, opt);
    git_libgit2_opts(GIT_OPT_ENABLE_STRICT_OBJECT_CREATION, 1);
    git_libgit2_opts(GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 1);
    return rc;
}

int checkout_files(struct request *r, const struct linked *w, git_repository *repo)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    CLEANUP(git_tree_cleanup) git_tree *files = NULL;
    struct sparse s = {.on = false};
    git_strarray paths = {0};
    git_checkout_options opt;
    git_oid oid;
    amp_buf_init(&s.text, SPARSE_MAX);
    amp_buf_init(&s.lines, SPARSE_MAX + 1);
    git_checkout_options_init(&opt, GIT_CHECKOUT_OPTIONS_VERSION);
    /* The directory was made by this request, so there is nothing to compare or remove, and a file
     * that is there is an error. */
    opt.checkout_strategy = GIT_CHECKOUT_FORCE | GIT_CHECKOUT_RECREATE_MISSING |
                            GIT_CHECKOUT_DONT_REMOVE_EXISTING | GIT_CHECKOUT_NO_REFRESH;
    opt.file_open_flags = O_WRONLY | O_CREAT | O_EXCL;
    int rc = git_reference_name_to_id(&oid, repo, "HEAD");
    if (rc == 0)
        rc = git_commit_lookup(&commit, repo, &oid);
    if (rc == 0)
        rc = git_commit_tree(&files, commit);
    bool failed = rc == 0 && sparse_inherit(r, w, &s) < 0;
    if (rc == 0 && !failed) {
        opt.disable_filters = !may_convert(repo, files);
        if (s.on) {
            opt.checkout_strategy |= GIT_CHECKOUT_DISABLE_PATHSPEC_MATCH;
            rc = sparse_index(repo, files, &s, &paths);
            opt.paths = paths;
        }
        /* An empty list would mean all files. */
        if (rc == 0 && !(s.on && paths.count == 0))
            rc = files_write(repo, files, &opt);
    }
    for (size_t i = 0; i < paths.count; i++)
        free(paths.strings[i]);
    free(paths.strings);
    sparse_release(&s);
    if (failed)
        return -1;
    if (rc)
        return fail_git(r, rc, AMP_CANTCREAT, AMP_CODE(filesystem_error), w->path);
    reply_oid(r, "head", &oid);
    return 0;
}

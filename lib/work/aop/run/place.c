/*
 * The directory of the work, and the paths of a TASK on this machine. aop.workspaces maps a
 * workspace_root to a directory; another one must be in the directory in which the worker was
 * started. The agent gets the TASK with the paths of this machine.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "message/protocol/compose/json.h"
#include "work/aop/run/private.h"
#include "work/git/worktree.h"

/* The canonical form of a path of the TASK. */
static int path_canonical(const char *root, const char *path, char *out, size_t size,
                          struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = 1 << 20};
    if (amp_aop_resolve(amp_span_str(root), amp_span_str(path), &text, err) < 0)
        return -1;
    return amp_span_copy(amp_buf_span(&text), out, size)
               ? 0
               : amp_fail(err, AMP_NO, E_PERMISSION_DENIED, "a path of more than %zu bytes",
                          size - 1);
}

/* The part of `path` below `root`, without a leading slash; NULL: it is elsewhere. */
static const char *path_below(const char *root, const char *path)
{
    size_t n = strlen(root);
    while (n > 0 && root[n - 1] == '/')
        n--;
    if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    path += n;
    return path + strspn(path, "/");
}

static int path_join(const char *dir, const char *rest, char *out, size_t size,
                     struct amp_error *err)
{
    size_t n = strlen(dir);
    const char *slash = n > 0 && dir[n - 1] == '/' ? "" : "/";
    int len = snprintf(out, size, "%s%s%s", dir, *rest ? slash : "", rest);
    return len >= 0 && (size_t)len < size ? 0
                                          : amp_fail(err, AMP_NO, E_PERMISSION_DENIED,
                                                     "a path of more than %zu bytes", size - 1);
}

/* The path of the TASK on this machine (absolute, not resolved by the file system). NO
 * E_PERMISSION_DENIED: it is not below workspace_root. */
static int path_find(const struct amp_tasking *t, const char *path, char *out, size_t size,
                     struct amp_error *err)
{
    char root[PATH_MAX], at[PATH_MAX];
    if (path_canonical(t->root, t->root, root, sizeof root, err) < 0 ||
        path_canonical(t->root, path, at, sizeof at, err) < 0)
        return -1;
    const char *rest = path_below(root, at);
    if (!rest)
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED, "%.200s is not in the workspace %.200s",
                        path, t->root);
    return path_join(t->place, rest, out, size, err);
}

int amp_tasking_path_back(const struct amp_tasking *t, const char *real, char *out, size_t size,
                          struct amp_error *err)
{
    const char *rest = path_below(t->place, real);
    if (!rest)
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED, "%.200s is not in the workspace %.200s",
                        real, t->place);
    return path_join(t->root, rest, out, size, err);
}

/* ---- the directory ---- */

/* The directory that aop.workspaces has for the root: the longest key that it is in. false: none.
 */
static bool workspace_map(const struct amp_tasking *t, char *out, size_t size)
{
    json_t *map = json_object_get(
               json_object_get(t->opt->config, amp_protocol_name(t->v->protocol)), "workspaces"),
           *dir;
    char root[PATH_MAX], key_root[PATH_MAX];
    const char *key;
    size_t best = 0;
    struct amp_error no;
    bool found = false;
    if (path_canonical(t->root, t->root, root, sizeof root, &no) < 0)
        return false;
    json_object_foreach (map, key, dir) {
        if (path_canonical(key, key, key_root, sizeof key_root, &no) < 0)
            continue;
        const char *rest = path_below(key_root, root);
        const char *to = json_string_value(dir);
        if (!rest || !to || (found && strlen(key_root) <= best) ||
            path_join(to, rest, out, size, &no) < 0)
            continue;
        best = strlen(key_root);
        found = true;
    }
    return found;
}

/* The real path of a directory that exists. */
static int directory_find(const char *path, const char *root, char out[PATH_MAX],
                          struct amp_error *err)
{
    struct stat st;
    errno = 0;
    if (realpath(path, out) && stat(out, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    if (errno == EACCES)
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED,
                        "the workspace %.300s cannot be accessed: %s", root, strerror(errno));
    return amp_fail(err, AMP_NO, E_FILE_NOT_FOUND,
                    "the workspace %.300s is not a directory of this machine", root);
}

/* A command could change what git runs, or the records and keys of these tools. */
static int directory_check(const struct amp_tasking *t, struct amp_error *err)
{
    struct amp_repository repo = {0};
    struct amp_error no;
    char state[PATH_MAX];
    const char *git = strstr(t->place, "/.git");
    while (git && git[5] != '/' && git[5] != '\0')
        git = strstr(git + 1, "/.git");
    /* A directory of a repository without files is part of its .git. */
    if (git || (amp_repository_find(t->place, &repo, &no) == 0 && repo.found && !*repo.top))
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED,
                        "the workspace %.300s is in the .git of a repository", t->root);
    if (realpath(t->w->state_dir, state) && path_below(state, t->place))
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED,
                        "the workspace %.300s is in the state directory", t->root);
    return 0;
}

int amp_tasking_place(struct amp_tasking *t, struct amp_error *err)
{
    char path[PATH_MAX];
    const char *root = amp_json_str(
        json_object_get(json_object_get(t->task, "task"), "environment"), "workspace_root");
    if (strcmp(root, t->root) != 0)
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED,
                        "the workspace %.100s… has more than %zu bytes", root, sizeof t->root - 1);
    bool mapped = workspace_map(t, path, sizeof path);
    if (mapped && *path != '/')
        return amp_fail(err, AMP_CONFIG, bad_value,
                        "aop.workspaces: \"%.200s\" is not an absolute path", path);
    if (!mapped && path_join(*t->root == '/' ? "" : t->opt->here, t->root + (*t->root == '/'), path,
                             sizeof path, err) < 0)
        return -1;
    if (directory_find(path, t->root, t->place, err) < 0)
        return -1;
    if (mapped || path_below(t->opt->here, t->place))
        return directory_check(t, err);
    return amp_fail(err, AMP_NO, E_PERMISSION_DENIED,
                    "the workspace %.200s is neither in %.200s nor in aop.workspaces", t->root,
                    t->opt->here);
}

/* ---- a branch ---- */

static bool is_on_branch(const struct amp_git_info *info, const char *branch)
{
    return strcmp(info->branch, branch) == 0;
}

int amp_tasking_branch(struct amp_tasking *t, struct amp_error *err)
{
    const char *branch = amp_json_str(
        json_object_get(json_object_get(t->task, "task"), "environment"), "git_branch");
    struct amp_assignment *of = &t->of;
    struct amp_git_info info;
    struct amp_error why;
    if (!*branch || t->policy.read_only.value)
        return 0;
    if (amp_git_info(t->w->git, t->place, &info, &why) < 0) {
        if (why.status != AMP_DATAERR) {
            *err = why;
            return -1;
        }
        return amp_fail(err, AMP_NO, E_FILE_NOT_FOUND,
                        "git_branch is given, and the workspace %.200s is not a git repository",
                        t->root);
    }
    if (amp_branch_is_protected(amp_span_str(branch), t->w->opt->protected_))
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED, "the branch %.200s is protected", branch);
    char top[PATH_MAX];
    if (!realpath(info.workdir, top) || strcmp(top, t->place) != 0)
        return amp_fail(err, AMP_NO, E_FILE_NOT_FOUND,
                        "git_branch is given, and the workspace %.200s is not the top of its "
                        "repository",
                        t->root);
    /* Its files are those of the branch already. */
    if (is_on_branch(&info, branch))
        return 0;
    snprintf(of->repo, sizeof of->repo, "%s", t->place);
    if (!amp_span_copy(amp_span_str(branch), of->branch, sizeof of->branch))
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED, "the name of the branch is too long");
    const struct amp_worker_place place = {of->branch, NULL,
                                           t->job->attempts > 0 && !t->job->keeps};
    if (amp_assignment_bind(t->w, of, &place, err) < 0 ||
        amp_git_resolve(t->w->git, of->worktree, "HEAD", of->start, err) < 0)
        return -1;
    snprintf(t->home, sizeof t->home, "%s", t->place);
    if (!realpath(of->worktree, t->place))
        return amp_fail_errno(err, AMP_IOERR, "%s", of->worktree);
    return 0;
}

/* ---- inputs ---- */

static bool is_output(const struct amp_tasking *t, const char *path)
{
    const json_t *out = json_object_get(json_object_get(t->task, "task"), "expected_outputs");
    char mine[PATH_MAX], other[PATH_MAX];
    struct amp_error no;
    const json_t *one;
    size_t i;
    if (path_canonical(t->root, path, mine, sizeof mine, &no) < 0)
        return false;
    json_array_foreach (out, i, one) {
        const char *at = json_string_value(json_object_get(one, "path"));
        if (at && path_canonical(t->root, at, other, sizeof other, &no) == 0 &&
            strcmp(mine, other) == 0)
            return true;
    }
    return false;
}

/* An input that exists; one that is only read is not writable for the command. */
static int input_take(struct amp_tasking *t, const json_t *in, struct amp_error *err)
{
    char path[PATH_MAX], real[PATH_MAX];
    const char *at = json_string_value(json_object_get(in, "path"));
    struct amp_error why;
    if (!at || !*at)
        return 0;
    if (path_find(t, at, path, sizeof path, err) < 0)
        return -1;
    if (access(path, F_OK) != 0)
        return amp_fail_text(err, AMP_NO,
                             errno == EACCES ? AMP_CODE(E_PERMISSION_DENIED)
                                             : AMP_CODE(E_FILE_NOT_FOUND),
                             "the input %.300s: %s", at, strerror(errno));
    if (amp_path_inside(t->place, path, real, &why) < 0)
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED,
                        "the input %.300s leads out of the workspace", at);
    if (json_is_false(json_object_get(in, "read_only")) || is_output(t, at) ||
        strcmp(real, t->place) == 0)
        return 0;
    json_t *kept = json_string(real);
    if (!kept || json_array_append_new(t->kept, kept) < 0)
        return amp_fail_memory(err);
    return 0;
}

int amp_tasking_inputs(struct amp_tasking *t, struct amp_error *err)
{
    char dot_git[PATH_MAX + 8];
    const json_t *in = json_object_get(json_object_get(t->task, "task"), "inputs"), *one;
    size_t i, n = 0;
    json_decref(t->kept);
    if (!(t->kept = json_array()))
        return amp_fail_memory(err);
    json_array_foreach (in, i, one)
        if (input_take(t, one, err) < 0)
            return -1;
    /* The command changes files, not the repository of the person. */
    snprintf(dot_git, sizeof dot_git, "%s/.git", t->place);
    if (!*t->of.repo && access(dot_git, F_OK) == 0 &&
        json_array_append_new(t->kept, json_string(dot_git)) < 0)
        return amp_fail_memory(err);
    free(t->places);
    if (!(t->places = calloc(json_array_size(t->kept) + 1, sizeof *t->places)))
        return amp_fail_memory(err);
    bool full = t->w->opt->confine && t->w->opt->confine->level == AMP_LEVEL_FULL;
    json_array_foreach (t->kept, i, one) {
        const char *path = json_string_value(one);
        t->places[n++] = (struct amp_confine_place){.path = path, .at = path};
    }
    t->of.places = t->places;
    t->of.n_places = full ? n : 0;
    return 0;
}

/* ---- the TASK for the agent ---- */

/* Replaces a path; one outside of the workspace stays, and is not accessible. */
static int member_replace(const struct amp_tasking *t, json_t *in, const char *key,
                          struct amp_error *err)
{
    char path[PATH_MAX];
    struct amp_error no;
    const char *at = json_string_value(json_object_get(in, key));
    if (!at || path_find(t, at, path, sizeof path, &no) < 0)
        return 0;
    return json_object_set_new(in, key, json_string(path)) < 0 ? amp_fail_memory(err) : 0;
}

static int list_replace(const struct amp_tasking *t, json_t *list, struct amp_error *err)
{
    char path[PATH_MAX];
    struct amp_error no;
    json_t *one;
    size_t i;
    json_array_foreach (list, i, one) {
        const char *at = json_string_value(one);
        if (json_is_object(one) ? member_replace(t, one, "path", err) < 0 ||
                                      member_replace(t, json_object_get(one, "rollback_snapshot"),
                                                     "snapshot_path", err) < 0
                                : at && path_find(t, at, path, sizeof path, &no) == 0 &&
                                      json_array_set_new(list, i, json_string(path)) < 0 &&
                                      amp_fail_memory(err) < 0)
            return -1;
    }
    return 0;
}

int amp_tasking_localize(const struct amp_tasking *t, json_t *message, struct amp_error *err)
{
    json_t *task = json_object_get(message, "task"), *env = json_object_get(task, "environment"),
           *files = json_object_get(json_object_get(task, "access"), "filesystem"), *phase, *point;
    size_t i, k;
    if (list_replace(t, json_object_get(task, "inputs"), err) < 0 ||
        list_replace(t, json_object_get(task, "expected_outputs"), err) < 0 ||
        list_replace(t, json_object_get(files, "read_paths"), err) < 0 ||
        list_replace(t, json_object_get(files, "write_paths"), err) < 0)
        return -1;
    json_array_foreach (json_object_get(message, "phases"), i, phase)
        json_array_foreach (json_object_get(phase, "checkpoints"), k, point)
            if (list_replace(t, json_object_get(point, "expected_artifacts"), err) < 0)
                return -1;
    return member_replace(t, env, "workspace_root", err);
}

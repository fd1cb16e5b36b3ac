/* The reviewer's own fixes: measured from git, refused when they are more than trifles. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "flow/work/review_verdict.h"
#include "worktree/patch.h"

#define FIX_LINES_MAX 4 /* AMP/1.0: diff_lines < 5 */

static const json_t *claim_for(const json_t *claimed, const char *path)
{
    size_t i;
    json_t *f;

    json_array_foreach(claimed, i, f)
    {
        const char *file = json_string_value(json_object_get(f, "file"));
        if (file && !strcmp(file, path))
            return f;
    }
    return NULL;
}

static int out_of_range(struct amp_error *err, const char *path, const char *why)
{
    return amp_fail(err, AMP_NO, "fix_out_of_range", "%s: %s", path, why);
}

/* What the reviewer's build left behind goes; only named changes are committed. */
static int sweep_leftovers(const char *worktree, const struct amp_patch *p, const json_t *claimed,
                           struct amp_error *err)
{
    AMP_CLOSE int root = open(worktree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (root < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", worktree);
    for (uint32_t i = 0; i < p->n; i++) {
        const char *path = p->v[i].path, *slash = strrchr(path, '/');
        if (!p->v[i].created || claim_for(claimed, path))
            continue;
        char dir[PATH_MAX] = ".";
        if (slash)
            amp_span_copy((struct amp_span){path, (size_t)(slash - path)}, dir, sizeof dir);
        AMP_CLOSE int at = amp_open_beneath(root, dir, O_RDONLY | O_DIRECTORY, 0, err);
        if (at < 0 || unlinkat(at, slash ? slash + 1 : path, 0))
            return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", path);
    }
    return 0;
}

static int measure(struct amp_judged *k, const struct amp_patch *p, const json_t *claimed,
                   struct amp_error *err)
{
    uint32_t named = 0;

    k->fixes = json_array();
    for (uint32_t i = 0; i < p->n; i++) {
        const struct amp_patch_file *f = &p->v[i];
        const json_t *c = claim_for(claimed, f->path);
        if (!c && f->created)
            continue;
        if (!c)
            return out_of_range(err, f->path, "changed, but not named in direct_fixes");
        if (f->binary || f->lines > FIX_LINES_MAX) {
            char why[128];
            snprintf(why, sizeof why, "%lld lines changed, %d are allowed", (long long)f->lines,
                     FIX_LINES_MAX);
            return out_of_range(err, f->path, f->binary ? "a binary file" : why);
        }
        const char *type = json_string_value(json_object_get(c, "change_type"));
        if (type && !strcmp(type, "import"))
            type = "import_order";
        json_array_append_new(k->fixes, json_pack("{s:s, s:s, s:I}", "file", f->path, "change_type",
                                                  type, "diff_lines", (json_int_t)f->lines));
        named++;
    }
    if (!named || named < json_array_size(claimed))
        return amp_fail(err, AMP_NO, "fix_out_of_range",
                        "direct_fixes names %zu files, %u of them were changed",
                        json_array_size(claimed), named);
    return 0;
}

/* The branch moves on to the fixed commit, and only forward from what was reviewed. A repeated
 * attempt may find it there already. */
static int advance(struct amp_worker *w, struct amp_judged *k, const char *email,
                   struct amp_error *err)
{
    char head[AMP_OID_MAX], there[AMP_OID_MAX], mine[AMP_OID_MAX];
    struct amp_error e;
    char ref[AMP_KEEP_REF_MAX];

    amp_git_keep_ref(w->opt->agent, amp_now_ms(), ref);
    const struct amp_git_rollback_spec spec = {k->repo,       k->branch, k->fixed, k->commit,
                                               w->opt->agent, email,     ref};
    int rc = amp_git_rollback(w->git, &spec, err);
    if (rc > 0)
        w->opt->note("%s: what nobody committed in its worktree is kept as %s", k->branch, ref);
    if (rc >= 0)
        return 0;
    if (err->status == AMP_INTERRUPTED)
        return -1;
    if (amp_git_resolve(w->git, k->repo, k->branch, head, &e) ||
        amp_git_tree(w->git, k->repo, head, there, &e) ||
        amp_git_tree(w->git, k->repo, k->fixed, mine, &e) || strcmp(there, mine))
        return amp_fail(err, AMP_NO, "branch_moved",
                        "%s moved on during the review: the fix is not applied", k->branch);
    snprintf(k->fixed, sizeof k->fixed, "%s", head);
    return 0;
}

int amp_judged_fixes(struct amp_worker *w, struct amp_judged *k, const json_t *claimed,
                     struct amp_error *err)
{
    char path[1200], email[256], message[1024];
    struct amp_git_info info;
    struct amp_git_diff d;
    struct amp_patch p;

    if (amp_git_info(w->git, k->worktree, &info, err))
        return strcmp(err->code, "repo_not_git")
                   ? -1
                   : amp_fail(err, AMP_NO, "fix_out_of_range",
                              "the reviewer did away with its worktree");
    if (strcmp(info.head, k->commit))
        return amp_fail(err, AMP_NO, "fix_out_of_range",
                        "the reviewer committed itself; fixes are left uncommitted");
    snprintf(path, sizeof path, "%s/fix.patch", k->files.dir);
    if (amp_git_diff(w->git, k->repo, k->worktree, k->commit, NULL, path, &d, err))
        return -1;
    amp_git_diff_release(&d);
    if (amp_patch_read(path, &p, err))
        return -1;
    amp_agent_email(w->opt->agent, email, sizeof email);
    snprintf(message, sizeof message, "Small fixes from the review of %s\n", k->subtask);
    const struct amp_git_commit_spec spec = {k->repo, k->worktree, w->opt->agent,
                                             email,   message,     w->opt->agent};
    int rc = measure(k, &p, claimed, err) || sweep_leftovers(k->worktree, &p, claimed, err) ||
                     amp_git_commit(w->git, &spec, k->fixed, err) < 0
                 ? -1
                 : advance(w, k, email, err);
    amp_patch_release(&p);
    return rc;
}

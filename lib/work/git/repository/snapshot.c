/* The requests of snapshot.h. */
#include "work/git/repository/snapshot.h"

#include "work/git/repository/call.h"

int amp_git_snapshot_save(struct amp_git *g, const struct amp_git_snapshot *s,
                          char oid[AMP_OID_MAX], struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", s->repo}, {"ref", s->ref}, {"path", s->dir}, {"base", s->prefix},
             {"patch", s->patch}, {"name", s->name}, {"email", s->email});
    if (amp_git_call(g, "snapshot_save", args, err) < 0)
        return -1;
    amp_git_field_copy(g, 0, "oid", oid, AMP_OID_MAX);
    return 0;
}

int amp_git_snapshot_drop(struct amp_git *g, const char *repo, const char *ref,
                          struct amp_error *err)
{
    return amp_git_call(g, "snapshot_drop", ARGS({"repo", repo}, {"ref", ref}), err);
}

/* The requests of snapshot.h. */
#include "worktree/git/snapshot.h"

#include "worktree/git/call.h"

static int snapshot_call(struct amp_git *g, const char *op, const struct amp_git_snapshot *s,
                         bool all, struct amp_error *err)
{
    return amp_git_call(g, op,
                        ARGS({"repo", s->gitdir}, {"worktree", s->place}, {"ref", s->ref},
                             {"path", s->dir}, {"name", s->name}, {"email", s->email},
                             {"keep", s->keep}, {.key = "files", .flag = all}),
                        err);
}

int amp_git_snapshot_save(struct amp_git *g, const struct amp_git_snapshot *s, bool all,
                          char oid[AMP_OID_MAX], char digest[AMP_SHA256_MAX], struct amp_error *err)
{
    if (snapshot_call(g, "snapshot_save", s, all, err) < 0)
        return -1;
    amp_git_field_copy(g, 0, "oid", oid, AMP_OID_MAX);
    if (digest)
        amp_git_field_copy(g, 0, "digest", digest, AMP_SHA256_MAX);
    return 0;
}

int amp_git_snapshot_load(struct amp_git *g, const struct amp_git_snapshot *s,
                          struct amp_error *err)
{
    return snapshot_call(g, "snapshot_load", s, false, err);
}

int amp_git_snapshot_state(struct amp_git *g, const struct amp_git_snapshot *s,
                           char digest[AMP_SHA256_MAX], struct amp_error *err)
{
    if (snapshot_call(g, "snapshot_state", s, false, err) < 0)
        return -1;
    amp_git_field_copy(g, 0, "digest", digest, AMP_SHA256_MAX);
    return 0;
}

int amp_git_snapshot_ignored(struct amp_git *g, const struct amp_git_snapshot *s,
                             struct amp_error *err)
{
    return snapshot_call(g, "snapshot_ignored", s, false, err);
}

int amp_git_snapshot_reset(struct amp_git *g, const struct amp_git_snapshot *s,
                           struct amp_error *err)
{
    return snapshot_call(g, "snapshot_reset", s, false, err);
}

int amp_git_snapshot_drop(struct amp_git *g, const struct amp_git_snapshot *s,
                          struct amp_error *err)
{
    return snapshot_call(g, "snapshot_drop", s, false, err);
}

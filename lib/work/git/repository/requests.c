/* The functions of git.h: each sends one request to git-worker and reads its reply. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>

#include "work/git/repository/call.h"

#define COPY(g, object, key, field) amp_git_field_copy((g), (object), (key), (field), sizeof(field))

int amp_git_info(struct amp_git *g, const char *repo, struct amp_git_info *out,
                 struct amp_error *err)
{
    if (amp_git_call(g, "info", ARGS({"repo", repo}), err) < 0)
        return -1;
    COPY(g, 0, "workdir", out->workdir);
    COPY(g, 0, "gitdir", out->gitdir);
    COPY(g, 0, "common", out->common);
    COPY(g, 0, "branch", out->branch);
    COPY(g, 0, "head", out->head);
    out->bare = amp_git_field_bool(g, 0, "bare");
    out->linked = amp_git_field_bool(g, 0, "linked");
    return 0;
}

/* A request whose reply has an object id in `member`; oid may be NULL. */
static int oid_call(struct amp_git *g, const char *op, const struct amp_git_arg *args,
                    const char *member, char oid[AMP_OID_MAX], struct amp_error *err)
{
    if (amp_git_call(g, op, args, err) < 0)
        return -1;
    if (oid)
        amp_git_field_copy(g, 0, member, oid, AMP_OID_MAX);
    return 0;
}

int amp_git_resolve(struct amp_git *g, const char *repo, const char *rev, char oid[AMP_OID_MAX],
                    struct amp_error *err)
{
    return oid_call(g, "resolve", ARGS({"repo", repo}, {"rev", rev}), "oid", oid, err);
}

int amp_git_look(struct amp_git *g, const char *repo, const char *rev, struct amp_git_look *out,
                 struct amp_error *err)
{
    if (amp_git_call(g, "look", ARGS({"repo", repo}, {"rev", rev}), err) < 0)
        return -1;
    COPY(g, 0, "oid", out->commit);
    COPY(g, 0, "tree", out->tree);
    COPY(g, 0, "first", out->parent[0]);
    COPY(g, 0, "second", out->parent[1]);
    out->parents = amp_git_field_int(g, 0, "parents");
    return 0;
}

int amp_git_worktree_add(struct amp_git *g, const struct amp_git_worktree_spec *spec,
                         char head[AMP_OID_MAX], struct amp_error *err)
{
    return oid_call(g, "worktree_add",
                    ARGS({"repo", spec->repo}, {"path", spec->path}, {"branch", spec->branch},
                         {"base", spec->base}, {"agent", spec->agent}, {"role", spec->role},
                         {.key = "no_sparse", .flag = spec->no_sparse}),
                    "head", head, err);
}

int amp_git_worktree_remove(struct amp_git *g, const char *repo, const char *path, bool force,
                            struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", repo}, {"path", path}, {.key = "force", .flag = force});
    return amp_git_call(g, "worktree_remove", args, err) ? -1 : amp_git_field_bool(g, 0, "left");
}

uint32_t amp_git_list(const struct amp_git *g, const char *key, uint32_t *n)
{
    uint32_t list = amp_tape_get(&g->tape, 0, amp_span_str(key));
    *n = list == AMP_TOK_NONE ? 0 : g->tape.tok[list].count;
    return list + 1;
}

/* Calls fn for the worktrees in the reply. */
static int worktrees_visit(struct amp_git *g, amp_git_worktree_fn fn, void *ctx,
                           struct amp_error *err)
{
    uint32_t n, tok = amp_git_list(g, "worktrees", &n);
    /* Copied before the first call of fn, which may itself call the worker. */
    AMP_FREE struct amp_git_worktree *all = calloc((size_t)n + 1, sizeof *all);
    if (!all)
        return amp_fail_memory(err);
    for (struct amp_git_worktree *w = all; w < all + n; w++, tok = g->tape.tok[tok].next) {
        COPY(g, tok, "path", w->path);
        COPY(g, tok, "gitdir", w->gitdir);
        COPY(g, tok, "branch", w->branch);
        COPY(g, tok, "head", w->head);
        COPY(g, tok, "agent", w->agent);
        COPY(g, tok, "keep", w->keep);
        w->changes = amp_git_field_int(g, tok, "changes");
        w->ahead = amp_git_field_int(g, tok, "ahead");
        w->behind = amp_git_field_int(g, tok, "behind");
        w->head_ms = amp_git_field_int(g, tok, "head_time") * 1000;
        w->main = amp_git_field_bool(g, tok, "main");
        w->locked = amp_git_field_bool(g, tok, "locked");
        w->missing = amp_git_field_bool(g, tok, "missing");
        w->foreign = amp_git_field_bool(g, tok, "foreign");
    }
    for (uint32_t i = 0; i < n && fn(ctx, &all[i]) == 0; i++)
        ;
    return 0;
}

int amp_git_worktrees(struct amp_git *g, const char *repo, amp_git_worktree_fn fn, void *ctx,
                      struct amp_error *err)
{
    return amp_git_call(g, "worktrees", ARGS({"repo", repo}), err) < 0
               ? -1
               : worktrees_visit(g, fn, ctx, err);
}

int amp_git_worktree_lives(struct amp_git *g, const char *repo, const char *into,
                           amp_git_worktree_fn fn, void *ctx, struct amp_error *err)
{
    return amp_git_call(g, "worktree_lives", ARGS({"repo", repo}, {"branch", into}), err) < 0
               ? -1
               : worktrees_visit(g, fn, ctx, err);
}

int amp_git_worktree_facts(struct amp_git *g, const char *repo, amp_git_worktree_fn fn, void *ctx,
                           struct amp_error *err)
{
    return amp_git_call(g, "worktree_facts", ARGS({"repo", repo}), err) < 0
               ? -1
               : worktrees_visit(g, fn, ctx, err);
}

int amp_git_worktree_include(struct amp_git *g, const char *repo, const char *path, int64_t bytes,
                             struct amp_git_included *out, struct amp_error *err)
{
    if (amp_git_call(g, "worktree_include",
                     ARGS({"repo", repo}, {"path", path}, {.key = "bytes", .number = bytes},
                          {.key = "force", .flag = bytes > 0}),
                     err) < 0)
        return -1;
    out->copied = amp_git_field_int(g, 0, "copied");
    out->bytes = amp_git_field_int(g, 0, "bytes");
    out->skipped = amp_git_field_int(g, 0, "skipped");
    out->submodules = amp_git_field_int(g, 0, "submodules");
    return 0;
}

int amp_git_worktree_repair(struct amp_git *g, const char *repo,
                            void (*fn)(void *ctx, const char *path), void *ctx,
                            struct amp_error *err)
{
    if (amp_git_call(g, "worktree_repair", ARGS({"repo", repo}), err) < 0)
        return -1;
    uint32_t n, tok = amp_git_list(g, "removed", &n);
    for (; n > 0; n--, tok = g->tape.tok[tok].next) {
        struct amp_span text;
        char path[PATH_MAX];
        amp_buf_reset(&g->arena);
        if (amp_tok_text(&g->tape, tok, &g->arena, &text, err) < 0)
            return -1;
        amp_span_copy(text, path, sizeof path);
        fn(ctx, path);
    }
    return 0;
}

int amp_git_commit(struct amp_git *g, const struct amp_git_commit_spec *spec, char oid[AMP_OID_MAX],
                   struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", spec->repo}, {"worktree", spec->worktree}, {"name", spec->name},
             {"email", spec->email}, {"message", spec->message}, {"agent", spec->agent},
             {"task", spec->task}, {.key = "object_bytes", .number = spec->object_bytes});
    return oid_call(g, "commit", args, "oid", oid, err) ? -1 : amp_git_field_bool(g, 0, "nothing");
}

int amp_git_diff(struct amp_git *g, const char *repo, const char *worktree, int64_t object_bytes,
                 const char *from, const char *to, const char *patch, struct amp_git_diff *out,
                 struct amp_error *err)
{
    const struct amp_git_arg *args = ARGS({"repo", repo}, {"worktree", worktree},
                                          {.key = "object_bytes", .number = object_bytes},
                                          {"from", from}, {"to", to}, {"patch", patch});
    if (amp_git_call(g, "diff", args, err) < 0)
        return -1;
    uint32_t n, tok = amp_git_list(g, "files", &n);
    struct amp_git_diff d = {.files = calloc((size_t)n + 1, sizeof *d.files)};
    for (; d.files && d.n_files < n; d.n_files++, tok = g->tape.tok[tok].next) {
        struct amp_span text;
        amp_buf_reset(&g->arena);
        if (amp_tok_text(&g->tape, tok, &g->arena, &text, NULL) < 0 ||
            !(d.files[d.n_files] = amp_span_dup(text)))
            break;
    }
    if (!d.files || d.n_files < n) {
        amp_git_diff_release(&d);
        return amp_fail_memory(err);
    }
    d.lines_added = amp_git_field_int(g, 0, "added");
    d.lines_removed = amp_git_field_int(g, 0, "removed");
    d.truncated = amp_git_field_int(g, 0, "n_files") > (int64_t)n;
    *out = d;
    return 0;
}

void amp_git_diff_release(struct amp_git_diff *d)
{
    for (uint32_t i = 0; i < d->n_files; i++)
        free(d->files[i]);
    free(d->files);
    *d = (struct amp_git_diff){0};
}

int amp_git_forgeries(struct amp_git *g, const struct amp_git_forgeries_spec *spec,
                      amp_git_forgery_fn fn, void *ctx, struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", spec->repo}, {"from", spec->from}, {"to", spec->to}, {"name", spec->name},
             {"email", spec->email}, {"task", spec->task});
    if (amp_git_call(g, "claims", args, err) < 0)
        return -1;
    uint32_t n, tok = amp_git_list(g, "claims", &n);
    for (uint32_t i = 0; i < n; i++, tok = g->tape.tok[tok].next) {
        char commit[AMP_OID_MAX], claim[256];
        amp_git_field_copy(g, tok, "commit", commit, sizeof commit);
        amp_git_field_copy(g, tok, "claim", claim, sizeof claim);
        fn(ctx, commit, claim);
    }
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct amp_git_ref *)a)->name, ((const struct amp_git_ref *)b)->name);
}

int amp_git_refs(struct amp_git *g, const char *repo, bool protected_only, struct amp_git_refs *out,
                 struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", repo}, {.key = "protected", .flag = protected_only});
    if (amp_git_call(g, "refs", args, err) < 0)
        return -1;
    uint32_t n, tok = amp_git_list(g, "refs", &n);
    struct amp_git_refs refs = {.v = calloc((size_t)n + 1, sizeof *refs.v)};
    for (; refs.v && refs.n < n; tok = g->tape.tok[tok].next) {
        struct amp_git_ref *ref = &refs.v[refs.n];
        ref->name = amp_span_dup(amp_git_field(g, tok, "ref"));
        COPY(g, tok, "value", ref->value);
        if (!ref->name)
            break;
        refs.n++;
    }
    if (!refs.v || refs.n < n) {
        amp_git_refs_release(&refs);
        return amp_fail_memory(err);
    }
    qsort(refs.v, refs.n, sizeof *refs.v, compare_names);
    *out = refs;
    return 0;
}

void amp_git_refs_release(struct amp_git_refs *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        free(r->v[i].name);
    free(r->v);
    *r = (struct amp_git_refs){0};
}

uint32_t amp_git_refs_compare(const struct amp_git_refs *before, const struct amp_git_refs *after,
                              amp_git_change_fn fn, void *ctx)
{
    uint32_t changes = 0;
    for (uint32_t i = 0, j = 0; i < before->n || j < after->n;) {
        const struct amp_git_ref *a = i < before->n ? &before->v[i] : NULL;
        const struct amp_git_ref *b = j < after->n ? &after->v[j] : NULL;
        int order = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);
        i += order <= 0;
        j += order >= 0;
        if (order == 0 && strcmp(a->value, b->value) == 0)
            continue;
        changes++;
        if (fn)
            fn(ctx, order <= 0 ? a->name : b->name, order <= 0 ? a->value : "",
               order >= 0 ? b->value : "");
    }
    return changes;
}

int amp_git_reflog(struct amp_git *g, const char *repo, const char *ref, const char *oid,
                   struct amp_git_reflog *out, struct amp_error *err)
{
    if (amp_git_call(g, "reflog", ARGS({"repo", repo}, {"ref", ref}, {"oid", oid}), err) < 0)
        return -1;
    COPY(g, 0, "old", out->old_oid);
    COPY(g, 0, "new", out->new_oid);
    COPY(g, 0, "name", out->name);
    COPY(g, 0, "email", out->email);
    COPY(g, 0, "message", out->message);
    out->time_ms = amp_git_field_int(g, 0, "time");
    return 0;
}

int amp_git_rollback(struct amp_git *g, const struct amp_git_rollback_spec *spec,
                     struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", spec->repo}, {"branch", spec->branch}, {"commit", spec->commit},
             {"expect", spec->expect}, {"name", spec->name}, {"email", spec->email},
             {"keep", spec->keep});
    return amp_git_call(g, "rollback", args, err) ? -1 : amp_git_field_bool(g, 0, "kept");
}

/* The conflicts of a merge, one a line; paths that do not fit are left out. */
static void conflicts_read(struct amp_git *g, struct amp_git_land *out)
{
    uint32_t n, tok = amp_git_list(g, "conflicts", &n);
    size_t at = 0;

    out->conflicts[0] = '\0';
    out->n_conflicts = n;
    for (uint32_t i = 0; i < n; i++, tok = g->tape.tok[tok].next) {
        char path[512], what[64], line[600];
        COPY(g, tok, "path", path);
        COPY(g, tok, "what", what);
        for (char *c = path; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                *c = '?';
        size_t len = (size_t)snprintf(line, sizeof line, "%s: %s\n", path, what);
        if (at + len < sizeof out->conflicts)
            at += (size_t)snprintf(out->conflicts + at, sizeof out->conflicts - at, "%s", line);
    }
}

int amp_git_land_plan(struct amp_git *g, const struct amp_git_land_spec *spec,
                      struct amp_git_land *out, struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", spec->repo}, {"branch", spec->branch}, {"commit", spec->commit},
             {"base", spec->base}, {"expect", spec->expect}, {"name", spec->name},
             {"email", spec->email}, {"message", spec->message},
             {.key = "merge", .flag = spec->merge}, {.key = "contents", .flag = spec->contents},
             {.key = "files", .flag = spec->files}, {.key = "forward", .flag = spec->forward});
    if (amp_git_call(g, "land_plan", args, err) < 0)
        return -1;
    COPY(g, 0, "from", out->from);
    COPY(g, 0, "to", out->to);
    COPY(g, 0, "worktree", out->worktree);
    out->already = amp_git_field_bool(g, 0, "already");
    out->merged = amp_git_field_bool(g, 0, "merged");
    conflicts_read(g, out);
    return 0;
}

int amp_git_land_move(struct amp_git *g, const struct amp_git_land_spec *spec,
                      const struct amp_git_land *plan, struct amp_error *err)
{
    return amp_git_call(g, "land_move",
                        ARGS({"repo", spec->repo}, {"branch", spec->branch}, {"from", plan->from},
                             {"to", plan->to}, {"name", spec->name}, {"email", spec->email},
                             {"message", spec->message}),
                        err);
}

enum amp_git_kept amp_git_keep(struct amp_git *g, const struct amp_git_keep_spec *spec,
                               struct amp_error *err)
{
    const struct amp_git_arg *args = ARGS(
        {"repo", spec->repo}, {"worktree", spec->worktree}, {"ref", spec->ref},
        {"name", spec->name}, {"email", spec->email}, {.key = "release", .flag = spec->release});
    if (amp_git_call(g, "keep", args, err) < 0)
        return AMP_KEPT_ERROR;
    if (amp_git_field_bool(g, 0, "partial"))
        return AMP_KEPT_PART;
    return amp_git_field_bool(g, 0, "kept") ? AMP_KEPT_ALL : AMP_KEPT_NOTHING;
}

int amp_git_note_write(struct amp_git *g, const struct amp_git_note *note, const char *text,
                       struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", note->repo}, {"rev", note->rev}, {"ref", note->ref}, {"message", text},
             {"name", "task-dispatch"}, {"email", "task-dispatch@tools.invalid"});
    return amp_git_call(g, "note_write", args, err);
}

int amp_git_note_read(struct amp_git *g, const struct amp_git_note *note, struct amp_buf *out,
                      struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", note->repo}, {"rev", note->rev}, {"ref", note->ref});
    if (amp_git_call(g, "note_read", args, err) < 0)
        return -1;
    struct amp_span text = amp_git_field(g, 0, "note");
    return amp_buf_add(out, text.p, text.n, err) < 0 ? -1 : text.n > 0;
}

void amp_git_keep_ref(const char *name, int64_t now_ms, char out[AMP_KEEP_REF_MAX])
{
    char part[129];
    uint32_t salt;
    /* A ref must not contain "..", or end with ".lock" or a dot; an agent's name may. */
    snprintf(part, sizeof part, "%s", name);
    for (char *c = part; *c; c++)
        if (*c == '.')
            *c = '_';
    amp_random(&salt, sizeof salt);
    snprintf(out, AMP_KEEP_REF_MAX, "refs/amp/kept/%s/%lld-%08x", part, (long long)now_ms, salt);
}

int amp_git_config(struct amp_git *g, const char *repo, const char *key, bool is_path, char *out,
                   size_t size, struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", repo}, {"key", key}, {.key = "is_path", .flag = is_path});
    if (amp_git_call(g, "config", args, err) < 0)
        return -1;
    if (!amp_git_field_bool(g, 0, "found"))
        return 1;
    amp_git_field_copy(g, 0, "value", out, size);
    return 0;
}

/* The typed calls of git.h: each is one request to git-worker and its reply taken apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>

#include "worktree/git/call.h"

#define COPY(g, object, key, field) amp_git_field_copy((g), (object), (key), (field), sizeof(field))

int amp_git_info(struct amp_git *g, const char *repo, struct amp_git_info *out,
                 struct amp_error *err)
{
    amp_git_begin(g, "info");
    amp_git_put(g, "repo", repo);
    if (amp_git_call(g, err))
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

static int resolve(struct amp_git *g, const char *op, const char *repo, const char *rev,
                   char oid[AMP_OID_MAX], struct amp_error *err)
{
    amp_git_begin(g, op);
    amp_git_put(g, "repo", repo);
    amp_git_put(g, "rev", rev);
    if (amp_git_call(g, err))
        return -1;
    amp_git_field_copy(g, 0, "oid", oid, AMP_OID_MAX);
    return 0;
}

int amp_git_resolve(struct amp_git *g, const char *repo, const char *rev, char oid[AMP_OID_MAX],
                    struct amp_error *err)
{
    return resolve(g, "resolve", repo, rev, oid, err);
}

int amp_git_tree(struct amp_git *g, const char *repo, const char *rev, char oid[AMP_OID_MAX],
                 struct amp_error *err)
{
    return resolve(g, "tree", repo, rev, oid, err);
}

int amp_git_worktree_add(struct amp_git *g, const struct amp_git_worktree_spec *spec,
                         char head[AMP_OID_MAX], struct amp_error *err)
{
    amp_git_begin(g, "worktree_add");
    amp_git_put(g, "repo", spec->repo);
    amp_git_put(g, "path", spec->path);
    amp_git_put(g, "branch", spec->branch);
    amp_git_put(g, "base", spec->base);
    amp_git_put(g, "agent", spec->agent);
    if (amp_git_call(g, err))
        return -1;
    if (head)
        amp_git_field_copy(g, 0, "head", head, AMP_OID_MAX);
    return 0;
}

int amp_git_worktree_remove(struct amp_git *g, const char *repo, const char *path, bool force,
                            struct amp_error *err)
{
    amp_git_begin(g, "worktree_remove");
    amp_git_put(g, "repo", repo);
    amp_git_put(g, "path", path);
    amp_git_put_flag(g, "force", force);
    return amp_git_call(g, err) ? -1 : amp_git_field_bool(g, 0, "left") ? 1 : 0;
}

int amp_git_worktrees(struct amp_git *g, const char *repo, amp_git_worktree_fn fn, void *ctx,
                      struct amp_error *err)
{
    amp_git_begin(g, "worktrees");
    amp_git_put(g, "repo", repo);
    if (amp_git_call(g, err))
        return -1;
    uint32_t list = amp_tape_get(&g->tape, 0, AMP_SPAN("worktrees"));
    uint32_t n = list == AMP_TOK_NONE ? 0 : g->tape.tok[list].count;
    /* Taken apart before the first call of fn, which may itself ask the worker. */
    struct amp_git_worktree *all = n ? calloc(n, sizeof *all) : NULL;
    if (n && !all)
        return amp_fail_memory(err);
    for (uint32_t i = 0, tok = list + 1; i < n; i++, tok = g->tape.tok[tok].next) {
        COPY(g, tok, "path", all[i].path);
        COPY(g, tok, "gitdir", all[i].gitdir);
        COPY(g, tok, "branch", all[i].branch);
        COPY(g, tok, "head", all[i].head);
        COPY(g, tok, "agent", all[i].agent);
        all[i].main = amp_git_field_bool(g, tok, "main");
        all[i].locked = amp_git_field_bool(g, tok, "locked");
        all[i].missing = amp_git_field_bool(g, tok, "missing");
        all[i].foreign = amp_git_field_bool(g, tok, "foreign");
    }
    for (uint32_t i = 0; i < n && fn(ctx, &all[i]) == 0; i++)
        ;
    free(all);
    return 0;
}

int amp_git_commit(struct amp_git *g, const struct amp_git_commit_spec *spec, char oid[AMP_OID_MAX],
                   struct amp_error *err)
{
    amp_git_begin(g, "commit");
    amp_git_put(g, "repo", spec->repo);
    amp_git_put(g, "worktree", spec->worktree);
    amp_git_put(g, "name", spec->name);
    amp_git_put(g, "email", spec->email);
    amp_git_put(g, "message", spec->message);
    amp_git_put(g, "agent", spec->agent);
    if (amp_git_call(g, err))
        return -1;
    amp_git_field_copy(g, 0, "oid", oid, AMP_OID_MAX);
    return amp_git_field_bool(g, 0, "nothing") ? 1 : 0;
}

static void free_texts(char **v, uint32_t n)
{
    for (uint32_t i = 0; v && i < n; i++)
        free(v[i]);
    free(v);
}

int amp_git_diff(struct amp_git *g, const char *repo, const char *worktree, const char *from,
                 const char *to, const char *patch, struct amp_git_diff *out, struct amp_error *err)
{
    amp_git_begin(g, "diff");
    amp_git_put(g, "repo", repo);
    amp_git_put(g, "worktree", worktree);
    amp_git_put(g, "from", from);
    amp_git_put(g, "to", to);
    amp_git_put(g, "patch", patch);
    if (amp_git_call(g, err))
        return -1;
    uint32_t list = amp_tape_get(&g->tape, 0, AMP_SPAN("files"));
    uint32_t n = list == AMP_TOK_NONE ? 0 : g->tape.tok[list].count;
    char **files = calloc((size_t)n + 1, sizeof *files);
    for (uint32_t i = 0, tok = list + 1; files && i < n; i++, tok = g->tape.tok[tok].next) {
        struct amp_span text;
        amp_buf_reset(&g->arena);
        if (amp_tok_text(&g->tape, tok, &g->arena, &text, NULL) == 0)
            files[i] = amp_span_dup(text);
        if (!files[i]) {
            free_texts(files, i);
            files = NULL;
        }
    }
    if (!files)
        return amp_fail_memory(err);
    *out = (struct amp_git_diff){.files = files, .n_files = n};
    out->lines_added = amp_git_field_int(g, 0, "added");
    out->lines_removed = amp_git_field_int(g, 0, "removed");
    out->truncated = amp_git_field_int(g, 0, "n_files") > (int64_t)n;
    return 0;
}

void amp_git_diff_release(struct amp_git_diff *d)
{
    free_texts(d->files, d->n_files);
    *d = (struct amp_git_diff){0};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct amp_git_ref *)a)->name, ((const struct amp_git_ref *)b)->name);
}

int amp_git_refs(struct amp_git *g, const char *repo, bool protected_only, struct amp_git_refs *out,
                 struct amp_error *err)
{
    amp_git_begin(g, "refs");
    amp_git_put(g, "repo", repo);
    amp_git_put_flag(g, "protected", protected_only);
    if (amp_git_call(g, err))
        return -1;
    uint32_t list = amp_tape_get(&g->tape, 0, AMP_SPAN("refs"));
    uint32_t n = list == AMP_TOK_NONE ? 0 : g->tape.tok[list].count;
    struct amp_git_refs refs = {.v = calloc((size_t)n + 1, sizeof *refs.v)};
    for (uint32_t tok = list + 1; refs.v && refs.n < n; tok = g->tape.tok[tok].next) {
        struct amp_git_ref *ref = &refs.v[refs.n];
        ref->name = amp_span_dup(amp_git_field(g, tok, "ref"));
        COPY(g, tok, "oid", ref->oid);
        if (!ref->name)
            break;
        refs.n++;
    }
    if (!refs.v || refs.n < n) {
        amp_git_refs_release(&refs);
        return amp_fail_memory(err);
    }
    qsort(refs.v, refs.n, sizeof *refs.v, by_name);
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
        if (order == 0 && strcmp(a->oid, b->oid) == 0)
            continue;
        changes++;
        if (fn)
            fn(ctx, order <= 0 ? a->name : b->name, order <= 0 ? a->oid : "",
               order >= 0 ? b->oid : "");
    }
    return changes;
}

int amp_git_reflog(struct amp_git *g, const char *repo, const char *ref, const char *oid,
                   struct amp_git_reflog *out, struct amp_error *err)
{
    amp_git_begin(g, "reflog");
    amp_git_put(g, "repo", repo);
    amp_git_put(g, "ref", ref);
    amp_git_put(g, "oid", oid);
    if (amp_git_call(g, err))
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
    amp_git_begin(g, "rollback");
    amp_git_put(g, "repo", spec->repo);
    amp_git_put(g, "branch", spec->branch);
    amp_git_put(g, "commit", spec->commit);
    amp_git_put(g, "expect", spec->expect);
    amp_git_put(g, "name", spec->name);
    amp_git_put(g, "email", spec->email);
    amp_git_put(g, "keep", spec->keep);
    return amp_git_call(g, err) ? -1 : amp_git_field_bool(g, 0, "kept") ? 1 : 0;
}

enum amp_git_kept amp_git_keep(struct amp_git *g, const struct amp_git_keep_spec *spec,
                               struct amp_error *err)
{
    amp_git_begin(g, "keep");
    amp_git_put(g, "repo", spec->repo);
    amp_git_put(g, "worktree", spec->worktree);
    amp_git_put(g, "ref", spec->ref);
    amp_git_put(g, "name", spec->name);
    amp_git_put(g, "email", spec->email);
    amp_git_put_flag(g, "release", spec->release);
    if (amp_git_call(g, err))
        return AMP_KEPT_ERROR;
    if (amp_git_field_bool(g, 0, "partial"))
        return AMP_KEPT_PART;
    return amp_git_field_bool(g, 0, "kept") ? AMP_KEPT_ALL : AMP_KEPT_NOTHING;
}

void amp_git_keep_ref(const char *who, int64_t now_ms, char out[AMP_KEEP_REF_MAX])
{
    char name[129];
    uint32_t salt;
    /* Names of agents may have what a ref's may not: "..", ".lock", a dot at the end. */
    snprintf(name, sizeof name, "%s", who);
    for (char *c = name; *c; c++)
        if (*c == '.')
            *c = '_';
    amp_random(&salt, sizeof salt);
    snprintf(out, AMP_KEEP_REF_MAX, "refs/amp/kept/%s/%lld-%08x", name, (long long)now_ms, salt);
}

int amp_git_config(struct amp_git *g, const char *repo, const char *key, bool is_path, char *out,
                   size_t size, struct amp_error *err)
{
    amp_git_begin(g, "config");
    amp_git_put(g, "repo", repo);
    amp_git_put(g, "key", key);
    amp_git_put_flag(g, "path", is_path);
    if (amp_git_call(g, err))
        return -1;
    if (!amp_git_field_bool(g, 0, "found"))
        return 1;
    amp_git_field_copy(g, 0, "value", out, size);
    return 0;
}

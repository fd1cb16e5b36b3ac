/* The functions of quarantine.h: requests to git-worker. */
#include "work/git/repository/quarantine.h"

#include <stdlib.h>
#include <string.h>

#include "work/git/repository/call.h"

int amp_git_quarantine_make(struct amp_git *g, const struct amp_git_quarantine_spec *spec,
                            struct amp_git_quarantine *out, struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", spec->repo}, {"worktree", spec->worktree}, {"path", spec->dir},
             {"name", spec->name}, {"email", spec->email});
    if (amp_git_call(g, "quarantine_make", args, err) < 0)
        return -1;
    uint32_t n, tok = amp_git_list(g, "objects", &n);
    struct amp_git_quarantine q = {.objects = calloc((size_t)n + 1, sizeof *q.objects)};
    for (; q.objects && q.n_objects < n; q.n_objects++, tok = g->tape.tok[tok].next) {
        struct amp_span text;
        amp_buf_reset(&g->arena);
        if (amp_tok_text(&g->tape, tok, &g->arena, &text, NULL) < 0 ||
            !(q.objects[q.n_objects] = amp_span_dup(text)))
            break;
    }
    if (!q.objects || q.n_objects < n) {
        amp_git_quarantine_release(&q);
        return amp_fail_memory(err);
    }
    amp_git_field_copy(g, 0, "common", q.common, sizeof q.common);
    amp_git_field_copy(g, 0, "head", q.head, sizeof q.head);
    *out = q;
    return 0;
}

void amp_git_quarantine_release(struct amp_git_quarantine *q)
{
    for (uint32_t i = 0; i < q->n_objects; i++)
        free(q->objects[i]);
    free(q->objects);
    *q = (struct amp_git_quarantine){0};
}

static int quarantine_read(struct amp_git *g, const char *op, const struct amp_git_take_spec *spec,
                           struct amp_git_taken *out, struct amp_error *err)
{
    const struct amp_git_arg *args =
        ARGS({"repo", spec->repo}, {"worktree", spec->worktree}, {"path", spec->dir},
             {"branch", spec->branch}, {"base", spec->base}, {"start", spec->start},
             {"name", spec->name}, {"email", spec->email}, {"keep", spec->keep},
             {.key = "objects", .number = spec->limits.objects},
             {.key = "bytes", .number = spec->limits.bytes},
             {.key = "object_bytes", .number = spec->limits.object_bytes},
             {.key = "tree_paths", .number = spec->limits.tree_paths},
             {.key = "tree_bytes", .number = spec->limits.tree_bytes});
    if (amp_git_call(g, op, args, err) < 0)
        return -1;
    struct amp_git_taken t = {
        .commits = amp_git_field_int(g, 0, "commits"),
        .objects = amp_git_field_int(g, 0, "objects"),
        .bytes = amp_git_field_int(g, 0, "bytes"),
        .kept = amp_git_field_bool(g, 0, "kept"),
        .unfinished = amp_git_field_bool(g, 0, "unfinished"),
    };
    amp_git_field_copy(g, 0, "commit", t.commit, sizeof t.commit);
    amp_git_field_copy(g, 0, "head", t.head, sizeof t.head);
    *out = t;
    return 0;
}

int amp_git_quarantine_take(struct amp_git *g, const struct amp_git_take_spec *spec,
                            struct amp_git_taken *out, struct amp_error *err)
{
    return quarantine_read(g, "quarantine_take", spec, out, err);
}

int amp_git_quarantine_keep(struct amp_git *g, const struct amp_git_take_spec *spec,
                            struct amp_git_taken *out, struct amp_error *err)
{
    return quarantine_read(g, "quarantine_keep", spec, out, err);
}

int amp_git_quarantine_drop(struct amp_git *g, const char *repo, const char *dir,
                            struct amp_error *err)
{
    return amp_git_call(g, "quarantine_drop", ARGS({"repo", repo}, {"path", dir}), err);
}

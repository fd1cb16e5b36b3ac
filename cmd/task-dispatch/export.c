/* task-dispatch export: writes the proof that work was approved as a bundle. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "cli/rows.h"
#include "message/protocol/amp/amp.h"
#include "people/proof/bundle.h"
#include "people/story/story.h"
#include "verbs.h"
#include "work/loop/review/verify.h"

static const char *repo = ".", *path;
static bool as_note;

static const struct amp_opt task_export_opts[] = {
    AMP_OPT_REPO(repo),
    {'o', "out", AMP_OPT_PATH, &path, "PATH", "write the bundle to PATH instead of stdout"},
    {0, "note", AMP_OPT_FLAG, &as_note, NULL,
     "attach the bundle to the commit as a git note (" TASK_NOTES ") instead"},
    AMP_OPT_END,
};

struct export
{
    struct amp_store *store;
    struct amp_git *git;
    struct amp_identities *ids;
    struct amp_task_policy policy;
    struct amp_proof *proofs[AMP_BUNDLE_PROOFS];
    uint32_t n;
};

static void proofs_free(struct export *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        amp_proof_release(x->proofs[i]);
        free(x->proofs[i]);
    }
}

/* Adds the record of the landing that made the commit as a merge. */
static int landing_add(struct export *x, const struct amp_verified *v, struct amp_proof *p,
                       struct amp_error *err)
{
    AMP_LANDINGS all = {0};

    amp_landings_init(&all);
    if (amp_landings_read(x->store, amp_span_str(v->task), &all, err) < 0)
        return -1;
    for (uint32_t i = 0; i < all.n_v; i++)
        if (amp_span_is(all.v[i].to, v->commit))
            return amp_landing_write(&all.v[i], &p->line[AMP_PROOF_landing], err);
    return 0;
}

/* Adds the proof of a subtask. 0: it does not hold, and why says why. */
static int part_add(struct export *x, const struct amp_task *t, const struct amp_task_part *part,
                    const struct amp_verified *v, char why[AMP_PROOF_WHY], struct amp_error *err)
{
    struct amp_proof_who who;
    if (x->n == AMP_BUNDLE_PROOFS)
        return amp_fail(err, AMP_NO, too_many_proofs, "more than %d subtasks", AMP_BUNDLE_PROOFS);
    struct amp_proof *p = malloc(sizeof *p);
    if (!p)
        return amp_fail_memory(err);
    amp_proof_init(p);
    x->proofs[x->n++] = p;
    int rc = amp_proof_collect(x->store, t, part, &x->policy, p, why, err);
    if (rc > 0)
        rc = amp_proof_check(x->ids, p, &who, why, err);
    snprintf(p->approved, sizeof p->approved, "%s", v->approved);
    snprintf(p->tree, sizeof p->tree, "%s", v->tree);
    return rc > 0 && *v->from && landing_add(x, v, p, err) < 0 ? -1 : rc;
}

static int commit_add(struct export *x, const char *commit, char why[AMP_PROOF_WHY],
                      struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    struct amp_verified v;
    const struct amp_verify what = {
        .repo = repo, .commit = commit, .ids = x->ids, .policy = &x->policy};
    int rc = amp_commit_verify(x->store, x->git, &what, &v, err);
    if (rc == 0)
        snprintf(why, AMP_PROOF_WHY, "%s", v.why);
    if (rc <= 0 || amp_task_load(x->store, amp_span_str(v.task), &t, NULL, err) < 0)
        return rc <= 0 ? rc : -1;
    return part_add(x, &t, amp_task_part(&t, amp_span_str(v.subtask)), &v, why, err);
}

static int task_add(struct export *x, const char *id, char why[AMP_PROOF_WHY],
                    struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    bool found;
    if (amp_task_load(x->store, amp_span_str(id), &t, &found, err) < 0)
        return -1;
    snprintf(why, AMP_PROOF_WHY, "task %.200s has no approved subtask", id);
    for (size_t i = 0; found && i < t.n_parts; i++) {
        if (t.parts[i].state != AMP_QA_APPROVED)
            continue;
        /* The commit of a result may be abbreviated, and name something else by now. */
        const struct amp_verify what = {
            .repo = t.repo, .commit = t.parts[i].commit, .ids = x->ids, .policy = &x->policy};
        struct amp_verified v;
        int rc = amp_commit_verify(x->store, x->git, &what, &v, err);
        if (rc == 0)
            snprintf(why, AMP_PROOF_WHY, "%s", v.why);
        if (rc > 0)
            rc = part_add(x, &t, &t.parts[i], &v, why, err);
        if (rc <= 0)
            return rc;
    }
    return x->n > 0;
}

int task_bundle_text(struct amp_store *store, struct amp_git *git, const char *in, const char *id,
                     struct amp_buf *out, struct amp_error *err)
{
    const struct amp_identity_tool who = {.state = amp_tool_state,
                                          .config = amp_tool_config,
                                          .principal = "coordinator",
                                          .quiet = true};
    struct export x = {.store = store, .git = git};
    char why[AMP_PROOF_WHY] = "";
    repo = in;
    int rc = task_policy(&x.policy, err) < 0 ||
                     amp_identity_cli_open(&amp_tool_identity, &who, &x.ids, err) < 0
                 ? -1
                 : task_add(&x, id, why, err);
    if (rc == 0)
        rc = amp_fail(err, AMP_NO, missing_commit, "%s is not approved: %s", id, why);
    if (rc > 0)
        rc = amp_bundle_write(x.ids, (const struct amp_proof *const *)x.proofs, x.n, amp_now_ms(),
                              out, err);
    proofs_free(&x);
    amp_identities_close(x.ids);
    return rc < 0 ? -1 : 0;
}

static int bundle_put(struct export *x, const char *commit, const struct amp_buf *text,
                      struct amp_error *err)
{
    const struct amp_git_note note = {repo, commit, TASK_NOTES};
    if (as_note)
        return amp_git_note_write(x->git, &note, text->data, err);
    if (!path || strcmp(path, "-") == 0)
        return amp_out(amp_buf_span(text), err);
    return amp_file_write_atomic(AT_FDCWD, path, 0644, amp_buf_span(text), err);
}

/* 0: the work is not approved. */
static int export_run(struct export *x, const char *what, char why[AMP_PROOF_WHY],
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_error none;
    char id[AMP_TASK_ID_MAX];
    amp_buf_init(&text, AMP_BUNDLE_MAX);
    /* A number is a task, unless there is none: then it begins a commit's name. */
    bool task = amp_story_find(x->store, what, id, &none) == 0;
    if (task)
        what = id;
    else
        task = amp_is_task_id(amp_span_str(what));
    int rc = task ? task_add(x, what, why, err) : commit_add(x, what, why, err);
    if (rc <= 0)
        return rc;
    if (amp_bundle_write(x->ids, (const struct amp_proof *const *)x->proofs, x->n, amp_now_ms(),
                         &text, err) < 0 ||
        amp_buf_str(&text, "\n", err) < 0)
        return -1;
    return bundle_put(x, task ? x->proofs[x->n - 1]->approved : what, &text, err) < 0 ? -1 : 1;
}

static int export_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    if (strcmp(amp_tool_identity.require, "off") == 0)
        amp_die_usage("a bundle needs signatures: identities are off (--identity, AMP_IDENTITY)");
    return 0;
}

static int task_export(struct amp_command *c, struct amp_error *err)
{
    const struct amp_identity_tool who = {.state = amp_tool_state,
                                          .config = amp_tool_config,
                                          .principal = "coordinator",
                                          .quiet = true};
    struct export x = {.store = c->store};
    char why[AMP_PROOF_WHY] = "";
    int rc = -1;

    if (task_policy(&x.policy, err) == 0 && amp_git_open(NULL, &x.git, err) == 0 &&
        amp_identity_cli_open(&amp_tool_identity, &who, &x.ids, err) == 0)
        rc = export_run(&x, c->argv[0], why, err);
    if (rc == 0)
        amp_warn("%s is not approved: %s", c->argv[0], why);
    proofs_free(&x);
    amp_identities_close(x.ids);
    amp_git_close(x.git);
    return rc < 0 ? -1 : rc ? AMP_OK : AMP_NO;
}

const struct amp_verb export_verbs[] = {
    {"export", "COMMIT|TASK", "write the proof of an approval as a bundle", task_export_opts,
     task_export, .check = export_check, .opens = AMP_OPENS_MADE, .act = "sign a bundle",
     .least = 1, .most = 1, .usage = "export takes one COMMIT or task id", .values = "task",
     .finds_state = true, .who = AMP_WHO_PERSON},
    {0},
};

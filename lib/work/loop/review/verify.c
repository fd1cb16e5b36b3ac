/* Records approved commits and checks whether a commit is approved, for CI and hooks. */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/record/subject.h"
#include "work/loop/review/verify.h"
#include "work/task/record.h"

#define APPROVALS_MAX 64 /* verdicts that are kept for one commit: the newest */

/* The verdicts on one commit, the newest last. */
struct verdict {
    const char *task, *subtask, *verdict;
};
#define MEMBER(member) AMP_REC_EVER(CSTR, struct verdict, #member, member)
static const struct amp_rec_field verdict_fields[] = {MEMBER(task), MEMBER(subtask),
                                                      MEMBER(verdict)};
AMP_REC_TABLE(verdict_rec, "a verdict's record", struct verdict, verdict_fields);

struct approval {
    struct verdict *verdicts;
    uint32_t n_verdicts;
};
static const struct amp_rec_field approval_fields[] = {
    AMP_REC_MANY(struct approval, "verdicts", verdicts, &verdict_rec, true)};
AMP_REC_TABLE(approval_rec, "an approval's record", struct approval, approval_fields);

static int verdict_add(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_approval *a = t->step->with;
    struct approval *all = rec;

    (void)err;
    if (all->n_verdicts == APPROVALS_MAX)
        memmove(all->verdicts, all->verdicts + 1, --all->n_verdicts * sizeof *all->verdicts);
    all->verdicts[all->n_verdicts++] =
        (struct verdict){a->task, a->subtask, a->verdict}; /* lists have room for one */
    t->change->event = "approve";
    return 0;
}

static const char *const states[] = {"APPROVED", NULL};
static const struct amp_subject approvals = {
    .kind = "approval", .table = &approval_rec, .states = states, .carry = verdict_add};

int amp_approval_record(struct amp_store *s, const struct amp_approval *a, struct amp_error *err)
{
    const struct amp_subject_step step = {.key = AMP_KEY(approvals.kind, amp_span_str(a->commit)),
                                          .with = a};

    return amp_subject_step(&approvals, s, &step, NULL, NULL, NULL, err);
}

/* Checks the signatures of a subtask whose task accepted the verdict. */
static int is_proved(struct amp_store *s, const struct amp_task *t,
                     const struct amp_task_part *part, const struct amp_verify *what,
                     struct amp_verified *out, struct amp_error *err)
{
    AMP_PROOF p = {0};
    amp_proof_init(&p);
    int rc = amp_proof_collect(s, t, part, what->policy, &p, out->why, err);
    return rc <= 0 ? rc : amp_proof_check(what->ids, &p, &out->who, out->why, err);
}

/* 1: the task accepted the verdict, 0: it did not, out->why says why, -1: failure. */
static int is_accepted(struct amp_store *s, const char *subtask, const struct amp_verify *what,
                       struct amp_verified *out, struct amp_error *err)
{
    bool no_coordinator = what->no_coordinator;
    AMP_TASK struct amp_task t = {0};
    bool found;

    if (amp_task_load(s, amp_span_str(out->task), &t, &found, err) < 0)
        return -1;
    if (!found && !no_coordinator)
        snprintf(out->why, sizeof out->why,
                 "task %.200s is not in the state directory (--no-coordinator accepts the "
                 "reviewer's verdict)",
                 out->task);
    if (!found)
        return no_coordinator;
    struct amp_task_part *part = amp_task_part(&t, amp_span_str(subtask));
    if (!part)
        snprintf(out->why, sizeof out->why, "task %.200s does not have the subtask", out->task);
    else if (strcmp(part->verdict_ref, out->verdict))
        snprintf(out->why, sizeof out->why, "the verdict %.200s is not the accepted one",
                 out->verdict);
    else if (part->state != AMP_QA_APPROVED)
        snprintf(out->why, sizeof out->why, "the approval of task %.200s waits for a decision",
                 out->task);
    else
        return what->ids ? is_proved(s, &t, part, what, out, err) : 1;
    return 0;
}

/* True if a verdict approves out->approved. */
static int commit_verify(struct amp_store *s, const struct amp_verify *what,
                         struct amp_verified *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct approval all;
    int rc = amp_subject_find(&approvals, s, AMP_KEY(approvals.kind, amp_span_str(out->approved)),
                              &mem, &all, err);

    if (rc < 0)
        return -1;
    if (rc == 0)
        snprintf(out->why, sizeof out->why, "no verdict approves the commit %.12s", out->commit);
    rc = 0;
    for (uint32_t i = 0; i < all.n_verdicts && rc == 0; i++) {
        if (!amp_span_copy(amp_span_str(all.verdicts[i].task), out->task, sizeof out->task) ||
            !amp_span_copy(amp_span_str(all.verdicts[i].verdict), out->verdict,
                           sizeof out->verdict))
            return amp_fail(err, AMP_DATAERR, bad_record,
                            "an approval's record has no usable verdict");
        snprintf(out->subtask, sizeof out->subtask, "%.255s", all.verdicts[i].subtask);
        rc = is_accepted(s, all.verdicts[i].subtask, what, out, err);
    }
    return rc;
}

/* True if a landing of the task made the merge. */
static int merge_verify(struct amp_store *s, const struct amp_verify *what,
                        const struct amp_git_look *merge, const struct amp_git_look *approved,
                        struct amp_verified *out, struct amp_error *err)
{
    AMP_LANDINGS all = {0};
    const struct amp_landing *l = NULL;

    amp_landings_init(&all);
    if (amp_landings_read(s, amp_span_str(out->task), &all, err) < 0)
        return -1;
    for (uint32_t i = 0; i < all.n_v && !l; i++)
        if (amp_span_is(all.v[i].to, merge->commit))
            l = &all.v[i];
    /* A landing that was killed after its move is recorded and signed, too. */
    if (!l && amp_span_is(all.now.to, merge->commit))
        l = &all.now;
    const struct amp_landing none = {0};
    int rc = amp_proof_merge(what->ids, l ? l : &none, merge, approved, out->why, err);
    if (rc > 0 && (!amp_span_copy(l->branch, out->branch, sizeof out->branch) ||
                   !amp_span_copy(l->from, out->from, sizeof out->from)))
        return amp_fail(err, AMP_DATAERR, bad_record, "a landing has too long names");
    return rc;
}

static int work_verify(struct amp_store *s, struct amp_git *g, const struct amp_verify *what,
                       struct amp_verified *out, struct amp_error *err)
{
    struct amp_git_look look, merged;

    memset(out, 0, sizeof *out);
    if (amp_git_look(g, what->repo, what->commit, &look, err) < 0)
        return -1;
    snprintf(out->commit, sizeof out->commit, "%s", look.commit);
    snprintf(out->tree, sizeof out->tree, "%s", look.tree);
    snprintf(out->approved, sizeof out->approved, "%s", look.commit);
    int rc = commit_verify(s, what, out, err);
    if (rc != 0 || *out->task || look.parents != 2)
        return rc;
    snprintf(out->approved, sizeof out->approved, "%s", look.parent[1]);
    rc = commit_verify(s, what, out, err);
    if (rc <= 0 || amp_git_look(g, what->repo, look.parent[1], &merged, err) < 0)
        return rc <= 0 ? rc : -1;
    return merge_verify(s, what, &look, &merged, out, err);
}

int amp_commit_verify(struct amp_store *s, struct amp_git *g, const struct amp_verify *what,
                      struct amp_verified *out, struct amp_error *err)
{
    struct amp_verified v;
    int rc = work_verify(s, g, what, &v, err);

    if (rc < 0 || amp_store_sync(s, err) < 0)
        return -1;
    *out = v;
    return rc;
}

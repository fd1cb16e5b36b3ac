/*
 * Approved commits. Key "approval.<commit>": {"verdicts":[{"task","subtask","verdict"}…]} lists the
 * verdicts that approved exactly this commit. The task's record says whether the coordinator
 * accepted a verdict. Another commit with the same tree is not approved: on top of later commits it
 * would undo them.
 */
#ifndef AMP_WORK_LOOP_REVIEW_VERIFY_H
#define AMP_WORK_LOOP_REVIEW_VERIFY_H

#include "people/proof/proof.h"

struct amp_approval {
    const char *commit, *task, *subtask, *verdict;
};
/* Records the commit that a verdict approves. */
int amp_approval_record(struct amp_store *s, const struct amp_approval *a, struct amp_error *err);

struct amp_verified {
    char tree[AMP_OID_MAX], commit[AMP_OID_MAX];
    char approved[AMP_OID_MAX]; /* the commit itself, or the one that it merges */
    /* For a merge that a landing made, the branch and its value before; "" otherwise. */
    char branch[256], from[AMP_OID_MAX];
    char task[256], subtask[256], verdict[256];
    char why[512];
    struct amp_proof_who who; /* with identities */
};
struct amp_verify {
    const char *repo, *commit;
    bool no_coordinator;
    struct amp_identities *ids; /* NULL: signatures are not verified */
    const struct amp_task_policy *policy;
};
/* 1: `commit` in repo is approved, or a recorded landing made it as the merge of an approved one;
 * 0: it is not, and why is filled; -1: failure. A verdict counts if its task accepted it, and with
 * identities if its proof holds (people/proof/proof.h); with no_coordinator also if the task is
 * unknown. The records that the result depends on are synced. */
int amp_commit_verify(struct amp_store *s, struct amp_git *g, const struct amp_verify *what,
                      struct amp_verified *out, struct amp_error *err);

#endif

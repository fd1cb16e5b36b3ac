/*
 * Approved trees. Key "approval.<tree>": {"verdicts":[{"task","subtask","commit","verdict"}…]}
 * lists the verdicts that approved exactly this tree. The task's record says whether the
 * coordinator accepted a verdict.
 */
#ifndef AMP_FLOW_REVIEW_VERIFY_H
#define AMP_FLOW_REVIEW_VERIFY_H

#include "flow/proof/proof.h"

struct amp_approval {
    const char *tree, *task, *subtask, *commit, *verdict;
};
/* Records the tree that a verdict approves. */
int amp_approval_record(struct amp_store *s, const struct amp_approval *a, struct amp_error *err);

struct amp_verified {
    char tree[AMP_OID_MAX], commit[AMP_OID_MAX];
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
/* 1: the tree of `commit` in repo is approved; 0: it is not, and why is filled; -1: failure. A
 * verdict counts if its task accepted it, and with identities if its proof holds
 * (flow/proof/proof.h); with no_coordinator also if the task is unknown. The records that the
 * result depends on are synced. */
int amp_flow_verify(struct amp_store *s, struct amp_git *g, const struct amp_verify *what,
                    struct amp_verified *out, struct amp_error *err);

#endif

/*
 * Approved trees. Key "approval.<tree>": {"verdicts":[{"task","subtask","commit","verdict"}…]}
 * names the verdicts that approved exactly this tree; whether the coordinator accepted one stands
 * in its task.
 */
#ifndef AMP_FLOW_REVIEW_VERIFY_H
#define AMP_FLOW_REVIEW_VERIFY_H

#include "store/store.h"
#include "worktree/git/git.h"

struct amp_approval {
    const char *tree, *task, *subtask, *commit, *verdict;
};
/* Remembers what a verdict of ours approves. */
int amp_approval_record(struct amp_store *s, const struct amp_approval *a, struct amp_error *err);

/* 1: the tree of `commit` in repo is approved; 0: it is not, why says what is known; -1 failure.
 * A verdict counts once its task accepted it; no_coordinator: also for a task that is unknown here.
 * What it answers with is on disk. */
struct amp_verified {
    char tree[AMP_OID_MAX], commit[AMP_OID_MAX];
    char task[256], verdict[256];
    char why[512];
};
struct amp_verify {
    const char *repo, *commit;
    bool no_coordinator;
};
int amp_flow_verify(struct amp_store *s, struct amp_git *g, const struct amp_verify *what,
                    struct amp_verified *out, struct amp_error *err);

#endif

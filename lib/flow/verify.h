/*
 * Approved trees. Key "approval.<tree>": {"verdicts":[{"task","subtask","commit","verdict"}…]}
 * names the verdicts that approved exactly this tree; whether the coordinator accepted one stands
 * in its task.
 */
#ifndef AMP_FLOW_VERIFY_H
#define AMP_FLOW_VERIFY_H

#include "store/store.h"
#include "worktree/git.h"

struct amp_approval {
    const char *tree, *task, *subtask, *commit, *verdict;
};
/* Remembers what a verdict of ours approves. */
int amp_approval_record(struct amp_store *s, const struct amp_approval *a, struct amp_error *err);

/* 1: the tree of `commit` in repo is approved; 0: it is not, why says what is known; -1 failure. */
struct amp_verified {
    char tree[AMP_OID_MAX], commit[AMP_OID_MAX];
    char task[256], verdict[256];
    char why[512];
};
int amp_flow_verify(struct amp_store *s, struct amp_git *g, const char *repo, const char *commit,
                    struct amp_verified *out, struct amp_error *err);

#endif

/*
 * The proof that work was approved: the coordinator's dispatch, the result of the executor that the
 * dispatch was bound to, the verdict of a reviewer with another key, and an operator's decision
 * where one was needed. The state has it (proof_collect.c); a bundle carries it (bundle.h).
 */
#ifndef AMP_PEOPLE_PROOF_PROOF_H
#define AMP_PEOPLE_PROOF_PROOF_H

#include "message/delivery/sender/identity.h"
#include "work/git/repository/git.h"
#include "work/task/landing/landing.h"
#include "work/task/policy.h"
#include "work/task/record.h"

/* votes: where several persons had to agree, the signed decisions of all of them, each with LF. */
/* landing: the record of the landing that made a merge commit of the work. */
#define AMP_PROOF_LINES(X)                                                                         \
    X(dispatch) X(request) X(result) X(verdict) X(decision) X(votes) X(landing)
enum amp_proof_line {
#define X(name) AMP_PROOF_##name,
    AMP_PROOF_LINES(X)
#undef X
        AMP_PROOF_COUNT
};
/* "dispatch", … */
extern const char *const amp_proof_line_names[AMP_PROOF_COUNT];

struct amp_proof {
    char task[256], subtask[256];
    char commit[AMP_OID_MAX];   /* of the result, which may abbreviate it */
    char approved[AMP_OID_MAX]; /* the commit that is approved: that, or the reviewer's fixes
                                   on top of it; "": unknown */
    char tree[AMP_OID_MAX];     /* of the approved commit; "": unknown */
    char executor[AMP_FINGERPRINT_MAX]; /* the key that the dispatch is bound to */
    bool needs_decision;
    int64_t needs_votes;                  /* different persons that had to agree; 0: one */
    struct amp_buf line[AMP_PROOF_COUNT]; /* empty: there is none. Result, verdict and decision are
                                             signed lines */
};
void amp_proof_init(struct amp_proof *p);
void amp_proof_release(struct amp_proof *p);
#define AMP_PROOF __attribute__((cleanup(amp_proof_release))) struct amp_proof

/* Collects the proof of an approved subtask. 1: collected; 0: a message is no longer in the state,
 * and why says so; -1: failure. */
enum { AMP_PROOF_WHY = 512 };
int amp_proof_collect(struct amp_store *s, const struct amp_task *t,
                      const struct amp_task_part *part, const struct amp_task_policy *policy,
                      struct amp_proof *out, char why[AMP_PROOF_WHY], struct amp_error *err);

/* The speakers of the parts of a proof. */
struct amp_proof_who {
    char executor[AMP_PRINCIPAL_MAX], reviewer[AMP_PRINCIPAL_MAX];
    char operator_[AMP_PRINCIPAL_MAX]; /* "": no decision */
};
/* 1: the proof holds; 0: it does not, and why says why; -1: failure. Signatures count that were
 * valid at their time. */
int amp_proof_check(struct amp_identities *ids, const struct amp_proof *p,
                    struct amp_proof_who *who, char why[AMP_PROOF_WHY], struct amp_error *err);

/* True if the landing made the commit `merge`: it has the landing's old value and the approved
 * commit as its only parents, and the tree of the latter, unless the landing merged the contents of
 * both, and an operator signed the landing (ids NULL: not verified). 1, 0 or -1 as above. */
int amp_proof_merge(struct amp_identities *ids, const struct amp_landing *l,
                    const struct amp_git_look *merge, const struct amp_git_look *approved,
                    char why[AMP_PROOF_WHY], struct amp_error *err);

#endif

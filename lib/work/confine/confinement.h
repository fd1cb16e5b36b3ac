/*
 * The decision how a tool confines the commands that it starts: from its options, AMP_CONFINE and
 * the policy to what is enforced.
 */
#ifndef AMP_WORK_CONFINE_CONFINEMENT_H
#define AMP_WORK_CONFINE_CONFINEMENT_H

#include "work/confine/confine.h"

struct amp_confinement_args {
    bool require, best_effort, unconfined; /* at most one */
    const char *demand;                    /* AMP_CONFINE: require, best-effort, off; NULL: unset */
    const char *policy;                    /* a file, or NULL */
    const char *network;                   /* overrides the policy's, or NULL */
    struct amp_span access;                /* restricts all of it (effective.h); p NULL: none */
    const char *const *read, *const *write;
    int n_read, n_write;
};
/* The arguments of a struct of options such as struct amp_confine_cli (cli/rows.h). */
#define AMP_CONFINEMENT_ARGS(o)                                                                    \
    {                                                                                              \
        .require = (o).require, .best_effort = (o).best_effort, .unconfined = (o).unconfined,      \
        .demand = getenv("AMP_CONFINE"), .policy = (o).policy, .network = (o).network,             \
        .read = (o).read.v, .write = (o).write.v, .n_read = (o).read.n, .n_write = (o).write.n     \
    }

/* Fills the policy and the report. An option counts before AMP_CONFINE, that before the default
 * "require". note prints what is not enforced. USAGE bad_value; otherwise
 * those of amp_access_restrict_text,  the errors of
 * amp_confine_policy_read and amp_confine_choose. */
int amp_confinement_choose(const struct amp_confinement_args *a, void (*note)(const char *fmt, ...),
                           struct amp_confine_policy *policy, struct amp_confine_report *report,
                           struct amp_error *err);

#endif

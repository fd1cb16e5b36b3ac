/* For the files of lib/work/aop/session that keep the records of a session. */
#ifndef AMP_WORK_AOP_SESSION_PRIVATE_H
#define AMP_WORK_AOP_SESSION_PRIVATE_H

#include <amp/protocol/aop_policy.h>

#include "work/aop/session/admit.h"

struct amp_jw;

/* A TASK as its session records it: x and t have no state. */
struct amp_session_read {
    struct amp_session x;
    struct amp_session_task t;
    struct amp_aop_policy policy;
    struct amp_buf mem;    /* the texts */
    struct amp_span *dirs; /* of the access */
};
int amp_session_read_task(const struct amp_view *v, struct amp_session_read *out,
                          struct amp_error *err);
void amp_session_read_release(struct amp_session_read *r);
#define AMP_SESSION_READ AMP_CLEANUP(amp_session_read_release) struct amp_session_read

/* NO E_PERMISSION_DENIED: the access `a` of a child is not within `p`, its parent's. */
int amp_session_access_check(const struct amp_session_access *a, const struct amp_session_access *p,
                             struct amp_error *err);

/* An audit record (schemas/records/audit.json); empty texts are left out or null. */
struct amp_session_audit {
    enum amp_session_entry_type type;
    struct amp_span session, task, parent;
    int64_t attempt;
    const char *role; /* ORCHESTRATOR, EXECUTOR, ROUTER or GOVERNANCE */
    struct amp_span actor, provider, model;
    struct amp_span payload;  /* an object */
    const char *guards[3];    /* the guard rails that were applied, ended with NULL */
    const char *access;       /* ALLOWED, DENIED or N/A */
    struct amp_span reason;   /* an E_ code */
    bool budgeted;            /* the budget's state: */
    struct amp_span max_cost; /* the number in the message; empty: none */
    int64_t spent_micros;
    bool within;
};
int amp_session_audit_add(const struct amp_session_voice *v, const struct amp_session_audit *a,
                          const char *name, const struct amp_store_emit *emits, uint32_t n_emits,
                          struct amp_error *err);
/* Writes the members of an audit record, from actor on, into an open object. */
void amp_session_audit_members(struct amp_jw *w, const struct amp_session_audit *a);
/* Writes an amount of money as a number of dollars, exactly. */
void amp_session_dollars(struct amp_jw *w, const char *key, int64_t micros);

/* Names of entries: the attempt, and what it is. */
enum { AMP_SESSION_NAME_MAX = 160 };
void amp_session_entry_label(char out[AMP_SESSION_NAME_MAX], int64_t attempt, const char *what,
                             const char *more);

#endif

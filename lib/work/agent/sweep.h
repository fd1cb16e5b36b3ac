/*
 * The sweep over agents handles the deadlines of both parts of their records: missed heartbeats
 * (the reach part), time limits of states and silence at work (the work part).
 */
#ifndef AMP_WORK_AGENT_SWEEP_H
#define AMP_WORK_AGENT_SWEEP_H

#include "work/agent/directory.h"

/* A time limit that passed at at_ms (code: init_timeout, resource_timeout …), or a silence at work
 * since at_ms (heartbeat_timeout). The texts are the record's. */
struct amp_agent_overdue {
    struct amp_span agent;
    const char *state, *task, *code;
    bool silent;
    int64_t lost_pid; /* its process, which was killed; at_ms is the last sign of life; 0: none */
    int64_t at_ms;
};
/* Composes the line to emit. */
typedef int (*amp_agent_notice_fn)(void *ctx, const struct amp_agent_overdue *o,
                                   struct amp_store_emit *emit, struct amp_error *err);

/* The sweep handles these. */
struct amp_agent_sweep {
    struct amp_directory *directory; /* for missed heartbeats; NULL: skip them */
    bool limits;                     /* time limits: the agent fails (SW4RM §8.3) */
    int64_t silence_ms; /* report agents at work that are silent for this long, once; 0: never */
    const char *actor;  /* the outbox of the notices */
    amp_agent_notice_fn notice;
    void *ctx;
};
/* Handles what is due at now_ms; *done is the number. Commits without syncing. */
int amp_agent_sweep(struct amp_store *s, const struct amp_agent_sweep *sw, int64_t now_ms,
                    uint32_t *done, struct amp_error *err);
/* The earliest deadline of this sweep, 0: none. */
int amp_agent_next_due(struct amp_store *s, const struct amp_agent_sweep *sw, int64_t *due_ms,
                       struct amp_error *err);

#endif

/* The Runtime Protocol's history in memory. */
#ifndef STATE_WORKER_RTP_H
#define STATE_WORKER_RTP_H

#include "base/map.h"
#include "message/protocol/rtp/rtp.h"
#include "worker.h"

/* The facts of one event. Texts are hashes; 0: absent. */
struct rtp_fact {
    enum amp_rtp_kind kind;
    uint64_t id, outbox, operation, task, corr, agent;
    int64_t seq, attempt, created_ms, failures_most;
    bool begins, releases;                   /* begins the task; releases it for another agent */
    uint64_t versions[AMP_RTP_VERSIONS_MAX]; /* of a skill: amp_rtp_versions */
    uint64_t *assignees;                     /* of a task_create; malloced */
    uint32_t n_assignees;
};

struct rtp_event {
    enum amp_rtp_kind kind;
    uint64_t task, corr;
};

struct rtp_task {
    bool created, done, failed; /* failed: at least once; done: no further event may come */
    uint64_t claimant;          /* 0: none */
    uint64_t version;           /* of a distributed skill, which its completion confirms; 0: none */
    uint64_t *assignees;
    uint32_t n_assignees;
    int64_t failures; /* that released it */
};

struct rtp_history {
    uint64_t key[2], everyone; /* everyone: "all" */
    struct amp_reader *reader; /* for the ledger's lines */
    struct amp_map events, outboxes, operations, tasks, replies;
    struct amp_map claims; /* of an agent: the number of its open tasks, an int64_t */
    bool loaded;
    int64_t read_ms, took_ms; /* when the ledger was read last, and the duration */
};

int rtp_history_new(struct rtp_history **out, struct amp_error *err);
/* Reads new events of the ledger. */
int rtp_history_load(struct rtp_history *h, struct checks *c, struct amp_error *err);

/* Whether the task failed as often as it may: another failure is its end. */
bool rtp_spent(const struct rtp_task *task, const struct rtp_fact *f);

int rtp_fact_of(const struct rtp_history *h, const struct amp_view *v, struct rtp_fact *f,
                struct amp_error *err);
void rtp_fact_release(struct rtp_fact *f);
/* Absorbs a fact, and takes its assignees. */
int rtp_absorb(struct rtp_history *h, struct rtp_fact *f, struct amp_error *err);

#endif

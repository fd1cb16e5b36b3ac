/*
 * The directory (SW4RM §14): registrations and signs of life, the reach part of agents' records.
 *
 * Missed heartbeats are debounced: the configured number of them in a row makes an agent
 * UNREACHABLE, and only a deregistration makes it LEFT. A change that concerns the participants is
 * committed with one SW4RM NOTIFICATION for each of them, in the outbox of `voice.name`.
 */
#ifndef AMP_WORK_AGENT_DIRECTORY_H
#define AMP_WORK_AGENT_DIRECTORY_H

#include "work/agent/record.h"
#include "work/agent/voice.h"

/* Whether the text decodes to an Ed25519 or ECDSA key, bare or as a SubjectPublicKeyInfo. */
bool amp_public_key_is_valid(struct amp_span base64);

struct amp_directory {
    struct amp_store *store;
    struct amp_voice voice;
    int64_t interval_ms, timeout_ms; /* a sign of life is due after both */
    int64_t misses;                  /* in a row that make an agent unreachable */
};

/* These functions commit; the caller syncs. NO not_registered: there is no such agent. */

/* A registration. The descriptor is borrowed and has passed the checks of its message. Registering
 * again replaces it. id and bytes identify the message, to detect duplicates; id may be empty. */
struct amp_registration {
    json_t *agent;
    const char *role, *node; /* NULL: unchanged */
    struct amp_span id, bytes;
    bool signing; /* a public key is required and checked */
};
int amp_directory_register(struct amp_directory *d, const struct amp_registration *r,
                           int64_t now_ms, struct amp_error *err);
int amp_directory_deregister(struct amp_directory *d, struct amp_span agent, const char *reason,
                             int64_t now_ms, struct amp_error *err);

/* A sign of life. If it has the id or correlation of an open heartbeat, it answers it, and
 * *answer_ms is the time since then in ms; otherwise -1. */
struct amp_beat {
    struct amp_span agent, correlation, ref;
    const char *reported; /* the agent's own state, or NULL */
    json_t *health;       /* or NULL */
};
int amp_directory_beat(struct amp_directory *d, const struct amp_beat *b, int64_t now_ms,
                       int64_t *answer_ms, struct amp_error *err);

/* Sends a heartbeat to every registered agent; *asked is their number. */
int amp_directory_ask(struct amp_directory *d, int64_t now_ms, uint32_t *asked,
                      struct amp_error *err);
/* Records a missed heartbeat. Does nothing if a sign of life has arrived since. */
int amp_directory_miss(struct amp_directory *d, struct amp_span agent, int64_t now_ms,
                       struct amp_error *err);

#endif

/*
 * The directory (SW4RM §14): who is registered, and whether it gives signs of life. Key
 * "directory.<agent>": {"agent":{the descriptor},"role","node","joined","seen","missed","said":the
 * agent's own state,"health","asked":{"id","correlation","at"}|null,"answer":ms,"answers":n,
 * "answer_most":ms,"reason"}, times in milliseconds.
 *
 * Missed heartbeats are debounced: the policy's number of them in a row makes an agent UNREACHABLE,
 * and nothing but a deregistration makes it LEFT. Every change that others must know is committed
 * with its events: one SW4RM NOTIFICATION for each participant, in the outbox of `voice.name`.
 */
#ifndef AMP_AGENT_DIRECTORY_H
#define AMP_AGENT_DIRECTORY_H

#include <amp/fsm/fsm.h>

#include "agent/voice.h"
#include "store/store.h"

#define AMP_REACH_STATES(X)                                                                        \
    X(AMP_REACH_ABSENT, "ABSENT", "never registered")                                              \
    X(AMP_REACH_REACHABLE, "REACHABLE", "registered, and answers")                                 \
    X(AMP_REACH_LATE, "LATE", "missed heartbeats, fewer than make it unreachable")                 \
    X(AMP_REACH_UNREACHABLE, "UNREACHABLE", "missed too many heartbeats; still registered")        \
    X(AMP_REACH_LEFT, "LEFT", "was deregistered")

#define AMP_REACH_EVENTS(X)                                                                        \
    X(AMP_REACH_EV_REGISTER, "register", "a registration came")                                    \
    X(AMP_REACH_EV_BEAT, "beat", "a sign of life came")                                            \
    X(AMP_REACH_EV_MISS, "miss", "no sign of life came in time")                                   \
    X(AMP_REACH_EV_DEREGISTER, "deregister", "somebody deregistered it")                           \
    X(AMP_REACH_EV_ASK, "ask", "a heartbeat is due")

#define AMP_REACH_FACTS(X)                                                                         \
    X(AMP_REACH_IF_SPENT, "spent", "it was the last miss that the debounce allows")

#define AMP_REACH_EFFECTS(X)                                                                       \
    X(AMP_REACH_DO_JOIN, "join", "tell the participants that it joined")                           \
    X(AMP_REACH_DO_LEAVE, "leave", "tell them that it left")                                       \
    X(AMP_REACH_DO_LOST, "lost", "tell them that it is unreachable")                               \
    X(AMP_REACH_DO_BACK, "back", "tell them that it answers again")                                \
    X(AMP_REACH_DO_ASK, "ask", "send it a heartbeat")

enum { AMP_REACH_STATES(AMP_FSM_ENUM) AMP_REACH_STATE_COUNT };
enum { AMP_REACH_EVENTS(AMP_FSM_ENUM) AMP_REACH_EVENT_COUNT };
enum { AMP_REACH_FACTS(AMP_FSM_BIT) AMP_REACH_FACT_COUNT };
enum { AMP_REACH_FACTS(AMP_FSM_FLAG) };
enum { AMP_REACH_EFFECTS(AMP_FSM_BIT) AMP_REACH_EFFECT_COUNT };
enum { AMP_REACH_EFFECTS(AMP_FSM_FLAG) };
extern const struct amp_fsm amp_reach_fsm;

/* Whether it can be a key of Ed25519 or ECDSA, bare or as a SubjectPublicKeyInfo. */
bool amp_public_key_is_sound(struct amp_span base64);

/* Registered, and not given up: who may be a recipient. */
static inline bool amp_reach_active(uint8_t state)
{
    return state == AMP_REACH_REACHABLE || state == AMP_REACH_LATE;
}

struct amp_directory {
    struct amp_store *store;
    struct amp_voice voice;
    int64_t interval_ms, timeout_ms; /* a sign of life is due after both */
    int64_t misses;                  /* in a row, that make it unreachable */
};

/* All: NO not_registered where there is no such agent. Commits only; the caller syncs. */

/* A registration: the descriptor is borrowed and has passed the checks of the message. Registering
 * again replaces it. id may be empty: the message, so that it counts once. */
struct amp_registration {
    json_t *agent;
    const char *role, *node; /* or NULL: as it was */
    struct amp_span id, bytes;
    bool signing; /* a public key is needed, and looked at */
};
int amp_directory_register(struct amp_directory *d, const struct amp_registration *r,
                           int64_t now_ms, struct amp_error *err);
int amp_directory_deregister(struct amp_directory *d, struct amp_span agent, const char *reason,
                             int64_t now_ms, struct amp_error *err);

/* A sign of life. It answers the heartbeat whose id or correlation it bears: *answer_ms is then
 * how long that took, else -1. */
struct amp_beat {
    struct amp_span agent, correlation, ref;
    const char *said; /* the agent's own state, or NULL */
    json_t *health;   /* or NULL */
};
int amp_directory_beat(struct amp_directory *d, const struct amp_beat *b, int64_t now_ms,
                       int64_t *answer_ms, struct amp_error *err);

/* Asks every registered agent for a sign of life; *asked counts them. */
int amp_directory_ask(struct amp_directory *d, int64_t now_ms, uint32_t *asked,
                      struct amp_error *err);
/* Counts what was missed until now; *next_ms is when to look again, 0 never. */
int amp_directory_sweep(struct amp_directory *d, int64_t now_ms, int64_t *next_ms,
                        struct amp_error *err);

/* Whoever was ever registered. fn: 0 goes on, 1 stops. The state of one: ABSENT where unknown; *rec
 * (may be NULL) is a new reference or NULL. */
typedef int (*amp_directory_fn)(void *ctx, struct amp_span agent, uint8_t state, uint64_t rev,
                                const json_t *rec);
int amp_directory_each(struct amp_store *s, amp_directory_fn fn, void *ctx, struct amp_error *err);
int amp_directory_find(struct amp_store *s, struct amp_span agent, uint8_t *state, json_t **rec,
                       struct amp_error *err);

#endif

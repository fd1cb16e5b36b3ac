/*
 * The parts of agent-registry: main.c has the options and what verbs open, say.c the verbs that
 * give one message, loop.c the filter and the emitter of heartbeats, take.c the effects of one
 * message, list.c the lists, skills.c the skills and reviews, keys.c the keys.
 */
#ifndef AGENT_REGISTRY_REGISTRY_H
#define AGENT_REGISTRY_REGISTRY_H

#include <amp/base/pipe.h>

#include "cli/list.h"
#include "cli/rows.h"
#include "message/delivery/intake.h"
#include "message/delivery/outbox.h"
#include "message/delivery/sender/identity.h"
#include "shared/identity.h"
#include "work/agent/capability.h"
#include "work/agent/sweep.h"

extern const char *reg_state, *reg_config, *reg_node, *reg_skills, *reg_routing;
extern int64_t reg_required_ms;
extern bool reg_signing;

struct registry {
    struct amp_directory dir;
    char name[160]; /* of the sender and of the outbox */
    bool answer;    /* SW4RM senders get an acknowledgement */

    int lock;
    struct amp_outq out;
    struct amp_buf turn; /* lines to write at the end of the turn */
    struct amp_outbox box;
};

/* A verb opens these besides the state directory; c->own is then a struct registry. */
enum {
    REG_OPENS_OUTBOX = AMP_OPENS_OWN,      /* the outbox of the name, and its lock */
    REG_OPENS_FILTER = AMP_OPENS_OWN << 1, /* with this: of NAME.filter */
    REG_OPENS_EMIT = AMP_OPENS_OWN << 2    /* with this: of NAME.emit */
};
/* main.c: whether every message must be signed (identity.require all). */
bool reg_needs_signatures(void);
/* main.c: who says what, for tokens and signatures. */
int reg_identities(struct amp_identities **out, struct amp_error *err);

/* Writes the lines of the turn, then the committed lines, to the output. */
int reg_emit(struct registry *r, struct amp_error *err);
/* Writes them at the end of a verb, and waits until everything is written. */
int reg_finish(struct registry *r, struct amp_error *err);

/* take.c. A message that the registry refuses is also taken: *refused is filled (NO), and the
 * sender gets an answer if `answer` is set. */
enum reg_taken { REG_FAILED = -1, REG_PASSES, REG_TAKEN };
enum reg_taken reg_take(struct registry *r, const struct amp_view *v, struct amp_error *refused,
                        struct amp_error *err);
/* Answers a line that did not pass the checks. */
int reg_answer_bad(struct registry *r, const struct amp_view *v, const char *code,
                   const char *field, struct amp_error *err);

/* loop.c. rounds of heartbeats: < 0: none; 0: without an end. */
int reg_loop(struct registry *r, int64_t rounds, struct amp_error *err);

/* keys.c: the trusted keys and revocations of the state, printed, and as messages to the agents. */
extern struct amp_identity_cli reg_identity;
extern const struct amp_column reg_key_columns[];
int reg_keys_list(struct amp_listing *l, struct amp_error *err);
int reg_keys_publish(struct registry *r, struct amp_error *err);

/* skills.c: the agents that were asked to install a skill (struct amp_skill). */
extern const struct amp_column reg_skill_columns[];
/* list.c: one JSON object a line. */
int reg_print_json(const json_t *j, struct amp_error *err);

#endif

/*
 * The state-machine engine. A machine is a table. Stepping is a pure function: the result depends
 * on the arguments only, and nothing is written. Guards are facts: bits that the caller computes
 * before the step, so that a row can be printed, drawn and tested.
 */
#ifndef AMP_FSM_FSM_H
#define AMP_FSM_FSM_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

struct amp_fsm_name {
    const char *name; /* as printed */
    const char *doc;
};

/* The first row that matches from, event and facts is used. */
struct amp_fsm_row {
    uint8_t from, event, to;
    bool extra;       /* needed in practice, missing in the source's table */
    uint32_t if_all;  /* facts that must all be true */
    uint32_t if_none; /* facts that must all be false */
    uint32_t effects; /* bits */
    const char *code; /* the row's code, or NULL */
};

struct amp_fsm {
    const char *name, *source, *doc; /* source: "SW4RM §16.2" */
    const struct amp_fsm_name *states, *events, *facts, *effects;
    uint8_t n_states, n_events, n_facts, n_effects;
    uint8_t initial;
    uint32_t terminal; /* one bit per state */
    const struct amp_fsm_row *rows;
    uint16_t n_rows;
};

struct amp_fsm_result {
    uint8_t to;
    uint32_t effects;
    const char *code;
    const struct amp_fsm_row *row;
};

/* -1 with NO "illegal_transition" if no row matches; out is unchanged then. */
int amp_fsm_step(const struct amp_fsm *m, uint8_t state, uint8_t event, uint32_t facts,
                 struct amp_fsm_result *out, struct amp_error *err);

/* Index by name, or -1. */
int amp_fsm_state(const struct amp_fsm *m, struct amp_span name);
int amp_fsm_event(const struct amp_fsm *m, struct amp_span name);
/* A fact's bit is 1 << its index. */
int amp_fsm_fact(const struct amp_fsm *m, struct amp_span name);

/* Checks the table: indexes are in range, every state is reachable, no row is hidden by an earlier
 * one, every event has a row, every name has a description, and only extra rows leave terminal
 * states. INTERNAL "machine_unsound" names the error. */
int amp_fsm_lint(const struct amp_fsm *m, struct amp_error *err);

/* "table", "dot" or "ndjson" (rows: machine, from, event, to, code, effects, guard, extra). */
int amp_fsm_print(const struct amp_fsm *m, const char *format, struct amp_buf *out,
                  struct amp_error *err);

/* Helpers for X-macro lists: X(NAME, "spelling", "doc"). */
#define AMP_FSM_ENUM(id, name, doc)  id,
#define AMP_FSM_NAMES(id, name, doc) {name, doc},
/* For facts and effects: ID_BIT is the bit's number, ID the bit. */
#define AMP_FSM_BIT(id, name, doc)  id##_BIT,
#define AMP_FSM_FLAG(id, name, doc) id = 1u << id##_BIT,

/* The enums of the lists P_STATES, P_EVENTS, P_FACTS and P_EFFECTS, and their sizes. */
#define AMP_FSM_ENUMS(P)                                                                           \
    enum { P##_STATES(AMP_FSM_ENUM) P##_STATE_COUNT };                                             \
    enum { P##_EVENTS(AMP_FSM_ENUM) P##_EVENT_COUNT };                                             \
    enum { P##_FACTS(AMP_FSM_BIT) P##_FACT_COUNT };                                                \
    enum { P##_FACTS(AMP_FSM_FLAG) };                                                              \
    enum { P##_EFFECTS(AMP_FSM_BIT) P##_EFFECT_COUNT };                                            \
    enum { P##_EFFECTS(AMP_FSM_FLAG) }
/* The names of these lists, as members of a struct amp_fsm. */
#define AMP_FSM_LISTS(P)                                                                           \
    .states = (const struct amp_fsm_name[]){P##_STATES(AMP_FSM_NAMES)},                            \
    .events = (const struct amp_fsm_name[]){P##_EVENTS(AMP_FSM_NAMES)},                            \
    .facts = (const struct amp_fsm_name[]){P##_FACTS(AMP_FSM_NAMES)},                              \
    .effects = (const struct amp_fsm_name[]){P##_EFFECTS(AMP_FSM_NAMES)},                          \
    .n_states = P##_STATE_COUNT, .n_events = P##_EVENT_COUNT, .n_facts = P##_FACT_COUNT,           \
    .n_effects = P##_EFFECT_COUNT

AMP_API_END

#endif

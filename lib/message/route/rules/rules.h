/*
 * The table of routes: predicates in their order, and the outlet of each. Native predicates are
 * evaluated while the message is in view. A worker process evaluates jq predicates; its answers
 * come later.
 */
#ifndef AMP_MESSAGE_ROUTE_RULES_RULES_H
#define AMP_MESSAGE_ROUTE_RULES_RULES_H

#include <poll.h>

#include "message/route/parcel.h"
#include "message/route/rules/predicate.h"

struct rule {
    struct amp_predicate *predicate;
    char *text; /* of the predicate, for answers */
    int filter; /* number in the jq worker; -1: a native predicate */
    uint32_t port;
};

struct amp_rules;
/* all: every rule that holds counts, not only the first. limit_ms: for the jq predicates of one
 * message. */
int amp_rules_new(bool all, int64_t limit_ms, const volatile int *stop, struct amp_rules **out,
                  struct amp_error *err);
void amp_rules_free(struct amp_rules *r);
/* begin and add build a new table; start replaces the present table with it. If start is not called
 * or fails, the present table stays. */
int amp_rules_begin(struct amp_rules *r, struct amp_error *err);
/* The caller sets the rule's port. USAGE too_many, bad_predicate. */
int amp_rules_add(struct amp_rules *r, struct amp_span predicate, struct rule **out,
                  struct amp_error *err);
int amp_rules_start(struct amp_rules *r, struct amp_error *err);
uint32_t amp_rules_era(const struct amp_rules *r); /* counts the tables */

uint32_t amp_rules_n(const struct amp_rules *r);
const struct rule *amp_rules_at(const struct amp_rules *r, uint32_t i);
/* Whether the i-th rule is known to hold for the message. */
bool amp_rules_hold(const struct parcel *j, uint32_t i);
/* The next rule from *i on that counts for the message; NULL: there is none. Starts with *i 0. */
const struct rule *amp_rules_next(const struct amp_rules *r, const struct parcel *j, uint32_t *i);

/* Evaluates the native rules. A message with jq rules becomes PARCEL_ASK, others PARCEL_DECIDED. */
void amp_rules_match(const struct amp_rules *r, struct parcel *j, const struct amp_view *v);
/* Sends a message to the worker; LATER: the worker has no room now. If it cannot be sent, it is
 * refused. */
enum amp_rules_asked { AMP_RULES_ASKED, AMP_RULES_LATER };
enum amp_rules_asked amp_rules_ask(struct amp_rules *r, struct parcel *j);
/* Reads the worker's answers: parcels become PARCEL_DECIDED. */
int amp_rules_step(struct amp_rules *r, struct amp_error *err);
/* Fills two descriptors, and lowers *timeout_ms. */
void amp_rules_watch(const struct amp_rules *r, struct pollfd *fds, int *timeout_ms);

#endif

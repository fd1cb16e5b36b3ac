/*
 * The table of routes: predicates in their order, and where each leads. Native predicates are
 * decided while a message is in view; a jq predicate is put to a worker, whose answer comes later.
 */
#ifndef AMP_ROUTE_RULES_H
#define AMP_ROUTE_RULES_H

#include <poll.h>

#include "route/job.h"
#include "route/rules/predicate.h"

struct rule {
    struct amp_predicate *predicate;
    char *text; /* of the predicate, for answers */
    int filter; /* of the jq worker, -1 for a native one */
    uint32_t port;
};

struct amp_rules;
/* all: every rule that holds counts, not only the first. The limit is of one jq predicate. */
int amp_rules_new(bool all, int64_t limit_ms, const volatile int *stop, struct amp_rules **out,
                  struct amp_error *err);
void amp_rules_free(struct amp_rules *r);
/* A new table is built: begin, add, and start puts it in place of the present one. Without start,
 * or where it fails, the present table stays. */
int amp_rules_begin(struct amp_rules *r, struct amp_error *err);
/* The rule's port is the caller's to set. USAGE too_many, bad_predicate. */
int amp_rules_add(struct amp_rules *r, struct amp_span predicate, struct rule **out,
                  struct amp_error *err);
int amp_rules_start(struct amp_rules *r, struct amp_error *err);
uint32_t amp_rules_era(const struct amp_rules *r); /* counts the tables */

uint32_t amp_rules_n(const struct amp_rules *r);
const struct rule *amp_rules_at(const struct amp_rules *r, uint32_t i);
/* Whether the i-th is known to hold for the message. */
bool amp_rules_hold(const struct job *j, uint32_t i);
bool amp_rules_ask_jq(const struct amp_rules *r);
bool amp_rules_ask_body(const struct amp_rules *r);

/* Decides the native rules; what only jq can decide stays open (JOB_ASK). */
void amp_rules_match(const struct amp_rules *r, struct job *j, const struct amp_view *v);
/* Puts what is open to the worker, which may have no room now. A message that cannot be asked about
 * is refused. */
enum amp_rules_asked { AMP_RULES_ASKED, AMP_RULES_LATER };
enum amp_rules_asked amp_rules_ask(struct amp_rules *r, struct job *j);
/* Takes the worker's answers: jobs become JOB_DECIDED. */
int amp_rules_step(struct amp_rules *r, struct amp_error *err);
/* Two descriptors. */
void amp_rules_watch(const struct amp_rules *r, struct pollfd *fds, int *timeout_ms);

#endif

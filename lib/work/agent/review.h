/*
 * Skill review items (Runtime Protocol v1 §8). Key "review.<capability>/<failure class>": one item
 * for each class of failures of a capability. While it is open, further failures add their
 * conversation to it. The state is OPEN, CLOSED, or WATCHED: failures of routing count first.
 */
#ifndef AMP_WORK_AGENT_REVIEW_H
#define AMP_WORK_AGENT_REVIEW_H

#include <jansson.h>

#include "message/store/store.h"

#define AMP_REVIEW_KIND      "review"
#define AMP_REVIEW_SAMPLES   10 /* conversations that an item names */
#define AMP_REVIEW_ROUTES    3  /* failed routes within this time make an item */
#define AMP_REVIEW_ROUTES_MS 3600000

struct amp_review_cause {
    struct amp_span capability;  /* if it is not published, there is no item */
    const char *failure;         /* a failure class, or "sla_breach" */
    struct amp_span correlation; /* or empty */
    bool route;                  /* its route failed: counts first */
    const char *actor;
    int64_t now_ms;
};
/* Makes an item, or adds to the open one; commits. *made (may be NULL): a new item. */
int amp_review_add(struct amp_store *s, const struct amp_review_cause *c, bool *made,
                   struct amp_error *err);

struct amp_review {
    const char *state;      /* OPEN, CLOSED */
    json_t *item;           /* the item, as the protocol has it */
    int64_t count, last_ms; /* failures; the last one */
};
/* fn: 0 continues, 1 stops, -1 fails with err. Items that are only watched are left out. */
typedef int (*amp_review_fn)(void *ctx, const struct amp_review *r, struct amp_error *err);
int amp_reviews_each(struct amp_store *s, amp_review_fn fn, void *ctx, struct amp_error *err);
/* NO unknown_ref: there is no open item of this id. */
int amp_review_close(struct amp_store *s, const char *id, const char *note, const char *actor,
                     struct amp_error *err);

#endif

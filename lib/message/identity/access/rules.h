/*
 * Access rules (SW4RM §6.3): who may send which message to whom, about which tool and resource. A
 * rule that denies wins over every rule that allows; unmatched messages get the default.
 */
#ifndef AMP_MESSAGE_IDENTITY_ACCESS_RULES_H
#define AMP_MESSAGE_IDENTITY_ACCESS_RULES_H

#include <amp/base/buf.h>

enum { AMP_ACCESS_RULES_MAX = 1000, AMP_ACCESS_PATTERN_MAX = 1000 };

enum amp_access_effect { AMP_ACCESS_ALLOW, AMP_ACCESS_DENY };

/* A message. Empty texts: it has none. */
struct amp_access_facts {
    struct amp_span type, sender, tool;
    const struct amp_span *recipients, *scopes; /* scopes: "branch:feat/x", "repo:/srv/r", … */
    uint32_t n_recipients, n_scopes;
};

struct amp_access;
struct amp_access *amp_access_new(struct amp_error *err);
void amp_access_free(struct amp_access *a); /* NULL: nothing */
/* Sets the decision about a message that no rule matches (default: allow). */
void amp_access_set_default(struct amp_access *a, enum amp_access_effect e);
/* Adds a rule, a JSON object: {"effect":"allow"|"deny","type","sender","recipient","tool","scope"};
 * all but effect are patterns with `*` and `?`, and a missing one matches every message. CONFIG
 * bad_access_rule. */
int amp_access_add(struct amp_access *a, struct amp_span json, struct amp_error *err);
uint32_t amp_access_count(const struct amp_access *a);

struct amp_access_decision {
    enum amp_access_effect effect;
    uint32_t rule;             /* that decided, from 1; 0: the default */
    struct amp_span recipient; /* that the decision is about; empty: all, or none */
};
/*
 * Decides on a message, for each of its recipients; it is denied if one of them is. A rule with a
 * pattern for recipient, tool or scope matches only a message that has one. A rule that denies
 * matches if its scope matches one scope of the message; one that allows, if it matches all.
 */
struct amp_access_decision amp_access_decide(const struct amp_access *a,
                                             const struct amp_access_facts *f);

#endif

/*
 * The agents that offer capabilities: those that the index of every one of them names, where it was
 * published, is not disabled, and its two skills go together.
 */
#ifndef AMP_ROUTE_ELIGIBLE_H
#define AMP_ROUTE_ELIGIBLE_H

#include <jansson.h>

#include <amp/protocol/protocol.h>

#include "store/store.h"

/* *eligible: an array of their names, the caller's also on failure (or NULL). wanted has at least
 * one. NO no_route, capability_unavailable, version_incompatible; a store of NULL knows none. */
int amp_eligible_find(struct amp_store *s, const struct amp_spans *wanted, json_t **eligible,
                      struct amp_error *err);
/* "CAPABILITY why", a refusal; -1. */
int amp_eligible_refuse(struct amp_error *err, const char *code, struct amp_span cap,
                        const char *why);

#endif

/*
 * Capabilities (Runtime Protocol v1 §2, §7). Key "capability.<id>": {"catalog":{the record as it
 * was published},"index":{the index record},"published":n}; its state is the catalog's status.
 *
 * Publishing commits in one frame, as lines in the outbox of `voice.name`: the index record, and
 * for an active capability a skill_distribution task for each active agent but the owner.
 */
#ifndef AMP_AGENT_CAPABILITY_H
#define AMP_AGENT_CAPABILITY_H

#include "agent/directory.h"

struct amp_publication {
    json_t *catalog;     /* borrowed; its message has passed the checks */
    const char *skills;  /* the directory in which executor skills must be found; NULL: unknown */
    int64_t required_ms; /* how long agents have to install the skill */
};

/* NO owner_unavailable: the owner is not registered or unreachable; install_failed: its executor
 * skill is not there; version_incompatible: lower than what is published, or the same with other
 * contents. *changed false: published before, exactly so. */
int amp_capability_publish(struct amp_directory *d, const struct amp_publication *p, int64_t now_ms,
                           bool *changed, struct amp_error *err);

/* fn: 0 goes on, 1 stops. rec: the stored record. */
typedef int (*amp_capability_fn)(void *ctx, struct amp_span id, const json_t *rec);
int amp_capability_each(struct amp_store *s, amp_capability_fn fn, void *ctx,
                        struct amp_error *err);
/* A new reference, or NULL where it was never published. */
int amp_capability_find(struct amp_store *s, struct amp_span id, json_t **rec,
                        struct amp_error *err);

/* By precedence of semantic versions: < 0, 0, > 0. Build metadata does not count. */
int amp_semver_compare(struct amp_span a, struct amp_span b);

#endif

/*
 * Capabilities (Runtime Protocol v1 §2, §7). Key "capability.<id>": {"catalog":{the published
 * record},"index":{the index record},"published":n}. The state is the catalog's status.
 *
 * Publishing is one commit with lines in the outbox of `voice.name`: the index record, and for an
 * active capability a skill_distribution task for each active agent except the owner.
 */
#ifndef AMP_WORK_AGENT_CAPABILITY_H
#define AMP_WORK_AGENT_CAPABILITY_H

#include "work/agent/directory.h"

struct amp_publication {
    json_t *catalog;     /* borrowed; from a checked message */
    const char *skills;  /* the directory of executor skills; NULL: unknown */
    int64_t required_ms; /* time for agents to install the skill */
    const char *routing; /* routingPolicyVersion of the tasks, or NULL */
};

/* NO owner_unavailable: the owner is not registered or unreachable; NO install_failed: the executor
 * skill is missing; NO version_incompatible: the version is lower than the published one, or the
 * same with other contents. *changed is false if the same record was published before. */
int amp_capability_publish(struct amp_directory *d, const struct amp_publication *p, int64_t now_ms,
                           bool *changed, struct amp_error *err);

struct amp_capability {
    json_t *catalog, *index; /* NULL: not published */
};
void amp_capability_release(struct amp_capability *c);
/* fn: 0 continues, 1 stops, -1 fails with err. */
typedef int (*amp_capability_fn)(void *ctx, struct amp_span id, const struct amp_capability *c,
                                 struct amp_error *err);
int amp_capability_each(struct amp_store *s, amp_capability_fn fn, void *ctx,
                        struct amp_error *err);
/* The caller releases *out. */
int amp_capability_find(struct amp_store *s, struct amp_span id, struct amp_capability *out,
                        struct amp_error *err);

/* Compares semantic versions by precedence: < 0, 0, > 0. Build metadata is ignored. */
int amp_semver_compare(struct amp_span a, struct amp_span b);

#endif

/*
 * Distributed skills (Runtime Protocol v1 §7). Key "skill.<capability>/<agent>": the version that
 * an agent was asked to install, and the one that it confirmed. The state is WANTED or CONFIRMED.
 */
#ifndef AMP_WORK_AGENT_SKILL_H
#define AMP_WORK_AGENT_SKILL_H

#include "message/record/subject.h"

#define AMP_SKILL_KIND "skill"

struct amp_skill {
    struct amp_span capability, agent; /* filled by the list */
    uint8_t state;                     /* CONFIRMED: the installed version is the wanted one */
    const char *wanted, *installed;    /* versions; "": none */
    const char *task;                  /* the event of the open distribution; "": none */
    int64_t asked_ms, due_ms, confirmed_ms;
};
enum { AMP_SKILL_WANTED, AMP_SKILL_CONFIRMED };
struct amp_skill_change {
    struct amp_span capability, agent;
    const char *version; /* wanted, or installed */
    const char *task;    /* wanted: its event */
    int64_t due_ms;      /* wanted: until when */
    const char *actor;
    int64_t now_ms;
};
/* Both commit; the caller syncs. */
int amp_skill_want(struct amp_store *s, const struct amp_skill_change *c, struct amp_error *err);
/* NO version_incompatible: another version is wanted; nothing is changed. */
int amp_skill_confirm(struct amp_store *s, const struct amp_skill_change *c, struct amp_error *err);
/* fn: 0 continues, 1 stops, -1 fails with err. capability empty: all. */
int amp_skills_each(struct amp_store *s, struct amp_span capability, amp_subject_each_fn fn,
                    void *ctx, struct amp_error *err);

#endif

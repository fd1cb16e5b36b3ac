/* Overrides in the verbs of the queue: decisions of a person against its rules, with a reason. */
#ifndef CLI_WORK_OVERRIDE_H
#define CLI_WORK_OVERRIDE_H

#include "shared/work/person.h"
#include "work/item/permit/permit.h"

extern const char *amp_tool_why, *amp_tool_until;
#define AMP_TOOL_OPTS_PERMIT                                                                       \
    {0,                                                                                            \
     "why",                                                                                        \
     AMP_OPT_STRING,                                                                               \
     &amp_tool_why,                                                                                \
     "TEXT",                                                                                       \
     "the reason of an override, which is recorded"},                                              \
        {0,                                                                                        \
         "until",                                                                                  \
         AMP_OPT_STRING,                                                                           \
         &amp_tool_until,                                                                          \
         "TIME",                                                                                   \
         "the end of an override: a time, or a duration (default: the end of the jobs)"},          \
        AMP_TOOL_OPT_KEY

/* USAGE why_required: there is no reason. */
int amp_tool_why_check(const char *act, const char *why, struct amp_error *err);

struct amp_tool_permit {
    enum amp_permit_of of;
    struct amp_span job, other;
    const char *changed; /* for the record and people */
    const char *why;     /* NULL: --why */
};
/* Signs and records it (work/item/judge/permit.h), with the failures of amp_permit_give; USAGE
 * bad_time. id gets its id. */
int amp_tool_permit_give(struct amp_store *s, const struct amp_tool_person *p,
                         const struct amp_tool_permit *q, char id[AMP_UUID_MAX],
                         struct amp_error *err);
/* Before a step of a job: if hitl.operators is set and another login submitted the job, the person
 * must give a reason (why; NULL: --why), and the override is recorded. USAGE why_required. */
int amp_tool_permit_others(struct amp_store *s, const struct amp_tool_person *p,
                           enum amp_permit_of of, const char *id, const char *why,
                           struct amp_error *err);

#endif

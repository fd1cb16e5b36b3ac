/* The parts of hitl-prompt audit. */
#ifndef HITL_PROMPT_AUDIT_H
#define HITL_PROMPT_AUDIT_H

#include "people/question/audit.h"
#include "work/task/record.h"
#include "work/task/task.h"

#define AUDIT_LINE_MAX (1 << 20)

/* X(NAME, member, head): the texts of an entry; heads are those of the table, NULL: none. */
#define AUDIT_MEMBERS(X)                                                                           \
    X(AT, "at", "TIME")                                                                            \
    X(WHAT, "what", "WHAT")                                                                        \
    X(PERSON, "operator", "WHO")                                                                   \
    X(BY, "by", "KNOWN BY")                                                                        \
    X(CHANNEL, "channel", "THROUGH")                                                               \
    X(TASK, "task", "TASK")                                                                        \
    X(DECISION, "decision", "DECISION")                                                            \
    X(WHY, "why", "WHY")                                                                           \
    X(CHANGED, "changed", NULL)                                                                    \
    X(QUESTION, "question", NULL)                                                                  \
    X(PROTOCOL, "protocol", NULL)                                                                  \
    X(TYPE, "type", NULL)                                                                          \
    X(REASON, "reason", NULL)                                                                      \
    X(RISK, "risk", NULL)                                                                          \
    X(KEY, "key", NULL)                                                                            \
    X(SHOWN, "shown", NULL)                                                                        \
    X(CODE, "code", NULL)                                                                          \
    X(SIGNATURE, "signature", NULL)
enum {
#define X(name, member, head) AUDIT_##name,
    AUDIT_MEMBERS(X) AUDIT_COUNT
#undef X
};

/* Entries in the order of time; the texts of an entry are one after another in `text`. */
struct audit_entry {
    size_t off;
    uint32_t n[AUDIT_COUNT];
    uint64_t frame, number;
};
struct audit_list {
    struct amp_buf text;
    struct audit_entry *v;
    size_t n, cap;
};

/* Landings and cancelled tasks, as people/question/audit.h reads questions and suspensions: the
 * texts of an entry are valid until the next call. */
struct audit_tasks {
    struct amp_buf mem, text, signed_;
    struct amp_task task;
    struct amp_reader *reader; /* opened when first needed */
    char id[AMP_TASK_ID_MAX];
};
void audit_tasks_init(struct audit_tasks *r);
void audit_tasks_release(struct audit_tasks *r);
int audit_task_commit(struct audit_tasks *r, const struct amp_store_commit *c,
                      struct amp_audit_entry *out, struct amp_error *err);

/* The result of --verify. */
struct audit_verdict {
    bool intact;
    char log[512]; /* a sentence about the chain of the log */
    uint64_t valid, invalid, unsigned_;
};

#endif

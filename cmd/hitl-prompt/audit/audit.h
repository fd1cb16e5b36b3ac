/* The parts of hitl-prompt audit: collecting entries, verifying them, the report. */
#ifndef HITL_PROMPT_AUDIT_H
#define HITL_PROMPT_AUDIT_H

#include "flow/identity.h"
#include "hitl/audit.h"

/* X(NAME, member): the texts of an entry, in the order of its JSON object. */
#define AUDIT_MEMBERS(X)                                                                           \
    X(AT, "at")                                                                                    \
    X(WHAT, "what")                                                                                \
    X(QUESTION, "question")                                                                        \
    X(PROTOCOL, "protocol")                                                                        \
    X(TASK, "task")                                                                                \
    X(TYPE, "type")                                                                                \
    X(REASON, "reason")                                                                            \
    X(RISK, "risk")                                                                                \
    X(PERSON, "operator")                                                                          \
    X(BY, "by")                                                                                    \
    X(KEY, "key")                                                                                  \
    X(CHANNEL, "channel")                                                                          \
    X(SHOWN, "shown")                                                                              \
    X(DECISION, "decision")                                                                        \
    X(WHY, "why")                                                                                  \
    X(CHANGED, "changed")                                                                          \
    X(CODE, "code")                                                                                \
    X(SIGNATURE, "signature")
enum {
#define X(name, member) AUDIT_##name,
    AUDIT_MEMBERS(X) AUDIT_COUNT
#undef X
};
extern const char *const audit_members[AUDIT_COUNT];

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
struct amp_span audit_member(const struct audit_list *l, const struct audit_entry *e, int member);

/* What --verify found. */
struct audit_verdict {
    bool ran, intact;
    char log[512]; /* a sentence about the chain of the log */
    uint64_t valid, invalid, unsigned_;
};

/* Whether the signature of a decision was valid at its time, and its key an operator's: "valid",
 * "unsigned", or a code. */
int audit_signature(struct amp_identities *ids, struct amp_reader *reader,
                    const struct amp_audit_entry *e, char out[64], struct amp_error *err);
/* The chain of the log (amp-ack audit --verify). 0 also if it was changed: then intact is false. */
int audit_chain(struct amp_store *s, struct audit_verdict *v, struct amp_error *err);

/* Appends a report as one HTML file without scripts and external resources; every value is escaped.
 */
int audit_html(const struct audit_list *l, const struct audit_verdict *v, const char *state,
               struct amp_buf *out, struct amp_error *err);

#endif

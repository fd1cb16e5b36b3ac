/* Runtime Protocol v1: kinds, rules, failure classes and answers. */
#ifndef AMP_MESSAGE_PROTOCOL_RTP_RTP_H
#define AMP_MESSAGE_PROTOCOL_RTP_RTP_H

#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "message/protocol/check/check.h"
#include "message/protocol/spec.h"

/* The kinds of events and records, finer than amp_kind. */
enum amp_rtp_kind {
    AMP_RTP_MESSAGE,
    AMP_RTP_REPLY,
    AMP_RTP_ACK,
    AMP_RTP_ACK_ACCEPT, /* an ack with a task's payload, the acceptance in the minimal profile */
    AMP_RTP_CREATE,
    AMP_RTP_SKILL, /* a task_create that distributes a skill */
    AMP_RTP_ACCEPT,
    AMP_RTP_UPDATE,
    AMP_RTP_COMPLETE,
    AMP_RTP_FAILED,
    AMP_RTP_SIGNAL,
    AMP_RTP_DEAD_LETTER,
    AMP_RTP_CATALOG,
    AMP_RTP_INDEX,
    AMP_RTP_CURSOR,
    AMP_RTP_REVIEW,
    AMP_RTP_SKILL_ALONE,
    AMP_RTP_UNKNOWN,
};
enum amp_rtp_kind amp_rtp_kind_of(const struct amp_view *v);
/* The kind of a record of the control plane, by its members. */
enum amp_rtp_kind amp_rtp_record(const struct amp_tape *t);
/* The rows of all kinds, the row of a message (NULL: unknown), and the kind of a row. */
extern const struct amp_kind_row amp_rtp_rows[];
const struct amp_kind_row *amp_rtp_kind_row(const struct amp_view *v);
enum amp_rtp_kind amp_rtp_row_kind(const struct amp_kind_row *row);

/* Fills the versions of a skill in an event, as raw JSON texts: of a distribution its own, of a
 * completion those that it confirms. Returns their number. */
#define AMP_RTP_VERSIONS_MAX 3
uint32_t amp_rtp_versions(const struct amp_tape *t, struct amp_span out[AMP_RTP_VERSIONS_MAX]);

/* The versions of the policies by which an event was routed (§1): the members of its trace, and
 * their texts, raw JSON; empty: it has none. */
#define AMP_RTP_POLICIES 2
extern const char *const amp_rtp_policy_keys[AMP_RTP_POLICIES];
void amp_rtp_policies(const struct amp_view *of, struct amp_span out[AMP_RTP_POLICIES]);

/* An event that this toolkit sends, the first attempt. Empty texts are left out. */
struct amp_rtp_event {
    const char *kind, *by;
    const char *node; /* the owner of the sequence; NULL: `by` */
    const char *id;   /* NULL: a new one */
    struct amp_span to, correlation;
    struct amp_span policies[AMP_RTP_POLICIES];
    int64_t sequence; /* 0: from the clock */
    int64_t now_ms;
};
#define AMP_RTP_ID_MAX (AMP_UUID_MAX + 4)
void amp_rtp_id(char out[AMP_RTP_ID_MAX]);
/* Begins the event, up to the value of its payload; ends it, one line with LF. */
void amp_rtp_open(struct amp_jw *w, const struct amp_rtp_event *e, struct amp_buf *out);
int amp_rtp_close(struct amp_jw *w, const struct amp_rtp_event *e, struct amp_error *err);

void amp_rtp_rules(struct amp_check *c);

/* The values of failureClass: X(word). */
#define AMP_RTP_FAILURE_LIST(X)                                                                    \
    X("failed_terminal")                                                                           \
    X("dependency_missing")                                                                        \
    X("dependency_unavailable")                                                                    \
    X("capability_unavailable")                                                                    \
    X("version_incompatible")                                                                      \
    X("approval_required")                                                                         \
    X("timeout")                                                                                   \
    X("authz_denied")                                                                              \
    X("invalid_target")                                                                            \
    X("overloaded") X("execution_error") X("policy_blocked") X("transport_error") X("unknown")

/* The class of a failureClass: the one that it names or hints at, else the one that the summary of
 * the error names or hints at, else execution_error. */
const char *amp_rtp_failure(struct amp_span word, struct amp_span summary);
/* Warns if an object's failureClass is neither a value of the protocol nor `also`. */
void amp_rtp_failure_class(struct amp_check *c, uint32_t object, const char *pointer,
                           const char *also);

/* Appends the answer about an event, one line with LF: an ack (RECEIVED: accepted, FULFILLED:
 * processed, REJECTED and FAILED: failed_terminal), or a dead_letter. It repeats the correlation id
 * and is addressed to the event's source. NO unsupported_stage for any other stage. */
struct amp_answer; /* protocol/answers.h */
int amp_rtp_answer(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                   struct amp_error *err);

/* The refusal, an ack "failed_terminal"; NONE for an ack and for an event without an id. See
 * spec.h. */
enum amp_refuse_result amp_rtp_refuse(const struct amp_view *v, const struct amp_finding *first,
                                      int64_t now_ms, struct amp_buf *out, struct amp_error *err);

#endif

/*
 * Handoffs (SW4RM §17.6) between messages, the registry and the records of lib/work/handoff. Each
 * step is one commit with the lines that it emits, in the outbox `box`; the caller has the lock of
 * that outbox, syncs and emits it (message/delivery/outbox.h).
 *
 * A protocol's messages are those of its row in protocol/handoff.h. One without a message to offer
 * the work to another agent has one candidate, the named one.
 */
#ifndef AMP_WORK_HANDOFF_OFFER_HANDOFF_H
#define AMP_WORK_HANDOFF_OFFER_HANDOFF_H

#include "message/protocol/handoff.h"
#include "message/protocol/reply.h"
#include "work/handoff/handoff.h"

struct amp_deadline_ctx;
struct amp_identities;
struct amp_said;

struct amp_handoffs {
    struct amp_store *store;
    const char *box;     /* the outbox, and the actor in the log */
    const char *service; /* the sender of offers to further candidates and of reports */
    int64_t now_ms;
    /* These tell who said the message (message/delivery/sender/identity.h). An agent requests,
     * answers and completes for itself; the coordinator passes on what others said. said NULL: a
     * verb, which speaks for its agent. refusal: it does not count as said by its sender, for this
     * reason. */
    const struct amp_identities *ids;
    const struct amp_said *said;
    const struct amp_error *refusal;
};

enum {
    AMP_HANDOFF_CONTEXT_MAX = 8 << 20, /* bytes of a snapshot */
    AMP_HANDOFF_LINE_MAX = 32 << 20,
    AMP_HANDOFF_KEPT_MAX = 1 << 20, /* of a request without its snapshot */
    AMP_HANDOFF_WANTED_MAX = 64,    /* capabilities */
};

/* ---- messages ---- */

enum amp_handoff_got {
    AMP_HANDOFF_FAILED = -1,
    AMP_HANDOFF_PASSES,  /* the message is about something else */
    AMP_HANDOFF_TAKEN,   /* the step was made before, or is committed with its lines */
    AMP_HANDOFF_REFUSED, /* *why has the code; nothing changed */
};
/*
 * Takes a checked message. An offer gets its candidate: the named agent, or one with the
 * capabilities. Codes, beside those of amp_handoff_step:
 *   unknown_ref             an answer: the state has no such handoff
 *   capability_unavailable  no agent has the capabilities, or the named one lacks one
 *   nested_delegation       the work was handed over too often: amp_handoff_terms.depth
 *   handed_over             the origin itself handed the work over before
 *   bad_sender              the message is about a handoff, and its sender may not say it; also a
 *                           request for a task that another agent has by a handoff
 *   context_changed         the snapshot does not have its digest
 *   payload_too_large       the request or its snapshot
 */
enum amp_handoff_got amp_handoffs_take(struct amp_handoffs *h, const struct amp_view *v,
                                       struct amp_error *why, struct amp_error *err);

/* ---- verbs ---- */

struct amp_handoff_request {
    const char *from, *to; /* to: NULL or "": by capability */
    const char *reason, *task;
    const char *const *wanted;
    uint32_t n_wanted;
    struct amp_span context; /* the snapshot's bytes */
    const char *content_type;
    int64_t priority, timeout_ms; /* timeout 0: the default */
    const char *id;               /* NULL: a new one */
};
/* Composes a request and takes it. NO: the codes above. */
int amp_handoffs_request(struct amp_handoffs *h, const struct amp_handoff_request *r,
                         char id[AMP_HANDOFF_ID_MAX + 1], struct amp_error *err);

/* ACCEPT, FAIL (rejects) or COMPLETE: composes the answer in the request's protocol and takes it.
 * NO: the codes above and those of work/attempt/reply. */
int amp_handoffs_answer(struct amp_handoffs *h, struct amp_span id,
                        const struct amp_reply_said *said, struct amp_error *err);

/* The complete id of a handoff, from itself or an unambiguous prefix. NO unknown_ref, ambiguous. */
int amp_handoffs_find(struct amp_store *s, const char *prefix, char id[AMP_HANDOFF_ID_MAX + 1],
                      struct amp_error *err);

/* ---- the context snapshot ---- */

/* Reads it and checks its size and digest; appends the bytes to out. NO context_changed: it is
 * missing or has changed. */
int amp_handoff_context_read(struct amp_store *s, const struct amp_handoff *r, struct amp_buf *out,
                             struct amp_error *err);

/* ---- the deadline row: candidates that did not answer, records to remove ---- */

int amp_handoffs_due_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                         uint32_t *done, struct amp_error *err);

/* ---- for the files of this folder ---- */

/* Stores a snapshot, a JSON value (empty: none), as the file of the handoff r->id, and sets
 * content_type, digest and bytes of r; mem has their texts. */
int amp_handoff_context_keep(struct amp_handoffs *h, struct amp_span value, struct amp_handoff *r,
                             struct amp_buf *mem, struct amp_error *err);
/* Appends the snapshot as the value of a message; short: without its contents. */
int amp_handoff_context_value(struct amp_span bytes, struct amp_span content_type, bool brief,
                              struct amp_buf *out, struct amp_error *err);
/* Whether a snapshot without a content type is application/json: a JSON object or array. */
bool amp_handoff_context_is_json(struct amp_span bytes);
void amp_handoff_context_drop(struct amp_store *s, const struct amp_handoff *r);

/* Selects an agent with the capabilities that is active, is not the origin and was not asked.
 * 1: found, 0: none. */
int amp_handoff_candidate(struct amp_handoffs *h, const struct amp_handoff *r, bool again,
                          char out[256], struct amp_error *err);
/* NO capability_unavailable: the named candidate is registered and lacks one. */
int amp_handoff_candidate_check(struct amp_handoffs *h, const struct amp_handoff *r,
                                struct amp_error *err);

/* Composes the offer to a candidate; the report of a state to `to`. 1: the protocol has none.
 * message gets the id of the offer, if answers may name it, else "". */
#define AMP_HANDOFF_MESSAGE_MAX 48
int amp_handoff_offer_line(struct amp_handoffs *h, const struct amp_handoff *r, struct amp_span to,
                           struct amp_buf *out, char message[AMP_HANDOFF_MESSAGE_MAX],
                           struct amp_error *err);
int amp_handoff_report_line(struct amp_handoffs *h, const struct amp_handoff *r, const char *status,
                            struct amp_span reason, struct amp_span to, struct amp_buf *out,
                            struct amp_error *err);

#endif

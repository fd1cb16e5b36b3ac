/*
 * Security events, from the records of the error log and from the frames of the log: refused
 * senders, signatures, keys, access decisions, tokens, confinement, overrides, repairs of the log.
 */
#ifndef AMP_MESSAGE_DELIVERY_HISTORY_SECURITY_H
#define AMP_MESSAGE_DELIVERY_HISTORY_SECURITY_H

#include <amp/json/tape.h>

/* The groups of events, for the option --kind of amp-ack audit. */
#define AMP_SECURITY_KINDS(X)                                                                      \
    X(sender)                                                                                      \
    X(signature) X(key) X(access) X(token) X(network) X(confinement) X(person) X(override) X(log)
enum amp_security_kind {
#define X(name) AMP_SECURITY_##name,
    AMP_SECURITY_KINDS(X)
#undef X
        AMP_SECURITY_COUNT
};
extern const char *const amp_security_kinds[]; /* NULL-terminated */

/* Spans point into the record and the reader's buffer; empty if unknown. */
struct amp_security_event {
    enum amp_security_kind kind;
    struct amp_span at, code, tool, from, key, protocol, type, id, what;
};
/* Memory for reading events, reused. */
struct amp_security_reader {
    struct amp_tape tape;
    struct amp_buf mem;
};
void amp_security_init(struct amp_security_reader *r);
void amp_security_release(struct amp_security_reader *r);
/* Reads a record of the error log, or a frame without its LF. Returns 1 and the event, or 0: it is
 * none, or it is not JSON. */
int amp_security_record(struct amp_security_reader *r, struct amp_span line,
                        struct amp_security_event *out, struct amp_error *err);
int amp_security_frame(struct amp_security_reader *r, struct amp_span frame,
                       struct amp_security_event *out, struct amp_error *err);

#endif

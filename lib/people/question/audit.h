/*
 * The audit trail of people's decisions, read from the log: who decided what and when, known by
 * what, with which key, through which channel, what was shown, why, and what changed.
 *
 * An entry is one commit of a question's record, of the suspensions (message/pause/pause.h) or of
 * an override (work/item/permit/permit.h), or one refused answer of the error log.
 */
#ifndef AMP_PEOPLE_QUESTION_AUDIT_H
#define AMP_PEOPLE_QUESTION_AUDIT_H

#include "message/store/history/history.h"
#include "people/question/record.h"

/* Texts are empty where they are unknown. */
struct amp_audit_entry {
    int64_t at_ms;
    uint64_t frame;       /* of the log; 0: from the error log */
    struct amp_span what; /* asked, shown, vote, decided, fallback, withdrawn, …, suspended,
                             resumed, overridden */
    struct amp_span question, protocol, task, type, reason, risk;
    struct amp_span person, by, key, channel, shown; /* by: login, key, token, policy */
    struct amp_span decision, why, changed;
    struct amp_span code; /* of a refused answer */
    struct amp_span line; /* the decision, as it was signed */
    /* A suspension has the text that was signed, its namespace, and the signature with `key`, or
     * empty. */
    struct amp_span text, alg, signature;
    const char *space;
    int64_t signed_ms;
};

/* An entry is made from these; the texts are in mem. */
struct amp_audit_reader {
    struct amp_buf mem, text, signed_;
};
void amp_audit_reader_init(struct amp_audit_reader *r);
void amp_audit_reader_release(struct amp_audit_reader *r);

/* Reads one line of a commit. 1: *out is an entry, valid until the next call; 0: it is not. */
int amp_audit_commit(struct amp_audit_reader *r, const struct amp_store_commit *c,
                     struct amp_audit_entry *out, struct amp_error *err);
/* Reads a line of the error log in the same way. */
int amp_audit_error(struct amp_audit_reader *r, struct amp_span line, struct amp_audit_entry *out,
                    struct amp_error *err);

#endif

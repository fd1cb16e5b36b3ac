/* The ledger's record of one message as JSON: written and read here only. */
#ifndef AMP_MESSAGE_RECORD_RECORD_H
#define AMP_MESSAGE_RECORD_RECORD_H

#include <amp/json/writer.h>

#include "message/ledger/ledger.h"

/* One acknowledgement that is added to a record. */
struct amp_ack_note {
    const char *stage;
    const char *by;
    struct amp_span id, code; /* empty: none */
    int64_t at_ms;
    bool late;
};

/* Appends the record as one JSON object, with `note` behind its acks when that is not NULL. */
int amp_record_write(const struct amp_message_rec *r, const struct amp_ack_note *note,
                     struct amp_buf *out, struct amp_error *err);
/* Reads one; everything is copied into mem. state and found are left alone. */
int amp_record_read(struct amp_span json, struct amp_buf *mem, struct amp_message_rec *out,
                    struct amp_error *err);
/* Whether (stage, by) is among the acks; *late tells how the last of them was recorded. */
bool amp_record_has_ack(const struct amp_message_rec *r, const char *stage, const char *by,
                        bool *late);
/* Whether the note is: one of another id is news once an acknowledgement comes late. note->late is
 * set then. */
bool amp_record_knows_ack(const struct amp_message_rec *r, struct amp_ack_note *note);

/* Whether anybody said, in time or late, that the message came to that stage; that it arrived. */
bool amp_record_has_stage(const struct amp_message_rec *r, const char *stage);
bool amp_record_arrived(const struct amp_message_rec *r);

/* Appends "msg":{…} with the line as it stands, or "text":"…" where that would not give the same
 * bytes back. The counterpart reads either from an object of a tape. */
void amp_record_line(struct amp_jw *w, struct amp_span line);
int amp_record_line_read(const struct amp_tape *t, struct amp_buf *mem, struct amp_span *out,
                         struct amp_error *err);
/* The text of a member, decoded into mem; empty when absent. Integers: 0 when absent. */
int amp_record_text(const struct amp_tape *t, const char *key, struct amp_buf *mem,
                    struct amp_span *out, struct amp_error *err);
int64_t amp_record_int(const struct amp_tape *t, const char *key);
/* A tape for records: they hold a whole line and what we say about it. */
void amp_record_tape(struct amp_tape *t);
int amp_record_scan(struct amp_tape *t, struct amp_span json, struct amp_error *err);

/* Records an attempt that follows another: SENT, where it is not recorded yet. */
struct amp_message_former {
    int64_t attempt, ack_timeout_ms, sla_ms; /* of the one before it */
    struct amp_span first, tries;            /* the first one's id; all so far, as in the record */
};
int amp_message_record_next(struct amp_store *s, const struct amp_view *v,
                            const struct amp_message_former *former, int64_t now_ms,
                            struct amp_error *err);

#define AMP_RECORD_MAX ((size_t)256 << 20) /* a 32 MiB line, escaped six-fold at worst */

#endif

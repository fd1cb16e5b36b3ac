/* Shared by the files of the inbox: the two records and the steps of a delivery. */
#ifndef AMP_MESSAGE_DELIVERY_INBOX_PRIVATE_H
#define AMP_MESSAGE_DELIVERY_INBOX_PRIVATE_H

#include "message/delivery/inbox/inbox.h"
#include "message/delivery/record/record.h"
#include "message/record/subject.h"

/* A place in the buffer. */
struct amp_inbox_place {
    struct amp_span id;
    int64_t at_ms, expires_ms, lane, order, size;
    int64_t by;    /* its sender, with fair shares or a limit for senders; 0: not known */
    int64_t round; /* with fair shares: smaller ones of a lane are first */
    int64_t own;   /* 1: the agent's line differs from the ledger's and is in the delivery */
};

/* The record of kind "inboxes". */
struct amp_inbox_buffer {
    struct amp_span agent;
    int64_t bound, credits, busy_ms, until_ms;
    int64_t round;                   /* of the message that was taken last */
    struct amp_inbox_place *waiting; /* n_waiting, with room for one more */
    struct amp_span *open;           /* n_open ids that were read, room for one more */
    uint32_t n_waiting, n_open;
    uint8_t state;  /* IDLE, BUSY */
    int64_t due_ms; /* when the next message expires; 0: none does */
};
extern const struct amp_subject amp_inbox_buffers;
/* The index among the waiting, or n_waiting. */
uint32_t amp_inbox_buffer_find(const struct amp_inbox_buffer *b, struct amp_span id);

/* The record of kind "inbox". */
struct amp_inbox_delivery {
    uint8_t state;
    struct amp_span msg_id, line; /* line: of a message that the ledger does not have */
    struct amp_span code;
    int64_t at_ms, expires_ms, lane, attempt, offered_ms, read_ms, read_frame, requeue;
    int64_t early; /* 1: it was made from its place; the put, with the answer, is to come */
};
/* ABSENT if there is none. */
int amp_inbox_delivery_get(struct amp_store *s, struct amp_key key, struct amp_buf *mem,
                           struct amp_inbox_delivery *out, struct amp_error *err);
/* Whether the delivery has ended: READ or FAILED. */
bool amp_inbox_has_ended(const struct amp_inbox_delivery *d);

/* The key of a delivery, made of the agent's and the message's name; both must outlive it. Must not
 * be copied. */
struct amp_inbox_key {
    struct amp_key key;
    struct amp_span id; /* the message's name: its id, or a digest of the line */
    char digest[AMP_KEY_NAME_MAX];
};
int amp_inbox_key_of(struct amp_span agent, struct amp_span id, struct amp_inbox_key *out,
                     struct amp_error *err);
/* The key and the delivery. */
int amp_inbox_delivery_find(struct amp_store *s, struct amp_span agent, struct amp_span id,
                            struct amp_inbox_key *k, struct amp_buf *mem,
                            struct amp_inbox_delivery *out, struct amp_error *err);

/* One step of a delivery. effects, from and to are those of the machine. A step to the same state
 * without effects and without an emitted line commits nothing. */
struct amp_inbox_step {
    uint8_t event;
    int64_t now_ms;
    const struct amp_inbox_delivery *fresh; /* the contents of a new record */
    int64_t requeue;
    const char *code;
    const struct amp_store_emit *emit;
    const char *actor;
    uint32_t effects;
    uint8_t from, to;
    int64_t attempt; /* afterwards */
    bool committed;
};
int amp_inbox_step(struct amp_store *s, struct amp_key key, struct amp_inbox_step *step,
                   struct amp_error *err);
/* Carries out the rest of a step's effects after the ledger's commit. The place in the buffer is
 * freed last, because after a crash it leads to the unfinished step. */
int amp_inbox_carry(struct amp_store *s, struct amp_span agent, const struct amp_inbox_key *k,
                    const struct amp_inbox_step *step, struct amp_error *err);

/* One change of the buffer: fn returns 0 to commit, 1 to change nothing, -1 to fail. */
typedef int (*amp_inbox_buffer_fn)(void *ctx, struct amp_inbox_buffer *b, struct amp_error *err);
int amp_inbox_buffer_update(struct amp_store *s, struct amp_span agent, const char *event,
                            amp_inbox_buffer_fn fn, void *ctx, struct amp_error *err);
/* The current buffer; all zero if there is none. */
int amp_inbox_buffer_get(struct amp_store *s, struct amp_span agent, struct amp_buf *mem,
                         struct amp_inbox_buffer *out, bool *found, struct amp_error *err);
/* Frees a place; `open` records the message as READ and unfinished. */
int amp_inbox_buffer_leave(struct amp_store *s, struct amp_span agent, struct amp_span id,
                           bool open, struct amp_error *err);

/* The end of a delivery without the agent, and its reason. */
struct amp_inbox_refusal {
    struct amp_span agent, id, line;
    const char *code, *why, *actor;
    int64_t now_ms;
};
#define AMP_INBOX_EXPIRED_WHY "its time to live passed before the agent took it"
/* Ends a delivery: writes the dead letter, the ledger and the delivery, and frees the place. */
int amp_inbox_end(struct amp_store *s, const struct amp_inbox_key *k,
                  const struct amp_inbox_refusal *r, uint8_t event, struct amp_error *err);
/* 1: another attempt at its operation replaces it in this inbox, or another agent has one. */
int amp_inbox_superseded(struct amp_store *s, struct amp_span agent, const struct amp_inbox_key *k,
                         const struct amp_inbox_delivery *d, struct amp_error *err);
/* Drops the other attempts at the operation of a message that the agent took from other inboxes. */
int amp_inbox_withdraw_others(struct amp_store *s, struct amp_span agent, struct amp_span id,
                              int64_t now_ms, struct amp_error *err);
/* The line of a delivery, its own or the ledger's, in mem; empty: none yet. */
int amp_inbox_line(struct amp_store *s, const struct amp_inbox_key *k,
                   const struct amp_inbox_delivery *d, struct amp_buf *mem, struct amp_span *line,
                   struct amp_error *err);

#endif

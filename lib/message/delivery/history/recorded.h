/*
 * Reading recorded messages again from the log, in the order of its frames: those of the ledger,
 * and those that only a router recorded. Each message is returned once, at its first frame of the
 * range.
 */
#ifndef AMP_MESSAGE_DELIVERY_HISTORY_RECORDED_H
#define AMP_MESSAGE_DELIVERY_HISTORY_RECORDED_H

#include "message/store/store.h"

/* The source name of cursors over the log; positions are frame numbers. */
#define AMP_LOG_SOURCE "@log"

struct amp_recorded;
struct amp_recorded_item {
    uint64_t n;
    int64_t at_ms;
    struct amp_span line; /* valid until the next call */
};

/* Frames from..to, limited to those in the log. */
int amp_recorded_open(struct amp_store *s, uint64_t from, uint64_t to, struct amp_recorded **out,
                      struct amp_error *err);
/* 1: a message; 0: no more. */
int amp_recorded_next(struct amp_recorded *r, struct amp_recorded_item *out, struct amp_error *err);
void amp_recorded_free(struct amp_recorded *r);

/* A position: "start", "end", the number of a frame, or the name of a consumer, for the position of
 * its cursor over the log. *n is the first frame to read. NO cursor_expired: the log does not have
 * the frame any more; NO unknown_ref: there is no such cursor. */
int amp_recorded_position(struct amp_store *s, const char *text, uint64_t *n,
                          struct amp_error *err);

#endif

/* A run's outputs and totals. */
#ifndef AMP_VALIDATE_VALIDATION_H
#define AMP_VALIDATE_VALIDATION_H

#include "order.h"
#include "validate.h"

/* For the main thread only. */
struct validation {
    const struct validate_options *opt;
    struct judge *judge;
    struct history *history;
    struct order order; /* of the lines that were written */
    bool open_end;      /* the last line written had no line end */
    bool shared;        /* other writers share stdout, so a last line is ended */
    uint64_t lines;     /* of all inputs */
    uint64_t found;     /* --extract: number of texts that seem to be messages */
    bool broken;        /* an input begins with a line that has a bracket only */
    bool unread;        /* an input could not be read */
    uint64_t refused, refused_line, refused_offset;
    uint64_t line, offset; /* the end of what is written of the current input */
    struct stats *stats;
    int64_t start_ms, told_ms; /* for the progress line */
    bool progress, shown;
};
enum validation_end {
    VALIDATION_FAILED = -1, /* err is filled */
    VALIDATION_CONTINUES,
    VALIDATION_STOPS, /* --fail-fast */
};

/* Writes a result. */
enum validation_end validation_emit(struct validation *s, const struct chunk *c,
                                    struct chunk_result *r, struct amp_error *err);
/* Writes all pending output, because the input is silent or at its end. */
int validation_settle(struct amp_error *err);
/* Looks, or with `block` waits, for `input` and for `other` unless that is -1. Returns 1 if one is
 * ready, else 0. */
int validation_wait(int input, int other, bool block, struct amp_error *err);

/* Checks an input in several threads; results keep their order. */
enum validation_end parallel_input(struct validation *s, struct input_stream *in,
                                   struct amp_error *err);

#endif

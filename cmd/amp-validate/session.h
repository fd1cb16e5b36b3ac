/* A run's outputs and totals. */
#ifndef AMP_VALIDATE_SESSION_H
#define AMP_VALIDATE_SESSION_H

#include "validate.h"

/* Only the main thread has to do with it. */
struct session {
    const struct validate_options *opt;
    struct judge *judge;
    struct history *history;
    bool open_end;  /* the last line that left had no line end */
    bool shared;    /* others' lines may follow ours on stdout: a last line is ended */
    uint64_t found; /* --extract: the texts that claimed to be messages */
    bool unread;    /* an input could not be read */
    uint64_t refused, refused_line, refused_offset;
    uint64_t line, offset; /* how far the current input has been dealt with */
    struct stats *stats;
    int64_t start_ms, told_ms; /* for the line that shows progress */
    bool progress, shown;
};
/* A result leaves. 0; 1: --fail-fast says stop; -1. */
int session_emit(struct session *s, const struct chunk *c, struct result *r, struct amp_error *err);
/* What has been read is judged and leaves; as session_emit. */
int session_take(struct session *s, const struct chunk *c, struct result *r, struct amp_error *err);
/* Reads more, after everything that was gathered has left. As stream_fill. */
int session_fill(struct session *s, struct stream *in, struct amp_error *err);
/* Everything that was gathered leaves, because the input is silent or at its end. */
int session_settle(struct session *s, struct amp_error *err);
/* Looks, or with `block` waits, for the input and for `other` unless that is -1. 1: one is ready.
 */
int session_wait(struct session *s, int input, int other, bool block, struct amp_error *err);

/* --extract: an input is any text. 0; 1: --fail-fast; -1. */
int extract_input(struct session *s, struct stream *in, struct amp_error *err);
/* An input by several threads, in order. 0; 1: --fail-fast; -1. */
int parallel_input(struct session *s, struct stream *in, struct amp_error *err);

#endif

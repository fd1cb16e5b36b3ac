/*
 * A trace of what a process does, for its developer: AMP_TRACE in the environment lists topics
 * (fsm, store, port, child), and each step of a machine, commit, opening of a port or child writes
 * one line of NDJSON to AMP_TRACE_TO (amp(7)). Without it a place costs one load and one branch.
 *
 * Values are untrusted. Bytes that are not printable ASCII are written as \u00XX. A line is one
 * write. It never waits: a line for which a pipe or terminal has no room is lost, and the next one
 * has their number, because a commit is traced under the store's lock.
 */
#ifndef AMP_BASE_TRACE_H
#define AMP_BASE_TRACE_H

#include <amp/base/buf.h>

enum amp_trace_topic {
    AMP_TRACE_FSM = 1,
    AMP_TRACE_STORE = 2,
    AMP_TRACE_PORT = 4,
    AMP_TRACE_CHILD = 8,
};

/* The topics of AMP_TRACE; all until it was read. */
extern unsigned amp_trace_topics;

/* A member of a line. An empty text is left out. */
struct amp_trace_member {
    const char *key;
    struct amp_span text;
    int64_t number; /* if text.p is NULL */
};

#define AMP_TRACE(topic, ...)                                                                      \
    do {                                                                                           \
        if (__builtin_expect(amp_trace_topics & (topic), 0))                                       \
            amp_trace_line(topic, (const struct amp_trace_member[]){__VA_ARGS__, {.key = NULL}});  \
    } while (0)
#define AMP_TRACE_TEXT(key_, s)                                                                    \
    {                                                                                              \
        .key = (key_), .text = amp_trace_text(s)                                                   \
    }
#define AMP_TRACE_SPAN(key_, s)                                                                    \
    {                                                                                              \
        .key = (key_), .text = (s).p ? (s) : AMP_SPAN("")                                          \
    }
#define AMP_TRACE_NUMBER(key_, n)                                                                  \
    {                                                                                              \
        .key = (key_), .number = (int64_t)(n)                                                      \
    }

struct amp_span amp_trace_text(const char *s); /* NULL: empty */
/* Keeps errno. m ends with a key of NULL. */
void amp_trace_line(enum amp_trace_topic topic, const struct amp_trace_member *m);

#endif

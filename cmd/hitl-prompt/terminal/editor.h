/* A person's editor on a text: a private file in a private directory, removed afterwards. */
#ifndef HITL_EDITOR_H
#define HITL_EDITOR_H

#include <time.h>

#include <amp/base/child.h>

#include "terminal.h"

struct editor {
    char dir[256], path[300]; /* "": there is none */
    struct timespec written;  /* by us */
    struct amp_child child;
    bool runs;
};
/* Makes the file, unless it is there from an earlier try, and starts $VISUAL, $EDITOR or vi in the
 * foreground of the terminal, which is lent. UNAVAILABLE: no such program. */
int editor_start(struct editor *e, struct terminal *t, struct amp_span text, struct amp_error *err);
/* 1: it has ended, and the terminal is ours again; 0: it runs; -1: it failed (its exit status). */
int editor_poll(struct editor *e, struct terminal *t, struct amp_error *err);
/* Reads the file, at most `max` bytes. DATAERR: it is not a regular file, or is too large. */
int editor_read(const struct editor *e, size_t max, struct amp_buf *out, struct amp_error *err);
/* Ends the program, takes the terminal back and removes file and directory. Also of a zeroed
 * struct. */
void editor_end(struct editor *e, struct terminal *t);
/* Like editor_end, but keeps what the person changed: kept gets the path of the file, which stays
 * if it was saved, or if the editor left another file beside it; else "". */
void editor_abandon(struct editor *e, struct terminal *t, char kept[300]);

#endif

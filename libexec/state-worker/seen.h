/* The ids of the messages that passed in this run, with a hash of their bytes. */
#ifndef STATE_WORKER_SEEN_H
#define STATE_WORKER_SEEN_H

#include <amp/base/buf.h>

#include "base/map.h"

struct seen_keys {
    uint64_t key[2];
    struct amp_map recent, older;
};

enum seen_result {
    SEEN_NEW,
    SEEN_SAME,  /* with the same bytes */
    SEEN_OTHER, /* with other bytes */
};

void seen_init(struct seen_keys *s);
void seen_release(struct seen_keys *s);
enum seen_result seen_find(const struct seen_keys *s, struct amp_span id, struct amp_span bytes);
/* Remembers an id, or its new bytes. */
int seen_add(struct seen_keys *s, struct amp_span id, struct amp_span bytes, struct amp_error *err);

#endif

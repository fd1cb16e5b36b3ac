/* The events of one source that wait behind a gap: a copy of the store's outbox of that name. */
#ifndef AMP_MESSAGE_DELIVERY_CURSOR_HELD_H
#define AMP_MESSAGE_DELIVERY_CURSOR_HELD_H

#include "message/store/store.h"

struct amp_held {
    int64_t seq, at_ms;
    char *line, *id; /* the message's */
    size_t n;
    struct amp_store_entry_id entry;
};

struct amp_held_list {
    struct amp_held *v; /* ordered by number */
    uint32_t n;
    size_t cap;
    size_t bytes;
};

void amp_held_release(struct amp_held_list *l);
/* Reads the events that an earlier holder kept. */
int amp_held_load(struct amp_store *s, const char *outbox, struct amp_held_list *l,
                  struct amp_error *err);
const struct amp_held *amp_held_find(const struct amp_held_list *l, int64_t seq);
/* Adds an event with copies of the line and the id. */
int amp_held_add(struct amp_held_list *l, const struct amp_held *h, struct amp_span line,
                 struct amp_span id, struct amp_error *err);
void amp_held_drop_first(struct amp_held_list *l);

/* The id of an event's outbox entry: a key of its number, its time and its id. */
int amp_held_id(int64_t seq, int64_t at_ms, struct amp_span id, char mem[AMP_KEY_MAX],
                struct amp_span *out, struct amp_error *err);

#endif

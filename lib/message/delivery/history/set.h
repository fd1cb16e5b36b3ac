/* Sets of texts, and the places of a conversation's lines in outboxes. */
#ifndef AMP_MESSAGE_DELIVERY_HISTORY_SET_H
#define AMP_MESSAGE_DELIVERY_HISTORY_SET_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

/* Texts, by a 64-bit hash. */
struct amp_history_set {
    uint64_t *v;
    size_t n, cap;
};
bool amp_history_set_has(const struct amp_history_set *s, struct amp_span text);
/* 1: the text is new; 0: the set has it already. */
int amp_history_set_add(struct amp_history_set *s, struct amp_span text, struct amp_error *err);
void amp_history_set_release(struct amp_history_set *s);

/* Entries of outboxes: the frame's number, the place in it, the message's id. Frames come in order.
 */
struct amp_history_place {
    uint64_t n;
    int64_t i;
    char *id;
    size_t id_len;
};
struct amp_history_places {
    struct amp_history_place *v;
    size_t n, cap;
};
int amp_history_places_add(struct amp_history_places *p, uint64_t n, int64_t i, struct amp_span id,
                           struct amp_error *err);
bool amp_history_places_get(const struct amp_history_places *p, uint64_t n, int64_t i,
                            struct amp_span *id);
void amp_history_places_release(struct amp_history_places *p);

#endif

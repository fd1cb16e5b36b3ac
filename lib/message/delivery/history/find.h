/*
 * The rows of a filter, through the index: the rows that amp_history_frame gives for all frames of
 * the log in their order, but only the frames that may matter are read. The store must have been
 * opened with amp_history_names.
 */
#ifndef AMP_MESSAGE_DELIVERY_HISTORY_FIND_H
#define AMP_MESSAGE_DELIVERY_HISTORY_FIND_H

#include "message/delivery/history/history.h"
#include "message/store/history/history.h"

/* For amp_store_options.names. */
extern const char *const amp_history_names[];

/* Each read gives the rows since the previous one, the first the rows up to now. To follow the log,
 * wait in between (message/store/wake.h). f.blob and f.learn are set by this room. *stop: ends a
 * read early; may be NULL. */
struct amp_history_finder;
int amp_history_finder_open(struct amp_store *s, const struct amp_history_filter *f,
                            volatile const int *stop, struct amp_history_finder **out,
                            struct amp_error *err);
/* Without a filter: the first read begins at this place. */
void amp_history_finder_begin(struct amp_history_finder *d, const struct amp_store_place *at);
int amp_history_finder_read(struct amp_history_finder *d, amp_history_fn fn, void *ctx,
                            struct amp_error *err);
void amp_history_finder_free(struct amp_history_finder *d);

#endif

/*
 * Finding frames by the texts in them (store/terms/terms.h), in the order of the log: those on disk
 * when the search began. Frames that have no postings yet are read. A frame that is returned may
 * have the text, the caller looks; no frame that has it is left out. A text is the complete string
 * of a member that amp_store_options.names lists, or a part of a key.
 */
#ifndef AMP_MESSAGE_STORE_HISTORY_SEARCH_H
#define AMP_MESSAGE_STORE_HISTORY_SEARCH_H

#include "message/store/history/history.h"

struct amp_store_search;
/* The store must have been opened with names. newest: NULL, or an RFC 3339 time in UTC (ms): frames
 * with no later time may be left out. */
int amp_store_search_open(struct amp_store *s, const char *newest, struct amp_store_search **out,
                          struct amp_error *err);
void amp_store_search_free(struct amp_store_search *q);
/* From now on also frames after the current one that may have this text, or that close a line of
 * frame n. */
int amp_store_search_text(struct amp_store_search *q, struct amp_span text, struct amp_error *err);
int amp_store_search_closes(struct amp_store_search *q, uint64_t n, struct amp_error *err);
/* The next frame, without its LF; it is valid until the next call. 1, 0: no more, or -1. */
int amp_store_search_next(struct amp_store_search *q, uint64_t *n, struct amp_span *frame,
                          struct amp_error *err);
/* The place after the last frame that the search covers, for amp_store_frames_on. */
struct amp_store_place amp_store_search_end(const struct amp_store_search *q);
/* Whether a later frame may have one of the texts. */
int amp_store_search_wants(struct amp_store_search *q, struct amp_span frame,
                           struct amp_error *err);

/* A place before all frames that are as late as this time (RFC 3339 in UTC, ms). */
int amp_store_place_since(struct amp_store *s, const char *time, struct amp_store_place *at,
                          struct amp_error *err);

#endif

/*
 * Archives: the ended segments of a log, copied byte for byte before retention removes them, with
 * their blobs, the key of the chain and the public keys. An archive is a state directory that is
 * only read: every verb that looks, and `amp-ack audit --verify`, works on it.
 */
#ifndef AMP_MESSAGE_STORE_ARCHIVE_ARCHIVE_H
#define AMP_MESSAGE_STORE_ARCHIVE_ARCHIVE_H

#include "message/store/store.h"

/* A file in an archive: no tool writes to that directory. */
#define AMP_ARCHIVE_MARK "log/ARCHIVE"

struct amp_store_archived {
    uint64_t first, last;     /* frames of the archive; 0, 0: none */
    uint32_t segments, added; /* its segments, and those that this call copied */
};

/* Copies the ended segments whose frames are all from before until_ms into the directory `to`,
 * which is made, or is an earlier archive of this log, which then goes on. Takes no lock. NO
 * folder_differs: it is another log's, is not an archive, or frames after its last one were removed
 * from the log. */
int amp_store_archive(struct amp_store *s, const char *to, int64_t until_ms,
                      struct amp_store_archived *out, struct amp_error *err);

#endif

/* A spool directory: new, cur, done. See spool.c for what keeps a message from appearing twice. */
#ifndef AMP_PORT_SPOOL_H
#define AMP_PORT_SPOOL_H

#include <stdbool.h>

#include <amp/base/buf.h>

struct amp_spool {
    int dir, lock;    /* descriptors, -1 none */
    bool unsynced[3]; /* rooms with names that were found and may not be on disk */
};

/* Makes what is missing, and removes what killed routers left half written. new, cur and done must
 * be directories, not links. */
int amp_spool_open(struct amp_spool *s, const char *path, struct amp_error *err);
void amp_spool_close(struct amp_spool *s);
/* 0 published and synced; 1 it was there already, in new, cur or done (there made empty counts
 * too), and is on disk when the port reports it as delivered. An empty file in new is replaced. NO
 * duplicate_msg_id: what is there is another message; IOERR not_a_file: it is no regular file. line
 * has no LF. */
int amp_spool_put(struct amp_spool *s, const char *name, struct amp_span line,
                  struct amp_error *err);

#endif

/* A spool directory: new, cur, done. See spool.c for what keeps a message from appearing twice. */
#ifndef AMP_PORT_SPOOL_H
#define AMP_PORT_SPOOL_H

#include <amp/base/buf.h>

struct amp_spool {
    int dir, lock; /* descriptors, -1 none */
};

int amp_spool_open(struct amp_spool *s, const char *path, struct amp_error *err);
void amp_spool_close(struct amp_spool *s);
/* 0 published and synced, 1 it was there already (in new, cur or done; made empty counts too). NO
 * duplicate_msg_id: what is there is another message. line has no LF. */
int amp_spool_put(struct amp_spool *s, const char *name, struct amp_span line,
                  struct amp_error *err);

#endif

/*
 * Keeps what was read from a file of each task of a folder: a look reads only the files that have
 * changed since the last one. The files stay the truth: each look asks for the inode, the size and
 * the times of every file, and a file that was younger than a second when it was read is read
 * again, because another text may have the same times.
 */
#ifndef AMP_WORK_AOF_SEEN_H
#define AMP_WORK_AOF_SEEN_H

#include "work/aof/data.h"

/* Zero is empty. One struct belongs to one folder and one file. */
struct amp_aof_seen {
    struct amp_aof_mark *v; /* in the order of their ids */
    uint32_t n;
};
void amp_aof_seen_release(struct amp_aof_seen *s);

struct amp_aof_look {
    uint8_t status;   /* the folder */
    const char *file; /* of runs/ID; NULL: the task file itself */
    size_t max;       /* bytes; a larger file is unusable */
    /* The value of a text. An error other than DATAERR ends the look; after DATAERR the file is
     * unusable. */
    int (*read)(void *ctx, const char *id, struct amp_span text, int64_t *value,
                struct amp_error *err);
    /* For each task, in the order of their ids. value: NULL if its file is absent or unusable. A
     * result other than 0 ends the look and is returned. */
    int (*each)(void *ctx, const char *id, const int64_t *value, struct amp_error *err);
    void *ctx;
};
int amp_aof_look(const struct amp_aof_data *a, const struct amp_aof_look *how,
                 struct amp_aof_seen *seen, struct amp_error *err);

#endif

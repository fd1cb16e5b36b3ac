/*
 * The state of files below a directory: a list of entries, its digest, and its text. No link is
 * followed and nothing above the directory is reached (openat2 with RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS), whatever another process does to the files meanwhile.
 *
 * The digest is the SHA-256, in hex, of one record per entry, in the order of the bytes of the
 * paths, '/' before all others. A record ends with a NUL and is
 *
 *     f MODE SUM PATH     a regular file: the permissions in octal (07777), the SHA-256 of its
 *                         contents in hex
 *     l SUM PATH          a symbolic link: the SHA-256 of its target
 *     d MODE PATH         a directory, all of whose entries belong to the tree
 *     p MODE PATH         a directory of which only the entries listed belong to the tree
 *     - PATH              does not exist
 *     s PATH              a special file
 *
 * Times, owners, attributes and which names are hard links of one file are not in it.
 */
#ifndef AMP_WORK_GIT_SNAPSHOT_TREE_H
#define AMP_WORK_GIT_SNAPSHOT_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include <amp/base/buf.h>

#define AMP_TREE_DIGEST_MAX 65 /* 64 hex digits, NUL */
#define AMP_TREE_SUM_MAX    65

enum amp_tree_type {
    AMP_TREE_FILE = 'f',
    AMP_TREE_LINK = 'l',
    AMP_TREE_DIR = 'd',
    AMP_TREE_WAY = 'p', /* a directory on the way to an entry: of it only type and mode count */
    AMP_TREE_ABSENT = '-',
    AMP_TREE_NO_WAY = 'q', /* a missing directory above an ABSENT path; not in the digest */
    AMP_TREE_SPECIAL = 's',
    AMP_TREE_UNREADABLE = 'u', /* a file or directory; only with `lenient` */
    AMP_TREE_UNHASHED = 'g',   /* a file without a sum; only with hash_bytes */
};

struct amp_tree_entry {
    char *path; /* below the root; "." is the root itself */
    char type;
    unsigned mode;
    struct timespec mtime, ctime;
    int64_t size;               /* of a file's contents or a link's target */
    char sum[AMP_TREE_SUM_MAX]; /* of a file's contents or a link's target, else "" */
    char *target;               /* of a link, else NULL */
    uint64_t ino;
};

struct amp_tree {
    struct amp_tree_entry *v; /* by path, after amp_tree_sort */
    size_t n, cap;
    int64_t bytes; /* of all files */
};
void amp_tree_release(struct amp_tree *t);

enum amp_tree_skip {
    AMP_TREE_TAKE,
    AMP_TREE_LEAVE, /* the path does not belong to the tree */
    AMP_TREE_ABOVE, /* it does, but a path below this directory does not */
};

struct amp_tree_scan {
    int root; /* a directory */
    /* Decides whether a path, with its stat, belongs to the tree. NULL: everything. */
    enum amp_tree_skip (*skip)(void *ctx, const char *path, const struct stat *st);
    void *ctx;
    int contents;         /* a directory where the contents are saved as files named by their sum;
                             -1: they are only hashed */
    int64_t files, bytes; /* limits: NO tree_limit */
    /* Not 0: after that many bytes, files are UNHASHED; so is a file that changes while it is read,
     * and one that vanishes is left out. */
    int64_t hash_bytes;
    bool specials; /* accepts special files; otherwise NOPERM special_file */
    bool lenient;  /* lists what cannot be read as UNREADABLE; otherwise NOPERM unreadable */
    volatile const int *stop; /* INTERRUPTED; or NULL */
};
/* Adds what is at the path, and all below it, with a WAY (or NO_WAY) for each directory above it.
 * NOPERM not_beneath: the path is absolute, has "..", or leads through a link or through something
 * that is not a directory; with `lenient`, the last two add an entry for that instead. TEMPFAIL
 * file_changing: a file changes while it is read, three times in a row. NO tree_limit: also more
 * than 512 directories in each other. */
int amp_tree_add(const struct amp_tree_scan *s, const char *path, struct amp_tree *t,
                 struct amp_error *err);
/* After the last addition: makes the saved contents durable. -1 with errno. The first
 * AMP_TREE_SYNCS files are synced one by one; with more, the file system is. */
#define AMP_TREE_SYNCS 64
int amp_tree_sync(const struct amp_tree *t, int contents);
/* Sorts the entries and merges those of one path; a DIR counts before a WAY, a FILE
 * before an UNHASHED one. */
void amp_tree_sort(struct amp_tree *t);
/* NULL: none. The tree is sorted. */
const struct amp_tree_entry *amp_tree_find(const struct amp_tree *t, const char *path);
/* Whether both are the same for the digest. */
bool amp_tree_same(const struct amp_tree_entry *a, const struct amp_tree_entry *b);

void amp_tree_digest(const struct amp_tree *t, char out[AMP_TREE_DIGEST_MAX]);

/* The text of a sorted tree. An entry is TYPE MODE MTIME CTIME INODE SIZE SUM PATH, separated by
 * single spaces, a NUL, the target of a link, and a NUL. Times are SECONDS.NANOSECONDS; SUM is "-"
 * if there is none. */
int amp_tree_write(const struct amp_tree *t, struct amp_buf *out, struct amp_error *err);
/* DATAERR bad_tree: the text is no tree. */
int amp_tree_read(struct amp_span text, struct amp_tree *t, struct amp_error *err);

#endif

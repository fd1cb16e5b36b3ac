/* The trace of one or more processes' work on a directory: records one behind the other, each
 * followed by its path, its second path (both with their NUL) and its data. */
#ifndef TESTS_FAULT_TRACE_H
#define TESTS_FAULT_TRACE_H

enum trace_op {
    TRACE_WRITE,    /* ino, off, data */
    TRACE_TRUNCATE, /* ino, off is the new size */
    TRACE_SYNC,     /* ino: all before it is on disk */
    TRACE_CREATE,   /* ino, path */
    TRACE_MKDIR,    /* path */
    TRACE_RENAME,   /* ino, path to path2 */
    TRACE_LINK,     /* ino, path to path2 */
    TRACE_UNLINK,   /* path */
    TRACE_SYNC_DIR, /* path */
    TRACE_ACK,      /* data: what went to standard output */
};

struct trace_record {
    unsigned op;
    unsigned n, n_path, n_path2;
    unsigned long long ino;
    long long off;
};

#endif

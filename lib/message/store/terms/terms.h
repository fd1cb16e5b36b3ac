/*
 * Terms: where the log has an id, a task, a correlation, an agent. A term is the hash of a text, or
 * of a frame's number; a posting is a term and the offset of a frame in its segment that may have
 * it. The frame decides: postings of other frames are harmless, and no frame is missing.
 *
 * The terms of a frame are the strings at the members that amp_store_options.names lists, in the
 * frame and in the JSON texts in it (the lines of its outbox), the parts of its key, and the
 * numbers of the frames whose lines it closes.
 *
 * STATE/terms/NNNNNN has the postings of segment NNNNNN: runs, each for the frames after the
 * previous run, sorted by term. A run is made when 2 MiB of frames have none, or when the segment
 * ended; the runs of an ended segment are joined. A run is used only if the frame at its end is
 * still in the log at this place, and a page of it only if its checksum is right, so the files need
 * no sync and may be removed at any time. A run names the list of members that it was made with.
 */
#ifndef AMP_MESSAGE_STORE_TERMS_TERMS_H
#define AMP_MESSAGE_STORE_TERMS_TERMS_H

#include "message/store/log/log.h"

enum {
    AMP_TERM_NAMES = 96,       /* members */
    AMP_TERM_TEXT_MAX = 256,   /* longer texts are cut */
    AMP_TERMS_LAG = 2 << 20,   /* bytes of frames without postings before a run is made */
    AMP_TERMS_CHUNK = 4 << 20, /* bytes of frames in a run */
    AMP_TERM_PAGE = 4096,
    AMP_TERM_PER_PAGE = (AMP_TERM_PAGE - 8) / 8,
};

struct amp_term {
    uint32_t h, off; /* off: of the frame in its segment */
};

/* The members whose strings are terms, as a hash table. */
struct amp_term_names {
    struct {
        const char *text;
        uint8_t n, what;
    } slot[256];
    /* The rows by the last three bytes up to a name's end, with the quote before a short name. */
    uint8_t by_end[4096]; /* number of a row + 1 */
    struct {
        uint8_t slot, next; /* next: number of a row + 1 */
    } row[128];
    unsigned n_rows;
    uint64_t hash; /* of the list */
    bool made;
};
void amp_term_names_make(struct amp_term_names *t, const char *const *names);

/* Never 0. */
uint32_t amp_term_of(struct amp_span text);
uint32_t amp_term_of_frame(uint64_t n);

/* Postings in memory. */
struct amp_postings {
    struct amp_term *v;
    size_t n, cap;
    struct amp_buf mem; /* for decoding */
};
void amp_postings_init(struct amp_postings *t);
void amp_postings_release(struct amp_postings *t);
/* Adds the terms of a frame, or of a record in a blob. */
struct amp_postings_found {
    struct amp_span blob; /* the name of the blob with the frame's record, or empty */
    struct amp_span at;   /* the frame's time */
};
int amp_postings_scan(struct amp_postings *t, const struct amp_term_names *names,
                      struct amp_span text, uint32_t off, struct amp_postings_found *found,
                      struct amp_error *err);
/* Sorts by term, then by offset, and removes repetitions. */
int amp_postings_sort(struct amp_postings *t, struct amp_error *err);
/* The number of the first posting of a term, or of the next term, in sorted postings. */
size_t amp_postings_first(const struct amp_term *v, size_t n, uint32_t term);

/* The head of a run; a page of a file. */
struct amp_term_run {
    char magic[8];
    uint64_t check; /* of this page with check 0 */
    uint64_t names;
    uint32_t seg, pages, n_terms, last_len;
    uint64_t from, to; /* offsets of the first frame and after the last one */
    uint64_t n, sum;   /* of the last frame */
    uint32_t loose, sealed;
    char newest[32]; /* the latest time of its frames, RFC 3339 in UTC */
    char unused[AMP_TERM_PAGE - 112];
};
_Static_assert(sizeof(struct amp_term_run) == AMP_TERM_PAGE, "a head is a page");

/* The runs of a segment that fit the log. */
struct amp_term_file {
    int fd;
    uint32_t seg;
    uint32_t n, cap;
    struct amp_term_run_at {
        uint32_t page, pages; /* the first page of postings, and how many */
        uint64_t from, to;
        char newest[32];
    } * run;
    struct amp_pos end; /* the place after the last frame with postings; its start without one */
    uint64_t bytes;     /* of the valid runs */
};
void amp_term_file_close(struct amp_term_file *f);
/* Opens the runs of a segment; a missing file has none. Never fails: what does not fit is left out.
 */
void amp_term_file_open(struct amp_term_file *f, int dirfd, struct amp_log *l,
                        const struct amp_term_names *names, uint32_t seg);
/* Under main. Appends a run for the frames up to `to`, or replaces all runs by one. false: that
 * failed, and the valid runs are the same as before. */
bool amp_term_file_add(struct amp_term_file *f, int dirfd, const struct amp_term_names *names,
                       const struct amp_postings *t, const struct amp_pos *to, const char *newest);
bool amp_term_file_join(struct amp_term_file *f, int dirfd, const struct amp_term_names *names);
enum amp_term_found {
    AMP_TERM_FOUND,   /* fn had all postings, also if there are none */
    AMP_TERM_DAMAGED, /* a page is damaged */
    AMP_TERM_FAILED,  /* fn failed */
};
/* Calls fn with the offsets of a term's postings in run i. */
enum amp_term_found amp_term_file_find(const struct amp_term_file *f, uint32_t i, uint32_t term,
                                       int (*fn)(void *ctx, uint32_t off), void *ctx);

#endif

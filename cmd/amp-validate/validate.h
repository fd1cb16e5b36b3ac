/* What the files of amp-validate share. */
#ifndef AMP_VALIDATE_H
#define AMP_VALIDATE_H

#include <amp/json/lines.h>
#include <amp/protocol/protocol.h>

/* What was asked for on the command line. */
struct validate_options {
    const char *protocol, *errors, *state, *explain, *schema;
    bool strict, fail_fast, check_repo, list, hlc;
    int64_t max_line, max_depth, max_payload;
    const char *const *protect; /* NULL-terminated, or NULL */
};

/* Where findings go: the readable form on stderr, or records (-e). */
int report_open(const char *path, struct amp_error *err);
void report(const struct amp_finding *f, const char *file, const struct amp_line_place *at);
/* Writes what is pending; the first failure since the start, if there was one. */
int report_flush(struct amp_error *err);

/* Lines in, valid lines out. Returns the exit status. */
int stream_run(const struct validate_options *opt, char **files, int n_files);

/*
 * The history checks, made by the helper state-worker. Lines come out again in the order in which
 * they went in, through the functions given at the start.
 */
struct history;
struct history_line {
    const char *file;
    struct amp_line_place at;
    struct amp_span whole; /* as it stood, line end included */
};
struct history_sink {
    void *ctx;
    int (*pass)(void *ctx, const struct history_line *l, struct amp_error *err);
    void (*refuse)(void *ctx, const struct history_line *l);
};
struct history *history_open(const char *state, bool strict, const struct history_sink *sink,
                             struct amp_error *err);
/* Takes a line that is valid so far; asks the helper about it where its protocol has history. */
int history_take(struct history *h, const struct history_line *l, const struct amp_view *v,
                 struct amp_error *err);
/* Waits until every line that was taken came out. */
int history_drain(struct history *h, struct amp_error *err);
void history_close(struct history *h);

/* --explain, --list, --print-schema: write to stdout, return a status. */
int info_explain(const char *code);
int info_list(void);
int info_schema(const char *name);

#endif

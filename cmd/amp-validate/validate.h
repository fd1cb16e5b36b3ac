/*
 * Shared by the files of amp-validate. A line passes through these parts:
 *
 *     stream   turns an input into chunks of complete lines
 *     judge    turns a chunk into a result: output, reports and counts. It uses
 *              only its own memory, so each thread has one
 *     session  writes results in the order of their chunks, in the main thread
 *
 * emit.c composes the output of each mode.
 */
#ifndef AMP_VALIDATE_H
#define AMP_VALIDATE_H

#include <amp/protocol/convert.h>
#include <amp/protocol/extract.h>
#include <amp/protocol/protocol.h>

#include "schema/schema.h"
#include "stream.h"

/* The output for a line. */
enum mode {
    MODE_PASS,      /* valid lines, unchanged */
    MODE_CHECK,     /* a verdict for each line */
    MODE_ANNOTATE,  /* each line, wrapped with its verdict and findings */
    MODE_NACK,      /* valid lines, and refusals for the senders of the others */
    MODE_EFFECTIVE, /* for each valid AOP task, its effective policy */
};

/* The command line. It does not change while lines are judged. */
struct validate_options {
    enum mode mode;
    const char *protocol, *errors, *state, *explain, *schema, *now;
    const char *stats; /* "text", "json" or NULL */
    bool strict, fail_fast, check_repo, list, hlc, json;
    int64_t max_line, max_depth, max_payload, jobs, sample; /* every sample-th line is checked */
    int64_t now_ms;                                         /* --now as a number, 0 without it */
    const char *const *protect;                             /* NULL-terminated, or NULL */
    enum amp_output output;
    const struct amp_schema *user; /* --schema, or NULL: the protocols */
    bool document;                 /* an input is one text, not lines */
    bool color;                    /* of diagnostics */
    bool extract;                  /* inputs are texts with messages in them */
    int from;                      /* with it: the agent whose output they are; -1: any text */
    enum amp_protocol to;          /* NONE: lines stay as they are */
    const char *const *fill; /* values of missing fields, for --to; NULL-terminated, or NULL */
    bool name_files;         /* in the output, because inputs have names */
};

enum line_answer { LINE_VALID, LINE_REFUSED, LINE_UNCHECKED };

/* The result for one line. */
struct line_verdict {
    const struct chunk *chunk;
    struct amp_span bytes, whole; /* without and with its line end */
    uint64_t line, offset;
    enum line_answer answer;
    const struct amp_view *view; /* as far as the line allows; NULL if the line was not read */
    bool json;                   /* the line is a JSON text */
    const struct amp_finding *findings;
    unsigned n_findings;
    struct amp_span output;    /* --output: the standard output unit as JSON, or empty */
    struct amp_span converted; /* --to: the line in its new protocol with its line end, or empty */
};

/* A piece of output: of the chunk, or of the result's text. */
struct piece {
    bool of_chunk;
    size_t at, n;
};

/* The result of a chunk. */
#define REFUSALS_MOST 16 /* codes of one result; further ones count as "other codes" */
struct chunk_result {
    struct piece *pieces;
    size_t n_pieces, cap_pieces;
    struct amp_buf text;    /* composed output */
    struct amp_buf reports; /* for stderr, or records */
    uint64_t lines, refused;
    /* -e FILE: the refused lines of each code, for the count on stderr. */
    struct refusals {
        char code[48];
        uint64_t n;
    } refusals[REFUSALS_MOST];
    unsigned n_refusals;
    size_t used;                           /* bytes that were judged */
    uint64_t refused_line, refused_offset; /* the first that was refused */
    bool undecided;                        /* a line should be tried again */
    struct stats *stats;                   /* or NULL */
    bool stop;                             /* --fail-fast: the last result */
    struct amp_span *asks;                 /* with --state: the lines to ask about */
    size_t n_asks, cap_asks;
    struct line_number *numbers; /* of the valid lines */
    size_t n_numbers, cap_numbers;
};
int result_init(struct chunk_result *r, const struct validate_options *opt, struct amp_error *err);
void result_release(struct chunk_result *r);
void result_reset(struct chunk_result *r);
int result_pass(struct chunk_result *r, const struct chunk *c, struct amp_span whole,
                struct amp_error *err);
/* Makes a piece of the output that was composed in r->text from the length `begun` on. */
int result_end(struct chunk_result *r, size_t begun, struct amp_error *err);

/* Counts a refused line that is not reported on stderr. */
void result_count(struct chunk_result *r, const char *code);

/* The line of a finding and the offset of this line; in a document, the line at fault. f may be
 * NULL: the place of the text itself. */
struct line_place {
    uint64_t line, offset;
};
struct line_place place_of(const struct line_verdict *v, const struct amp_finding *f);

/* Adds the mode's output for a line, and the reports about it. */
int emit_line(const struct validate_options *opt, const struct line_verdict *v,
              struct chunk_result *r, struct amp_error *err);

/* Appends a finding for stderr or the error log. */
int report_add(const struct validate_options *opt, const struct line_verdict *v,
               const struct amp_finding *f, struct amp_buf *out, struct amp_error *err);
/* --extract: appends the place where a message was found. */
int report_found(const struct validate_options *opt, const struct line_verdict *v,
                 struct amp_buf *out, struct amp_error *err);
/* The error log. report_write writes the reports of a result. */
int report_open(const struct validate_options *opt, struct amp_error *err);
int report_write(struct amp_span bytes, struct amp_error *err);
int report_flush(struct amp_error *err);

/* The history checks of the helper state-worker. Its answers are in the order of r->asks. */
struct history;
struct history *history_open(const char *state, struct amp_error *err);
void history_close(struct history *h);
int history_ask(struct history *h, const struct chunk_result *r, struct amp_error *err);
/* Calls fn for each finding of the n-th answer; the strings live until the next call. Returns 0; 1
 * if there is no answer, with the reason in *undecided; -1 if the state cannot be queried. */
int history_answer(struct history *h, size_t n, amp_finding_fn fn, void *ctx,
                   const char **undecided, struct amp_error *err);

/* One for each thread. */
struct judge;
/* The numbers of the next chunk that was judged before, in its order; NULL: it was not. */
void judge_order(struct judge *j, const struct line_number *numbers);
struct judge *judge_new(const struct validate_options *opt, struct amp_error *err);
void judge_free(struct judge *j);
/* With `asking` only r->asks is filled. With a history, its answers are part of the verdicts.
 * `most`: stops after the line that exceeds this output in bytes; 0: no limit. */
int judge_chunk(struct judge *j, const struct chunk *c, bool asking, struct history *h, size_t most,
                struct chunk_result *r, struct amp_error *err);

/* The callback `summary` of struct amp_tool. */
int validation_summary(struct amp_buf *out, struct amp_error *err);
/* The run: returns the exit status, or -1. */
int validation_run(const struct validate_options *opt, char **files, int n_files,
                   struct amp_error *err);

/* info.c: --explain, --list, --print-schema write to stdout. json: one object per code or name. */
int info_explain(const char *code, bool json, struct amp_error *err);
int info_list(bool json, struct amp_error *err);
/* The callback `values` of struct amp_tool: the kinds "code" and "schema". */
struct amp_values_ask;
int info_values(const struct amp_values_ask *ask, struct amp_error *err);
int info_schema(const char *name, struct amp_error *err);

#endif

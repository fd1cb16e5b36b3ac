/*
 * What the files of amp-validate share. The way of a line:
 *
 *     stream   an input becomes chunks of whole lines
 *     judge    a chunk becomes a result: output, reports and counts. It touches
 *              nothing but its own memory, so each thread has one
 *     session  results leave in the order of their chunks, in the main thread alone
 *
 * Everything that a mode writes for a line is decided in emit.c.
 */
#ifndef AMP_VALIDATE_H
#define AMP_VALIDATE_H

#include <amp/protocol/convert.h>
#include <amp/protocol/extract.h>
#include <amp/protocol/protocol.h>

#include "schema/schema.h"
#include "stream.h"

/* What is written for a line. */
enum mode {
    MODE_PASS,      /* valid lines, as they stand */
    MODE_CHECK,     /* a verdict for each line */
    MODE_ANNOTATE,  /* each line, wrapped with its verdict and findings */
    MODE_NACK,      /* valid lines, and refusals for the senders of the others */
    MODE_EFFECTIVE, /* for each valid AOP task, the policy that counts */
};

/* What was asked for on the command line. It does not change while lines are judged. */
struct validate_options {
    enum mode mode;
    const char *protocol, *errors, *state, *explain, *schema, *now;
    const char *stats; /* "text", "json" or NULL */
    bool strict, fail_fast, check_repo, list, hlc;
    int64_t max_line, max_depth, max_payload, jobs, sample; /* every sample-th line is checked */
    int64_t now_ms;                                         /* --now as a number, 0 without it */
    const char *const *protect;                             /* NULL-terminated, or NULL */
    enum amp_output output;
    const struct user_schema *user; /* --schema, or NULL: the protocols */
    bool document;                  /* an input is one text, not lines */
    bool color;                     /* of diagnostics */
    bool extract;                   /* inputs are texts with messages in them */
    enum amp_protocol to;           /* NONE: lines stay as they are */
    const char *const *fill; /* what converted messages may not say; NULL-terminated, or NULL */
    bool name_files;         /* in what is written, because inputs have names */
};

enum answer { LINE_VALID, LINE_REFUSED, LINE_UNCHECKED };

/* What is known about one line when its mode writes about it. */
struct verdict {
    const struct chunk *chunk;
    struct amp_span bytes, whole; /* without and with its line end */
    uint64_t line, offset;
    enum answer answer;
    const struct amp_view *view; /* as far as the line allows; NULL where it was not read */
    bool json;                   /* the line is a JSON text */
    const struct amp_finding *findings;
    unsigned n_findings;
    struct amp_span output; /* --output: the standard output unit as JSON, or empty */
    struct amp_span said;   /* --to: the line in its new protocol with its line end, or empty */
};

/* A piece of output: of the chunk, or of the result's text. */
struct piece {
    bool of_chunk;
    size_t at, n;
};

/* What came of a chunk. */
#define REFUSALS_MOST 16 /* codes of one result; further ones count as "other codes" */
struct result {
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
    size_t used;                           /* bytes that were judged: a part, where much was said */
    uint64_t refused_line, refused_offset; /* the first that was refused */
    bool undecided;                        /* a line is worth another try */
    struct stats *stats;                   /* or NULL */
    bool stop;                             /* --fail-fast: nothing comes after this */
    struct amp_span *asks;                 /* with --state: the lines to ask about */
    size_t n_asks, cap_asks;
};
int result_init(struct result *r, const struct validate_options *opt, struct amp_error *err);
void result_release(struct result *r);
void result_reset(struct result *r);
int result_pass(struct result *r, const struct chunk *c, struct amp_span whole,
                struct amp_error *err);
/* Output is composed in r->text from result_begin on; result_end makes a piece of it. */
size_t result_begin(const struct result *r);
int result_end(struct result *r, size_t begun, struct amp_error *err);

/* Counts a refused line of which stderr says nothing else. */
void result_count(struct result *r, const char *code);

/* Where a finding is: its line, and where this line begins. Inside a document that is the line at
 * fault. f may be NULL: the place of the text itself. */
struct place {
    uint64_t line, offset;
};
struct place place_of(const struct verdict *v, const struct amp_finding *f);

/* What the mode writes for a line, and the reports about it. */
int emit_line(const struct validate_options *opt, const struct verdict *v, struct result *r,
              struct amp_error *err);

/* A finding as it goes to stderr or to the error log. */
int report_add(const struct validate_options *opt, const struct verdict *v,
               const struct amp_finding *f, struct amp_buf *out, struct amp_error *err);
/* --extract: where a message was found. */
int report_found(const struct validate_options *opt, const struct verdict *v, struct amp_buf *out,
                 struct amp_error *err);
/* The error log. report_write hands on what results gathered. */
int report_open(const struct validate_options *opt, struct amp_error *err);
int report_write(struct amp_span bytes, struct amp_error *err);
int report_flush(struct amp_error *err);

/* The history checks, made by the helper state-worker: answers to a result's asks, in order. */
struct history;
struct history *history_open(const char *state, struct amp_error *err);
void history_close(struct history *h);
int history_ask(struct history *h, const struct result *r, struct amp_error *err);
/* What the state says about the n-th ask: calls fn for each finding, where the strings live until
 * the next call. 1: *undecided says why there is no answer; 0; -1: the state cannot be asked. */
int history_answer(struct history *h, size_t n, amp_finding_fn fn, void *ctx,
                   const char **undecided, struct amp_error *err);

/* One a thread. */
struct judge;
struct judge *judge_new(const struct validate_options *opt, struct amp_error *err);
void judge_free(struct judge *j);
/* With `asking` nothing is written or reported, only r->asks is filled; with a history its answers
 * are a part of the verdicts. `most`: stops at a line's end past this much output, 0 never. */
int judge_chunk(struct judge *j, const struct chunk *c, bool asking, struct history *h, size_t most,
                struct result *r, struct amp_error *err);

/* The run: returns the exit status. */
int session_run(const struct validate_options *opt, char **files, int n_files);

/* info.c: --explain, --list, --print-schema write to stdout and return a status. */
int info_explain(const char *code);
int info_list(void);
int info_schema(const char *name);

#endif

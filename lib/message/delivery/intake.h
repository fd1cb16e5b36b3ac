/*
 * Intake: reads messages for every tool that consumes them. Each line is scanned, recognized,
 * viewed and checked. An invalid line is reported to the error log and to `say`; the stream
 * continues.
 */
#ifndef AMP_MESSAGE_DELIVERY_INTAKE_H
#define AMP_MESSAGE_DELIVERY_INTAKE_H

#include <amp/json/lines.h>
#include <amp/protocol/protocol.h>

#include "message/delivery/settle/rails.h"
#include "message/delivery/transfer/units.h"
#include "message/store/store.h"

#define AMP_INTAKE_ID_MAX 1000 /* bytes of a message's or task's id, where there is a store */

struct amp_intake {
    struct amp_reader *reader;
    struct amp_lines lines;
    struct amp_check_options check;
    struct amp_store *store; /* its error log gets the rejections, its ledger has what the TASK of
                                an AOP RESPONSE requires; NULL: neither, and no bad_id */
    struct amp_rails rails;
    const char *tool;
    const char *file; /* the input's name in reports; NULL: none */
    uint64_t accepted, rejected;
    /* The first error of the last invalid line (AMP_INTAKE_BAD): its code and its dotted field. The
     * view of such a line is filled as far as possible. */
    char bad_code[48], bad_field[160];
    /* This error, until the next line, if a check of its protocol found it; else code is NULL. */
    struct amp_finding bad;
    char receiver[160];              /* of amp_intake_resume; else the tool */
    struct amp_units *units;         /* chunks and batches; NULL: none came yet */
    bool inside;                     /* the present line came in chunks or in a batch */
    struct amp_unit_refusal dropped; /* why.code is not empty: the last invalid line was a message
                                        in chunks, or a batch, that was dropped */
    /* Prints a finding (lib/cli's printer); may be NULL. */
    void (*say)(void *ctx, const struct amp_finding *f, const struct amp_line_place *at);
    void *say_ctx;
};

int amp_intake_init(struct amp_intake *in, struct amp_store *store, const char *tool,
                    struct amp_error *err);
/* Begins with the messages in chunks that a killed process of the same name left (message/transfer)
 * whose input was trusted as this one is (amp_input_is_trusted). Without it nobody resumes them,
 * and their senders are told. 1: there are some (amp_intake_more); 0; -1. */
int amp_intake_resume(struct amp_intake *in, const char *as, bool trusted, struct amp_error *err);
void amp_intake_release(struct amp_intake *in);

enum amp_intake_got {
    AMP_INTAKE_FAILED = -1,
    AMP_INTAKE_NONE,    /* read more (amp_lines_fill), or end of input (in->lines.eof) */
    AMP_INTAKE_MESSAGE, /* a valid message; view is filled */
    AMP_INTAKE_BAD,     /* an invalid line, which was reported */
    AMP_INTAKE_PART,    /* from amp_intake_line only: a chunk or batch, see amp_intake_more */
};
/* The next message of what was read: chunks are reassembled and batches taken apart before. */
enum amp_intake_got amp_intake_next(struct amp_intake *in, struct amp_view *view,
                                    struct amp_error *err);

/* Takes a line and its result from amp_lines_next. */
enum amp_intake_got amp_intake_line(struct amp_intake *in, enum amp_line_result got,
                                    const struct amp_line *read, struct amp_view *view,
                                    struct amp_error *err);

/* The messages that the last chunk or batch made complete, one a call. Call it until NONE before
 * the next line. */
enum amp_intake_got amp_intake_more(struct amp_intake *in, struct amp_view *view,
                                    struct amp_error *err);
/* After the last line: drops the messages that are unfinished, one a call. NONE: there are none. */
enum amp_intake_got amp_intake_unfinished(struct amp_intake *in, struct amp_view *view,
                                          struct amp_error *err);

/* Reports a message that the checks accepted but the caller refuses, like an invalid line. */
int amp_intake_refuse(struct amp_intake *in, const struct amp_view *view,
                      const struct amp_error *why, struct amp_error *err);

/* Appends the answer to the last invalid line, if the protocol of that line falls back to an
 * earlier version or answers the work itself (AOP §1.3: VERSION_FALLBACK with the prompt of version
 * 1, or the RESPONSE that it failed), or if it was a message in chunks that was dropped (the
 * refusal for its sender); one line with LF. 1: appended, 0: there is no answer, -1: failure.
 */
int amp_intake_answer(const struct amp_intake *in, const struct amp_view *view, int64_t now_ms,
                      struct amp_buf *out, struct amp_error *err);

/* For a message whose members are composed again: 1: jansson can represent it, 0: it cannot (a NUL
 * in a text, a number out of range), and the message is reported like an invalid line, -1: failure.
 */
int amp_intake_holds(struct amp_intake *in, const struct amp_view *view, struct amp_error *err);

/* The messages of all intakes of this process, for the summary of a tool (struct amp_tool): "3
 * messages, 1 rejected"; nothing if there were none. */
int amp_intake_summary(struct amp_buf *out, struct amp_error *err);

/* Whether the message is addressed to the role. */
bool amp_intake_is_to(const struct amp_view *v, const char *role);

#endif

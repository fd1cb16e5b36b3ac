/*
 * Intake: how every tool that consumes messages takes a line. Scan, detect, view, check; a bad line
 * goes to the error log (and stderr) with its code, the stream goes on.
 */
#ifndef AMP_FLOW_INTAKE_H
#define AMP_FLOW_INTAKE_H

#include <amp/json/lines.h>
#include <amp/protocol/protocol.h>

#include "message/settle/rails.h"
#include "store/store.h"

#define AMP_INTAKE_ID_MAX 1000 /* bytes of a message's or task's id, where there is a store */

struct amp_intake {
    struct amp_reader *reader;
    struct amp_lines lines;
    struct amp_check_options check;
    struct amp_store *store; /* its error log gets the rejections, bad_id is one; may be NULL. Its
                                ledger has what the TASK of an AOP RESPONSE requires. */
    struct amp_rails rails;
    const char *tool;
    uint64_t accepted, rejected;
    /* The first error of the last bad line (AMP_INTAKE_BAD): its code and its dotted
     * field. The view is then filled as far as the line allowed. */
    char bad_code[48], bad_field[160];
    /* Where readable one-line rejections go (lib/cli's printer, passed down); may be NULL. */
    void (*say)(void *ctx, const struct amp_finding *f, const struct amp_line_place *at);
    void *say_ctx;
};

int amp_intake_init(struct amp_intake *in, struct amp_store *store, const char *tool,
                    struct amp_error *err);
void amp_intake_release(struct amp_intake *in);

enum amp_intake_got {
    AMP_INTAKE_FAILED = -1,
    AMP_INTAKE_NONE,    /* read more (amp_lines_fill), or end of input (in->lines.eof) */
    AMP_INTAKE_MESSAGE, /* a valid one, view filled */
    AMP_INTAKE_BAD,     /* a bad line, logged */
};
/* The next message out of what has been read. */
enum amp_intake_got amp_intake_next(struct amp_intake *in, struct amp_view *view,
                                    struct amp_error *err);

/* The same for a line that amp_lines_next gave, with its result. */
enum amp_intake_got amp_intake_line(struct amp_intake *in, enum amp_line_result got,
                                    const struct amp_line *read, struct amp_view *view,
                                    struct amp_error *err);

/* Refuses a message that the checks let through and only a state could refuse: reported and logged
 * like a bad line. */
int amp_intake_refuse(struct amp_intake *in, const struct amp_view *view,
                      const struct amp_error *why, struct amp_error *err);

/* For a message whose members are used or composed again: 1, or 0 where it has what a document in
 * memory cannot hold, a NUL in a text or a number out of range. Then it is refused like a bad line.
 * -1 failure. */
int amp_intake_holds(struct amp_intake *in, const struct amp_view *view, struct amp_error *err);

#endif

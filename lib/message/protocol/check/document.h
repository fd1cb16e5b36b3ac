/* Finding the message in a line: its part of the line, and its protocol. */
#ifndef AMP_MESSAGE_PROTOCOL_CHECK_DOCUMENT_H
#define AMP_MESSAGE_PROTOCOL_CHECK_DOCUMENT_H

#include "message/protocol/check/check.h"
#include "message/protocol/spec.h"
#include "json/shapes.h"

struct amp_document {
    const struct amp_tape *tape;
    struct amp_span text;
    const struct amp_spec *spec;
    uint32_t outer_to;              /* token of an outer recipient, or AMP_TOK_NONE */
    const struct amp_tape *to_tape; /* its tape */
    struct amp_span message;        /* the line; of a signed line the member msg */
    struct amp_signature sig;
    const char *word; /* the type of a message that is not JSON, else NULL */
    bool silent;      /* no message of the protocol that was named: the line passes unchecked */
};

/* The protocols that the keys of a shape rule out. */
struct amp_ruled_out {
    uint64_t shapes;               /* the shapes that it is about */
    uint8_t n_of[AMP_SHAPE_SLOTS]; /* by shape: the number of protocols of `order` */
};

struct amp_finder {
    struct amp_tape outer, msg, inner; /* of the line, of the message in a signed line, and of the
                                          document inside it */
    struct amp_check *check;           /* gets the findings; its arena gets the texts */
    struct amp_ruled_out of_lines, of_signed;
    const struct amp_spec *order[AMP_PROTO_COUNT - 1]; /* the order of detection */
};
/* f: all zero. */
void amp_finder_init(struct amp_finder *f, const struct amp_json_limits *limits,
                     struct amp_check *check);
void amp_finder_release(struct amp_finder *f);
/* Finds the document, unless the line is of no protocol or a finding was added to f->check. */
int amp_finder_line(struct amp_finder *f, struct amp_span line, struct amp_document *d,
                    struct amp_error *err);

#endif

/* Finding the message in a line: its part of the line, and its protocol. */
#ifndef AMP_PROTOCOL_DOCUMENT_H
#define AMP_PROTOCOL_DOCUMENT_H

#include "protocol/check/check.h"
#include "protocol/spec.h"
#include "json/shapes.h"

struct amp_document {
    const struct amp_tape *tape;
    struct amp_span text;
    const struct amp_spec *spec;
    uint32_t outer_to; /* token of an outer recipient, on the outer tape */
    const char *word;  /* the type of a message that is not JSON, else NULL */
    bool silent;       /* no message of the protocol that was named: the line passes unchecked */
};

struct amp_finder {
    struct amp_tape outer, inner; /* of the line, and of the document inside it */
    struct amp_check *check;      /* gets the findings; its arena gets the texts */
    uint64_t shapes;              /* the shapes that ruled_out is about */
    uint8_t
        ruled_out[AMP_SHAPE_SLOTS]; /* by shape: how many protocols of `order` its keys rule out */
    const struct amp_spec *order[AMP_PROTO_COUNT - 1]; /* the order of detection */
};
/* f: all zero. */
void amp_finder_init(struct amp_finder *f, const struct amp_json_limits *limits,
                     struct amp_check *check);
void amp_finder_release(struct amp_finder *f);
/* 0: the document is found, or the line is of no protocol; 1: a finding was added; -1: failure. */
int amp_finder_line(struct amp_finder *f, struct amp_span line, struct amp_document *d,
                    struct amp_error *err);

#endif

/*
 * The tables by which a protocol takes part in conversions: its shapes, and for each a row for
 * every field that other protocols have, too.
 */
#ifndef PROTOCOL_CONVERT_SHAPE_H
#define PROTOCOL_CONVERT_SHAPE_H

#include <amp/protocol/convert.h>

#include "protocol/convert/fields.h"

#define CV_COUNT(a) ((unsigned)(sizeof(a) / sizeof *(a)))

/* How a protocol writes a field. */
enum cv_as {
    AS_CONST,    /* always the row's literal; with a field and no pointer: what the shape implies */
    AS_TEXT,     /* a string */
    AS_TEXTS,    /* a list of strings */
    AS_JOINED,   /* the list as one string, a line each */
    AS_LONE,     /* a list of strings for one text */
    AS_RAW,      /* any JSON, as it stands */
    AS_TIME,     /* RFC 3339 */
    AS_TIME_Z,   /* RFC 3339 in UTC */
    AS_WORD,     /* by the row's words */
    AS_NUMBERED, /* by the row's words, each a number */
    AS_UUID,
    AS_TASK_AMP, /* T-YYYY-NNN */
    AS_TASK_AOF, /* TASK-YYYY-MM-DD-NNN */
    AS_MSG_ID,   /* {type}-{task}-{number} */
    AS_ROLE,     /* AMP's roles */
    AS_SEQUENCE, /* a number; else the time in milliseconds */
    AS_RETRIES,  /* attempts from 0 */
    AS_OBJECTS,  /* a list of objects with the text under words[0].own; words[0].neutral is one */
    AS_TTL,      /* milliseconds from the time */
    AS_NOTE,     /* AS_JOINED, and the origin behind it */
    AS_LOG,      /* AMP's work log, with the origin as an entry */
    AS_DUE_Z,    /* RFC 3339 in UTC; else a day after the time */
    AS_SUBTASKS, /* written only: one, of the text */
    AS_SUBTASK,  /* written only: that one's id */
    AS_LENGTH,   /* of the payload; written only, behind it */
};

struct cv_word {
    const char *neutral, *own;
};

struct cv_row {
    const char *at; /* RFC 6901, object members only; rows of one object stand together */
    uint8_t field, as;
    uint8_t or [3];              /* fields that stand in where the first is absent */
    uint16_t most;               /* characters of a text, 0 any */
    uint16_t items;              /* of a list, 0 any */
    const struct cv_word *words; /* ends with NULLs */
    /* AS_WORD: the word for what is none of them, by that and what is said of it; or NULL. */
    const char *(*infer)(struct amp_span text, struct amp_span summary);
    const char *literal; /* JSON, where nothing else is there; NULL: the member is left out */
};

/* What a message is; a shape says one and takes several. */
enum cv_kind {
    CVK_DISPATCH = 1,
    CVK_HANDOFF = 2,
    CVK_RESULT = 4,
    CVK_ACK = 8,
    CVK_NACK = 16,
    CVK_ESCALATION = 32,
    CVK_DECISION = 64,
    CVK_HEARTBEAT = 128,
    CVK_PROGRESS = 256,
    CVK_MESSAGE = 512,
    CVK_REVIEW = 1024,
    CVK_VERDICT = 2048,
};

#define CV_NEVER "\n" /* read only where the origin says that it was written */
struct cv_cond {
    const char *at, *is; /* is NULL: present */
};

struct cv_shape {
    const char *type; /* unique in its protocol; named in the origin */
    unsigned says, takes;
    struct cv_cond when[3];
    uint8_t if_field; /* writing: only where this field is one of if_words, blank-separated */
    const char *if_words;
    const struct cv_row *rows;
    unsigned n_rows;
    const char *word; /* for AS_MSG_ID: AMP's type */
    const char *from, *to;
};

/* All that a protocol says. */
struct cv_shapes {
    const struct cv_shape *v;
    unsigned n;
    bool outer_to; /* the recipient stands outside: no row reads or writes it */
    bool lists_to; /* so does a list of recipients, of a dispatch */
};
#define X(id, name, title) extern const struct cv_shapes amp_cv_shapes_##name;
AMP_PROTOCOL_LIST(X)
#undef X

/* Rows: a constant; what the shape itself says; the rows of a shape. */
#define CV_CONST(pointer, json)                                                                    \
    {                                                                                              \
        .at = (pointer), .as = AS_CONST, .literal = (json)                                         \
    }
#define CV_IMPLIES(neutral, spelled)                                                               \
    {                                                                                              \
        .at = "", .field = (neutral), .as = AS_CONST, .literal = (spelled)                         \
    }
#define CV_ROWS(r) .rows = (r), .n_rows = CV_COUNT(r)

const struct cv_shapes *amp_cv_shapes_of(enum amp_protocol p);
/* What a message is; NULL: nothing that is known here. */
const struct cv_shape *amp_cv_shape_of(enum amp_protocol p, const struct amp_tape *t);
/* The shape in which a protocol would have said it in this message; NULL: it cannot have. */
const struct cv_shape *amp_cv_shape_back(enum amp_protocol p, unsigned says,
                                         const struct amp_tape *t);
/* The shape in which a protocol would say it; NULL: it does not. */
const struct cv_shape *amp_cv_shape_for(enum amp_protocol p, unsigned says,
                                        const struct cv_neutral *n);

#endif

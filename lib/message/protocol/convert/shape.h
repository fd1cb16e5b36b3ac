/*
 * The tables with which a protocol takes part in conversions: its shapes, and for each shape a row
 * for every field that other protocols also have.
 */
#ifndef AMP_MESSAGE_PROTOCOL_CONVERT_SHAPE_H
#define AMP_MESSAGE_PROTOCOL_CONVERT_SHAPE_H

#include <amp/protocol/convert.h>

#include "message/protocol/convert/fields.h"

#define CV_COUNT(a) ((unsigned)(sizeof(a) / sizeof *(a)))

/* The forms in which protocols write a field. */
enum cv_as {
    AS_CONST,    /* always the row's literal; with a field and no pointer: the shape implies it */
    AS_TEXT,     /* a string */
    AS_TEXTS,    /* a list of strings */
    AS_JOINED,   /* a list as one string, one line per item */
    AS_LONE,     /* one text as a list of one string */
    AS_RAW,      /* any JSON, unchanged */
    AS_TIME,     /* RFC 3339 */
    AS_TIME_Z,   /* RFC 3339 in UTC */
    AS_WORD,     /* one of the row's words */
    AS_NUMBERED, /* one of the row's words, each a number */
    AS_UUID,
    AS_TASK_AMP, /* T-YYYY-NNN */
    AS_TASK_AOF, /* TASK-YYYY-MM-DD-NNN */
    AS_MSG_ID,   /* {type}-{task}-{number} */
    AS_ROLE,     /* AMP's roles */
    AS_SEQUENCE, /* a number; if absent: the time in milliseconds */
    AS_RETRIES,  /* the number of the attempt, from 0 */
    AS_OBJECTS,  /* a list of objects: words[0].own is the key of the text, words[0].neutral the
                    template of an object (template_write) */
    AS_TTL,      /* milliseconds after the time */
    AS_NOTE,     /* AS_JOINED, with the origin as the last line */
    AS_LOG,      /* AMP's work log, with the origin as the last entry */
    AS_DUE_Z,    /* RFC 3339 in UTC; if absent: a day after the time */
    AS_SUBTASKS, /* write only: a list of one subtask with the text */
    AS_SUBTASK,  /* write only: the id of that subtask */
    AS_LENGTH,   /* write only: the payload's length; the row follows the payload's rows */
};

struct cv_word {
    const char *neutral, *own;
};

struct cv_row {
    const char *at; /* RFC 6901, object members only; rows of one object are consecutive */
    uint8_t field, as;
    uint8_t alt[3];              /* fields to write if the first one is absent, in this order */
    uint16_t most;               /* characters of a text at most; 0: any number */
    uint16_t items;              /* items of a list at most; 0: any number */
    const struct cv_word *words; /* ends with NULLs */
    /* AS_WORD: derives the neutral word if the text is none of `words`; may be NULL. */
    const char *(*infer)(struct amp_span text, struct amp_span summary);
    const char *literal; /* JSON to write if there is no value; NULL: the member is left out */
};

/* The kinds of messages, as bits. */
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

#define CV_NEVER "\n" /* this shape is read only if the origin names it */
struct cv_cond {
    const char *at, *is; /* is NULL: any value */
};

struct cv_shape {
    const char *type; /* unique in its protocol; named in the origin; AMP's type, up to a slash */
    unsigned kind;    /* the kind of such a message; 0: it is not read */
    unsigned kinds;   /* bits of the kinds that are written in this shape */
    const struct cv_row *rows;
    unsigned n_rows;
    struct cv_cond when[3]; /* the conditions of a message of this shape */
    uint8_t if_field;       /* written only if this field is one of if_words, blank-separated */
    const char *if_words;
};

/* All shapes of a protocol. */
struct cv_shapes {
    const struct cv_shape *v;
    unsigned n;
    bool outer_to; /* the recipient is in an outer object: no row reads or writes it */
    bool lists_to; /* the recipients of a dispatch are a list, which no row reads or writes */
};
#define X(id, name, title) extern const struct cv_shapes amp_cv_shapes_##name;
AMP_PROTOCOL_LIST(X)
#undef X

/* A row in a macro; a constant; a value that the shape implies; the members of a shape, its
 * conditions last. */
#define CV_ROW(...)                                                                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define CV_CONST(pointer, json)      CV_ROW(pointer, CV_NONE, AS_CONST, .literal = (json))
#define CV_IMPLIES(neutral, spelled) CV_ROW("", neutral, AS_CONST, .literal = (spelled))
#define CV_SHAPE(type, kind, kinds, rows, ...)                                                     \
    type, kind, kinds, rows, CV_COUNT(rows),                                                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

const struct cv_shapes *amp_cv_shapes_of(enum amp_protocol p);
/* The shape of a message; NULL: none of them. */
const struct cv_shape *amp_cv_shape_of(enum amp_protocol p, const struct amp_tape *t);
/* The shape of a message that was written for this kind; NULL: none. */
const struct cv_shape *amp_cv_shape_back(enum amp_protocol p, unsigned kind,
                                         const struct amp_tape *t);
/* The shape in which a protocol writes this kind; NULL: none. */
const struct cv_shape *amp_cv_shape_for(enum amp_protocol p, unsigned kind,
                                        const struct cv_neutral *n);

#endif

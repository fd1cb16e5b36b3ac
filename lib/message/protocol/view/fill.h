/*
 * Filling a struct from a tape by a table of JSON pointers. A member of the struct stays unchanged
 * if its value is absent or of another type; the schema reports that.
 */
#ifndef AMP_MESSAGE_PROTOCOL_VIEW_FILL_H
#define AMP_MESSAGE_PROTOCOL_VIEW_FILL_H

#include <amp/json/tape.h>

#include "base/arena.h"

enum amp_fill_as {
    AMP_AS_TEXT,     /* struct amp_span, decoded */
    AMP_AS_TEXTS,    /* struct amp_spans of an array's strings */
    AMP_AS_NAMES,    /* struct amp_span * of a string or an array of them, and a uint32_t count at
                        `also`; at most AMP_TO_MAX */
    AMP_AS_INT,      /* int64_t */
    AMP_AS_SIZE,     /* uint64_t, from an integer >= 0 */
    AMP_AS_REAL,     /* double */
    AMP_AS_BOOL,     /* bool */
    AMP_AS_TIME,     /* int64_t milliseconds, from an RFC 3339 text */
    AMP_AS_SECONDS,  /* int64_t milliseconds, from an integer of seconds */
    AMP_AS_DURATION, /* int64_t milliseconds, from a protobuf Duration: "1.5s", a number of seconds,
                        or an object of seconds and nanos */
    AMP_AS_WORD,     /* an enum, by the list of words in `of` */
    AMP_AS_TRI,      /* enum amp_tri, from true, false or null */
    AMP_AS_TRIS,     /* array of enum amp_tri and its uint32_t count at `also` */
    AMP_AS_LIST,     /* array of structs by the table in `of`, and its uint32_t count at `also` */
    AMP_AS_SOURCE,   /* struct amp_span: an object's bytes */
    AMP_AS_TOKEN,    /* uint32_t: the token of any value */
};

struct amp_word_list {
    const char *const *word;
    unsigned n;
};

/* The words of the enums in words.h: amp_words_risk, … */
#define AMP_WORDS_LIST(X) X(risk) X(completion) X(verdict) X(level) X(do) X(stage)
#define X(list)           extern const struct amp_word_list amp_words_##list;
AMP_WORDS_LIST(X)
#undef X

/* A row is cheap if an object with the same keys was filled before; a pointer of two steps
 * ("/payload/id") searches the inner object. Pointers have no ~ escapes and no empty names. Tables
 * are static, because plans remember their addresses. */
struct amp_fill_row {
    struct amp_span pointer; /* RFC 6901, from the object that the table is for */
    enum amp_fill_as as;
    uint16_t at;    /* offset of the place in the struct */
    uint16_t also;  /* offset of a bool for "present" (scalars) or of the count; 0: none */
    const void *of; /* struct amp_word_list or struct amp_fill_table */
};

#define AMP_AT(pointer)                                                                            \
    {                                                                                              \
        (pointer), sizeof(pointer) - 1                                                             \
    }

struct amp_fill_table {
    const struct amp_fill_row *rows;
    unsigned n;
    size_t size; /* of the struct, for lists */
};
#define AMP_FILL_TABLE(type, rows)                                                                 \
    {                                                                                              \
        (rows), sizeof(rows) / sizeof *(rows), sizeof(type)                                        \
    }

/* A table without its `last` last rows. */
#define AMP_FILL_TABLE_BUT(type, rows, last)                                                       \
    {                                                                                              \
        (rows), sizeof(rows) / sizeof *(rows) - (last), sizeof(type)                               \
    }

/* A table without rows. */
extern const struct amp_fill_table amp_fill_nothing;

int amp_fill(const struct amp_tape *t, uint32_t from, const struct amp_fill_table *table,
             void *target, struct amp_arena *arena, struct amp_error *err);

/* A string's decoded text; in the arena only if it was escaped. */
int amp_fill_text(const struct amp_tape *t, uint32_t tok, struct amp_arena *arena,
                  struct amp_span *out, struct amp_error *err);

#endif

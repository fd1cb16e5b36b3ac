/*
 * Views. A view is a table of columns over a struct: its members for programs, which this file
 * writes, its cells for people (cli/list.h), and the properties of its schema
 * (scripts/schemas.sh).
 */
#ifndef AMP_JSON_VIEW_H
#define AMP_JSON_VIEW_H

#include <stddef.h>

#include <amp/fsm/fsm.h>
#include <amp/json/writer.h>

enum amp_form {
    AMP_FORM_TEXT,  /* struct amp_span */
    AMP_FORM_CSTR,  /* const char *; NULL is empty */
    AMP_FORM_CHARS, /* char[] */
    AMP_FORM_ID,    /* struct amp_span; people see 12 characters of it */
    AMP_FORM_WORD,  /* a number, with the column's `word` */
    AMP_FORM_STATE, /* a number, a state of the column's `machine` */
    AMP_FORM_INT,   /* int64_t, or an unsigned number of fewer bytes */
    AMP_FORM_COUNT, /* int64_t; negative: none */
    AMP_FORM_FLAG,  /* bool; for programs */
    AMP_FORM_AGE,   /* int64_t, a time: programs get the time, people how long ago it was */
    AMP_FORM_LEFT,  /* the same, people: how long until then */
    AMP_FORM_TIME,  /* the same; people see it as RFC 3339, too */
    AMP_FORM_COST,  /* int64_t, millionths of a dollar; people see dollars and cents */
    AMP_FORM_MADE,  /* text that the column's `made` makes of the row */
    /* For programs only: */
    AMP_FORM_RAW,  /* struct amp_span: the bytes of any JSON value */
    AMP_FORM_ROWS, /* a pointer to rows of the columns `of`, and their number */
    AMP_FORM_PUT,  /* the column's `put` writes the member, or none */
};

enum { AMP_CELL_MAX = 320 }; /* bytes of a made text, a number or a time, with NUL */

/* A cell that is empty, 0 or false is "-" for people and no member for programs, unless `ever`. */
struct amp_column {
    const char *key;  /* of JSON; NULL: for people only */
    const char *head; /* of the list; NULL: for programs only */
    uint8_t form;     /* enum amp_form */
    bool ever;
    uint32_t at, size;     /* the member's offset and bytes; ROWS: the bytes of a row */
    uint32_t n_at, n_size; /* ROWS: of their number */
    union {
        const char *(*word)(int value);
        const struct amp_fsm *machine;
        struct amp_span (*made)(const void *row, char mem[AMP_CELL_MAX]);
        const struct amp_column *of;
        void (*put)(const void *row, const char *key, struct amp_jw *w);
    };
    int (*tint)(const void *row); /* of the cell, an enum amp_tint (cli/page); NULL: none */
};
/* Rows of a table of columns, which ends with {0}. What follows the member are more of the members
 * above. EVER: as described above. */
#define AMP_COLUMN(form_, type, key_, head_, member, ...)                                          \
    {                                                                                              \
        .key = key_, .head = head_, .form = AMP_FORM_##form_, .at = offsetof(type, member),        \
        .size = sizeof(((type *)0)->member), __VA_ARGS__                                           \
    }
#define AMP_COLUMN_EVER(form, type, key, head, member, ...)                                        \
    AMP_COLUMN(form, type, key, head, member, .ever = true, __VA_ARGS__)
#define AMP_COLUMN_WORD(type, key, head, member, word_)                                            \
    AMP_COLUMN(WORD, type, key, head, member, .ever = true, .word = word_)
#define AMP_COLUMN_STATE(type, key, head, member, machine_)                                        \
    AMP_COLUMN(STATE, type, key, head, member, .ever = true, .machine = machine_)
#define AMP_COLUMN_MADE(key_, head_, made_, ...)                                                   \
    {                                                                                              \
        .key = key_, .head = head_, .form = AMP_FORM_MADE, .made = made_, __VA_ARGS__              \
    }
#define AMP_COLUMN_ROWS(type, key_, member, n_member, of_, ...)                                    \
    {                                                                                              \
        .key = key_, .form = AMP_FORM_ROWS, .at = offsetof(type, member),                          \
        .size = sizeof(*((type *)0)->member), .n_at = offsetof(type, n_member),                    \
        .n_size = sizeof(((type *)0)->n_member), .of = of_, __VA_ARGS__                            \
    }
/* ever: `put` always writes it. */
#define AMP_COLUMN_PUT(key_, put_, ...)                                                            \
    {                                                                                              \
        .key = key_, .form = AMP_FORM_PUT, .put = put_, __VA_ARGS__                                \
    }

/* The members of a row, into an open object. */
void amp_view_members(const struct amp_column *column, const void *row, struct amp_jw *w);
/* Appends a row as one JSON object with LF. */
int amp_view_line(const struct amp_column *column, const void *row, struct amp_buf *out,
                  struct amp_error *err);
/* The text of a column of text, or a word. */
struct amp_span amp_view_text(const struct amp_column *c, const void *row, char mem[AMP_CELL_MAX]);
/* The number of a column of numbers, costs or times. */
int64_t amp_view_number(const struct amp_column *c, const void *row);

#endif

/*
 * Views. A view is a table of columns over a struct: its members for programs, which this file
 * writes, and its cells for people (cli/list.h).
 */
#ifndef AMP_JSON_VIEW_H
#define AMP_JSON_VIEW_H

#include <stddef.h>

#include <amp/json/writer.h>

enum amp_form {
    AMP_FORM_TEXT,  /* struct amp_span */
    AMP_FORM_CSTR,  /* const char *; NULL is empty */
    AMP_FORM_CHARS, /* char[] */
    AMP_FORM_ID,    /* struct amp_span; people see 12 characters of it */
    AMP_FORM_WORD,  /* uint8_t, with the column's `word` */
    AMP_FORM_INT,   /* int64_t */
    AMP_FORM_U32,   /* uint32_t */
    AMP_FORM_FLAG,  /* bool; for programs */
    AMP_FORM_AGE,   /* int64_t, a time: programs get the time, people how long ago it was */
    AMP_FORM_LEFT,  /* the same, people: how long until then */
    AMP_FORM_TIME,  /* the same; people see it as RFC 3339, too */
    AMP_FORM_COST,  /* int64_t, millionths of a dollar; people see dollars and cents */
    AMP_FORM_MADE,  /* text that the column's `made` makes of the row */
};

enum { AMP_CELL_MAX = 320 }; /* bytes of a made text, a number or a time, with NUL */

/* A cell that is empty, 0 or false is "-" for people and no member for programs, unless `ever`. */
struct amp_column {
    const char *key;  /* of JSON; NULL: for people only */
    const char *head; /* of the list; NULL: for programs only */
    uint8_t form;     /* enum amp_form */
    bool ever;
    uint32_t at;
    union {
        const char *(*word)(int value); /* WORD */
        struct amp_span (*made)(const void *row, char mem[AMP_CELL_MAX]);
    };
};
/* Rows of a table of columns, which ends with {0}. EVER: as described above. */
#define AMP_COLUMN(form_, type, key_, head_, member)                                               \
    {                                                                                              \
        .key = key_, .head = head_, .form = AMP_FORM_##form_, .at = offsetof(type, member)         \
    }
#define AMP_COLUMN_WORD(type, key_, head_, member, word_)                                          \
    {                                                                                              \
        .key = key_, .head = head_, .form = AMP_FORM_WORD, .ever = true,                           \
        .at = offsetof(type, member), .word = word_                                                \
    }
#define AMP_COLUMN_EVER(form_, type, key_, head_, member)                                          \
    {                                                                                              \
        .key = key_, .head = head_, .form = AMP_FORM_##form_, .ever = true,                        \
        .at = offsetof(type, member)                                                               \
    }
#define AMP_COLUMN_MADE(key_, head_, made_)                                                        \
    {                                                                                              \
        .key = key_, .head = head_, .form = AMP_FORM_MADE, .made = made_                           \
    }

/* The members of a row, into an open object. */
void amp_view_members(const struct amp_column *column, const void *row, struct amp_jw *w);
/* The text of a column of text, or a word. */
struct amp_span amp_view_text(const struct amp_column *c, const void *row, char mem[AMP_CELL_MAX]);
/* The number of a column of numbers, costs or times. */
int64_t amp_view_number(const struct amp_column *c, const void *row);

#endif

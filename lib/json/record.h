/*
 * Stored records. One table of fields reads a struct from a tape, writes it with the writer,
 * initialises it and frees it.
 *
 * Texts and elements of lists are copied into the caller's memory `mem` and are valid as long as it
 * is. Only AMP_REC_STRING and AMP_REC_OTHER own heap memory. If a member is absent or null, its
 * field keeps the value of amp_rec_init. A member of another type is refused: DATAERR "bad_record",
 * with its name.
 */
#ifndef AMP_JSON_RECORD_H
#define AMP_JSON_RECORD_H

#include <amp/fsm/fsm.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#define AMP_REC_MAX    ((size_t)256 << 20) /* a 32 MiB line, escaped six-fold at worst */
#define AMP_REC_FIELDS 64                  /* of one table, at most */

enum amp_rec_type {
    AMP_REC_TEXT,   /* struct amp_span, NUL-terminated in mem */
    AMP_REC_CSTR,   /* const char *, "" when absent */
    AMP_REC_STRING, /* char *, a heap copy, "" when absent */
    AMP_REC_CHARS,  /* char[]; a text that does not fit is refused */
    AMP_REC_INT,    /* int64_t */
    AMP_REC_BOOL,   /* bool; written when true */
    AMP_REC_TIME,   /* int64_t milliseconds, a time of RFC 3339 in JSON */
    AMP_REC_WORD,   /* an enum or uint8_t, a word in JSON; 0 counts as empty */
    AMP_REC_RAW,    /* struct amp_span: the bytes of any JSON value */
    AMP_REC_LINE,   /* struct amp_span: a message's bytes; see amp_rec_line */
    AMP_REC_TEXTS,  /* struct amp_span * and uint32_t: a list of texts */
    AMP_REC_LIST,   /* struct * and uint32_t: a list of records */
    AMP_REC_SUB,    /* a struct in this one; null in JSON if none of its fields is set */
    AMP_REC_OTHER,  /* read and written by functions */
};

/* The words of an enum: the names of a machine's states, or a list that NULL ends. */
struct amp_rec_words {
    const struct amp_fsm *machine;
    const char *const *list;
};
struct amp_rec_ops {
    int (*init)(void *field, struct amp_error *err);
    void (*free)(void *field);
    int (*read)(void *field, const struct amp_tape *t, uint32_t tok, struct amp_error *err);
    int (*write)(const void *field, struct amp_jw *w, struct amp_error *err);
};

struct amp_rec;
struct amp_rec_field {
    const char *key;
    uint8_t type;
    bool ever;         /* also written if it is empty, 0 or false */
    uint32_t at, n_at; /* offsets of the field and, of a list, of its count */
    uint32_t size;     /* of the field */
    union {
        const struct amp_rec *rec; /* LIST, SUB */
        const struct amp_rec_words *words;
        const struct amp_rec_ops *ops;
    };
};
struct amp_rec {
    const char *what; /* "a task's record", for diagnostics */
    const struct amp_rec_field *field;
    uint32_t n, size; /* fields; bytes of the struct */
};

/* Rows of a table. EVER: the field is also written if it is empty. */
#define AMP_REC(as, type_, key_, member)                                                           \
    {                                                                                              \
        .key = key_, .type = AMP_REC_##as, .at = offsetof(type_, member),                          \
        .size = sizeof(((type_ *)0)->member)                                                       \
    }
#define AMP_REC_EVER(as, type_, key_, member)                                                      \
    {                                                                                              \
        .key = key_, .type = AMP_REC_##as, .ever = true, .at = offsetof(type_, member),            \
        .size = sizeof(((type_ *)0)->member)                                                       \
    }
#define AMP_REC_ENUM(type_, key_, member, words_)                                                  \
    {                                                                                              \
        .key = key_, .type = AMP_REC_WORD, .ever = true, .at = offsetof(type_, member),            \
        .size = sizeof(((type_ *)0)->member), .words = words_                                      \
    }
#define AMP_REC_BY(type_, key_, member, ops_)                                                      \
    {                                                                                              \
        .key = key_, .type = AMP_REC_OTHER, .ever = true, .at = offsetof(type_, member),           \
        .ops = ops_                                                                                \
    }
/* The functions get the struct instead of one member. */
#define AMP_REC_WHOLE(key_, ops_)                                                                  \
    {                                                                                              \
        .key = key_, .type = AMP_REC_OTHER, .ever = true, .ops = ops_                              \
    }
/* Lists, with their number in n_member: of records of the table `of`; of texts. */
#define AMP_REC_MANY(type_, key_, member, of, ever_)                                               \
    {                                                                                              \
        .key = key_, .type = AMP_REC_LIST, .ever = ever_, .at = offsetof(type_, member),           \
        .n_at = offsetof(type_, n_##member), .rec = of                                             \
    }
#define AMP_REC_WORDS(type_, key_, member, ever_)                                                  \
    {                                                                                              \
        .key = key_, .type = AMP_REC_TEXTS, .ever = ever_, .at = offsetof(type_, member),          \
        .n_at = offsetof(type_, n_##member)                                                        \
    }
#define AMP_REC_IN(type_, key_, member, of, ever_)                                                 \
    {                                                                                              \
        .key = key_, .type = AMP_REC_SUB, .ever = ever_, .at = offsetof(type_, member), .rec = of  \
    }
#define AMP_REC_TABLE(name, what_, type_, fields)                                                  \
    _Static_assert(sizeof(fields) / sizeof(fields)[0] <= AMP_REC_FIELDS, "too many fields");       \
    static const struct amp_rec name = {what_, fields, sizeof(fields) / sizeof(fields)[0],         \
                                        sizeof(type_)}

/* Initialises an empty struct. Fails (no_memory) only if the table has AMP_REC_STRING. */
int amp_rec_init(const struct amp_rec *r, void *s, struct amp_error *err);
void amp_rec_free(const struct amp_rec *r, void *s);

/* Copies the fields of `over` that are set into s, except lists. For tables without heap memory. */
void amp_rec_overlay(const struct amp_rec *r, const void *over, void *s);

/* Reads an object of a tape into an initialised struct. mem is emptied first and may move. Each
 * list, also an absent one, gets room for one more element. */
int amp_rec_read(const struct amp_rec *r, const struct amp_tape *t, uint32_t object,
                 struct amp_buf *mem, void *s, struct amp_error *err);
/* Initialises the struct and reads it from text. After a failure there is nothing to free. */
int amp_rec_parse(const struct amp_rec *r, struct amp_span json, struct amp_buf *mem, void *s,
                  struct amp_error *err);
/* Initialises a tape with the limits of records; scans a record, to read it without a table. */
void amp_rec_tape(struct amp_tape *t);
int amp_rec_scan(struct amp_tape *t, struct amp_span json, const char *what, struct amp_error *err);
/* Appends one JSON object. */
int amp_rec_write(const struct amp_rec *r, const void *s, struct amp_buf *out,
                  struct amp_error *err);
/* Writes a list with its brackets. */
void amp_rec_list(const struct amp_rec *of, const void *v, uint32_t n, struct amp_jw *w);

/* Writes a time as a member, in RFC 3339; nothing if ms <= 0. */
void amp_rec_time(struct amp_jw *w, const char *key, int64_t ms);

/* Writes a message as a member: "msg":{…} if that preserves its bytes, so that jq can read it in
 * the log; otherwise "text":"…". */
void amp_rec_line(struct amp_jw *w, struct amp_span line);

#endif

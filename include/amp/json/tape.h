/*
 * The tape: one JSON text scanned once into an array of tokens.
 *
 * Strict RFC 8259 and UTF-8 (no BOM, no NUL, no lone surrogate escapes). A tape is reused for many
 * lines and allocates only if a line needs more tokens than any earlier one. Tokens are in document
 * order: a container is followed by its children, and an object's children alternate key and value.
 * Offsets are bytes from the start of the text, which must outlive the tape's use.
 */
#ifndef AMP_JSON_TAPE_H
#define AMP_JSON_TAPE_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

enum amp_json_type {
    AMP_JSON_NULL,
    AMP_JSON_FALSE,
    AMP_JSON_TRUE,
    AMP_JSON_NUMBER,
    AMP_JSON_STRING,
    AMP_JSON_ARRAY,
    AMP_JSON_OBJECT,
};

enum {
    AMP_TOK_ESCAPED = 1,  /* string: has a backslash escape */
    AMP_TOK_FRACTION = 2, /* number: has a fraction or an exponent */
    AMP_TOK_KEY = 4,      /* string: an object's key */
    AMP_TOK_NONASCII = 8, /* string: has bytes >= 0x80 */
    AMP_TOK_NUL = 16,     /* string: has the escape \u0000 */
};

struct amp_tok {
    uint32_t off;   /* string: first byte inside the quotes; else first byte */
    uint32_t len;   /* string: bytes inside the quotes; scalar: bytes; container: bytes */
    uint32_t next;  /* index of the token after this value's last descendant */
    uint32_t count; /* container: elements or members; key: keyed hash of its text */
    uint8_t type;   /* enum amp_json_type */
    uint8_t flags;
    uint16_t shape; /* object: the number of its keys' shape in this tape; 0: none */
};

/* Past a limit the scan fails with line_too_long, too_deep or too_many_tokens. */
struct amp_json_limits {
    uint32_t max_bytes;  /* default 32 MiB */
    uint32_t max_depth;  /* default 128 */
    uint32_t max_tokens; /* default 1,000,000 */
};
extern const struct amp_json_limits amp_json_limits_default;

/* Codes: invalid_json invalid_utf8 line_too_long too_deep too_many_tokens duplicate_key
 * no_memory. `what` describes the fault ("string not closed"). */
struct amp_json_fault {
    const char *code;
    uint32_t offset;
    char what[160];
};

/* Reports a fault as "what: the fault's text", with a status and a code; out of memory with
 * amp_fail_memory. */
int amp_json_fail(struct amp_error *err, enum amp_status status, const char *code, const char *what,
                  const struct amp_json_fault *fault);
bool amp_json_fault_is_memory(const struct amp_json_fault *fault);

struct amp_tape {
    const char *text;
    uint32_t len, n; /* bytes of text, tokens */
    struct amp_tok *tok;
    struct amp_json_limits limits;
    struct amp_tape_memory *memory; /* private */
};

void amp_tape_init(struct amp_tape *t, const struct amp_json_limits *limits); /* NULL: defaults */
void amp_tape_release(struct amp_tape *t);
/* Cleanup attribute: AMP_TAPE struct amp_tape t = {0}; */
#define AMP_TAPE __attribute__((cleanup(amp_tape_release)))

/* Frees the memory that only further scans need, for a tape that is kept. */
void amp_tape_settle(struct amp_tape *t);

/* Scans exactly one JSON value (white space around it allowed). On failure the tape is empty. */
int amp_tape_scan(struct amp_tape *t, const char *text, size_t n, struct amp_json_fault *fault);

/* Raw bytes of a token: a string's without quotes and still escaped. */
struct amp_span amp_tok_raw(const struct amp_tape *t, uint32_t tok);
/* The bytes of the complete value, with quotes. */
struct amp_span amp_tok_source(const struct amp_tape *t, uint32_t tok);
/* A string's decoded text: a span of the text if it has no escape, otherwise of the arena, which
 * moves when it grows: reserve the text's length before collecting several. */
int amp_tok_text(const struct amp_tape *t, uint32_t tok, struct amp_buf *arena,
                 struct amp_span *out, struct amp_error *err);
/* Whether a string token's decoded text equals s (no allocation). */
bool amp_tok_is(const struct amp_tape *t, uint32_t tok, struct amp_span s);
/* An integer that fits; false for fractions (3.0 and 6E0 are integers) and out of range. */
bool amp_tok_int(const struct amp_tape *t, uint32_t tok, int64_t *out);
bool amp_tok_real(const struct amp_tape *t, uint32_t tok, double *out);
const char *amp_json_type_name(enum amp_json_type type);

#define AMP_TOK_NONE UINT32_MAX

/* The value under a key of an object token (keys compared decoded), or AMP_TOK_NONE. */
uint32_t amp_tape_get(const struct amp_tape *t, uint32_t object, struct amp_span key);
uint32_t amp_tape_at(const struct amp_tape *t, uint32_t array, uint32_t index);
/* RFC 6901 pointer from `from`; "" is `from` itself. */
uint32_t amp_tape_pointer(const struct amp_tape *t, uint32_t from, struct amp_span pointer);

/* The JSON Pointer (RFC 6901) of a token and its dotted form for people ("payload.subtasks[2].id").
 */
int amp_tape_path(const struct amp_tape *t, uint32_t tok, struct amp_buf *pointer,
                  struct amp_buf *dotted, struct amp_error *err);

/* Value equality across tapes, numbers by exact value, objects without order. */
bool amp_tape_equal(const struct amp_tape *a, uint32_t x, const struct amp_tape *b, uint32_t y);

AMP_API_END

#endif

/*
 * What one protocol is made of: how it is told from others, the pointer tables that fill view and
 * body, its schemas, its rules and its codes. protocol.h's functions work on these tables.
 */
#ifndef AMP_PROTOCOL_SPEC_H
#define AMP_PROTOCOL_SPEC_H

#include <string.h>

#include <amp/protocol/protocol.h>

#include "protocol/check/check.h"
#include "protocol/view/fill.h"

struct amp_code_row;

/* One message type of a protocol. */
struct amp_kind_row {
    const char *type; /* the protocol's own word */
    enum amp_kind kind;
    const struct amp_fill_table *body; /* NULL: no body is filled */
    bool body_in_payload;              /* else the body's pointers start at the root */
    const char *schema;                /* "amp/task_dispatch.json"; NULL: the protocol's envelope */
    bool ack;                          /* whether it is acknowledged where it does not say */
    int32_t ack_timeout_sec;           /* the default where it does not say; 0: none */
    const struct amp_fill_table *bare; /* the part of the body that `finish` and the rules look at,
                                          for a checker that wants no view; NULL: all of it */
    const struct amp_code_row *codes;  /* NULL: the protocol's */
};

/* The code of a schema violation: the first row that fits. */
struct amp_code_row {
    const char *field;   /* dotted, "[]" for any index, or "*part*"; "*": any */
    const char *keyword; /* "*": any */
    const char *code;
    const char *expected; /* for people; NULL: what the schema says */
};

/* Whether an object is a message of a protocol; never and always: whatever stands under its keys,
 * so that the next one with the same keys need not be asked again. */
enum amp_detected { AMP_DETECT_NEVER, AMP_DETECT_NO, AMP_DETECT_YES, AMP_DETECT_ALWAYS };

struct amp_spec {
    enum amp_protocol protocol;
    enum amp_detected (*detect)(const struct amp_tape *t, uint32_t object);
    /* Whether a root object that no protocol's detect knows is a record of this one: a file or an
     * entry of a control plane, without an envelope; may be NULL. */
    bool (*detect_record)(const struct amp_tape *t);
    struct amp_fill_table envelope; /* of struct amp_view */
    struct amp_fill_table bare;     /* the part of it that `finish` and the rules look at where no
                                       time is given, for a checker that wants no view; may be empty:
                                       all of it */
    const struct amp_kind_row *kinds;
    unsigned n_kinds;
    const char *schema;               /* of the envelope: for types without a schema of their own */
    const struct amp_code_row *codes; /* ends with a row of NULLs */
    /* The row of a message whose type word alone does not name its shape (it looks at payload,
     * event …); NULL: by `type`. A NULL answer: the type is unknown, `schema` applies. */
    const struct amp_kind_row *(*kind_of)(const struct amp_view *v);
    /* What a text is that is no JSON, or a JSON string, and a message all the same: its type word,
     * or NULL. `pinned`: the protocol was named, so less is enough. */
    const char *(*text)(struct amp_span text, bool pinned);
    const char *no_json; /* the code of a line that is no JSON where the protocol was named; NULL:
                            the scanner's */
    /* The refusal of a line as a message in this protocol, one line with LF; `first` is its first
     * error. 0 written; 1 the protocol has no such message; NULL: none has. */
    int (*refuse)(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                  struct amp_buf *out, struct amp_error *err);
    /* Derived values, after the tables; may be NULL. */
    int (*finish)(struct amp_view *v, struct amp_pool *arena, struct amp_error *err);
    bool finish_is_view; /* finish only fills the view: left out where nobody looks at it, and a
                            message without a type word is then named after its row */
    /* Priority and expiry where a bare view lacks them; may be NULL. */
    void (*hurry)(struct amp_view *v);
    /* Whether a violation of the schema is of something that this message need not have; may be
     * NULL. */
    bool (*waives)(struct amp_check *c, const struct amp_finding *f);
    /* What the schemas cannot say; may be NULL. */
    void (*rules)(struct amp_check *c);
};

static inline bool amp_spec_detects(const struct amp_spec *s, const struct amp_tape *t,
                                    uint32_t object)
{
    return s->detect(t, object) >= AMP_DETECT_YES;
}

extern const struct amp_spec amp_spec_amp, amp_spec_sw4rm, amp_spec_aop, amp_spec_aof, amp_spec_rtp;
const struct amp_spec *amp_spec_of(enum amp_protocol p);

/* Whether an object has a string under the key, and whether it is, or starts with, the text. */
static inline bool amp_spec_has(const struct amp_tape *t, uint32_t object, const char *key)
{
    return amp_tape_get(t, object, (struct amp_span){key, strlen(key)}) != AMP_TOK_NONE;
}
static inline bool amp_spec_is(const struct amp_tape *t, uint32_t object, const char *key,
                               const char *text)
{
    uint32_t tok = amp_tape_get(t, object, (struct amp_span){key, strlen(key)});
    return tok != AMP_TOK_NONE && amp_tok_is(t, tok, (struct amp_span){text, strlen(text)});
}
bool amp_spec_starts(const struct amp_tape *t, uint32_t object, const char *key, const char *text);

/* A table without rows: nothing of the body is looked at. */
extern const struct amp_fill_table amp_fill_nothing;

/* The kind row of a type, or NULL. */
const struct amp_kind_row *amp_spec_kind(const struct amp_spec *s, struct amp_span type);

/* Who refuses a line, and the number of the refusal among what it says. Each thread is an outbox of
 * its own: lines leave in the order of the threads' work, not of the moments when they were made.
 */
#define AMP_REFUSER_MAX 32
int64_t amp_refuse_number(int64_t now_ms, char who[AMP_REFUSER_MAX]);

#define AMP_SPEC_COUNT(a) ((unsigned)(sizeof(a) / sizeof *(a)))

#endif

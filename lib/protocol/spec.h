/*
 * What one protocol is made of: how it is told from others, the pointer tables that fill view and
 * body, its schemas, its rules and its codes. protocol.h's functions work on these tables.
 */
#ifndef AMP_PROTOCOL_SPEC_H
#define AMP_PROTOCOL_SPEC_H

#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

#include "protocol/view/fill.h"
#include "protocol/view/object.h"

struct amp_check;
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

/* A member that tells a protocol in text that cannot be scanned: at the top of an object. */
struct amp_mark {
    const char *key, *value; /* value: what the member's string starts with; "": anything */
    bool claims;             /* it is enough alone; else two are needed, */
    bool tells;              /* one of them with this */
};

/* What a text is that may hold an envelope of a protocol. */
enum amp_text_is {
    AMP_TEXT_OTHER,    /* something else */
    AMP_TEXT_ENVELOPE, /* scanned: `json` is its text */
    AMP_TEXT_BAD,      /* it starts as an envelope and is none: the fault says why */
};

struct amp_spec {
    enum amp_protocol protocol;
    enum amp_detected (*detect)(const struct amp_tape *t, uint32_t object);
    bool detect_last; /* its keys are less its own than those of the other protocols */
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
    /* What a text is in which an envelope may stand; `pinned`: as above. With it envelopes are
     * looked for in `payload`, `message` and `content` of other objects, too; a text that holds
     * none is none of the protocol's business, also where the protocol was named. */
    enum amp_text_is (*unwrap)(struct amp_tape *t, struct amp_span text, bool pinned,
                               struct amp_span *json, struct amp_json_fault *fault);
    /* Whether an envelope is too large, with the fault that says so; may be NULL. */
    bool (*too_large)(struct amp_span json, struct amp_json_fault *fault);
    bool outer_to; /* its envelope has no recipient: that stands outside, {"to":…,"msg":…} */
    const char *prefix; /* what stands before its envelopes in texts; or NULL */
    /* In other text: an id that others use too, and what has to stand beside it; or NULL. */
    const char *id, *beside[8];
    const struct amp_mark *marks; /* ends with a NULL key */
    const char *no_json; /* the code of a line that is no JSON where the protocol was named; NULL:
                            the scanner's */
    /* The refusal of a line as a message in this protocol, one line with LF; `first` is its first
     * error. 0 written; 1 the protocol has no such message; NULL: none has. */
    int (*refuse)(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                  struct amp_buf *out, struct amp_error *err);
    /* The kinds, as bits, whose messages the state of earlier messages may refuse. */
    uint32_t history;
    /* Writes the members that say which policy counts in a message after precedence and defaults,
     * into an open object. 1: nothing, the message has no policy; NULL: none has. */
    int (*effective)(const struct amp_view *v, struct amp_jw *w, struct amp_error *err);
    /* Derived values, after the tables; may be NULL. */
    int (*finish)(struct amp_view *v, struct amp_pool *arena, struct amp_error *err);
    bool finish_is_view; /* finish only fills the view: left out where nobody looks at it, and a
                            message without a type word is then named after its row */
    bool heads;          /* what else the view says does not depend on any body */
    /* The code, and the field, whose finding makes the others meaningless; or NULL. */
    const char *alone_code, *alone_field;
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

#define X(id, name, title) extern const struct amp_spec amp_spec_##name;
AMP_PROTOCOL_LIST(X)
#undef X
/* NULL for AMP_PROTO_NONE. */
const struct amp_spec *amp_spec_of(enum amp_protocol p);

#define AMP_SPEC_COUNT(a) ((unsigned)(sizeof(a) / sizeof *(a)))

#endif

/*
 * The definition of a protocol: how its messages are recognized, the pointer tables that fill view
 * and body, its schemas, its rules and its codes. The functions of protocol.h work on these tables.
 */
#ifndef AMP_MESSAGE_PROTOCOL_SPEC_H
#define AMP_MESSAGE_PROTOCOL_SPEC_H

#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

#include "message/protocol/view/fill.h"
#include "message/protocol/view/object.h"

struct amp_check;
struct amp_code_row;

/* One message type of a protocol. */
struct amp_kind_row {
    const char *type; /* the protocol's own word */
    enum amp_kind kind;
    const struct amp_fill_table *body; /* NULL: no body is filled */
    bool body_in_payload;              /* else the body's pointers start at the root */
    const char *schema;                /* "amp/task_dispatch.json"; NULL: the protocol's envelope */
    bool ack;                          /* default: the message needs an acknowledgement */
    int32_t ack_timeout_sec;           /* default; 0: none */
    const struct amp_fill_table *bare; /* the part of the body that `finish` and the rules read, for
                                          a check without a view; NULL: all of it */
    const struct amp_code_row *codes;  /* NULL: the protocol's */
};

/* The code of a schema violation: the first row that matches. */
struct amp_code_row {
    const char *field;   /* dotted, "[]" for any index, or "*part*"; "*": any */
    const char *keyword; /* "*": any */
    const char *code;
    const char *expected; /* for people; NULL: from the schema */
};

/* Whether an object is a message of a protocol. NEVER and ALWAYS depend on its keys only, so the
 * answer holds for other objects with the same keys. */
enum amp_detected { AMP_DETECT_NEVER, AMP_DETECT_NO, AMP_DETECT_YES, AMP_DETECT_ALWAYS };

/* A top-level member that marks a message of the protocol in text that is not valid JSON. One mark
 * with `claims` is enough; otherwise two marks are needed, one of them with `tells`. */
struct amp_mark {
    const char *key, *value; /* value: the start of the member's string; "": any value */
    bool claims, tells;
};

/* The kinds of a text that may contain an envelope of a protocol. */
enum amp_text_is {
    AMP_TEXT_OTHER,    /* no envelope */
    AMP_TEXT_ENVELOPE, /* an envelope: `json` is its text */
    AMP_TEXT_BAD,      /* it starts like an envelope and is invalid: see the fault */
};

struct amp_spec {
    enum amp_protocol protocol;
    enum amp_detected (*detect)(const struct amp_tape *t, uint32_t object);
    bool detect_last; /* after the other protocols, because its keys are less distinctive */
    /* Whether a root object that no `detect` recognizes is a record of this protocol: a file or an
     * entry of a control plane, without an envelope; may be NULL. */
    bool (*detect_record)(const struct amp_tape *t);
    struct amp_fill_table envelope; /* of struct amp_view */
    struct amp_fill_table bare;     /* the part of it that `finish` and the rules read if no time is
                                       given, for a check without a view; empty: all of it */
    const struct amp_kind_row *kinds;
    unsigned n_kinds;
    const char *schema;               /* of the envelope: for types without a schema of their own */
    const struct amp_code_row *codes; /* ends with a row of NULLs */
    /* The row of a message if its type alone does not decide (it reads payload, event …); NULL: the
     * row of `type`. The result NULL: the type is unknown, `schema` applies. */
    const struct amp_kind_row *(*kind_of)(const struct amp_view *v);
    /* The type of a message that is plain text or a JSON string, or NULL. `pinned`: the protocol
     * was named, so less evidence is enough. */
    const char *(*text)(struct amp_span text, bool pinned);
    /* Finds an envelope in a text. With this function, envelopes are also searched in the members
     * `payload`, `message` and `content` of other objects, and a text without one passes, even if
     * the protocol was named. */
    enum amp_text_is (*unwrap)(struct amp_tape *t, struct amp_span text, bool pinned,
                               struct amp_span *json, struct amp_json_fault *fault);
    /* Whether an envelope is too large; sets the fault. May be NULL. */
    bool (*too_large)(struct amp_span json, struct amp_json_fault *fault);
    bool outer_to;      /* its recipient is outside the envelope, {"to":…,"msg":…} */
    const char *prefix; /* before its envelopes in texts; or NULL */
    /* An id that others also use, and the members of which one must be beside it; or NULL. */
    const char *id, *beside[8];
    const struct amp_mark *marks; /* ends with a NULL key */
    const char *no_json; /* the code of a line that is not JSON if the protocol was named; NULL: the
                            scanner's */
    /* The refusal of a line as a message in this protocol, one line with LF; `first` is its first
     * error. NULL: the protocol has none. */
    enum amp_refuse_result (*refuse)(const struct amp_view *v, const struct amp_finding *first,
                                     int64_t now_ms, struct amp_buf *out, struct amp_error *err);
    /* Bits of the kinds of messages that the state of earlier messages may refuse. */
    uint32_t history;
    /* The member with a number that only rises for each sender; a further attempt may repeat it.
     * NULL: there is none. */
    const char *rises;
    /* Writes the members of a message's policy, after precedence and defaults, into an open object.
     * 1: the message has no policy. NULL: no message has one. */
    int (*effective)(const struct amp_view *v, struct amp_jw *w, struct amp_error *err);
    /* Derives values from those of the tables; may be NULL. */
    int (*finish)(struct amp_view *v, struct amp_arena *arena, struct amp_error *err);
    bool finish_is_optional; /* a check without a view leaves `finish` out; the type of a message
                                without one is then that of its row */
    bool heads;              /* the rest of the view does not depend on the body */
    /* The code, and the field, of a finding that makes all others meaningless; or NULL. */
    const char *alone_code, *alone_field;
    /* Sets priority and expiry in a view that was filled from `bare`; may be NULL. */
    void (*bare_finish)(struct amp_view *v);
    /* Whether this message need not meet the requirement of a schema violation; may be NULL. */
    bool (*waives)(struct amp_check *c, const struct amp_finding *f);
    /* The rules that schemas cannot express; may be NULL. */
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

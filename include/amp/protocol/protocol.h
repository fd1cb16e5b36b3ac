/*
 * The five protocols: detection, one view for messages of all protocols, and the checks. Code
 * outside lib/message/protocol does not use the field names of a protocol.
 */
#ifndef AMP_PROTOCOL_PROTOCOL_H
#define AMP_PROTOCOL_PROTOCOL_H

#include <amp/base/api.h>
#include <amp/base/clock.h>
#include <amp/json/tape.h>
#include <amp/protocol/body.h>
#include <amp/schema/output.h>

AMP_API_BEGIN

#define AMP_PROTOCOL_LIST(X)                                                                       \
    X(AMP, amp, "AMP/1.0")                                                                         \
    X(SW4RM, sw4rm, "SW4RM 0.5.0")                                                                 \
    X(AOP, aop, "AOP 2.0.2-C")                                                                     \
    X(AOF, aof, "AOF/1")                                                                           \
    X(RTP, rtp, "Runtime Protocol v1")

enum amp_protocol {
    AMP_PROTO_NONE,
#define X(id, name, title) AMP_PROTO_##id,
    AMP_PROTOCOL_LIST(X)
#undef X
        AMP_PROTO_COUNT
};
const char *amp_protocol_name(enum amp_protocol p);
enum amp_protocol amp_protocol_find(struct amp_span name); /* AMP_PROTO_NONE: unknown */

#define AMP_TO_MAX 1024 /* recipients of a message */

/* The signature of a signed line, {"to":…,"sig":{…},"msg":…} (amp-protocols(7)). Only its form is
 * checked here. The signature is about key, time and the message's bytes. */
struct amp_signature {
    struct amp_span key, alg, time, value; /* decoded; key.n is 0: the line is not signed */
};

struct amp_view {
    enum amp_protocol protocol;
    enum amp_kind kind;
    struct amp_span line;    /* the outer bytes, which are passed on unchanged */
    struct amp_span message; /* the line; of a signed line the member msg */
    struct amp_span text;    /* the document: the message, or a part of it */
    struct amp_signature sig;
    const struct amp_tape *tape; /* of text */
    bool json;                   /* the line is JSON, without a prefix */
    struct amp_span type;        /* as the protocol spells it */
    struct amp_span id, from, task, correlation, token, content_type;
    struct amp_span worktree; /* that the message is about */
    struct amp_span session;
    struct {
        struct amp_span token, nonce; /* of an external sender (amp-token(7)) */
    } proof;
    struct amp_span node; /* the owner of the outbox of a Runtime Protocol event */
    struct amp_span *to;  /* n_to recipients, in the arena */
    uint32_t n_to;
    struct amp_spans context; /* ids of earlier messages */
    uint32_t payload;         /* token of the payload, or AMP_TOK_NONE */
    bool needs_ack, has_sequence, has_attempt, has_ack_timeout;
    bool wants_outcome; /* the sender waits for a reply or the end of the work */
    int64_t sequence, attempt, priority, lane;
    int64_t created_ms, expires_ms; /* 0: not given */
    int64_t ttl_ms;                 /* lifetime of a message without a creation time; else 0 */
    int64_t ack_timeout_ms;         /* effective: the message's own, else the default */
    uint64_t size;
    struct amp_body body;
};

/* Reads one line after another; owns the tapes and the arena that views point into. */
struct amp_reader;
struct amp_reader *amp_reader_new(const struct amp_json_limits *limits, struct amp_error *err);
void amp_reader_free(struct amp_reader *r);

enum amp_severity { AMP_SEV_ERROR, AMP_SEV_WARNING };

/* One finding about a line; strings live until the next line. */
struct amp_finding {
    enum amp_severity severity;
    enum amp_protocol protocol;
    struct amp_span type, id;  /* empty: unknown */
    struct amp_span from, key; /* if the finding is about them: the sender, the signature's key */
    const char *code;          /* "bad_enum" */
    const char *field;         /* dotted, or "" */
    const char *pointer;       /* RFC 6901, or "" */
    const char *rule;          /* schema keyword or the rule's name */
    const char *message;       /* a sentence without a subject: "is missing" */
    const char *found;         /* shortened, with control characters escaped; or "" */
    const char *expected;      /* or "" */
    const char *seed_code;     /* the protocol's code if `code` is more exact; NULL or "": none */
    uint64_t offset;           /* of the fault inside the line */
    const char *schema_at;     /* JSON Pointer into the schema that a user gave; NULL or "" */
    struct amp_span output;    /* the line's standard output unit as JSON, or empty */
    unsigned more;             /* number of findings that were left out; else 0 */
};
/* The limit of findings per line; one more has the number of the others. */
enum { AMP_FINDINGS_MOST = 64, AMP_REST_MAX = 64 };
/* Makes the finding with the number of the others; its message is in `text`. */
struct amp_finding amp_finding_rest(unsigned more, enum amp_severity severity,
                                    char text[AMP_REST_MAX]);
typedef void (*amp_finding_fn)(void *ctx, const struct amp_finding *f);

/* The requirements of an AOP RESPONSE that its TASK's guard rails may waive (AOP §5). */
enum { AMP_WAIVES_REPORT = 1, AMP_WAIVES_SIGNAL = 2 };

struct amp_check_options {
    enum amp_protocol only; /* every line is of this protocol; NONE: detect it */
    bool strict;
    bool check_repo;               /* AMP task_dispatch: the repo must be a git repository */
    bool hlc;                      /* SW4RM: hybrid logical clocks are required */
    int64_t max_payload;           /* SW4RM: bytes; 0: the recommendation for the type */
    const char *const *protected_; /* branch patterns beside main and master, NULL-terminated */
    int most;                      /* findings per line at most, 0 for all */
    bool texts;     /* text that is not JSON may be a message (AOP v1 Markdown); always true with
                       `only`. Its view has an empty object as tape. */
    int64_t now_ms; /* the time for expiry and estimates; 0: only the message's own times count */
    bool heads;     /* the body of work and of its results is not needed in the view */
    bool bare;      /* no body is needed: only values for the rules are filled */
    bool brief;     /* no findings are needed; with `bare` the view of a valid line has protocol,
                       kind, type, priority and expiry */
    /* The requirements (AMP_WAIVES_) that the TASK of this RESPONSE waives; NULL: none. Called at
     * most once per line, and only if the RESPONSE lacks something. */
    unsigned (*waives)(void *ctx, const struct amp_view *response);
    void *waives_ctx;
};

/* Scans, views and checks one line. 1: valid (warnings may have been reported); 0: at least one
 * error was reported; -1: internal failure. The view is valid until the next call; after 0 it has
 * the values that the line allows. */
int amp_reader_line(struct amp_reader *r, struct amp_span line, const struct amp_check_options *opt,
                    struct amp_view *view, amp_finding_fn fn, void *ctx, struct amp_error *err);

/* Appends the standard output of JSON Schema for the last line, without rules that are not in its
 * schema. 1: appended; 0: no schema was checked, or the output exceeds the limits; -1: failure. */
int amp_reader_output(struct amp_reader *r, enum amp_output form, struct amp_buf *out,
                      struct amp_error *err);

/* Appends message, found and expected: "is a string; found x; expected an integer". Long texts are
 * cut ("…"); found and expected are left out if they do not fit. document: leave out the byte of a
 * JSON fault, because the text has several lines. */
int amp_finding_sentence(const struct amp_finding *f, bool document, struct amp_buf *out,
                         struct amp_error *err);

/* Writes the members of a record from code to severity into an open object. */
struct amp_jw;
void amp_finding_members(struct amp_jw *w, const struct amp_finding *f);

/* Appends the rejection record (amp-records(7)), one line with LF. Long types and ids are cut
 * ("…"). */
enum { AMP_RECORD_TYPE_MAX = 256, AMP_RECORD_ID_MAX = 1000 };
struct amp_line_place {
    const char *tool;
    uint64_t line, offset;
    int64_t now_ms;
    const char *file; /* or NULL */
};
int amp_finding_record(const struct amp_finding *f, const struct amp_line_place *at,
                       struct amp_buf *out, struct amp_error *err);

/* Appends the refusal of a line as a message in its protocol (AMP nack, SW4RM ACKNOWLEDGEMENT, AOP
 * VERSION_FALLBACK …), one line with LF; for a line of no protocol an AMP nack. */
enum amp_refuse_result {
    AMP_REFUSE_FAILED = -1,
    AMP_REFUSE_WRITTEN,
    AMP_REFUSE_NONE /* the protocol has no message that refuses this one */
};
enum amp_refuse_result amp_refuse(const struct amp_view *v, const struct amp_finding *first,
                                  int64_t now_ms, struct amp_buf *out, struct amp_error *err);

/* The message in a line, as the member `message` of a view: the line itself, or `msg` of a signed
 * line. -1: out of memory. */
int amp_line_message(struct amp_span line, struct amp_span *message, struct amp_error *err);
/* Whether a recorded line has the message of a view: a message signed twice is the same message.
 * 1, 0, or -1: out of memory. */
int amp_line_has_message(struct amp_span line, const struct amp_view *v, struct amp_error *err);

/* Whether a branch is protected: main, master and the patterns, also with refs/heads/. */
bool amp_branch_is_protected(struct amp_span branch, const char *const *patterns);

AMP_API_END

#endif

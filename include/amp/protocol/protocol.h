/*
 * What the five protocols say: detection, the one view of a message, and the checks. Nothing
 * outside this room knows a protocol's field names.
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
enum amp_protocol amp_protocol_find(struct amp_span name); /* AMP_PROTO_NONE when unknown */

#define AMP_TO_MAX 1024 /* recipients a message may name */

struct amp_view {
    enum amp_protocol protocol;
    enum amp_kind kind;
    struct amp_span line; /* the outer bytes, passed on untouched */
    struct amp_span text; /* the document: line, or the inner one where a protocol wraps another */
    const struct amp_tape *tape; /* of text */
    bool json;                   /* the line is a JSON text: broken ones and AOF's prefix are not */
    struct amp_span type;        /* the protocol's own word */
    struct amp_span id, from, task, correlation, token, content_type;
    struct amp_span node; /* whose outbox an event of the Runtime Protocol stands in */
    struct amp_span *to;  /* n_to recipients, in the arena */
    uint32_t n_to;
    struct amp_spans context; /* earlier messages that it names */
    uint32_t payload;         /* token of the payload, or AMP_TOK_NONE */
    bool needs_ack, has_sequence, has_attempt, has_ack_timeout;
    bool wants_outcome; /* beside its admission somebody waits for a reply or an end of the work */
    int64_t sequence, attempt, priority, lane;
    int64_t created_ms, expires_ms; /* 0 when not said */
    int64_t ttl_ms;         /* how long it lives, where it does not say since when; else 0 */
    int64_t ack_timeout_ms; /* effective: the message's own, else the protocol's default */
    uint64_t size;
    struct amp_body body;
};

/* Scans and views lines one after another; owns the tapes and the arena that views point into. */
struct amp_reader;
struct amp_reader *amp_reader_new(const struct amp_json_limits *limits, struct amp_error *err);
void amp_reader_free(struct amp_reader *r);

enum amp_severity { AMP_SEV_ERROR, AMP_SEV_WARNING };

/* One finding about a line; strings live until the next line. */
struct amp_finding {
    enum amp_severity severity;
    enum amp_protocol protocol;
    struct amp_span type, id; /* as far as known */
    const char *code;         /* "bad_enum" */
    const char *field;        /* dotted, or "" */
    const char *pointer;      /* RFC 6901, or "" */
    const char *rule;         /* schema keyword or the rule's name */
    const char *message;      /* a sentence: what was found, what was expected */
    const char *found;        /* shortened, control characters neutralised; or "" */
    const char *expected;     /* or "" */
    const char *seed_code;    /* the protocol's own code where `code` is finer; NULL or "": none */
    uint64_t offset;          /* of the fault inside the line */
    const char *schema_at;    /* JSON Pointer into the schema that a user gave; NULL or "" */
    struct amp_span output;   /* the line's standard output unit as JSON, or empty */
    unsigned more;            /* findings that this one stands for; else 0 */
};
/* The most that are told of one line by themselves; a last one stands for the others. */
enum { AMP_FINDINGS_MOST = 64, AMP_REST_MAX = 64 };
/* That last one; `text` holds its sentence. */
struct amp_finding amp_finding_rest(unsigned more, enum amp_severity severity,
                                    char text[AMP_REST_MAX]);
typedef void (*amp_finding_fn)(void *ctx, const struct amp_finding *f);

/* What an AOP TASK's guard rails may not require of its RESPONSE (AOP §5). */
enum { AMP_WAIVES_REPORT = 1, AMP_WAIVES_SIGNAL = 2 };

struct amp_check_options {
    enum amp_protocol only; /* pins one protocol; NONE detects */
    bool strict;
    bool check_repo;               /* AMP task_dispatch: repo exists and holds git */
    bool hlc;                      /* SW4RM: hybrid logical clocks are on */
    int64_t max_payload;           /* SW4RM: bytes; 0: what is recommended for the type */
    const char *const *protected_; /* branch patterns beside main and master, NULL-terminated */
    int most;                      /* findings a line at most, 0 for all */
    bool texts; /* a text that is no JSON may be a message too (AOP v1 Markdown); always true with
                   `only`. Its view has an empty object for a tape. */
    int64_t now_ms; /* expiry and estimates are judged at this instant too; 0: by the message's
                       own times only */
    bool heads;     /* nobody looks at the body of work and its results: what else the view says is
                       filled as ever */
    bool bare;      /* nobody looks at the view's body: only what the rules need is filled */
    bool brief;     /* a bad line is told by the result alone; with bare the view says protocol,
                       kind, type, priority and expiry of a good one */
    /* Which of them the TASK of this RESPONSE does not require; NULL: all are required. Asked at
     * most once a line, and only where the RESPONSE lacks something. */
    unsigned (*waives)(void *ctx, const struct amp_view *response);
    void *waives_ctx;
};

/* Scans, detects, views and checks one line. 1: valid (warnings may have been reported); 0: at
 * least one error was reported; -1: internal failure. The view is valid until the next call and is
 * filled as far as the line allows also when 0 is returned. */
int amp_reader_line(struct amp_reader *r, struct amp_span line, const struct amp_check_options *opt,
                    struct amp_view *view, amp_finding_fn fn, void *ctx, struct amp_error *err);

/* Appends the standard output of JSON Schema for the line that was read last: what the schema of
 * its kind says; rules beyond it are findings only. 1: appended; 0: no schema was asked, or the
 * output would pass the limits; -1: failure. */
int amp_reader_output(struct amp_reader *r, enum amp_output form, struct amp_buf *out,
                      struct amp_error *err);

/* Appends what was wrong, what was found and what would be right: "is no number; found x; expected
 * an integer". Long texts are cut ("…"); found and expected are left out where they do not fit.
 * document: the line is a text of several lines, so that the byte of a fault of JSON says nothing.
 */
int amp_finding_sentence(const struct amp_finding *f, bool document, struct amp_buf *out,
                         struct amp_error *err);

/* The members of a record from code to severity, written into an open object. */
struct amp_jw;
void amp_finding_members(struct amp_jw *w, const struct amp_finding *f);

/* The rejection record (amp-records(7)) as one line with LF. Longer types and ids are cut ("…").
 */
enum { AMP_RECORD_TYPE_MAX = 256, AMP_RECORD_ID_MAX = 1000 };
struct amp_line_place {
    const char *tool;
    uint64_t line, offset;
    int64_t now_ms;
    const char *file; /* or NULL */
};
int amp_finding_record(const struct amp_finding *f, const struct amp_line_place *at,
                       struct amp_buf *out, struct amp_error *err);

/* The refusal of a line as a message in its sender's protocol (AMP nack, SW4RM ACKNOWLEDGEMENT,
 * AOP VERSION_FALLBACK …), one line with LF. A line of no protocol is answered by an AMP nack.
 * 0: written; 1: the protocol says nothing to such a line; -1: failure. */
int amp_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
               struct amp_buf *out, struct amp_error *err);

/* The branch rule of the protocols: main, master, refs/heads/ forms, and the given patterns. */
bool amp_branch_is_protected(struct amp_span branch, const char *const *patterns);

AMP_API_END

#endif

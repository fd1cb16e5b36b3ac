/*
 * Answers of an agent to a message: it accepts the work, reports progress, completes it, reports
 * that it failed, or replies. One row per protocol, in lib/message/protocol/NAME/reply.c; see the
 * column `replies` of struct amp_answer_terms. A protocol refuses what it has no message for;
 * nothing is invented for a value that a message requires and the answer lacks.
 */
#ifndef AMP_MESSAGE_PROTOCOL_REPLY_H
#define AMP_MESSAGE_PROTOCOL_REPLY_H

#include <jansson.h>

#include "message/protocol/answers.h"

#define AMP_REPLY_ACTS(X)                                                                          \
    X(ACCEPT, "accept")                                                                            \
    X(PROGRESS, "progress")                                                                        \
    X(COMPLETE, "complete")                                                                        \
    X(FAIL, "fail")                                                                                \
    X(REPLY, "reply")
enum amp_reply_act {
#define X(id, name) AMP_REPLY_##id,
    AMP_REPLY_ACTS(X)
#undef X
};
const char *amp_reply_act_name(enum amp_reply_act act);
/* -1: unknown. */
int amp_reply_act_find(struct amp_span name);

/* A file that the answer names. */
struct amp_reply_file {
    const char *path;   /* as the answer names it */
    const char *real;   /* absolute; "" unknown */
    const char *sha256; /* 64 hexadecimal digits */
    int64_t bytes;
    int64_t born_ms, changed_ms; /* when it was made (0: unknown) and last written */
    struct amp_span text;        /* its contents, of a small file; else p is NULL */
};

/* The answer, and what is known about the work. */
struct amp_reply_said {
    enum amp_reply_act act;
    const char *by;     /* the agent */
    const char *role;   /* AMP: the role that it speaks for */
    const char *text;   /* NULL: none */
    const json_t *data; /* an object whose members are the protocol's own; NULL: none */
    const struct amp_reply_file *files;
    uint32_t n_files;
    bool has_percent;
    double percent;   /* 0 to 100 */
    const char *code; /* of a failure; NULL: none */
    bool retryable;   /* another attempt may help */
    int64_t eta_ms;   /* when the end is expected; 0: unknown */
    bool taken;       /* the agent has the work: a failure is no refusal of the message */
    int64_t began_ms; /* when the work began */
    int64_t frame;    /* reports of progress before this answer */
    int64_t sequence; /* see struct amp_answer */
    int64_t now_ms;
};

struct amp_reply_terms {
    /* Appends one line with LF. NO unsupported_reply: the protocol has no such answer to this
     * message, *what* is a sentence with the alternative; NO missing_field, bad_value or a code of
     * the protocol: the answer lacks a value, or has a wrong one. The message is complete: its view
     * has its document. */
    int (*compose)(const struct amp_view *of, const struct amp_reply_said *said,
                   struct amp_buf *out, struct amp_error *err);
    bool by_role; /* the sender of an answer is a role, not an agent */
    /* The act needs the change that the branch of the work has; NULL: no act does. */
    bool (*needs_diff)(const struct amp_view *of, const struct amp_reply_said *said);
};

extern const struct amp_reply_terms amp_replies_amp, amp_replies_sw4rm, amp_replies_aop,
    amp_replies_aof, amp_replies_rtp;

/* ---- for the rows ---- */

/* NO unsupported_reply; hint: what to do instead, a clause, or "". */
int amp_reply_unsupported(const struct amp_view *of, const struct amp_reply_said *said,
                          const char *hint, struct amp_error *err);
/* NO missing_field: a member and how to give it. */
int amp_reply_missing(const char *member, const char *hint, struct amp_error *err);
/* A copy of the data, or a new object; NULL: out of memory. */
json_t *amp_reply_payload(const struct amp_reply_said *said);
/* Sets a member that the data does not have; takes the value's reference. */
void amp_reply_default(json_t *object, const char *key, json_t *value);
/* The text, "" if there is none. */
const char *amp_reply_text(const struct amp_reply_said *said);
/* The code and the text in one sentence; "" if there is neither. */
json_t *amp_reply_why(const struct amp_reply_said *said);
/* The files as a list of {"path","sha256","bytes"}; NULL: there are none. */
json_t *amp_reply_files(const struct amp_reply_said *said);
json_t *amp_reply_span(struct amp_span s);
json_t *amp_reply_time(int64_t ms);

#endif

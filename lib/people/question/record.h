/* The record of a question to a person (kind "escalation", states of amp_escalation_fsm), its
 * subject and its steps. */
#ifndef AMP_PEOPLE_QUESTION_RECORD_H
#define AMP_PEOPLE_QUESTION_RECORD_H

#include "message/protocol/question.h"
#include "people/question/escalation.h"
#include "people/question/operators/operators.h"
#include "json/record.h"

/* The subject of a question. An AMP escalation names its task. One about work of another protocol
 * has the task AMP_TASK_NONE, and is about the message that it affects. A question ends when its
 * subject ends. */
#define AMP_ABOUT_MAX 1001 /* of an id, with its NUL */

struct amp_about {
    enum amp_about_kind kind;
    char protocol[16];        /* "" if unknown */
    char id[AMP_ABOUT_MAX];   /* of the message; "" for a task */
    char task[AMP_ABOUT_MAX]; /* its id, or "" */
};

/* Looks up the subject of a question in the state. */
int amp_about_find(struct amp_store *s, const struct amp_view *question, struct amp_about *out,
                   struct amp_error *err);

/* Whether the message or a later attempt of it has an outcome. */
int amp_about_ended(struct amp_store *s, const char *id, bool *ended, struct amp_error *err);

#define AMP_QUESTION_KEY_MAX (AMP_ABOUT_MAX + 16)
#define AMP_WHY_MAX          64
#define AMP_QUESTION_BYTES   (1u << 20) /* of a record, of a line that answers */

/* Unset times are 0, unset texts are empty. */
struct amp_question_rec {
    struct amp_span task, type, severity, protocol;
    int64_t arrived_ms;
    struct amp_about about;
    int64_t asked_ms;
    struct amp_span decision, operator, note;
    int64_t decided_ms;
    struct amp_span passed; /* why there is no decision */
    struct amp_span refused;
    int64_t refused_ms, ended_ms;
    struct amp_span withdrawn; /* of one that ended because its sender withdrew it: why */
    /* The protocol's own names: of the question, and of the conversation. */
    struct amp_span invocation, correlation;
    /* reason: one of SW4RM's eight (amp-questions(7)); risk: low, medium, high, or empty. */
    struct amp_span reason, risk;
    struct amp_span why; /* in words, from the task's record; or empty */
    /* The time at which the fallback applies, 0: never; its name, and the number of extensions. */
    int64_t deadline_ms, extensions;
    struct amp_span fallback, accept; /* accept: the action that AUTO_DECIDE_THRESHOLD takes */
    int64_t timeout_ms;               /* from the arrival to the first deadline */
    int64_t until_ms;                 /* of a deferred question */
    /* The decision's origin: amp_channel_name, amp_known_by_name, the key's fingerprint, the digest
     * of what was shown; policy: the fallback that decided, and hitl_unavailable or deadline. */
    struct amp_span channel, method, key, shown, policy, because;
    int64_t expired_ms;     /* when the deadline passed without a decision, 0: it did not */
    int64_t need;           /* how many different persons have to agree; 0: one */
    struct amp_vote *votes; /* then: all of them */
    struct amp_span patch;  /* base64, of a decision that has one */
    struct amp_span line;   /* the decision as it was sent, without LF, if a coordinator carries
                               decisions out */
    uint32_t n_votes;
};
/* The texts are in mem. */
int amp_question_rec_read(struct amp_span json, struct amp_buf *mem, struct amp_question_rec *out,
                          struct amp_error *err);

/* Reads the record with this key. 1: found; 0: there is none. The texts are in mem. */
int amp_question_find(struct amp_store *s, struct amp_span key, struct amp_buf *mem,
                      struct amp_question_rec *out, struct amp_error *err);

/* Fails with NO already_decided or ended if the key, the message, the invocation or the task is
 * that of a question that was decided or has ended; 0: there is none. */
int amp_question_closed(struct amp_store *s, struct amp_span name, struct amp_error *err);

enum amp_protocol amp_question_protocol(const struct amp_question_rec *r);

/* The key of the record: the id alone in a protocol whose decisions may be refused, because the
 * nack names the id; else "PROTOCOL/ID". amp_question_key_id: the id in such a key. */
void amp_question_key(enum amp_protocol p, struct amp_span id, char out[AMP_QUESTION_KEY_MAX]);
const char *amp_question_key_id(enum amp_protocol p, const char *key);

/* The coordinator's refusal of a decision about `ref`. */
struct amp_refusal {
    struct amp_span ref, task, code, why;
    const char *by; /* the actor, for the log */
    int64_t at_ms;
};

/* One step of the record. */
struct amp_question_update {
    uint8_t event;
    uint32_t facts, effects;     /* effects: of the step; 0: there was no step */
    struct amp_question_rec set; /* the fields that the step sets */
    int64_t now_ms;              /* for ASK */
    struct amp_store_emit emit;
    struct amp_buf mem, json;
    const char *actor; /* its outbox gets the line */
    const struct amp_refusal *refusal;
    /* DECIDE: the vote of this answer; if more are needed, the event is VOTE. */
    const struct amp_vote *vote;
    struct amp_quorum approval;
    struct amp_votes_count count; /* result */
    int64_t extend_ms;            /* EXPIRE: the time from now to an extended deadline */
    bool unreachable;             /* EXPIRE: the deadline has not passed, but nobody is there */
};
/* NO already_decided, ended, duplicate_vote, and for EXPIRE and WAKE not_due: the time has not
 * come, because another process made the step. */
int amp_question_update(struct amp_store *s, struct amp_span key, struct amp_question_update *u,
                        enum amp_store_outcome *outcome, struct amp_error *err);

/* Opens the question of a refused decision again, with the reason. Nothing changes if there is no
 * record, if the question is not decided, or if this refusal (identified by its time) was recorded
 * before. Call amp_store_sync before reporting it. */
int amp_question_reopen(struct amp_store *s, const struct amp_refusal *r, bool *reopened,
                        struct amp_error *err);
/* Whether a refusal with this code opens the question again; already_decided, terminal and
 * withdrawn do not. */
bool amp_question_reopens(struct amp_span code);

/* Ends a question that its sender withdrew; if it did not arrive yet, it is recorded as ended and
 * never asked. Nothing changes if it was withdrawn before. NO already_decided, ended. */
struct amp_revocation {
    enum amp_protocol protocol; /* NONE: the one whose decisions a coordinator carries out */
    struct amp_span ref, task, type, severity; /* ref: the id of the message that asked */
    const char *why, *by;                      /* by: the actor, for the log */
    int64_t now_ms;
};
int amp_question_revoke(struct amp_store *s, const struct amp_revocation *r, struct amp_error *err);
/* Fails with NO, withdrawn or ended: how a question that has ended did. */
int amp_question_end_fail(const struct amp_question_rec *r, struct amp_error *err);

#endif

/*
 * Answers to questions, from wherever they come: a terminal, a file, a command, a channel, a
 * policy. One function checks an answer and carries it out, so all of them follow the same rules:
 * the answer fits the question, its author may decide it, the commit exists, and the first decision
 * wins.
 */
#ifndef AMP_PEOPLE_ANSWER_OFFER_H
#define AMP_PEOPLE_ANSWER_OFFER_H

#include "people/answer/decide.h"

/* The channels of answers: X(NAME, "word in records"). */
#define AMP_CHANNELS(X)                                                                            \
    X(TERMINAL, "terminal")                                                                        \
    X(FILE, "file")       /* --answer */                                                           \
    X(COMMAND, "command") /* hitl-prompt answer */                                                 \
    X(FOLDER, "folder")                                                                            \
    X(WEBHOOK, "webhook")                                                                          \
    X(SCRIPT, "script") /* of a channel */                                                         \
    X(SIGNED, "signed") /* a file that the operator signed */                                      \
    X(HOOK, "hook")                                                                                \
    X(POLICY, "policy") /* a fallback: no person decided */
enum amp_channel {
#define X(id, word) AMP_CHANNEL_##id,
    AMP_CHANNELS(X)
#undef X
        AMP_CHANNEL_COUNT
};
const char *amp_channel_name(enum amp_channel c);

struct amp_offer {
    /* The question: `q` if the caller has it; else `name`: the key of its record, the id of its
     * message, its invocation id, its task, or an unambiguous prefix of one of them. */
    const struct amp_question *q;
    const char *name;
    /* action: as the person wrote it, in any case; it may be a line, "rollback COMMIT NOTE…", whose
     * parts count where commit and note are NULL. `does` is not used. op: the operator's name. A
     * note that begins with '{', of an action that edits, is the changed payload. */
    struct amp_operator_answer answer;
    enum amp_known_by how; /* people/question/operators/operators.h */
    const char *key;       /* the fingerprint of the operator's key, with KEY; else NULL */
    const char *principal; /* of that key; NULL: operator/OP */
    enum amp_channel channel;
    const char *shown;    /* digest of what the person saw, lower-case hexadecimal; or NULL */
    int64_t now_ms;       /* 0: the clock's */
    uint32_t *left;       /* result of COUNTED: how many more have to agree; or NULL */
    struct amp_buf *line; /* result of DECIDED: the decision's line with LF; or NULL */
};

enum amp_offered {
    AMP_OFFERED_FAILED = -1, /* the machinery failed; the question is unchanged */
    AMP_OFFERED_DECIDED,     /* committed and synced; the line is in the outbox of the decider */
    AMP_OFFERED_COUNTED,     /* an approval was recorded; more are needed */
    AMP_OFFERED_DEFERRED,    /* the question is asked again at `until_ms` of the answer */
    AMP_OFFERED_REFUSED,     /* err has the code; recorded in the error log; the question is open,
                                unless the code is already_decided or ended */
};

/* The question with a name (see struct amp_offer). 0: q is filled, and the caller releases it. NO
 * unknown_question, ambiguous_question. */
int amp_offer_find(struct amp_decider *d, const char *name, struct amp_question *q,
                   struct amp_error *err);

/* Decides, counts, defers or refuses. Codes of a refusal:
 * NO    unknown_question, ambiguous_question (err names up to three), already_decided (err names
 *       who decided, and what), ended;
 *       duplicate_vote (this person has answered; others have to agree);
 * NOPERM permission_denied (another name than the login), not_operator, not_authorized (this
 *       operator may not decide this question);
 * DATAERR bad_answer, and those of amp_decider_decide (missing_commit, unknown_revision, no_task,
 *       no_letter, buffer_full). */
enum amp_offered amp_offer_make(struct amp_decider *d, const struct amp_offer *o,
                                struct amp_error *err);

#endif

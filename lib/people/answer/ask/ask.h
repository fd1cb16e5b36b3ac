/*
 * A question of an agent to a person: a HITL_INVOCATION that is recorded in the state directory as
 * a message and as a question, so that any channel of hitl-prompt may answer it. The caller waits
 * in its own loop: it looks again when the log was written (message/store/wake.h).
 */
#ifndef AMP_PEOPLE_ANSWER_ASK_ASK_H
#define AMP_PEOPLE_ANSWER_ASK_ASK_H

#include <amp/base/id.h>

#include "people/answer/decide.h"

struct amp_identities;

#define AMP_ASK_LINE_MAX ((size_t)256 << 10)

struct amp_ask {
    const char *from;            /* the sender of the invocation */
    const char *reason;          /* one of SW4RM's */
    const char *task;            /* NULL or "": of no task */
    struct amp_span context;     /* a JSON object: the evidence */
    const char *const *proposed; /* actions that are proposed, NULL-terminated; or NULL */
    int64_t until_ms;            /* when the asker gives up */
    struct amp_identities *ids;  /* signs the line; NULL: it is not signed */
};

/* Must not be moved while it is open. */
struct amp_asking {
    struct amp_store *store;
    struct amp_decider d;
    char id[AMP_UUID_MAX], invocation[AMP_UUID_MAX], key[AMP_QUESTION_KEY_MAX];
    struct amp_buf line; /* the message */
};

/* Gives the message and the question their ids. actor: of the commits. */
int amp_asking_open(struct amp_asking *a, struct amp_store *s, const char *actor,
                    volatile const int *stop,
                    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2))),
                    struct amp_error *err);
void amp_asking_close(struct amp_asking *a); /* also after a failed open */

/* Records the message and the question; both are synced. */
int amp_asking_record(struct amp_asking *a, const struct amp_ask *q, struct amp_error *err);
/* Records them in two steps, so that the caller can record the key before there is a question, and
 * complete a question after a crash: a->id and a->invocation may be set between open and make. The
 * second one also succeeds if the message or the question was recorded before. */
int amp_asking_make(struct amp_asking *a, const struct amp_ask *q, struct amp_error *err);
int amp_asking_commit(struct amp_asking *a, struct amp_error *err);

/* The question as it is now; the texts of r are in mem. A decision by a fallback has r->policy: no
 * person decided. */
enum amp_asking_is {
    AMP_ASKING_FAILED = -1,
    AMP_ASKING_OPEN,
    AMP_ASKING_DECIDED,
    AMP_ASKING_ENDED
};
enum amp_asking_is amp_asking_look(const struct amp_asking *a, struct amp_buf *mem,
                                   struct amp_question_rec *r, struct amp_error *err);

/* Sets the ids of a question that was recorded before, by its key: for look and end. */
void amp_asking_name(struct amp_asking *a, struct amp_span key);

/* Ends an open question that is not waited for any more, with a nack to its sender, with the code;
 * synced. 1: it was decided, or has ended, before; look again. */
int amp_asking_end(struct amp_asking *a, const char *code, const char *why, struct amp_error *err);

#endif

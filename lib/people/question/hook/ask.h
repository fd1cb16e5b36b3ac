/*
 * Asks a person about a tool call that no rule decides, and waits for the decision: a
 * HITL_INVOCATION with the reason TOOL_PRIVILEGE_ESCALATION, recorded in the state directory as a
 * message and as a question. Any channel of hitl-prompt may answer it.
 */
#ifndef AMP_PEOPLE_QUESTION_HOOK_ASK_H
#define AMP_PEOPLE_QUESTION_HOOK_ASK_H

#include "message/store/store.h"
#include "people/question/hook/grant.h"

/* Bytes of a tool's input that the question shows; a larger one is left out, and the answer
 * `modify` is refused. */
#define AMP_HOOK_INPUT_MAX ((size_t)64 << 10)

struct amp_hook_question {
    const struct amp_call_event *event;
    const struct amp_hook_place *at;
    const char *why;                 /* why it is asked */
    const char *agent, *role, *task; /* or NULL: unknown */
    int64_t deadline_ms;             /* how long to wait */
    /* The calls that may be permitted for the session, and for how long; NULL: none. */
    const struct amp_hook_scope *scope;
    int64_t session_ms;
    volatile const int *stop; /* set by the handlers of INT and TERM */
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
};

struct amp_hook_answer {
    enum amp_call_verdict verdict; /* ALLOW or DENY */
    char why[512];                 /* for DENY: the person's words, or why there is no answer */
    struct amp_buf input;          /* with ALLOW: the changed input, or empty */
    bool session;                  /* it was allowed for the session, which is recorded */
};

/* Returns with an answer, also after the deadline, a signal or the end of the question: then it is
 * DENY, and the question is closed. -1: the question could not be recorded or waited for; the
 * caller must treat this as DENY. The caller releases out->input in any case. */
int amp_hook_ask(struct amp_store *s, const struct amp_hook_question *q,
                 struct amp_hook_answer *out, struct amp_error *err);

#endif

/*
 * Suspensions by people, the emergency stop: of everything in a state directory, of a task, or of
 * an agent. They are independent of the suspensions by escalations: a decision does not lift them.
 *
 * Key "pause.now": {"list":[{"scope","name","operator","by","key","channel","reason","since"}]}.
 * One record has all of them, so that one read answers whether there are any, and its history in
 * the log has who suspended and resumed what, signed. Its state is QUIET or PAUSED.
 */
#ifndef AMP_MESSAGE_PAUSE_PAUSE_H
#define AMP_MESSAGE_PAUSE_PAUSE_H

#include <amp/fsm/fsm.h>

#include "message/store/store.h"
#include "json/record.h"

#define AMP_PAUSE_STATES(X)                                                                        \
    X(AMP_PAUSE_QUIET, "QUIET", "people suspend nothing")                                          \
    X(AMP_PAUSE_PAUSED, "PAUSED", "people suspend something")

#define AMP_PAUSE_EVENTS(X)                                                                        \
    X(AMP_PAUSE_EV_SUSPEND, "suspend", "a person suspends something that is not suspended")        \
    X(AMP_PAUSE_EV_RESUME, "resume", "a person resumes what was suspended")

#define AMP_PAUSE_FACTS(X) X(AMP_PAUSE_IF_LAST, "last", "nothing else is suspended")

#define AMP_PAUSE_EFFECTS(X)                                                                       \
    X(AMP_PAUSE_DO_STOP, "stop", "add it to the list: its agents are ended")                       \
    X(AMP_PAUSE_DO_RELEASE, "release", "remove it from the list: its work goes on")

AMP_FSM_ENUMS(AMP_PAUSE);
extern const struct amp_fsm amp_pause_fsm;

#define AMP_PAUSE_KIND "pause"

enum {
    AMP_PAUSES_MAX = 256,      /* at a time; past it: pause_limit */
    AMP_PAUSE_NAME_MAX = 256,  /* bytes of a task's id or an agent's name */
    AMP_PAUSE_TEXT_MAX = 1024, /* bytes of a reason */
};

enum amp_pause_scope {
    AMP_PAUSE_ALL,
    AMP_PAUSE_TASK,
    AMP_PAUSE_AGENT,
};
const char *amp_pause_scope_name(int scope);

struct amp_pause {
    enum amp_pause_scope scope;
    struct amp_span name; /* empty for ALL */
    /* The person, how the person was known, the key, the channel, and the reason. */
    struct amp_span person, by, key, channel, reason;
    struct amp_span alg, signature; /* of amp_pause_text, or empty */
    int64_t since_ms;
};
/* The text that the person's key signs, in a namespace of its own; its time is since_ms. */
#define AMP_PAUSE_NAMESPACE "amp-suspension"
int amp_pause_text(const struct amp_pause *p, bool resume, struct amp_buf *out,
                   struct amp_error *err);

/* A list that lives as long as its memory. */
struct amp_pauses {
    struct amp_pause *v;
    uint32_t n_v;
    struct amp_buf mem;
    uint64_t rev; /* of the record */
};
void amp_pauses_init(struct amp_pauses *p);
void amp_pauses_release(struct amp_pauses *p);
/* Reads the list; cheap if nothing is suspended or changed since the last call. */
int amp_pauses_read(struct amp_store *s, struct amp_pauses *p, struct amp_error *err);
/* Reads what the last change in a record was about, for the history. The texts are in mem. */
int amp_pause_last(struct amp_span json, struct amp_buf *mem, struct amp_pause *out,
                   struct amp_error *err);
/* Returns the suspension of the task or the agent; either may be empty. A suspension of everything
 * comes first. NULL: none. */
const struct amp_pause *amp_pauses_find(const struct amp_pauses *p, struct amp_span task,
                                        struct amp_span agent);

/* Suspends. *changed: false if it was suspended, which keeps the earlier person and reason. NO
 * pause_limit; DATAERR bad_name, buffer_full. Sync afterwards. */
int amp_pause_suspend(struct amp_store *s, const struct amp_pause *p, bool *changed,
                      struct amp_error *err);
/* Resumes what has the scope and the name, or with ALL everything that is suspended. `who` has the
 * person, for the log. *n: how many suspensions ended. */
int amp_pause_resume(struct amp_store *s, const struct amp_pause *who, uint32_t *n,
                     struct amp_error *err);

#endif

/*
 * Landings: approved work that was merged. Key "landing.<task>": {"now":{…}|null,"list":[{…}…]}.
 * `now` is written before a branch is moved and removed afterwards, so that a crash in between
 * leaves a record from which the next call continues (work/loop/land/land.h). The task itself stays
 * done: AMP/1.0 has no state after it.
 */
#ifndef AMP_WORK_TASK_LANDING_LANDING_H
#define AMP_WORK_TASK_LANDING_LANDING_H

#include <amp/fsm/fsm.h>

#include "message/record/subject.h"

#define AMP_LANDING_STATES(X)                                                                      \
    X(AMP_LANDING_NONE, "none", "its work was not merged")                                         \
    X(AMP_LANDING_MOVING, "moving", "a branch is being moved to its work")                         \
    X(AMP_LANDING_LANDED, "landed", "a branch has its work")

#define AMP_LANDING_EVENTS(X)                                                                      \
    X(AMP_LANDING_EV_BEGIN, "begin", "a person lands it")                                          \
    X(AMP_LANDING_EV_MOVED, "moved", "the branch has moved")                                       \
    X(AMP_LANDING_EV_STAY, "stay", "the branch did not move")

#define AMP_LANDING_FACTS(X) X(AMP_LANDING_IF_BEFORE, "before", "it has landed before")

#define AMP_LANDING_EFFECTS(X)                                                                     \
    X(AMP_LANDING_DO_ORDER, "order", "record which branch moves from where to where, signed")      \
    X(AMP_LANDING_DO_ADD, "add", "add it to the landings")                                         \
    X(AMP_LANDING_DO_DROP, "drop", "remove the record of the move")

AMP_FSM_ENUMS(AMP_LANDING);
extern const struct amp_fsm amp_landing_fsm;

#define AMP_LANDING_KIND "landing" /* of the records in the store */
#define AMP_LANDING_MAX  64        /* landings of a task that are kept: the newest */

/* Texts are in the memory of the record, or borrowed. */
struct amp_landing {
    struct amp_span task, repo, branch; /* branch: without refs/heads/ */
    struct amp_span from, to;           /* the branch's values; from: empty for a new one */
    struct amp_span commit, tree;       /* the approved ones; to is it, or merges it into from */
    /* A merge with other commits of the branch: who let it in ("check", "person"; empty: to has the
     * approved tree), the command that checked it, and the SHA-256 of that command's output. */
    struct amp_span merged, test, digest;
    struct amp_span person, by, key; /* who, known by what, with which key */
    struct amp_span alg, signature;  /* of amp_landing_text, or empty */
    int64_t at_ms;
};
/* The text that the person's key signs, in a namespace of its own. */
#define AMP_LANDING_NAMESPACE "amp-landing"
int amp_landing_text(const struct amp_landing *l, struct amp_buf *out, struct amp_error *err);

struct amp_landings {
    uint8_t state;          /* NONE without a record */
    struct amp_landing now; /* in MOVING */
    struct amp_landing *v;  /* the oldest first */
    uint32_t n_v;
    struct amp_span task;
    struct amp_buf mem; /* of amp_landings_read */
};
void amp_landings_init(struct amp_landings *l);
void amp_landings_release(struct amp_landings *l);
#define AMP_LANDINGS AMP_CLEANUP(amp_landings_release) struct amp_landings
/* Reads the landings of a task. */
int amp_landings_read(struct amp_store *s, struct amp_span task, struct amp_landings *out,
                      struct amp_error *err);
/* Whether recorded landings, also one that is being carried out, moved the branch of any repository
 * from one commit to the other. 1, 0 or -1. */
int amp_landings_moved(struct amp_store *s, const char *branch, const char *from, const char *to,
                       struct amp_error *err);
/* The newest landing of a record, for the history; all empty if there is none. Texts are in mem. */
int amp_landing_last(struct amp_span json, struct amp_buf *mem, struct amp_landing *out,
                     struct amp_error *err);
/* One landing as JSON, and back; texts are in mem. DATAERR bad_record. */
int amp_landing_write(const struct amp_landing *l, struct amp_buf *out, struct amp_error *err);
int amp_landing_parse(struct amp_span json, struct amp_buf *mem, struct amp_landing *out,
                      struct amp_error *err);

/* One step. l: the landing that BEGIN records; MOVED and STAY are about the recorded one, which
 * must be the same (branch, from, to): NO landing_changed. NO illegal_transition. Sync afterwards.
 */
int amp_landing_step(struct amp_store *s, uint8_t event, const struct amp_landing *l,
                     struct amp_error *err);

#endif

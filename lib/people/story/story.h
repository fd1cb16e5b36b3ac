/*
 * Tells what is known of a task of AMP/1.0: a summary for lists, and its story, which is what
 * happened to it in order. Both are read from the records of the state directory (the task, the
 * messages of the ledger, questions, agents, bindings, suspensions) through the index; the log is
 * not read. Texts are those of messages and untrusted: print them through amp_text_safe.
 */
#ifndef AMP_PEOPLE_STORY_STORY_H
#define AMP_PEOPLE_STORY_STORY_H

#include "work/task/landing/landing.h"
#include "work/task/record.h"
#include "work/task/task.h"

/* ---- summaries ---- */

/* Spans are valid during the callback; empty: unknown or none. Times are in milliseconds. */
struct amp_brief {
    struct amp_span id, description, repo, branch, base;
    uint8_t state; /* of amp_task_fsm */
    bool ended;    /* a terminal state */
    enum amp_risk risk;
    /* The current subtask, else the last one: its state (of amp_qa_fsm) and its dispatches so far,
     * the last result (complete, partial, failed) and its commit, the last verdict. */
    struct amp_span subtask, completion, commit, verdict;
    uint8_t subtask_state;
    int64_t attempts, rejections; /* rejections: in a row */
    uint32_t subtasks, approved;
    /* The open question: a critical one, else the oldest. question_why: in words, or its type;
     * questions: how many are open. */
    struct amp_span question, question_type, question_why, severity;
    uint32_t questions;
    /* The agent that works on it, else the last one that did; working: now. */
    struct amp_span agent, worktree;
    bool working, paused; /* paused: a person suspended the task, its agent, or everything */
    uint8_t landing;      /* of amp_landing_fsm; none for a task that has not ended */
    /* The first blocker of the last result, which tells why it failed. */
    struct amp_span reason;
    bool cancelled;   /* a person ended it */
    uint32_t place;   /* among the dispatched tasks that no agent works on: 1, 2, …; 0: none */
    int64_t since_ms; /* since when its agent works; 0: unknown */
    int64_t created_ms, updated_ms;
};

struct amp_brief_filter {
    bool ended;         /* also tasks that have ended */
    bool unlanded;      /* also those that are done, but not landed */
    const char *state;  /* only tasks in this state of amp_task_fsm; NULL: any */
    const char *agent;  /* only those that this agent claimed; NULL: any */
    bool question;      /* only those with an open question */
    struct amp_span id; /* only this task; empty: all */
};
/* 0: continue, 1: stop, -1: failure. fn may use the store. */
typedef int (*amp_brief_fn)(void *ctx, const struct amp_brief *b, struct amp_error *err);
/* Calls fn for each task of the filter: those of one state after the other, by id. */
int amp_brief_each(struct amp_store *s, const struct amp_brief_filter *f, amp_brief_fn fn,
                   void *ctx, struct amp_error *err);

/* The directory of the newest attempt at the task: STATE/run/TASK/…; it has the agent's output and
 * work log. "": there is none. */
void amp_story_log(const struct amp_store *s, const char *id, char *out, size_t size);

/* The state of a task as a word of the protocol: that of its machine, or landing, landed. */
const char *amp_brief_state(const struct amp_brief *b);
/* The state in a person's words: "queued (3rd)", "working (executor-2, 4 min)", "in review",
 * "asks you: approval", "failed: exit 1: no network". One line; parts of it are texts of others. */
#define AMP_BRIEF_WORDS_MAX 256
const char *amp_brief_words(const struct amp_brief *b, int64_t now_ms,
                            char out[AMP_BRIEF_WORDS_MAX]);
/* A blocker without the words of the executor's tool before it. */
struct amp_span amp_story_reason(struct amp_span blocker);
/* The state of a subtask, of amp_qa_fsm, in a person's words. */
const char *amp_part_words(uint8_t state);

/* The id that a person means: an id, an unambiguous prefix of one, or the number alone ("7", "007",
 * "2026-007"); of several years the newest. NO unknown_task, ambiguous_task. */
int amp_story_find(struct amp_store *s, const char *name, char id[AMP_TASK_ID_MAX],
                   struct amp_error *err);

/* ---- the story ---- */

#define AMP_STORY_KINDS(X)                                                                         \
    X(ASKED, "asked")       /* the admin's task: text, criteria */                                 \
    X(DISPATCH, "dispatch") /* to an executor: text; rework has what to fix */                     \
    X(RESULT, "result")     /* word: complete, partial, failed; commit, counts; blockers */        \
    X(REVIEW, "review")     /* a review was requested; word: full, incremental */                  \
    X(VERDICT, "verdict")   /* word: approved, …; confidence; issues */                          \
    X(QUESTION, "question") /* word: its type; text: what is asked; proposals */                   \
    X(DECISION, "decision") /* word: resume, …; from: the operator; text: the note */            \
    X(CANCEL, "cancel")     /* a person ended the task; text: the reason */                        \
    X(LAND, "land")         /* the approved commit was merged; to: the branch */
enum amp_story_kind {
#define X(id, word) AMP_STORY_##id,
    AMP_STORY_KINDS(X)
#undef X
        AMP_STORY_KIND_COUNT
};
const char *amp_story_word(enum amp_story_kind kind);

/* A part of an event: a criterion, an issue, a blocker, a proposal. Texts are never NULL. */
struct amp_story_item {
    const char *label; /* "criterion", "issue", "blocker", "proposal" */
    char *text;
    char *severity, *file, *fix; /* of an issue, else "" */
    int64_t line;
};

/* Texts are never NULL; "" if there is none. */
struct amp_story_event {
    enum amp_story_kind kind;
    int64_t at_ms;        /* when it was recorded; the message's own time proves nothing */
    uint32_t place;       /* events of one time keep their order */
    char *id;             /* of the message, or of the question */
    char *from, *to, *by; /* by: the fingerprint of the key that signed it */
    char *subtask, *word, *text, *commit;
    char *severity;                /* of a question: critical, warning; info asks nothing */
    int64_t files, added, removed; /* of a result; -1: of another event */
    double confidence;             /* of a verdict; < 0: none */
    bool open;                     /* a question that waits for its decision */
    struct amp_story_item *items;
    size_t n_items, cap_items;
    char *line; /* the recorded message, without its signature; "" if there is none */
};

/* The directory of one attempt, which has the agent's output and work log. */
struct amp_story_attempt {
    char *dir, *agent, *subtask;
    int64_t number, at_ms;
    bool review;
};

struct amp_story {
    struct amp_task task;
    bool found;
    uint8_t landing;                /* of amp_landing_fsm */
    struct amp_story_event *events; /* the oldest first */
    size_t n_events, cap_events;
    struct amp_story_attempt *attempts; /* the oldest first */
    size_t n_attempts, cap_attempts;
};
/* Adds the directories of a task's attempts in a state directory, the oldest first. */
int amp_story_attempts(const char *state, const char *id, struct amp_story *st,
                       struct amp_error *err);
/* Reads the story; a task without a record has found false and may have events. st must be released
 * also after a failure. */
int amp_story_load(struct amp_store *s, struct amp_span task, struct amp_story *st,
                   struct amp_error *err);
void amp_story_release(struct amp_story *st); /* also of a zeroed struct */
#define AMP_STORY AMP_CLEANUP(amp_story_release) struct amp_story

#endif

/* The parts of hitl-prompt: its verbs, answers from a file or a FIFO. The text of a question is in
 * evidence/, the terminal in terminal/. */
#ifndef HITL_PROMPT_H
#define HITL_PROMPT_H

#include "cli/list.h"
#include "cli/rows.h"
#include "message/store/wake.h"
#include "people/answer/decide.h"
#include "people/answer/text/answer.h"
#include "people/channel/channels.h"

/* Before the options are read: every failure of the hook must block the call, and the agent's
 * environment does not choose its configuration. */
void hitl_hook_prepare(char **args);

/* Options of the tool's own table. */
extern const char *hitl_state, *hitl_operator, *hitl_as, *hitl_key;

/* The value of --config, or NULL. */
const char *hitl_config_path(void);

/* A verb opens these besides the state directory. */
enum {
    /* hitl_people, from amp.json; hitl_operator and hitl_as get their defaults if they are NULL.
     * NOPERM permission_denied: --operator names another person. */
    HITL_OPENS_PEOPLE = AMP_OPENS_OWN,
    /* A decider, for verbs that read or answer questions and then end: c->own is a struct hitl. */
    HITL_OPENS_DECIDER = AMP_OPENS_OWN << 1,
    HITL_OPENS_QUESTIONS = AMP_OPENS_MADE | HITL_OPENS_PEOPLE | HITL_OPENS_DECIDER
};
struct hitl {
    struct amp_store *store;
    struct amp_worker_options opt;
    struct amp_decider d; /* bare */
};

/* The people who may decide. */
extern struct amp_decider_people hitl_people;
/* hitl.token_answers of amp.json. */
int hitl_token_answers(enum amp_token_answers *out, struct amp_error *err);
/* The member hitl of the user's amp.json, or NULL. */
int hitl_config(json_t **out, struct amp_error *err);
/* The fallbacks of amp.json; the deadline is an option of the filter. */
int hitl_policy(struct amp_hitl_policy *out, struct amp_error *err);
/* The identities to verify with; NULL: identities are off. */
int hitl_trust(struct amp_identities **out, struct amp_error *err);
/* The author of answers that name nobody: the login; or with --key, if the key is trusted as an
 * operator's, the person of its principal. */
struct hitl_author {
    enum amp_known_by how;
    char key[AMP_FINGERPRINT_MAX], principal[AMP_PRINCIPAL_MAX];
};
extern struct hitl_author hitl_author;

/* The identities that sign as operator/NAME, with NAME from hitl_operator. With --key it sets
 * hitl_author, and hitl_operator to the key's NAME. */
int hitl_identities(struct amp_identities **out, struct amp_error *err);

/* show.c: a question, as list and show --json print it; texts are the question's. */
struct question_row {
    struct amp_question q;
    const char *protocol, *fallback, *invocation, *reason; /* reason: in words */
    char answers[256]; /* those that the question proposes, else those of its protocol */
    /* Only show fills these. */
    const struct amp_evidence *ev;
    int64_t approvals;
    struct amp_span message;
};
void question_row(const struct amp_question *q, struct question_row *out);
extern const struct amp_column question_columns[];

/* Columns for text at fd, at most 100; 80 if it is not a terminal. */
int hitl_width(int fd);

/* Answers for scripts: JSON lines that name an escalation or a task, or plain words for the next
 * question. Each answer is used once. */
struct answers {
    const char *path;
    int fd, hold;
    bool pipe, fifo; /* fifo: it has a name, so more writers may open it */
    bool done;       /* read to its end */
    struct amp_buf text;
    struct {
        char *line;
        bool used;
    } * v;
    size_t n, cap;
};
int answers_open(struct answers *a, const char *path, struct amp_error *err);
void answers_release(struct answers *a);
/* Reads the available input. */
int answers_read(struct answers *a, struct amp_error *err);
/* Whether an answer waits for its question, or all have been read. */
bool answers_wait(const struct answers *a);
/* 1: out answers q; its strings are in the list and in *keep, a JSON value or NULL that the caller
 * owns. 0: there is no answer to q; -1: an invalid answer. */
int answers_find(struct answers *a, const struct amp_question *q, struct amp_operator_answer *out,
                 json_t **keep, struct amp_error *err);

#endif

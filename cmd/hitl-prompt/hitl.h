/* The parts of hitl-prompt: its verbs, the terminal, the text of a question, answers from a file or
 * a FIFO. */
#ifndef HITL_PROMPT_H
#define HITL_PROMPT_H

#include "cli/rows.h"
#include "flow/decide/decide.h"

/* Each verb's option table and function, in the file of its name. */
extern const struct amp_opt ask_opts[], show_opts[], answer_opts[];
int hitl_ask(int argc, char **argv);
int hitl_show(int argc, char **argv);
int hitl_answer(int argc, char **argv);

/* Options of the tool's own table. */
extern const char *hitl_state, *hitl_operator, *hitl_as;

/* The people who may decide, from amp.json; sets hitl_operator and hitl_as to
 * their defaults if they are NULL. NOPERM
 * permission_denied: an agent runs this (with `act`, such as "answer escalations", in the error),
 * or --operator names another person. */
int hitl_people(const char *act, struct amp_decider_people *out, struct amp_error *err);
int hitl_store(struct amp_store **out, struct amp_error *err);
/* The identities that sign as operator/NAME, with NAME from hitl_operator. */
int hitl_identities(struct amp_identities **out, struct amp_error *err);

/* What a verb needs that reads or answers questions and then ends. */
struct hitl {
    struct amp_store *store;
    struct amp_worker_options opt;
    struct amp_decider d; /* bare */
};
/* Opens all of it; hitl_close also after a failure. */
int hitl_open(const char *act, struct hitl *h, struct amp_error *err);
void hitl_close(struct hitl *h);

/* The terminal: /dev/tty, never stdin. */
struct terminal {
    int fd; /* -1 before it is opened */
    struct amp_buf line;
    bool eof, noted; /* noted: the note about a background job was printed */
};
void terminal_init(struct terminal *t);
void terminal_release(struct terminal *t);
/* Opens it; UNAVAILABLE "no_terminal". */
int terminal_open(struct terminal *t, struct amp_error *err);
/* Whether the process is in the foreground; in the background a read would stop it. */
bool terminal_ours(const struct terminal *t);
/* Prints the question. task: the record of its task, or NULL. */
struct amp_task;
int terminal_ask(struct terminal *t, const struct amp_question *q, const struct amp_task *task,
                 struct amp_error *err);
void terminal_say(struct terminal *t, const char *text);
/* 1: t->line has a line, without LF; 0: not yet; -1: end of file. */
int terminal_line(struct terminal *t);

/* Columns of the terminal at fd, at most 100; 80 if it is not a terminal. */
int width_of(int fd);

/* Appends the question as text for `width` columns, with a summary of its task and the reason why
 * the last decision was refused. Control characters are neutralised; every line of text that others
 * wrote is marked. */
int question_text(const struct amp_question *q, const struct amp_task *task, int width,
                  struct amp_buf *out, struct amp_error *err);

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
/* 1: out answers q; its strings are in the list and in *keep, a JSON value or NULL that the caller
 * owns. 0: there is no answer to q; -1: an invalid answer. */
int answers_find(struct answers *a, const struct amp_question *q, struct amp_operator_answer *out,
                 json_t **keep, struct amp_error *err);

#endif

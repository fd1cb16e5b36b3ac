/* hitl-prompt's parts: the terminal, and answers from a file or a FIFO. */
#ifndef HITL_PROMPT_H
#define HITL_PROMPT_H

#include "cli/cli.h"
#include "hitl/question.h"

/* The terminal: /dev/tty, never stdin. */
struct terminal {
    int fd; /* -1 until it is needed */
    struct amp_buf line;
    bool eof, noted; /* noted: that it is a background job */
};
void terminal_init(struct terminal *t);
void terminal_release(struct terminal *t);
/* Opens it; UNAVAILABLE "no_terminal". */
int terminal_open(struct terminal *t, struct amp_error *err);
/* Whether we may use it now. In the background of a shell that has job control a read would stop
 * us: false then. */
bool terminal_ours(const struct terminal *t);
/* Prints the question. task: its record, or NULL. */
struct amp_task;
int terminal_ask(struct terminal *t, const struct amp_question *q, const struct amp_task *task,
                 struct amp_error *err);
void terminal_say(struct terminal *t, const char *text);
/* 1: a line (without its end) in t->line, 0: not yet, -1: end of file. */
int terminal_line(struct terminal *t);

/* Columns of the terminal at fd, at most 100; 80 where it is none. */
int width_of(int fd);

/* A question as text for so many columns: control characters neutralised, what others wrote behind
 * a mark on every line; with what the task is about, why its work was not accepted, and why the
 * last decision was refused. */
int question_text(const struct amp_question *q, const struct amp_task *task, int width,
                  struct amp_buf *out, struct amp_error *err);

/* Answers for scripts: JSON lines that name an escalation or a task, or plain words for whatever is
 * asked next. Each is used once. */
struct answers {
    const char *path;
    int fd, hold;
    bool pipe, fifo; /* fifo: it has a name, so that other writers may come */
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
/* Takes what can be read now. */
int answers_read(struct answers *a, struct amp_error *err);
/* 1: out answers q (its strings live in *keep, a JSON value or NULL, and in the list); 0: nothing
 * for it; -1: an answer that cannot be understood. */
int answers_find(struct answers *a, const struct amp_question *q, struct amp_operator_answer *out,
                 json_t **keep, struct amp_error *err);

#endif

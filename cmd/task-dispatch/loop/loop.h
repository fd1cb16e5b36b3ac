/*
 * task-dispatch loop: the filters of a QA loop as one supervised command. plan.c makes their
 * command lines, which script.c writes as a script and supervise.c starts.
 */
#ifndef TASK_DISPATCH_LOOP_H
#define TASK_DISPATCH_LOOP_H

#include <limits.h>

#include <amp/base/child.h>

#include "cli/cli.h"
#include "cli/rows.h"
#include "message/store/store.h"

/* ---- plan.c ---- */

/* Filters that are started together and end together. The spine has the coordinator: if one of its
 * filters is killed, all units start again. */
enum loop_unit { LOOP_SPINE, LOOP_EXECUTOR, LOOP_REVIEWER, LOOP_ADMIN, LOOP_LANDER, LOOP_UNITS };
extern const char *const loop_unit_names[LOOP_UNITS];

/* Stands for the directory of the FIFOs in an argument of a plan that is printed. */
#define LOOP_FIFOS "\001"

struct loop_filter {
    enum loop_unit unit;
    bool reads;        /* its standard input is the previous filter's output, or empty */
    bool writes;       /* its standard output is the next filter's input */
    bool asks;         /* it talks to the person: its standard error is the program's */
    const char **argv; /* NULL-terminated */
    size_t n, cap;
};

#define LOOP_FILTERS 12
struct loop_plan {
    struct loop_filter filters[LOOP_FILTERS];
    size_t n;
    const char *dir; /* of the FIFOs, or LOOP_FIFOS */
};

/* The plan is made from these settings. */
struct loop_settings {
    const char *executor, *reviewer; /* commands: see loop_command */
    const char *executor_policy, *reviewer_policy, *answer, *base, *timeout, *retries;
    int64_t executors, reviewers;    /* agents of each role */
    struct amp_list types, commands; /* of the executors; with types, executors is 1 */
    bool by_exit, land;              /* land: each task when it is approved */
    struct amp_confine_cli walls;
    /* Options of the tool that every filter gets. */
    const char *allowed_signers;
    struct amp_list redact;
    /* Only under supervision. */
    bool supervised, color;
};
int loop_plan_make(const struct loop_settings *s, const char *dir, struct loop_plan *out,
                   struct amp_error *err);
void loop_plan_free(struct loop_plan *p);

/* The names of the FIFOs; NULL ends. */
extern const char *const loop_fifos[];

/* ---- script.c ---- */

/*
 * The words of a command: if the text has no character that is special to the shell, its words, the
 * first resolved as a program (PATH, the current directory, an adapter such as agent-claude);
 * otherwise sh -c TEXT, which starts in the worktree. USAGE command_not_found, not_executable,
 * bad_value (empty). Free words with loop_words_free.
 */
int loop_command(const char *option, const char *text, char ***words, struct amp_error *err);
void loop_words_free(char **words);
/* Appends the script. tasks: files of tasks, NULL-terminated. */
int loop_print(const struct loop_plan *p, char *const *tasks, struct amp_buf *out,
               struct amp_error *err);

/* ---- fifos.c ---- */

/* Makes the FIFOs in STATE/run/loop.fifos, where a killed loop may have left some; the caller has
 * the loop's lock. dir: their directory. */
int loop_fifos_make(const char *state, char dir[PATH_MAX], struct amp_error *err);
void loop_fifos_remove(const char *dir);
/* Ends readers whose writer never came. */
void loop_fifos_touch(const char *dir);

/* ---- screen.c: the filters' standard error ---- */

/* Lines are held while a question is on the terminal. */
struct loop_screen {
    int pipe[2]; /* the filters write to [1] */
    int tty;     /* the terminal, or -1 */
    struct amp_buf text;
    uint64_t dropped;
    bool has_modes;
};
int loop_screen_open(struct loop_screen *s, struct amp_error *err);
/* Takes what can be read without waiting, and prints complete lines unless a question is shown. */
void loop_screen_take(struct loop_screen *s);
/* Whether lines wait; the caller calls take again after a short while. */
bool loop_screen_waits(const struct loop_screen *s);
/* Restores the terminal, for example after the prompt was killed. */
void loop_screen_restore(const struct loop_screen *s);
/* Prints the rest and closes. */
void loop_screen_close(struct loop_screen *s);

/* ---- supervise.c ---- */

struct loop_run {
    struct loop_plan plan;
    struct loop_screen screen;
    bool complete; /* after loop_supervise: the coordinator has ended, nothing stopped the loop */
    const char *state;
};
/* Runs the loop to its end. Returns the status: the coordinator's, or that of the filter that ended
 * the loop; -1 with an error if a filter cannot be started. */
int loop_supervise(struct loop_run *r, struct amp_error *err);

#endif

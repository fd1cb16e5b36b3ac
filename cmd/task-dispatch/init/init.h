/*
 * task-dispatch init makes what a repository needs for its own loop. plan.c decides, from what is
 * there, which parts are made and which are kept; make.c makes them, notes them in the state
 * directory, and removes what is noted and unchanged.
 */
#ifndef TASK_DISPATCH_INIT_H
#define TASK_DISPATCH_INIT_H

#include <jansson.h>
#include <limits.h>

#include <amp/base/id.h>

#include "cli/cli.h"
#include "work/git/hooks.h"
#include "work/git/repository/git.h"

/* X(name, word) */
#define INIT_ACTIONS(X)                                                                            \
    X(CREATE, "create")   /* a new file or directory */                                            \
    X(ADD, "add")         /* a section to an existing file */                                      \
    X(INSTALL, "install") /* the hooks */                                                          \
    X(KEEP, "keep")       /* it exists and is left as it is */                                     \
    X(REMOVE, "remove")   /* undo */                                                               \
    X(RESTORE, "restore") /* undo: the file without the section, the previous hooks */
enum init_action {
#define X(id, word) INIT_##id,
    INIT_ACTIONS(X)
#undef X
};

enum init_kind { INIT_STATE, INIT_FILE, INIT_SECTION, INIT_HOOKS };

#define INIT_STEPS 16
struct init_step {
    enum init_action action;
    enum init_kind kind;
    char path[PATH_MAX];
    char note[200];
    struct amp_buf text; /* of a file or section that is written */
    unsigned feeds;      /* line feeds that are added before a section */
    mode_t mode;
};

struct init {
    const char *executor, *reviewer; /* NULL: no loop.sh */
    struct amp_git *git;
    struct amp_git_info info;
    struct amp_hooks hooks;
    bool husky;
    bool unconfined; /* loop.sh says so */
    char state[PATH_MAX];
    struct init_step steps[INIT_STEPS];
    size_t n;
};

/* Adds a step, or NULL: a mistake of the program. */
struct init_step *init_step_add(struct init *in, enum init_action action, enum init_kind kind,
                                const char *path, const char *note);
void init_steps_release(struct init *in);
/* Finds the repository around the current directory. DATAERR repo_not_git, repo_bare; NOPERM
 * repo_not_owned, state_not_ours. */
int init_open(struct init *in, struct amp_error *err);
int init_plan(struct init *in, bool hooks, bool agents, struct amp_error *err);
/* Carries the plan out. */
int init_make(struct init *in, struct amp_error *err);

/* The plan of an undo, and its steps. */
int init_undo_plan(struct init *in, struct amp_error *err);
int init_undo(struct init *in, struct amp_error *err);

/* ---- what was made: STATE/init.json ---- */

/* An object with "files" ({path: {"kind", "sha256"}}) and "hooks" (a directory). */
#define INIT_NOTE "init.json"

/* ---- texts.c ---- */

#define INIT_BEGIN "<!-- task-dispatch init: begin -->"
#define INIT_END   "<!-- task-dispatch init: end -->"
extern const char init_agents_text[], init_include_text[], init_config_text[];
/* The section with its marks and line ends in text; empty: none. */
struct amp_span init_section_find(struct amp_span text);
int init_loop_text(const struct init *in, struct amp_buf *out, struct amp_error *err);
/* The snippet of the guard for husky's hook. */
int init_husky_text(const char *hook, struct amp_buf *out, struct amp_error *err);
extern const char *const init_husky_hooks[];
extern const char init_lefthook_text[];

#endif

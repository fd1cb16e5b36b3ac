/* Decides what is made, and what is kept because it exists. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>

#include "init.h"

#include "base/codes.h"

#define FILE_MAX ((size_t)4 << 20)

struct init_step *init_step_add(struct init *in, enum init_action action, enum init_kind kind,
                                const char *path, const char *note)
{
    if (in->n == INIT_STEPS)
        __builtin_trap();
    struct init_step *s = &in->steps[in->n++];
    *s = (struct init_step){.action = action, .kind = kind, .mode = 0644};
    snprintf(s->path, sizeof s->path, "%s", path);
    snprintf(s->note, sizeof s->note, "%s", note);
    amp_buf_init(&s->text, FILE_MAX);
    return s;
}

void init_steps_release(struct init *in)
{
    for (size_t i = 0; i < in->n; i++)
        amp_buf_release(&in->steps[i].text);
    in->n = 0;
}

int init_open(struct init *in, struct amp_error *err)
{
    struct amp_error why;
    struct stat st;
    if (amp_git_open(NULL, &in->git, err) < 0)
        return -1;
    if (amp_git_info(in->git, ".", &in->info, &why) < 0) {
        if (amp_code_is(why.code, repo_not_git))
            return amp_fail_text(
                err, AMP_DATAERR, why.code,
                "the current directory is not in a git repository: 'git init' makes "
                "one");
        *err = why;
        return -1;
    }
    size_t n = strlen(in->info.common);
    while (n > 1 && in->info.common[n - 1] == '/')
        in->info.common[--n] = '\0';
    n = strlen(in->info.workdir);
    while (n > 1 && in->info.workdir[n - 1] == '/')
        in->info.workdir[--n] = '\0';
    if (in->info.bare || !in->info.workdir[0])
        return amp_fail(err, AMP_DATAERR, repo_bare,
                        "%.300s is a bare repository, without files to work on: clone it and run "
                        "init in the clone",
                        in->info.common);
    int len = snprintf(in->state, sizeof in->state, "%s/amp", in->info.common);
    if (len < 0 || (size_t)len >= sizeof in->state)
        return amp_fail(err, AMP_USAGE, bad_path, "%.300s: too long", in->info.common);
    if (lstat(in->state, &st) == 0 && (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()))
        return amp_fail(err, AMP_NOPERM, state_not_ours,
                        "%.300s is not a directory of yours: another user works in this repository",
                        in->state);
    return 0;
}

static bool path_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* The path of a file in the top directory. */
static void top_path(const struct init *in, const char *name, char out[PATH_MAX])
{
    char all[PATH_MAX + 64];
    snprintf(all, sizeof all, "%s/%s", in->info.workdir, name);
    amp_span_copy(amp_span_str(all), out, PATH_MAX);
}

/* A new file with this text, unless it exists. */
static int file_plan(struct init *in, const char *path, const char *text, mode_t mode,
                     const char *note, struct amp_error *err)
{
    if (path_exists(path)) {
        AMP_BUF struct amp_buf old = {0};
        amp_buf_init(&old, FILE_MAX);
        bool same = amp_file_read(AT_FDCWD, path, FILE_MAX - 1, &old, NULL) == 0 &&
                    amp_span_is(amp_buf_span(&old), text);
        init_step_add(in, INIT_KEEP, INIT_FILE, path,
                      same ? "it is already as it should be" : "it exists; it is not changed");
        return 0;
    }
    struct init_step *s = init_step_add(in, INIT_CREATE, INIT_FILE, path, note);
    s->mode = mode;
    return amp_buf_str(&s->text, text, err);
}

/* Tells whether the text has the section, or includes AGENTS.md. */
static bool section_known(struct amp_span text)
{
    static const char *const includes[] = {"@AGENTS.md", "@./AGENTS.md"};
    bool known = init_section_find(text).n > 0;
    for (size_t i = 0; !known && text.n && i < 2; i++)
        known = memmem(text.p, text.n, includes[i], strlen(includes[i]));
    return known;
}

/* A section in a file that coding agents read. A link is followed within the worktree. */
static int section_plan(struct init *in, const char *name, const char *section, const char *note,
                        struct amp_error *err)
{
    char path[PATH_MAX], real[PATH_MAX];
    size_t n = strlen(in->info.workdir);
    struct stat st;
    AMP_BUF struct amp_buf old = {0};
    amp_buf_init(&old, FILE_MAX);
    top_path(in, name, path);
    if (!path_exists(path)) {
        struct init_step *s = init_step_add(in, INIT_CREATE, INIT_SECTION, path, note);
        return amp_buf_str(&s->text, section, err);
    }
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        if (!realpath(path, real) || strncmp(real, in->info.workdir, n) != 0 || real[n] != '/' ||
            strstr(real + n, "/.git/")) {
            init_step_add(in, INIT_KEEP, INIT_SECTION, path,
                          "a link out of the worktree: add the section of AGENTS.md yourself");
            return 0;
        }
        memcpy(path, real, sizeof path);
    }
    for (size_t i = 0; i < in->n; i++)
        if (in->steps[i].kind == INIT_SECTION && strcmp(in->steps[i].path, path) == 0)
            return 0; /* linked with a file that has the section */
    if (amp_file_read(AT_FDCWD, path, FILE_MAX - 4096, &old, err) < 0)
        return -1;
    if (section_known(amp_buf_span(&old))) {
        init_step_add(in, INIT_KEEP, INIT_SECTION, path, "it has the section");
        return 0;
    }
    struct init_step *s =
        init_step_add(in, INIT_ADD, INIT_SECTION, path, "a section: how an agent works on a task");
    s->mode = stat(path, &st) == 0 ? st.st_mode & 07777 : 0644;
    s->feeds = !old.len ? 0 : old.data[old.len - 1] == '\n' ? 1 : 2;
    return amp_buf_add(&s->text, old.data, old.len, err) < 0 ||
                   amp_buf_add(&s->text, "\n\n", s->feeds, err) < 0 ||
                   amp_buf_str(&s->text, section, err) < 0
               ? -1
               : 0;
}

/* AGENTS.md is read by Codex, OpenCode and Qwen Code, and by some versions of Claude Code if there
 * is no CLAUDE.md. The others include it. */
static int agents_plan(struct init *in, struct amp_error *err)
{
    return section_plan(in, "AGENTS.md", init_agents_text, "how an agent works on a task here",
                        err) < 0 ||
                   section_plan(in, "CLAUDE.md", init_include_text, "includes AGENTS.md", err) <
                       0 ||
                   section_plan(in, "GEMINI.md", init_include_text, "includes AGENTS.md", err) < 0
               ? -1
               : 0;
}

static void finding_count(void *ctx, const struct amp_hook_finding *f)
{
    int *errors = ctx;
    /* Found again at each start, whatever is installed. */
    *errors += f->severity == AMP_HOOK_ERROR && strcmp(f->code, "relative_hooks_path") != 0;
}

static bool hooks_work(const struct amp_hooks *h)
{
    char program[PATH_MAX];
    struct amp_error ignored;
    int errors = 0;
    bool known = amp_helper_path(AMP_HOOK_PROGRAM, program, sizeof program, &ignored) == 0;
    return amp_hooks_check(h, known ? program : NULL, getenv("PATH"), finding_count, &errors,
                           &ignored) >= 0 &&
           errors == 0;
}

/* The hook manager that is configured here, for the notes; NULL: none. */
static const char *manager_find(struct init *in)
{
    static const struct {
        const char *file, *name;
    } rows[] = {{"lefthook.yml", "lefthook"},  {"lefthook.yaml", "lefthook"},
                {".lefthook.yml", "lefthook"}, {".pre-commit-config.yaml", "pre-commit"},
                {".husky", "husky"},           {NULL, NULL}};
    char path[PATH_MAX];
    for (size_t i = 0; rows[i].file; i++) {
        top_path(in, rows[i].file, path);
        if (path_exists(path))
            return rows[i].name;
    }
    return NULL;
}

static int manager_plan(struct init *in, const char *manager, struct amp_error *err)
{
    char path[PATH_MAX], name[64];
    if (strcmp(manager, "lefthook") == 0) {
        top_path(in, "lefthook-local.yml", path);
        return file_plan(in, path, init_lefthook_text, 0644, "the guard for lefthook", err);
    }
    if (strcmp(manager, "husky") != 0)
        return 0;
    for (size_t i = 0; init_husky_hooks[i]; i++) {
        AMP_BUF struct amp_buf text = {0};
        amp_buf_init(&text, 4096);
        snprintf(name, sizeof name, ".husky/%s", init_husky_hooks[i]);
        top_path(in, name, path);
        if (init_husky_text(init_husky_hooks[i], &text, err) < 0 ||
            file_plan(in, path, text.data, 0755, "the guard for husky", err) < 0)
            return -1;
        struct init_step *s = &in->steps[in->n - 1];
        if (s->action == INIT_KEEP)
            snprintf(s->note, sizeof s->note,
                     "it exists; for the guard add: worktree-bind hooks run %s \"$@\"",
                     init_husky_hooks[i]);
    }
    return 0;
}

static int hooks_plan(struct init *in, struct amp_error *err)
{
    const char *manager = manager_find(in);
    char foreign[PATH_MAX], note[200];
    if (amp_hooks_find(in->git, ".", NULL, &in->hooks, err) < 0)
        return -1;
    bool relative = in->hooks.relative;
    if (in->hooks.foreign[0]) {
        memcpy(foreign, in->hooks.foreign, sizeof foreign);
        if (amp_hooks_find(in->git, ".", foreign, &in->hooks, err) < 0)
            return -1;
    }
    if (manager && manager_plan(in, manager, err) < 0)
        return -1;
    if (hooks_work(&in->hooks)) {
        init_step_add(in, INIT_KEEP, INIT_HOOKS, in->hooks.dir, "the guard is installed");
        return 0;
    }
    snprintf(note, sizeof note, "the guard of protected branches%s%s%s%s",
             manager ? "; hooks of " : "", manager ? manager : "", manager ? " are called" : "",
             relative ? "; core.hooksPath is relative: make it absolute, or worktrees lack it"
                      : "");
    init_step_add(in, INIT_INSTALL, INIT_HOOKS, in->hooks.dir, note);
    return 0;
}

int init_plan(struct init *in, bool hooks, bool agents, struct amp_error *err)
{
    char path[PATH_MAX + 16];
    AMP_BUF struct amp_buf loop = {0};
    amp_buf_init(&loop, FILE_MAX);
    init_step_add(in, path_exists(in->state) ? INIT_KEEP : INIT_CREATE, INIT_STATE, in->state,
                  "the state directory: tasks, messages, decisions, keys");
    snprintf(path, sizeof path, "%s/amp.json", in->state);
    if (strlen(path) >= PATH_MAX)
        return amp_fail(err, AMP_USAGE, bad_path, "%.300s: too long", path);
    if (file_plan(in, path, init_config_text, 0600,
                  "settings of this state; others: ~/.config/amp/amp.json", err) < 0 ||
        (hooks && hooks_plan(in, err) < 0))
        return -1;
    if (in->executor && in->reviewer) {
        top_path(in, "loop.sh", path);
        if (init_loop_text(in, &loop, err) < 0 ||
            file_plan(in, path, loop.data, 0755, "starts the loop with your two commands", err) < 0)
            return -1;
    }
    return agents ? agents_plan(in, err) : 0;
}

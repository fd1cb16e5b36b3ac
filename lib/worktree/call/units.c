/* Collects the simple commands of a tool call, also those inside of others. */
#include "worktree/call/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "worktree/call/private.h"
#include "worktree/worktree.h"

#define DEPTH_MAX  8
#define GROUPS_MAX 16

struct memory {
    struct amp_shell *shells;
    size_t n_shells, cap_shells;
    char **texts; /* directories, and lines that were joined */
    size_t n_texts, cap_texts;
    size_t cap_units, cap_files;
};

struct walk {
    struct amp_call_units *out;
    struct memory *m;
    struct amp_error *err;
    const char *dir; /* of the next command; NULL: unknown */
    int depth;
};

static int line_walk(struct walk *w, struct amp_span line, bool derived);

static char *text_keep(struct walk *w, struct amp_span text)
{
    if (amp_grow(&w->m->texts, &w->m->cap_texts, w->m->n_texts, sizeof *w->m->texts, w->err) < 0)
        return NULL;
    char *copy = amp_span_dup(text);
    if (!copy)
        amp_fail_memory(w->err);
    else
        w->m->texts[w->m->n_texts++] = copy;
    return copy;
}

static int unread(struct walk *w, const char *why)
{
    if (!w->out->unread)
        snprintf(w->out->why, sizeof w->out->why, "%.120s", why);
    w->out->unread = true;
    return 0;
}

static int unit_add(struct walk *w, struct amp_call_unit u)
{
    if (w->out->n == AMP_UNITS_MAX)
        return unread(w, "more than 4096 commands");
    if (amp_grow(&w->out->v, &w->m->cap_units, w->out->n, sizeof *w->out->v, w->err) < 0)
        return -1;
    u.dir = w->dir;
    w->out->v[w->out->n++] = u;
    return 0;
}

static int unknown_add(struct walk *w)
{
    return unit_add(w, (struct amp_call_unit){.derived = true, .unknown = true});
}

static int file_add(struct walk *w, const struct amp_shell_word *word)
{
    if (amp_grow(&w->out->files, &w->m->cap_files, w->out->n_files, sizeof *w->out->files, w->err) <
        0)
        return -1;
    w->out->files[w->out->n_files++] = (struct amp_call_file){word, w->dir};
    return 0;
}

/* ---- commands inside of commands ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* Programs that run the command in their arguments, beside those of call_wrappers. */
static const char *const more_wrappers[] = {
    "ssh",         "runuser",  "pkexec",           "systemd-run", "bwrap",     "firejail",
    "proxychains", "torsocks", "chronic",          "rlwrap",      "unbuffer",  "setarch",
    "linux32",     "linux64",  "fakeroot",         "eatmydata",   "entr",      "xvfb-run",
    "hyperfine",   "valgrind", "dbus-run-session", "gosu",        "catchsegv", NULL};

static int command_walk(struct walk *w, const struct amp_shell_word *words, size_t n,
                        const char *input, bool input_opaque, bool derived, bool plain,
                        bool suffixes);

/* The script of a shell: that of -c, or its input. */
static int shell_walk(struct walk *w, const struct amp_shell_word *words, size_t n,
                      const char *input)
{
    for (size_t i = 1; i < n; i++) {
        const char *t = words[i].text;
        if (words[i].opaque)
            return unknown_add(w);
        if (t[0] != '-' && t[0] != '+')
            return 0; /* a script, which cannot be seen */
        if (t[0] == '-' && t[1] != '-' && strchr(t, 'c')) {
            while (i + 1 < n && !words[i + 1].opaque && words[i + 1].text[0] == '-')
                i++;
            if (i + 1 >= n || words[i + 1].opaque)
                return unknown_add(w);
            return line_walk(w, amp_span_str(words[i + 1].text), true);
        }
        if (strcmp(t, "-o") == 0 || strcmp(t, "+o") == 0)
            i++;
        if (strcmp(t, "--version") == 0 || strcmp(t, "--help") == 0)
            return 0;
        if (t[0] == '-' && t[1] != '-' && strchr(t, 's'))
            break;
    }
    return input ? line_walk(w, amp_span_str(input), true) : unknown_add(w);
}

static int eval_walk(struct walk *w, const struct amp_shell_word *words, size_t n)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, AMP_SHELL_MAX);
    for (size_t i = 1; i < n; i++) {
        if (words[i].opaque)
            return unknown_add(w);
        if (amp_buf_str(&line, words[i].text, NULL) < 0 || amp_buf_str(&line, " ", NULL) < 0)
            return unread(w, "a long eval");
    }
    const char *kept = text_keep(w, amp_buf_span(&line));
    return kept ? line_walk(w, amp_span_str(kept), true) : -1;
}

/* A word that may be a command line; that it is none is no failure. */
static int text_walk(struct walk *w, const char *text)
{
    bool was = w->out->unread;
    if (!strpbrk(text, " \t\n;&|"))
        return 0;
    if (line_walk(w, amp_span_str(text), true) < 0)
        return -1;
    w->out->unread = was;
    return 0;
}

static int wrapper_walk(struct walk *w, const struct amp_shell_word *words, size_t n,
                        const char *input, bool input_opaque)
{
    for (size_t i = 1; i < n; i++) {
        const char *t = words[i].text;
        if (!words[i].opaque && t[0] == '-') {
            const char *eq = strchr(t, '=');
            if (text_walk(w, eq ? eq + 1 : t[1] == 'S' || t[1] == 'c' ? t + 2 : "") < 0)
                return -1;
            continue;
        }
        if (!words[i].opaque && text_walk(w, t) < 0)
            return -1;
        if (command_walk(w, words + i, n - i, input, input_opaque, true, false, false) < 0)
            return -1;
    }
    return 0;
}

/* Texts that a shell reads later: alias x=LINE, trap LINE SIGNAL, git -c alias.x=!LINE. */
static int later_walk(struct walk *w, const struct amp_shell_word *words, size_t n, bool git)
{
    for (size_t i = 1; i < n; i++) {
        const char *t = words[i].text, *eq = strchr(t, '=');
        if (git && strncmp(t, "alias.", 6) != 0)
            continue;
        if (words[i].opaque)
            return unknown_add(w);
        const char *text = eq ? eq + 1 : t;
        if (line_walk(w, amp_span_str(text + (git && *text == '!')), true) < 0)
            return -1;
    }
    return 0;
}

static int dir_change(struct walk *w, const struct amp_shell_word *words, size_t n)
{
    char text[2 * PATH_MAX], path[PATH_MAX];
    size_t i = 1;
    w->out->moves = true;
    while (i < n && words[i].text[0] == '-' && words[i].text[1])
        i++;
    const char *to = i < n && !words[i].opaque ? words[i].text : "-";
    const char *from = w->dir;
    w->dir = NULL;
    if (!*to || strcmp(to, "-") == 0 || strlen(to) >= PATH_MAX || (*to != '/' && !from) ||
        strcmp(base_name(words[0].text), "popd") == 0)
        return 0;
    snprintf(text, sizeof text, "%s/%s", *to == '/' ? "" : from, to);
    if (amp_path_canonical(text, path, NULL) < 0)
        return 0;
    w->dir = text_keep(w, amp_span_str(path));
    return w->dir ? 0 : -1;
}

static int command_walk(struct walk *w, const struct amp_shell_word *words, size_t n,
                        const char *input, bool input_opaque, bool derived, bool plain,
                        bool suffixes)
{
    size_t assignments = 0;
    while (n && call_is_assignment(words[0].text)) {
        plain = false;
        words++;
        n--;
        assignments++;
    }
    for (size_t i = 0; i < n; i++)
        plain &= !words[i].opaque;
    struct amp_call_unit u = {.words = words,
                              .n = n,
                              .n_assignments = assignments,
                              .derived = derived,
                              .plain = plain && n,
                              .unknown = n && words[0].opaque};
    if (unit_add(w, u) < 0)
        return -1;
    if (!n || words[0].opaque)
        return 0;
    const char *name = base_name(words[0].text);
    if (strcmp(name, "cd") == 0 || strcmp(name, "pushd") == 0 || strcmp(name, "popd") == 0)
        return dir_change(w, words, n);
    if (strcmp(name, "eval") == 0)
        return eval_walk(w, words, n);
    if (is_one_of(name, call_shells))
        return input_opaque ? unknown_add(w) : shell_walk(w, words, n, input);
    if (strcmp(name, ".") == 0 || strcmp(name, "source") == 0)
        return input_opaque ? unknown_add(w) : input ? line_walk(w, amp_span_str(input), true) : 0;
    if (strcmp(name, "alias") == 0 || strcmp(name, "trap") == 0 || strcmp(name, "git") == 0)
        return later_walk(w, words, n, strcmp(name, "git") == 0);
    if (suffixes && (is_one_of(name, call_wrappers) || is_one_of(name, more_wrappers)))
        return wrapper_walk(w, words, n, input, input_opaque);
    return 0;
}

/* ---- command lines ---- */

static bool is_null(const struct amp_shell_word *w)
{
    return !w->opaque && strcmp(w->text, "/dev/null") == 0;
}

static int item_walk(struct walk *w, const struct amp_shell_item *i, const char *input,
                     bool derived)
{
    bool plain = !i->n_nested && !i->input && !i->input_opaque;
    for (size_t k = 0; k < i->n_nested; k++) {
        const char *dir = w->dir;
        if (line_walk(w, amp_span_str(i->nested[k]), true) < 0)
            return -1;
        w->dir = dir; /* a subshell */
    }
    for (size_t k = 0; k < i->n_targets; k++) {
        plain &= is_null(&i->targets[k]);
        if (file_add(w, &i->targets[k]) < 0)
            return -1;
    }
    for (size_t k = 0; k < i->n_sources; k++) {
        plain &= is_null(&i->sources[k]);
        if (file_add(w, &i->sources[k]) < 0)
            return -1;
    }
    return command_walk(w, i->words, i->n, i->input ? i->input : input, i->input_opaque, derived,
                        plain, true);
}

static int line_walk(struct walk *w, struct amp_span line, bool derived)
{
    struct amp_error err;
    const char *dirs[GROUPS_MAX], *input = NULL;
    int group = 0, rc = 0;
    if (w->depth == DEPTH_MAX)
        return unread(w, "commands inside of commands, 8 deep");
    if (amp_grow(&w->m->shells, &w->m->cap_shells, w->m->n_shells, sizeof *w->m->shells, w->err) <
        0)
        return -1;
    if (amp_shell_parse(line, &w->m->shells[w->m->n_shells], &err) < 0) {
        if (strcmp(err.code, "bad_command") == 0)
            return unread(w, err.what);
        *w->err = err;
        return -1;
    }
    const struct amp_shell shell = w->m->shells[w->m->n_shells++];
    for (size_t i = 0; i < shell.n; i++)
        if (shell.items[i].input)
            input = shell.items[i].input;
    w->depth++;
    for (size_t i = 0; i < shell.n && !rc; i++) {
        const struct amp_shell_item *item = &shell.items[i];
        if (item->kind == AMP_SHELL_COMMAND) {
            rc = item_walk(w, item, input, derived);
        } else if (item->kind == AMP_SHELL_OPEN) {
            if (group == GROUPS_MAX)
                rc = unread(w, "deep subshells");
            else
                dirs[group] = w->dir;
            group += group < GROUPS_MAX;
        } else if (group) {
            w->dir = dirs[--group];
        }
    }
    w->depth--;
    return rc;
}

/* A command as words; that of `sh -c LINE` is the line. */
static int words_walk(struct walk *w, const struct amp_call_command *c)
{
    if (c->n == 3 && is_one_of(base_name(c->words[0].text), call_shells) &&
        (strcmp(c->words[1].text, "-c") == 0 || strcmp(c->words[1].text, "-lc") == 0))
        return line_walk(w, amp_span_str(c->words[2].text), false);
    return command_walk(w, c->words, c->n, NULL, false, false, true, true);
}

int amp_call_units_read(const struct amp_call_event *e, const char *cwd, struct amp_call_units *out,
                        struct amp_error *err)
{
    struct memory *m = calloc(1, sizeof *m);
    *out = (struct amp_call_units){.memory = m};
    if (!m)
        return amp_fail_memory(err);
    struct walk w = {.out = out, .m = m, .err = err, .dir = cwd};
    for (size_t i = 0; i < e->n_commands; i++) {
        const struct amp_call_command *c = &e->commands[i];
        if (c->foreign && unread(&w, "a command of PowerShell") < 0)
            return -1;
        w.dir = cwd;
        if ((c->words ? words_walk(&w, c) : line_walk(&w, c->line, false)) < 0)
            return -1;
    }
    return 0;
}

void amp_call_units_release(struct amp_call_units *u)
{
    struct memory *m = u->memory;
    if (m) {
        for (size_t i = 0; i < m->n_shells; i++)
            amp_shell_release(&m->shells[i]);
        for (size_t i = 0; i < m->n_texts; i++)
            free(m->texts[i]);
        free(m->shells);
        free(m->texts);
    }
    free(m);
    free(u->v);
    free(u->files);
    *u = (struct amp_call_units){0};
}

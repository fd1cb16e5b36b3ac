/* Decides about a tool call by the rules of amp.json. */
#include "people/question/hook/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codes.h"
#include "base/grow.h"
#include "base/words.h"
#include "work/git/call/plain.h"
#include "work/git/paths/glob.h"
#include "work/git/worktree.h"

struct amp_hook_rule {
    enum amp_hook_decision decision;
    enum amp_call_cli cli;                       /* AMP_CLI_NONE: every CLI */
    int kind;                                    /* -1: every kind */
    bool grave;                                  /* its risk is high */
    struct amp_span tool, command, path, reason; /* empty: not given */
    char *text;                                  /* as it was given */
    struct amp_buf mem;                          /* texts with escapes */
};

/* ---- reading ---- */

static int rule_bad(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_CONFIG, bad_config, "a rule of hitl.hook.rules: %s", what);
}

static int kind_find(struct amp_span word)
{
    for (int i = AMP_CALL_COMMAND; i <= AMP_CALL_OTHER; i++)
        if (amp_span_is(word, amp_call_kind_name((enum amp_call_kind)i)))
            return i;
    return -1;
}

/* "//path" begins at the root of the file system, other patterns at the top of the worktree. */
static bool is_from_root(struct amp_span pattern)
{
    return amp_span_starts(pattern, "//");
}

static struct amp_span pattern_of(struct amp_span path)
{
    return is_from_root(path) ? (struct amp_span){path.p + 1, path.n - 1} : path;
}

static const char *const decisions[] = {"", "allow", "ask", "deny", NULL};

static int member_set(struct amp_hook_rule *r, struct amp_span key, struct amp_span value,
                      struct amp_error *err)
{
    static const char *const risks[] = {"low", "medium", "high", NULL};
    char name[32];
    if (!value.n)
        return rule_bad(err, "an empty text");
    if (amp_span_is(key, "decision")) {
        int found = amp_word_find(decisions, value);
        if (found < 1)
            return rule_bad(err, "decision is not allow, ask or deny");
        r->decision = (enum amp_hook_decision)found;
    } else if (amp_span_is(key, "risk")) {
        if (amp_word_find(risks, value) < 0)
            return rule_bad(err, "risk is not low, medium or high");
        r->grave = amp_span_is(value, risks[2]);
    } else if (amp_span_is(key, "cli")) {
        r->cli = amp_span_copy(value, name, sizeof name) ? amp_call_cli_find(name) : AMP_CLI_NONE;
        if (r->cli == AMP_CLI_NONE)
            return rule_bad(err, "cli is unknown");
    } else if (amp_span_is(key, "kind")) {
        if ((r->kind = kind_find(value)) < 0)
            return rule_bad(err, "kind is not command, read, write, search or other");
    } else if (amp_span_is(key, "command")) {
        if (amp_call_pattern_check(value, err) < 0)
            return -1;
        r->command = value;
    } else if (amp_span_is(key, "path")) {
        if (amp_glob_check(pattern_of(value), err) < 0) {
            err->status = AMP_CONFIG;
            return -1;
        }
        r->path = value;
    } else if (amp_span_is(key, "tool")) {
        r->tool = value;
    } else if (amp_span_is(key, "reason")) {
        r->reason = value;
    } else {
        return rule_bad(err, "an unknown member");
    }
    return 0;
}

int amp_hook_unread_set(struct amp_hook_rules *r, struct amp_span word, struct amp_error *err)
{
    int found = amp_word_find(decisions, word);
    if (found < 1)
        return amp_fail(err, AMP_CONFIG, bad_config, "hitl.hook.unread is not ask, deny or allow");
    r->unread = (enum amp_hook_decision)found;
    return 0;
}

static int rule_read(struct amp_hook_rule *r, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_span key, value;
    AMP_TAPE struct amp_tape t = {0};
    amp_tape_init(&t, NULL);
    amp_buf_init(&r->mem, 1 << 20);
    if (amp_tape_scan(&t, r->text, strlen(r->text), &fault) < 0)
        return amp_json_fail(err, AMP_CONFIG, AMP_CODE(bad_config), "a rule of hitl.hook.rules",
                             &fault);
    if (t.tok[0].type != AMP_JSON_OBJECT)
        return rule_bad(err, "it is not an object");
    if (amp_buf_reserve(&r->mem, 2 * strlen(r->text), err) < 0)
        return -1;
    for (uint32_t k = 1; k < t.tok[0].next; k = t.tok[k + 1].next) {
        if (t.tok[k + 1].type != AMP_JSON_STRING || (t.tok[k + 1].flags & AMP_TOK_NUL))
            return rule_bad(err, "a member is not a text");
        if (amp_tok_text(&t, k, &r->mem, &key, err) < 0 ||
            amp_tok_text(&t, k + 1, &r->mem, &value, err) < 0 || member_set(r, key, value, err) < 0)
            return -1;
    }
    if (r->decision == AMP_HOOK_UNDECIDED)
        return rule_bad(err, "no decision");
    if (r->decision == AMP_HOOK_ALLOW && r->command.n && r->path.n)
        return rule_bad(err, "allow with a command and a path; the files that a command uses are "
                             "not known");
    return 0;
}

int amp_hook_rules_add(struct amp_hook_rules *r, struct amp_span json, struct amp_error *err)
{
    if (r->n == AMP_HOOK_RULES_MAX)
        return amp_fail(err, AMP_CONFIG, bad_config, "hitl.hook.rules: more than %d rules",
                        AMP_HOOK_RULES_MAX);
    if (amp_grow(&r->v, &r->cap, r->n, sizeof *r->v, err) < 0)
        return -1;
    struct amp_hook_rule *rule = &r->v[r->n];
    *rule = (struct amp_hook_rule){.cli = AMP_CLI_NONE, .kind = -1, .text = amp_span_dup(json)};
    if (!rule->text)
        return amp_fail_memory(err);
    r->n++;
    return rule_read(rule, err);
}

void amp_hook_rules_release(struct amp_hook_rules *r)
{
    for (size_t i = 0; i < r->n; i++) {
        amp_buf_release(&r->v[i].mem);
        free(r->v[i].text);
    }
    free(r->v);
    *r = (struct amp_hook_rules){0};
}

/* ---- paths ---- */

int amp_hook_place_find(struct amp_span cwd, struct amp_hook_place *out, struct amp_error *err)
{
    char text[PATH_MAX], git[PATH_MAX + 8];
    struct stat st;
    if (!cwd.n && !getcwd(text, sizeof text))
        return amp_fail_errno(err, AMP_IOERR, "the current directory");
    if (cwd.n && (!amp_span_copy(cwd, text, sizeof text) || text[0] != '/'))
        return amp_fail(err, AMP_DATAERR, call_malformed,
                        "the input of the hook: cwd is not an absolute path");
    if (!realpath(text, out->cwd))
        return amp_fail(err, AMP_DATAERR, call_malformed,
                        "the input of the hook: cwd is not a directory");
    memcpy(out->top, out->cwd, sizeof out->top);
    memcpy(text, out->cwd, sizeof text);
    for (char *slash = text + strlen(text); slash; slash = strrchr(text, '/')) {
        *slash = '\0';
        snprintf(git, sizeof git, "%s/.git", text);
        if (lstat(git, &st) == 0) {
            snprintf(out->top, sizeof out->top, "%s", *text ? text : "/");
            return 0;
        }
        if (!*text)
            break;
    }
    return 0;
}

/* The part of an absolute path below dir; NULL: it is not below. */
static const char *path_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    if (strcmp(dir, "/") == 0)
        return path + 1;
    if (strncmp(path, dir, n) != 0 || (path[n] && path[n] != '/'))
        return NULL;
    return path[n] ? path + n + 1 : path + n;
}

/* Whether every component that begins with a dot is named by a component of the pattern that
 * begins with one: in a rule that allows, a wildcard does not stand for .git or .ssh. */
static bool dots_named(struct amp_span pattern, const char *path)
{
    for (const char *c = path; *c; c += strcspn(c, "/"), c += *c == '/') {
        bool named = *c != '.';
        for (size_t i = 0; i < pattern.n && !named;) {
            const char *p = pattern.p + i, *slash = memchr(p, '/', pattern.n - i);
            size_t n = slash ? (size_t)(slash - p) : pattern.n - i;
            named = n && *p == '.' &&
                    amp_span_glob((struct amp_span){c, strcspn(c, "/")}, (struct amp_span){p, n});
            i += n + 1;
        }
        if (!named)
            return false;
    }
    return true;
}

static bool path_fits(struct amp_span pattern, const char *path, const char *top)
{
    const char *rel = is_from_root(pattern) ? path + 1 : path_below(path, top);
    pattern = pattern_of(pattern);
    return rel && *rel && dots_named(pattern, rel) && amp_glob_match(pattern, amp_span_str(rel));
}

/* For rules that refuse: a pattern without a slash also outside of the worktree. */
static bool path_hits(struct amp_span pattern, const char *path, const char *top)
{
    const char *rel = is_from_root(pattern) ? path + 1 : path_below(path, top);
    bool bare = !memchr(pattern.p, '/', pattern.n - 1);
    pattern = pattern_of(pattern);
    if (rel && *rel && amp_glob_match(pattern, amp_span_str(rel)))
        return true;
    if (rel && !*rel)
        return amp_span_is(pattern, "**");
    return bare && path[0] && amp_glob_match(pattern, amp_span_str(path + 1));
}

/* The path as it is written, without dot components, and the file that it is now; either is "" if
 * there is none. */
struct two_paths {
    char plain[PATH_MAX], real[PATH_MAX];
};

static void path_resolve(const char *path, const char *dir, struct two_paths *out)
{
    char text[2 * PATH_MAX];
    out->plain[0] = out->real[0] = '\0';
    if (strlen(path) >= PATH_MAX)
        return;
    snprintf(text, sizeof text, "%s%s%s", *path == '/' ? "" : dir, *path == '/' ? "" : "/", path);
    if (!amp_path_normal(amp_span_str(text), out->plain, sizeof out->plain))
        out->plain[0] = '\0';
    if (amp_path_canonical(text, out->real, NULL) < 0)
        out->real[0] = '\0';
}

static bool two_hit(struct amp_span pattern, const struct two_paths *p, const char *top)
{
    return (p->plain[0] && path_hits(pattern, p->plain, top)) ||
           (p->real[0] && path_hits(pattern, p->real, top));
}

/* True if a part of a word names a file that the pattern matches, from one of the directories. */
static bool part_hits(struct amp_span pattern, struct amp_span text, const char *dir,
                      const struct amp_hook_place *at)
{
    const char *const dirs[] = {at->cwd, dir};
    struct two_paths p;
    char part[PATH_MAX];
    if (!text.n || !amp_span_copy(text, part, sizeof part))
        return false;
    for (int i = 0; i < 2; i++) {
        path_resolve(part, dirs[i], &p);
        if (two_hit(pattern, &p, at->top))
            return true;
    }
    return false;
}

/* A word of a command, what follows an option of one letter in the same word, and each part behind
 * "=", "@", ":" and ",": --file=PATH, -dPATH, file=@PATH, HEAD:PATH. */
static bool word_hits(struct amp_span pattern, const char *word, const char *dir,
                      const struct amp_hook_place *at)
{
    static const char marks[] = "=@:,";
    for (const char *p = word; *p; p++) {
        if (p != word && !strchr(marks, p[-1]) && !(p == word + 2 && *word == '-'))
            continue;
        if (part_hits(pattern, amp_span_str(p), dir, at) ||
            part_hits(pattern, (struct amp_span){p, strcspn(p, marks)}, dir, at))
            return true;
    }
    return false;
}

/* ---- rules ---- */

struct call {
    const struct amp_call_event *e;
    const struct amp_hook_place *at;
    struct amp_plain line;
    char dir[PATH_MAX];      /* where its commands run, but for a first `cd` */
    struct two_paths *paths; /* of the event */
    bool *command_allowed, *path_allowed;
    bool all_allowed;
};

static bool is_unread(const struct call *c)
{
    return c->line.why[0] || c->e->odd_patch;
}

static bool command_named(const struct call *c, struct amp_span pattern)
{
    for (size_t i = 0; i < c->line.n; i++)
        if (amp_plain_names(&c->line.v[i], pattern))
            return true;
    return false;
}

static bool path_named(const struct call *c, struct amp_span pattern)
{
    for (size_t i = 0; i < c->e->n_paths; i++)
        if (two_hit(pattern, &c->paths[i], c->at->top))
            return true;
    for (size_t i = 0; i < c->line.n; i++)
        for (size_t k = 0; k < c->line.v[i].n; k++)
            if (word_hits(pattern, c->line.v[i].words[k], c->dir, c->at))
                return true;
    return false;
}

static bool rule_concerns(const struct amp_hook_rule *r, const struct amp_call_event *e)
{
    return (r->cli == AMP_CLI_NONE || r->cli == e->cli) &&
           (r->kind < 0 || r->kind == (int)e->kind) &&
           (!r->tool.n || amp_span_glob(e->tool, r->tool));
}

/* Whether a rule that asks or denies applies. */
static bool rule_named(const struct amp_hook_rule *r, const struct call *c)
{
    return (!r->command.n || command_named(c, r->command)) &&
           (!r->path.n || path_named(c, r->path));
}

/* A program with a relative path is the worktree's only where nothing changes the directory. */
static bool program_is_fixed(const struct call *c, const char *program)
{
    return *program == '/' || !strchr(program, '/') ||
           (!c->line.moves && strcmp(c->at->cwd, c->at->top) == 0);
}

/* Marks what a rule allows. */
static void rule_allow(const struct amp_hook_rule *r, struct call *c)
{
    if (!r->command.n && !r->path.n)
        c->all_allowed = true;
    for (size_t i = 0; r->command.n && i < c->line.n; i++)
        if ((c->e->known || r->tool.n) && amp_plain_fits(&c->line.v[i], r->command) &&
            program_is_fixed(c, c->line.v[i].words[0]))
            c->command_allowed[i] = true;
    bool files = c->e->kind == AMP_CALL_READ || c->e->kind == AMP_CALL_WRITE;
    for (size_t i = 0; r->path.n && files && i < c->e->n_paths; i++)
        if (c->paths[i].real[0] && path_fits(r->path, c->paths[i].real, c->at->top))
            c->path_allowed[i] = true;
}

static bool all_of(const bool *marks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!marks[i])
            return false;
    return n > 0;
}

static bool is_allowed(const struct call *c)
{
    return c->all_allowed ||
           (!is_unread(c) && (c->e->n_commands ? all_of(c->command_allowed, c->line.n)
                                               : all_of(c->path_allowed, c->e->n_paths)));
}

static void result_set(struct amp_hook_result *out, size_t rule, const struct amp_hook_rule *r)
{
    out->grave = out->grave || r->grave;
    if (r->decision <= out->decision)
        return;
    out->text = r->decision == AMP_HOOK_ASK ? amp_span_str(r->text) : AMP_SPAN("");
    out->decision = r->decision;
    out->rule = rule;
    struct amp_span what = r->command.n ? r->command : r->path.n ? r->path : r->tool;
    snprintf(out->why, sizeof out->why, "%.*s%srule %zu of hitl.hook.rules%s%.*s%s",
             AMP_CLIP(r->reason, 200), r->reason.n ? " (" : "", rule, what.n ? ": " : "",
             AMP_CLIP(what, 120), r->reason.n ? ")" : "");
}

/* Decides about a call that cannot be read while a rule refuses something. */
static void unread_set(const struct amp_hook_rules *rules, const struct call *c,
                       struct amp_hook_result *out)
{
    out->grave = true;
    if (out->decision >= AMP_HOOK_ASK && rules->unread != AMP_HOOK_DENY)
        return;
    out->decision = rules->unread == AMP_HOOK_DENY ? AMP_HOOK_DENY : AMP_HOOK_ASK;
    out->rule = 0;
    out->text = AMP_SPAN("");
    if (c->line.why[0])
        snprintf(out->why, sizeof out->why,
                 "the command line is not plain, so the rules cannot read it: %s", c->line.why);
    else
        snprintf(out->why, sizeof out->why, "a line of the patch with *** is not understood");
}

static void rules_apply(const struct amp_hook_rules *rules, struct call *c,
                        struct amp_hook_result *out)
{
    bool refuses = false;
    for (size_t i = 0; i < rules->n; i++) {
        const struct amp_hook_rule *r = &rules->v[i];
        refuses |= r->decision != AMP_HOOK_ALLOW;
        if (!rule_concerns(r, c->e))
            continue;
        if (r->decision == AMP_HOOK_ALLOW)
            rule_allow(r, c);
        else if (rule_named(r, c))
            result_set(out, i + 1, r);
    }
    if (is_unread(c) && refuses && rules->unread != AMP_HOOK_ALLOW &&
        out->decision != AMP_HOOK_DENY)
        unread_set(rules, c, out);
    if (out->decision == AMP_HOOK_ASK && out->rule) {
        rule_allow(&rules->v[out->rule - 1], c);
        out->whole = is_allowed(c);
    }
    if (out->decision != AMP_HOOK_UNDECIDED)
        return;
    if (is_allowed(c)) {
        out->decision = AMP_HOOK_ALLOW;
        snprintf(out->why, sizeof out->why, "allowed by hitl.hook.rules");
    } else {
        snprintf(out->why, sizeof out->why, "no rule of hitl.hook.rules decides%s%.120s%s",
                 c->line.why[0] ? " (the command line is not plain: " : "", c->line.why,
                 c->line.why[0] ? ")" : "");
    }
}

/* The directory of the commands behind a first `cd`. */
static void dir_find(struct call *c)
{
    char text[2 * PATH_MAX];
    const char *to = c->line.moves ? c->line.v[0].words[1] : "";
    snprintf(text, sizeof text, "%s/%.4095s", *to == '/' ? "" : c->at->cwd, to);
    if (!*to || amp_path_canonical(text, c->dir, NULL) < 0)
        memcpy(c->dir, c->at->cwd, sizeof c->dir);
}

int amp_hook_decide(const struct amp_hook_rules *r, const struct amp_call_event *e,
                    const struct amp_hook_place *at, struct amp_hook_result *out,
                    struct amp_error *err)
{
    struct call c = {.e = e, .at = at};
    *out = (struct amp_hook_result){0};
    if (amp_plain_read(e, &c.line, err) < 0) {
        amp_plain_release(&c.line);
        return -1;
    }
    dir_find(&c);
    AMP_FREE bool *marks = calloc(c.line.n + e->n_paths + 1, sizeof *marks);
    AMP_FREE struct two_paths *paths = calloc(e->n_paths + 1, sizeof *paths);
    if (marks && paths) {
        c.command_allowed = marks;
        c.path_allowed = marks + c.line.n;
        c.paths = paths;
        for (size_t i = 0; i < e->n_paths; i++)
            path_resolve(e->paths[i], at->cwd, &paths[i]);
        rules_apply(r, &c, out);
    }
    amp_plain_release(&c.line);
    return marks && paths ? 0 : amp_fail_memory(err);
}

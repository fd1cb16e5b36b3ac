/* Decides about a tool call by the rules of amp.json. */
#include "flow/hook/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "worktree/call/units.h"
#include "worktree/paths/glob.h"
#include "worktree/worktree.h"

struct amp_hook_rule {
    enum amp_hook_decision decision;
    enum amp_call_cli cli;                       /* AMP_CLI_NONE: every CLI */
    int kind;                                    /* -1: every kind */
    bool grave;                                  /* its risk is high */
    struct amp_span tool, command, path, reason; /* in text; empty: not given */
    char *text;
    struct amp_span source; /* as it was given */
    char *source_text;
};

/* ---- reading ---- */

static int rule_bad(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_CONFIG, "bad_config", "a rule of hitl.hook.rules: %s", what);
}

static int word_find(struct amp_span word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (amp_span_is(word, words[i]))
            return i;
    return -1;
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

static int member_set(struct amp_hook_rule *r, struct amp_span key, struct amp_span value,
                      struct amp_error *err)
{
    static const char *const decisions[] = {"", "allow", "ask", "deny"};
    static const char *const risks[] = {"low", "medium", "high"};
    char name[32];
    if (!value.n)
        return rule_bad(err, "an empty text");
    if (amp_span_is(key, "decision")) {
        int found = word_find(value, decisions, 4);
        if (found < 1)
            return rule_bad(err, "decision is not allow, ask or deny");
        r->decision = (enum amp_hook_decision)found;
    } else if (amp_span_is(key, "risk")) {
        if (word_find(value, risks, 3) < 0)
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

static int rule_read(struct amp_hook_rule *r, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_span key, value;
    AMP_TAPE struct amp_tape t = {0};
    AMP_BUF struct amp_buf mem = {0};
    amp_tape_init(&t, NULL);
    amp_buf_init(&mem, 1 << 20);
    if (amp_tape_scan(&t, r->text, strlen(r->text), &fault) < 0)
        return amp_json_fail(err, AMP_CONFIG, "bad_config", "a rule of hitl.hook.rules", &fault);
    if (t.tok[0].type != AMP_JSON_OBJECT)
        return rule_bad(err, "it is not an object");
    if (amp_buf_reserve(&mem, 2 * strlen(r->text), err) < 0)
        return -1;
    for (uint32_t k = 1; k < t.tok[0].next; k = t.tok[k + 1].next) {
        if (t.tok[k + 1].type != AMP_JSON_STRING || (t.tok[k + 1].flags & AMP_TOK_NUL))
            return rule_bad(err, "a member is not a text");
        if (amp_tok_text(&t, k, &mem, &key, err) < 0 ||
            amp_tok_text(&t, k + 1, &mem, &value, err) < 0)
            return -1;
        /* Texts with escapes are in mem, which ends here. */
        if (value.n && (value.p < r->text || value.p >= r->text + strlen(r->text))) {
            struct amp_span raw = amp_tok_raw(&t, k + 1);
            char *place = r->text + (raw.p - t.text);
            memcpy(place, value.p, value.n); /* a decoded text is never longer */
            value.p = place;
        }
        if (member_set(r, key, value, err) < 0)
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
        return amp_fail(err, AMP_CONFIG, "bad_config", "hitl.hook.rules: more than %d rules",
                        AMP_HOOK_RULES_MAX);
    if (amp_grow(&r->v, &r->cap, r->n, sizeof *r->v, err) < 0)
        return -1;
    struct amp_hook_rule *rule = &r->v[r->n];
    *rule = (struct amp_hook_rule){.cli = AMP_CLI_NONE,
                                   .kind = -1,
                                   .text = amp_span_dup(json),
                                   .source_text = amp_span_dup(json)};
    if (rule->source_text)
        rule->source = amp_span_str(rule->source_text);
    if (!rule->text || !rule->source_text)
        return amp_fail_memory(err);
    r->n++;
    return rule_read(rule, err);
}

void amp_hook_rules_release(struct amp_hook_rules *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->v[i].text), free(r->v[i].source_text);
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
        return amp_fail(err, AMP_DATAERR, "call_malformed",
                        "the input of the hook: cwd is not an absolute path");
    if (!realpath(text, out->cwd))
        return amp_fail(err, AMP_DATAERR, "call_malformed",
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

/* A word with a glob as a pattern of paths, in which brackets and braces become `*`. */
static bool glob_overlaps(struct amp_span pattern, const char *text, const char *dir,
                          const char *top)
{
    char as[PATH_MAX], joined[2 * PATH_MAX], plain[PATH_MAX], anchored[PATH_MAX + 1];
    size_t n = 0;
    bool wild = false;
    for (const char *p = text; *p && n + 1 < sizeof as; p++) {
        char close = *p == '[' ? ']' : *p == '{' ? '}' : '\0';
        const char *end = close ? strchr(p, close) : NULL;
        wild |= end || *p == '*' || *p == '?';
        as[n++] = end ? '*' : *p;
        p = end ? end : p;
    }
    as[n] = '\0';
    if (!wild)
        return false;
    snprintf(joined, sizeof joined, "%s%s%s", *as == '/' ? "" : dir, *as == '/' ? "" : "/", as);
    if (!amp_path_normal(amp_span_str(joined), plain, sizeof plain))
        return true;
    const char *rel = is_from_root(pattern) ? NULL : path_below(plain, top);
    snprintf(anchored, sizeof anchored, "/%s", rel ? rel : plain + 1);
    return amp_glob_overlap(pattern_of(pattern), amp_span_str(anchored));
}

static enum amp_named worse(enum amp_named a, enum amp_named b)
{
    return a > b ? a : b;
}

static enum amp_named text_hits(struct amp_span pattern, const char *text, bool opaque,
                                const char *dir, const struct amp_hook_place *at)
{
    struct two_paths p;
    enum amp_named hit = opaque ? AMP_NAMED_PERHAPS : AMP_NAMED_YES;
    if (!*text)
        return AMP_NAMED_NO;
    path_resolve(text, at->cwd, &p);
    if (two_hit(pattern, &p, at->top))
        return hit;
    if (dir && strcmp(dir, at->cwd) != 0) {
        path_resolve(text, dir, &p);
        if (two_hit(pattern, &p, at->top))
            return hit;
    }
    return opaque && glob_overlaps(pattern, text, dir ? dir : at->cwd, at->top) ? AMP_NAMED_PERHAPS
                                                                                : AMP_NAMED_NO;
}

/* A word of a command, and the part of it behind "=" or a leading "@". */
static enum amp_named word_hits(struct amp_span pattern, const struct amp_shell_word *w,
                                const char *dir, const struct amp_hook_place *at)
{
    const char *eq = strchr(w->text, '=');
    enum amp_named hit = text_hits(pattern, w->text, w->opaque, dir, at);
    if (eq)
        hit = worse(hit, text_hits(pattern, eq + 1, w->opaque, dir, at));
    if (w->text[0] == '@')
        hit = worse(hit, text_hits(pattern, w->text + 1, w->opaque, dir, at));
    return hit;
}

/* ---- rules ---- */

struct call {
    const struct amp_call_event *e;
    const struct amp_hook_place *at;
    struct amp_call_units units;
    struct two_paths *paths; /* of the event */
    bool *unit_allowed, *path_allowed;
    bool all_allowed;
};

static enum amp_named command_named(const struct call *c, struct amp_span pattern)
{
    enum amp_named hit = c->units.unread ? AMP_NAMED_PERHAPS : AMP_NAMED_NO;
    for (size_t i = 0; i < c->units.n; i++)
        hit = worse(hit, amp_unit_names(&c->units.v[i], pattern));
    return hit;
}

static enum amp_named path_named(const struct call *c, struct amp_span pattern)
{
    enum amp_named hit = AMP_NAMED_NO;
    for (size_t i = 0; i < c->e->n_paths; i++)
        if (two_hit(pattern, &c->paths[i], c->at->top))
            return AMP_NAMED_YES;
    for (size_t i = 0; i < c->units.n; i++) {
        const struct amp_call_unit *u = &c->units.v[i];
        for (size_t k = 0; k < u->n + u->n_assignments; k++)
            hit = worse(hit, word_hits(pattern, u->words - u->n_assignments + k, u->dir, c->at));
    }
    for (size_t i = 0; i < c->units.n_files; i++)
        hit = worse(hit, word_hits(pattern, c->units.files[i].word, c->units.files[i].dir, c->at));
    return hit;
}

static bool rule_concerns(const struct amp_hook_rule *r, const struct amp_call_event *e)
{
    return (r->cli == AMP_CLI_NONE || r->cli == e->cli) &&
           (r->kind < 0 || r->kind == (int)e->kind) &&
           (!r->tool.n || amp_span_glob(e->tool, r->tool));
}

/* Whether a rule that asks or denies applies. */
static enum amp_named rule_named(const struct amp_hook_rule *r, const struct call *c)
{
    enum amp_named hit = AMP_NAMED_YES;
    if (r->command.n)
        hit = c->e->n_commands ? command_named(c, r->command) : AMP_NAMED_NO;
    if (r->path.n && hit != AMP_NAMED_NO) {
        enum amp_named path = path_named(c, r->path);
        hit = path < hit ? path : hit;
    }
    return hit;
}

/* A program with a relative path is the worktree's only where nothing changes the directory. */
static bool program_is_fixed(const struct call *c, const struct amp_call_unit *u)
{
    return u->words[0].text[0] == '/' || !strchr(u->words[0].text, '/') ||
           (!c->units.moves && u->dir && strcmp(u->dir, c->at->top) == 0);
}

/* Marks what a rule allows. */
static void rule_allow(const struct amp_hook_rule *r, struct call *c)
{
    if (!r->command.n && !r->path.n)
        c->all_allowed = true;
    for (size_t i = 0; r->command.n && i < c->units.n; i++)
        if ((c->e->known || r->tool.n) && amp_unit_fits(&c->units.v[i], r->command) &&
            program_is_fixed(c, &c->units.v[i]))
            c->unit_allowed[i] = true;
    bool files = c->e->kind == AMP_CALL_READ || c->e->kind == AMP_CALL_WRITE;
    for (size_t i = 0; r->path.n && files && i < c->e->n_paths; i++)
        if (c->paths[i].real[0] && path_fits(r->path, c->paths[i].real, c->at->top))
            c->path_allowed[i] = true;
}

static bool is_allowed(const struct call *c)
{
    size_t own = 0;
    if (c->all_allowed)
        return true;
    if (c->e->n_commands) {
        for (size_t i = 0; i < c->units.n; i++) {
            own += !c->units.v[i].derived;
            if (!c->units.v[i].derived && !c->unit_allowed[i])
                return false;
        }
        return own && !c->units.unread;
    }
    for (size_t i = 0; i < c->e->n_paths; i++)
        if (!c->path_allowed[i])
            return false;
    return c->e->n_paths > 0;
}

static void result_set(struct amp_hook_result *out, enum amp_hook_decision d, size_t rule,
                       const struct amp_hook_rule *r, bool perhaps)
{
    out->grave = out->grave || r->grave || perhaps;
    if (d <= out->decision)
        return;
    out->text = d == AMP_HOOK_ASK ? r->source : AMP_SPAN("");
    out->decision = d;
    out->rule = rule;
    struct amp_span what = r->command.n ? r->command : r->path.n ? r->path : r->tool;
    snprintf(out->why, sizeof out->why, "%s%.*s%s%srule %zu of hitl.hook.rules%s%.*s%s",
             perhaps ? "the call might be what a rule denies: " : "", AMP_CLIP(r->reason, 200),
             r->reason.n ? " (" : "", "", rule, what.n ? ": " : "", AMP_CLIP(what, 120),
             r->reason.n ? ")" : "");
}

static void rules_apply(const struct amp_hook_rules *rules, struct call *c,
                        struct amp_hook_result *out)
{
    for (size_t i = 0; i < rules->n; i++) {
        const struct amp_hook_rule *r = &rules->v[i];
        if (!rule_concerns(r, c->e))
            continue;
        if (r->decision == AMP_HOOK_ALLOW) {
            rule_allow(r, c);
            continue;
        }
        enum amp_named hit = rule_named(r, c);
        if (hit == AMP_NAMED_YES)
            result_set(out, r->decision, i + 1, r, false);
        else if (hit == AMP_NAMED_PERHAPS)
            result_set(out, AMP_HOOK_ASK, i + 1, r, r->decision == AMP_HOOK_DENY);
    }
    if (out->decision == AMP_HOOK_ASK) {
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
                 c->units.unread ? " (the command cannot be read: " : "", c->units.why,
                 c->units.unread ? ")" : "");
    }
}

int amp_hook_decide(const struct amp_hook_rules *r, const struct amp_call_event *e,
                    const struct amp_hook_place *at, struct amp_hook_result *out,
                    struct amp_error *err)
{
    struct call c = {.e = e, .at = at};
    *out = (struct amp_hook_result){0};
    if (amp_call_units_read(e, at->cwd, &c.units, err) < 0) {
        amp_call_units_release(&c.units);
        return -1;
    }
    AMP_FREE bool *marks = calloc(c.units.n + e->n_paths + 1, sizeof *marks);
    AMP_FREE struct two_paths *paths = calloc(e->n_paths + 1, sizeof *paths);
    if (marks && paths) {
        c.unit_allowed = marks;
        c.path_allowed = marks + c.units.n;
        c.paths = paths;
        for (size_t i = 0; i < e->n_paths; i++)
            path_resolve(e->paths[i], at->cwd, &paths[i]);
        rules_apply(r, &c, out);
    }
    amp_call_units_release(&c.units);
    return marks && paths ? 0 : amp_fail_memory(err);
}

/* The rule for protected branches and its policy file. branch-guard links this file, so it uses
 * only libc and lib/base. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/num.h>
#include <amp/protocol/protocol.h>

#include "base/codes.h"
#include "work/git/rule.h"

#define HEADS "refs/heads/"

void amp_rule_default(struct amp_rule *r)
{
    memset(r, 0, offsetof(struct amp_rule, text));
    r->text[0] = '\0';
}

static int bad_line(struct amp_error *err, int line, const char *what)
{
    return amp_fail(err, AMP_CONFIG, bad_guard_policy, "the guard's policy, line %d: %s", line,
                    what);
}

static int list_add(const char *list[AMP_RULE_PATTERNS_MAX + 1], const char *value)
{
    for (int i = 0; i < AMP_RULE_PATTERNS_MAX; i++) {
        if (list[i])
            continue;
        list[i] = value;
        list[i + 1] = NULL;
        return 0;
    }
    return -1;
}

static int list_parse(const char *list[AMP_RULE_PATTERNS_MAX + 1], const char *value, int number,
                      struct amp_error *err)
{
    if (list_add(list, value) < 0)
        return bad_line(err, number, "too many lines of this kind");
    return 0;
}

/* 1: value is neither of the words. */
static int choice_parse(bool *out, const char *value, const char *no, const char *yes)
{
    *out = strcmp(value, yes) == 0;
    return !*out && strcmp(value, no) != 0;
}

static int parse_line(struct amp_rule *r, char *key, int number, struct amp_error *err)
{
    const struct {
        const char *key;
        const char **list;
    } lists[] = {
        {"branch", r->patterns}, {"pusher", r->pushers},   {"role", r->roles},
        {"path", r->paths},      {"trailer", r->trailers},
    };
    const struct {
        const char *key;
        bool *to;
        const char *no, *yes;
    } choices[] = {
        {"humans", &r->humans_refuse, "allow", "refuse"},
        {"server", &r->server_all, "none", "all"},
        {"bound", &r->bound, "off", "on"},
    };
    const struct {
        const char *key;
        int64_t *to;
    } numbers[] = {{"max-file", &r->max_file}, {"max-commit", &r->max_commit}};
    char *value = strchr(key, ' ');
    if (value)
        *value++ = '\0';
    if (number == 1)
        return strcmp(key, "amp-guard") == 0 && value && strcmp(value, "1") == 0
                   ? 0
                   : bad_line(err, number, "\"amp-guard 1\" expected");
    if (!value || !*value)
        return bad_line(err, number, "a word and a value expected");
    if (strcmp(key, "role") == 0 && (!strchr(value, ' ') || value[0] == ' '))
        return bad_line(err, number, "a role and a pattern expected");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strcmp(key, lists[i].key) == 0)
            return list_parse(lists[i].list, value, number, err);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(key, choices[i].key) == 0 &&
            choice_parse(choices[i].to, value, choices[i].no, choices[i].yes) == 0)
            return 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0 &&
            amp_num_parse(amp_span_str(value), 0, INT64_MAX, numbers[i].to, NULL) == 0)
            return 0;
    return bad_line(err, number, "not understood");
}

int amp_rule_parse(struct amp_rule *r, struct amp_span text, struct amp_error *err)
{
    amp_rule_default(r);
    if (text.n > AMP_RULE_FILE_MAX || memchr(text.p, '\0', text.n) || !text.n ||
        text.p[text.n - 1] != '\n')
        return bad_line(err, 1, "empty, cut short, too long or not text");
    memcpy(r->text, text.p, text.n);
    r->text[text.n] = '\0';
    int number = 0;
    for (char *p = r->text; *p;) {
        char *end = strchr(p, '\n');
        *end = '\0';
        if (parse_line(r, p, ++number, err) < 0)
            return -1;
        p = end + 1;
    }
    return 0;
}

static int list_format(const char *key, const char *const *list, struct amp_buf *out,
                       struct amp_error *err)
{
    for (; *list; list++)
        if (amp_buf_fmt(out, err, "%s %s\n", key, *list) < 0)
            return -1;
    return 0;
}

int amp_rule_format(const struct amp_rule *r, struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "amp-guard 1\nhumans %s\nserver %s\n",
                    r->humans_refuse ? "refuse" : "allow", r->server_all ? "all" : "none") < 0 ||
        list_format("pusher", r->pushers, out, err) < 0 ||
        list_format("branch", r->patterns, out, err) < 0 ||
        list_format("role", r->roles, out, err) < 0 ||
        (r->bound && amp_buf_str(out, "bound on\n", err) < 0) ||
        list_format("trailer", r->trailers, out, err) < 0 ||
        list_format("path", r->paths, out, err) < 0 ||
        (r->max_file && amp_buf_fmt(out, err, "max-file %lld\n", (long long)r->max_file) < 0) ||
        (r->max_commit && amp_buf_fmt(out, err, "max-commit %lld\n", (long long)r->max_commit) < 0))
        return -1;
    return 0;
}

/* Reads a complete small file. -1 with errno; EFBIG if it does not fit. */
static ssize_t read_small(int dirfd, const char *path, char *buf, size_t size)
{
    int fd = amp_file_open(dirfd, path, O_RDONLY | O_NOFOLLOW, 0, NULL);
    if (fd < 0)
        return -1;
    size_t n = 0;
    ssize_t got = 0;
    while (n < size && (got = read(fd, buf + n, size - n)) != 0) {
        if (got < 0 && errno != EINTR)
            break;
        n += got > 0 ? (size_t)got : 0;
    }
    int saved = errno;
    close(fd);
    errno = got < 0 ? saved : EFBIG;
    return got < 0 || n == size ? -1 : (ssize_t)n;
}

int amp_rule_load(struct amp_rule *r, int common_fd, struct amp_error *err)
{
    char text[AMP_RULE_FILE_MAX];
    ssize_t n = read_small(common_fd, "amp/" AMP_RULE_FILE, text, sizeof text);
    if (n < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        amp_rule_default(r);
        return 0;
    }
    if (n < 0 && errno == EINVAL)
        return amp_fail(err, AMP_CONFIG, not_a_file,
                        "the guard's policy amp/" AMP_RULE_FILE " is not a regular file");
    if (n < 0)
        return amp_fail_errno(err, AMP_CONFIG, "cannot read the guard's policy");
    return amp_rule_parse(r, (struct amp_span){text, (size_t)n}, err);
}

bool amp_rule_protects(const struct amp_rule *r, struct amp_span ref)
{
    return amp_branch_is_protected(ref, r->patterns);
}

/* Git writes "no value" as zeros. */
static struct amp_span value_of(struct amp_span v)
{
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] != '0')
            return v;
    return (struct amp_span){NULL, 0};
}

/* Whether a line of the caller's role, or of the role "*", covers the branch. */
static bool role_covers(const struct amp_rule *r, const char *role, struct amp_span branch)
{
    for (int i = 0; r->roles[i]; i++) {
        const char *line = r->roles[i], *sp = strchr(line, ' ');
        struct amp_span name = {line, (size_t)(sp - line)};
        if ((amp_span_is(name, "*") || (*role && amp_span_is(name, role))) &&
            amp_span_glob(branch, amp_span_str(sp + 1)))
            return true;
    }
    return false;
}

enum amp_rule_verdict amp_rule_allows(const struct amp_rule *r, const struct amp_rule_caller *c,
                                      struct amp_span ref)
{
    if (!c->agent && !r->humans_refuse)
        return AMP_RULE_ALLOW;
    if (amp_rule_protects(r, ref))
        return AMP_RULE_REFUSE;
    if (!c->agent || !amp_span_starts(ref, HEADS))
        return AMP_RULE_ALLOW;
    struct amp_span branch = {ref.p + strlen(HEADS), ref.n - strlen(HEADS)};
    if (r->roles[0] && !role_covers(r, c->role, branch))
        return AMP_RULE_REFUSE_ROLE;
    if (r->bound && !(c->marked && amp_span_is(branch, c->branch)))
        return AMP_RULE_REFUSE_BOUND;
    return AMP_RULE_ALLOW;
}

enum amp_rule_verdict amp_rule_decide(const struct amp_rule *r, const struct amp_rule_caller *c,
                                      const struct amp_ref_update *u)
{
    enum amp_rule_verdict v = amp_rule_allows(r, c, u->ref);
    if (v == AMP_RULE_ALLOW)
        return v;
    struct amp_span to = value_of(u->new_value), now = value_of(u->now);
    struct amp_span packed = value_of(u->packed);
    if (amp_span_eq(to, now))
        return AMP_RULE_NOOP;
    /* `git pack-refs` first packs the value (a no-op above), then deletes the loose file. A real
     * deletion holds packed-refs.lock by now. */
    if (!to.n && packed.n && amp_span_eq(packed, now) && !u->packed_locked)
        return AMP_RULE_PRUNE;
    return v;
}

const char *amp_rule_code(enum amp_rule_verdict v)
{
    switch (v) {
    case AMP_RULE_REFUSE:
        return AMP_CODE(branch_violation);
    case AMP_RULE_REFUSE_ROLE:
        return AMP_CODE(branch_not_of_role);
    case AMP_RULE_REFUSE_BOUND:
        return AMP_CODE(branch_not_bound);
    case AMP_RULE_ALLOW:
    case AMP_RULE_NOOP:
    case AMP_RULE_PRUNE:
        break;
    }
    return "";
}

/* ---- the marker ---- */

int amp_marker_format(const char *agent, const char *branch, const char *role, struct amp_buf *out,
                      struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "%s\n", agent) < 0 ||
        (branch && *branch && amp_buf_fmt(out, err, "branch %s\n", branch) < 0) ||
        (role && *role && amp_buf_fmt(out, err, "role %s\n", role) < 0))
        return -1;
    return 0;
}

/* Fills the marker's values; false: there is no marker. */
static bool read_marker(int gitdir_fd, struct amp_rule_caller *out)
{
    char text[1024];
    ssize_t n = gitdir_fd < 0 ? -1 : read_small(gitdir_fd, AMP_AGENT_MARKER, text, sizeof text);
    if (n < 0) {
        if (gitdir_fd < 0 || errno == ENOENT || errno == ENOTDIR)
            return false;
        n = 0;
    }
    struct amp_span rest = {text, (size_t)n};
    for (int line = 0; line == 0 || rest.n; line++) {
        const char *lf = rest.n ? memchr(rest.p, '\n', rest.n) : NULL;
        struct amp_span s = {rest.p, lf ? (size_t)(lf - rest.p) : rest.n};
        rest.p += s.n + (lf ? 1 : 0);
        rest.n -= s.n + (lf ? 1 : 0);
        if (line == 0)
            amp_span_copy(s.n ? s : AMP_SPAN("unknown"), out->name, sizeof out->name);
        else if (amp_span_starts(s, "branch "))
            amp_span_copy((struct amp_span){s.p + 7, s.n - 7}, out->branch, sizeof out->branch);
        else if (amp_span_starts(s, "role "))
            amp_span_copy((struct amp_span){s.p + 5, s.n - 5}, out->role, sizeof out->role);
    }
    return true;
}

void amp_rule_caller(const char *env_agent, const char *env_role, int gitdir_fd,
                     struct amp_rule_caller *out)
{
    memset(out, 0, sizeof *out);
    out->marked = read_marker(gitdir_fd, out);
    out->agent = out->marked || env_agent;
    if (env_agent && (*env_agent || !out->marked)) {
        char name[sizeof out->name];
        amp_span_copy(*env_agent ? amp_span_str(env_agent) : AMP_SPAN("unknown"), name,
                      sizeof name);
        /* Another agent's worktree is not this one's. */
        if (strcmp(name, out->name) != 0) {
            out->marked = false;
            out->branch[0] = out->role[0] = '\0';
        }
        memcpy(out->name, name, sizeof name);
    }
    if (out->agent && !out->role[0] && env_role)
        amp_span_copy(amp_span_str(env_role), out->role, sizeof out->role);
}

bool amp_rule_agent(const char *env_agent, int gitdir_fd, char *name, size_t size)
{
    struct amp_rule_caller c;
    amp_rule_caller(env_agent, NULL, gitdir_fd, &c);
    if (c.agent)
        amp_span_copy(amp_span_str(c.name), name, size);
    return c.agent;
}

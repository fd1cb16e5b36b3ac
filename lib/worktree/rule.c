/* The rule for protected branches and its policy file. branch-guard links this file, so it uses
 * only libc and lib/base. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/protocol/protocol.h>

#include "worktree/rule.h"

void amp_rule_default(struct amp_rule *r)
{
    memset(r, 0, offsetof(struct amp_rule, text));
    r->text[0] = '\0';
}

static int bad_line(struct amp_error *err, int line, const char *what)
{
    return amp_fail(err, AMP_CONFIG, "bad_guard_policy", "the guard's policy, line %d: %s", line,
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

static int parse_line(struct amp_rule *r, char *key, int number, struct amp_error *err)
{
    char *value = strchr(key, ' ');
    if (value)
        *value++ = '\0';
    if (number == 1)
        return strcmp(key, "amp-guard") == 0 && value && strcmp(value, "1") == 0
                   ? 0
                   : bad_line(err, number, "\"amp-guard 1\" expected");
    if (!value || !*value)
        return bad_line(err, number, "a word and a value expected");
    if (strcmp(key, "humans") == 0 && strcmp(value, "refuse") == 0)
        r->humans_refuse = true;
    else if (strcmp(key, "humans") == 0 && strcmp(value, "allow") == 0)
        r->humans_refuse = false;
    else if (strcmp(key, "server") == 0 && strcmp(value, "all") == 0)
        r->server_all = true;
    else if (strcmp(key, "server") == 0 && strcmp(value, "none") == 0)
        r->server_all = false;
    else if (strcmp(key, "branch") == 0)
        return list_add(r->patterns, value) ? bad_line(err, number, "too many patterns") : 0;
    else if (strcmp(key, "pusher") == 0)
        return list_add(r->pushers, value) ? bad_line(err, number, "too many pushers") : 0;
    else
        return bad_line(err, number, "not understood");
    return 0;
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

int amp_rule_format(const struct amp_rule *r, struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "amp-guard 1\nhumans %s\nserver %s\n",
                    r->humans_refuse ? "refuse" : "allow", r->server_all ? "all" : "none") < 0)
        return -1;
    for (int i = 0; r->pushers[i]; i++)
        if (amp_buf_fmt(out, err, "pusher %s\n", r->pushers[i]) < 0)
            return -1;
    for (int i = 0; r->patterns[i]; i++)
        if (amp_buf_fmt(out, err, "branch %s\n", r->patterns[i]) < 0)
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
        return amp_fail(err, AMP_CONFIG, "not_a_file",
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

enum amp_rule_verdict amp_rule_decide(const struct amp_rule *r, const char *agent,
                                      const struct amp_ref_update *u)
{
    if ((!agent && !r->humans_refuse) || !amp_rule_protects(r, u->ref))
        return AMP_RULE_ALLOW;
    struct amp_span to = value_of(u->new_value), now = value_of(u->now);
    struct amp_span packed = value_of(u->packed);
    if (amp_span_eq(to, now))
        return AMP_RULE_NOOP;
    /* `git pack-refs` first packs the value (a no-op above), then deletes the loose file. A real
     * deletion holds packed-refs.lock by now. */
    if (!to.n && packed.n && amp_span_eq(packed, now) && !u->packed_locked)
        return AMP_RULE_PRUNE;
    return AMP_RULE_REFUSE;
}

bool amp_rule_agent(const char *env_agent, int gitdir_fd, char *name, size_t size)
{
    if (env_agent) {
        amp_span_copy(*env_agent ? amp_span_str(env_agent) : AMP_SPAN("unknown"), name, size);
        return true;
    }
    char text[256];
    ssize_t n = gitdir_fd < 0 ? -1 : read_small(gitdir_fd, AMP_AGENT_MARKER, text, sizeof text);
    if (n < 0) {
        if (gitdir_fd < 0 || errno == ENOENT || errno == ENOTDIR)
            return false;
        n = 0;
    }
    struct amp_span s = {text, (size_t)n};
    const char *lf = memchr(text, '\n', s.n);
    if (lf)
        s.n = (size_t)(lf - text);
    amp_span_copy(s.n ? s : AMP_SPAN("unknown"), name, size);
    return true;
}

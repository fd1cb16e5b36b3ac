/* The override: a person allows one change, once. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/num.h>

#include "guard.h"

#define OVERRIDE "amp/override"

static void override_find(struct override *o, int common_fd, int64_t now_ms)
{
    memset(o, 0, sizeof *o);
    AMP_CLOSE int fd =
        common_fd < 0 ? -1 : amp_file_open(common_fd, OVERRIDE, O_RDONLY | O_NOFOLLOW, 0, NULL);
    if (fd < 0 || read(fd, o->text, sizeof o->text - 1) <= 0)
        return;
    int64_t until = 0;
    bool head = false;
    for (char *p = o->text, *end; (end = strchr(p, '\n')); p = end + 1) {
        *end = '\0';
        char *v = strchr(p, ' ');
        if (!v)
            return;
        *v++ = '\0';
        struct amp_span s = amp_span_str(v);
        if (strcmp(p, "amp-override") == 0)
            head = strcmp(v, "1") == 0;
        else if (strcmp(p, "branch") == 0)
            o->branch = s;
        else if (strcmp(p, "agent") == 0)
            o->agent = s;
        else if (strcmp(p, "id") == 0)
            o->id = s;
        else if (strcmp(p, "until") != 0 || amp_num_parse(s, 1, INT64_MAX, &until, NULL))
            return;
    }
    o->found = head && o->branch.n && o->agent.n && o->id.n && until > now_ms;
}

static bool override_covers(const struct override *o, struct amp_span ref, const char *agent)
{
    static const struct amp_span prefix = {"refs/heads/", 11};
    if (!o->found || !amp_span_starts(ref, prefix.p))
        return false;
    return amp_span_eq((struct amp_span){ref.p + prefix.n, ref.n - prefix.n}, o->branch) &&
           (amp_span_is(o->agent, "*") || (agent && amp_span_is(o->agent, agent)));
}

/* Uses it up; false if another process has used it already. */
static bool override_use(const struct override *o, int common_fd, const char *agent, int64_t now_ms)
{
    if (unlinkat(common_fd, OVERRIDE, 0) != 0)
        return false;
    char time[AMP_TIME_MAX], line[1024];
    amp_time_format(now_ms, time);
    int n = snprintf(line, sizeof line, "%s override %.*s for %.*s used by %s\n", time,
                     (int)o->id.n, o->id.p, (int)o->branch.n, o->branch.p, agent ? agent : "-");
    AMP_CLOSE int fd = amp_file_open(common_fd, "amp/guard.log",
                                     O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0600, NULL);
    /* The override is used in any case; the log is for people. */
    ssize_t put = fd < 0 ? 0 : write(fd, line, n > 0 && (size_t)n < sizeof line ? (size_t)n : 0);
    (void)put;
    return true;
}

bool is_overridden(struct guard *g, struct amp_span ref, bool use)
{
    const char *agent = g->caller.agent ? g->caller.name : NULL;
    if (g->override_used)
        return override_covers(&g->override, ref, agent);
    int64_t now = amp_now_ms();
    override_find(&g->override, g->repo.common, now);
    if (!override_covers(&g->override, ref, agent))
        return false;
    g->override_used = use && override_use(&g->override, g->repo.common, agent, now);
    return !use || g->override_used;
}

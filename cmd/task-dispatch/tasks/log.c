/* task-dispatch log: the output of the agents that work on a task, from the files of their
 * attempts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/pipe.h>

#include "../verbs.h"
#include "base/codes.h"
#include "people/story/story.h"

#define PIECE 65536

static bool follow;

static const struct amp_opt tasks_log_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL,
     "print what is added, also of later attempts, until the task ends"},
    AMP_OPT_END,
};

struct reading {
    const char *agent; /* only attempts of this one, or of NAME-1, NAME-2 …; NULL: of all */
    char id[AMP_TASK_ID_MAX], dir[PATH_MAX]; /* dir: of the attempt; "": none yet */
    off_t printed[2];                        /* of its standard output and error */
    int files, tasks; /* inotify of the attempts and of the tasks' files; -1 without --follow */
    bool tty;
};

static int text_print(const struct reading *r, struct amp_span text, struct amp_error *err)
{
    AMP_BUF struct amp_buf safe = {.max = 8 * PIECE};

    if (!r->tty)
        return amp_out(text, err);
    while (text.n) {
        const char *lf = memchr(text.p, '\n', text.n);
        struct amp_span line = {text.p, lf ? (size_t)(lf - text.p) : text.n};
        size_t n = line.n + (lf != NULL);
        if (amp_text_safe(line, 0, &safe, err) < 0 || amp_buf_str(&safe, "\n", err) < 0)
            return -1;
        text = (struct amp_span){text.p + n, text.n - n};
    }
    return amp_out(amp_buf_span(&safe), err);
}

/* How much of the text is printed now: on a terminal complete lines, unless it is the last. */
static size_t text_ready(const struct reading *r, struct amp_span text, bool last)
{
    const char *lf = memrchr(text.p, '\n', text.n);

    return !r->tty || last || text.n == PIECE ? text.n : lf ? (size_t)(lf - text.p) + 1 : 0;
}

/* Reads what is there. last: nothing comes after it. */
static int stream_read(struct reading *r, int i, bool last, struct amp_error *err)
{
    static const char *const names[] = {"stdout", "stderr"};
    char path[PATH_MAX + 16], b[PIECE];
    struct stat st;
    ssize_t n;

    snprintf(path, sizeof path, "%s/%s", r->dir, names[i]);
    AMP_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "%s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return amp_fail(err, AMP_IOERR, not_a_file, "%s is not a file", path);
    while ((n = pread(fd, b, sizeof b, r->printed[i])) > 0) {
        size_t ready = text_ready(r, (struct amp_span){b, (size_t)n}, last);
        if (!ready)
            break;
        if (text_print(r, (struct amp_span){b, ready}, err) < 0)
            return -1;
        r->printed[i] += (off_t)ready;
    }
    return n < 0 ? amp_fail_errno(err, AMP_IOERR, "%s", path) : 0;
}

static int attempt_read(struct reading *r, bool last, struct amp_error *err)
{
    return *r->dir && (stream_read(r, 0, last, err) < 0 || stream_read(r, 1, last, err) < 0)
               ? -1
               : amp_out_flush(err);
}

/* A directory that does not exist yet is watched when the one above it has changed. */
static void dir_watch(const struct reading *r, const char *dir)
{
    if (r->files >= 0)
        inotify_add_watch(r->files, dir, IN_CREATE | IN_MODIFY);
}

static bool is_wanted(const struct reading *r, const struct amp_story_attempt *a)
{
    size_t n = r->agent ? strlen(r->agent) : 0;

    return !r->agent ||
           (strncmp(a->agent, r->agent, n) == 0 && (a->agent[n] == '\0' || a->agent[n] == '-'));
}

/* The attempt to begin with: the newest one of the agent, or of an executor. */
static size_t first_choose(const struct reading *r, const struct amp_story *st)
{
    size_t first = st->n_attempts;

    for (size_t i = 0; i < st->n_attempts; i++)
        if (is_wanted(r, &st->attempts[i]) && (r->agent || !st->attempts[i].review))
            first = i;
    return first;
}

/* Reads the attempt that was begun before, then those that came after it. */
static int attempts_read(struct reading *r, const struct amp_story *st, struct amp_error *err)
{
    size_t i = 0;

    while (i < st->n_attempts && strcmp(st->attempts[i].dir, r->dir) != 0)
        i++;
    if (i < st->n_attempts)
        i++; /* it has its own dir */
    else if (!*r->dir)
        i = first_choose(r, st);
    if (attempt_read(r, false, err) < 0)
        return -1;
    for (; i < st->n_attempts && (follow || !*r->dir); i++) {
        const struct amp_story_attempt *a = &st->attempts[i];
        if (!is_wanted(r, a))
            continue;
        if (attempt_read(r, true, err) < 0)
            return -1;
        snprintf(r->dir, sizeof r->dir, "%s", a->dir);
        r->printed[0] = r->printed[1] = 0;
        dir_watch(r, r->dir);
        amp_note("%s: attempt %lld by %s", a->subtask, (long long)a->number, a->agent);
        if (attempt_read(r, false, err) < 0)
            return -1;
    }
    return 0;
}

/* Watches where attempts begin, and reads what is new. */
static int attempts_look(struct reading *r, struct amp_error *err)
{
    AMP_STORY st = {0};
    char dir[PATH_MAX + AMP_TASK_ID_MAX + 8];

    snprintf(dir, sizeof dir, "%s/run", amp_tool_state);
    dir_watch(r, dir);
    snprintf(dir, sizeof dir, "%s/run/%s", amp_tool_state, r->id);
    dir_watch(r, dir);
    return amp_story_attempts(amp_tool_state, r->id, &st, err) < 0 ? -1
                                                                   : attempts_read(r, &st, err);
}

/* 1: the task has ended; 0: it has not. id: "" before the first look, which finds it by its name.
 * The state is closed between the looks. */
static int task_look(struct reading *r, struct amp_command *c, struct amp_error *err)
{
    struct amp_task_status st = {0};
    int rc = c->store ? 0 : amp_state_open(c, err);

    if (rc == 0 && !*r->id)
        rc = amp_story_find(c->store, c->argv[0], r->id, err);
    if (rc == 0)
        rc = amp_task_status(c->store, amp_span_str(r->id), &st, err);
    amp_state_close(c);
    return rc < 0 ? -1 : st.terminal || !st.found;
}

/* Opens the watches, for the life of the process. The file of a task is replaced after each of its
 * changes; without their directory there is no task. */
static int watch_open(struct reading *r, struct amp_error *err)
{
    char dir[PATH_MAX + 8];

    snprintf(dir, sizeof dir, "%s/tasks", amp_tool_state);
    r->files = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    r->tasks = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return r->files >= 0 && r->tasks >= 0 &&
                   (inotify_add_watch(r->tasks, dir, IN_MOVED_TO | IN_DELETE) >= 0 ||
                    errno == ENOENT)
               ? 0
               : amp_fail_errno(err, AMP_UNAVAILABLE, "cannot watch %s", dir);
}

static bool events_drain(int fd)
{
    char events[4096];
    bool any = false;

    while (read(fd, events, sizeof events) > 0)
        any = true;
    return any;
}

static int log_follow(struct reading *r, struct amp_command *c, struct amp_error *err)
{
    if (follow && watch_open(r, err) < 0)
        return -1;
    for (int ended = task_look(r, c, err); ended >= 0;) {
        struct pollfd fds[] = {{.fd = r->files, .events = POLLIN},
                               {.fd = r->tasks, .events = POLLIN}};
        if (attempts_look(r, err) < 0)
            return -1;
        if (!follow || ended || amp_stop)
            return amp_stop ? amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted") : 0;
        amp_poll(fds, 2, -1, &amp_stop);
        events_drain(r->files);
        if (events_drain(r->tasks))
            ended = task_look(r, c, err);
    }
    return -1;
}

static int tasks_log(struct amp_command *c, struct amp_error *err)
{
    struct reading r = {.agent = c->argc > 1 ? c->argv[1] : NULL,
                        .files = -1,
                        .tasks = -1,
                        .tty = isatty(STDOUT_FILENO)};
    struct amp_error more;

    int rc = log_follow(&r, c, err);
    if (rc == 0 && !*r.dir)
        amp_note(r.agent ? "no agent %s has worked on %s" : "no agent%s has worked on %s",
                 r.agent ? r.agent : "", r.id);
    return attempt_read(&r, true, rc < 0 ? &more : err) < 0 ? -1 : rc;
}

const struct amp_verb log_verbs[] = {
    {"log", "TASK [AGENT]", "print the output of a task's agent", tasks_log_opts, tasks_log,
     .opens = AMP_OPENS_READ, .signals = true, .least = 1, .most = 2,
     .usage = "log needs a task: log TASK [AGENT] (task-dispatch list shows them)",
     .finds_state = true, .values = "task agent"},
    {0},
};

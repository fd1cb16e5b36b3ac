/* task-dispatch log: the output of the agents that work on a task, from the files of their
 * attempts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/pipe.h>

#include "../verbs.h"
#include "base/codes.h"
#include "flow/story/story.h"

#define LOOK_MS        200  /* between two looks at the files */
#define STATE_MS       1000 /* between two looks at the task */
#define LINE_MAX_BYTES ((size_t)1 << 20)

static bool follow;

static const struct amp_opt tasks_log_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL,
     "print what is added, also of later attempts, until the task ends"},
    AMP_OPT_END,
};

/* The standard output or the standard error of an attempt. */
struct stream {
    int fd;              /* -1: not open yet */
    struct amp_buf rest; /* a line without its end, for a terminal */
};

struct reading {
    char id[AMP_TASK_ID_MAX], dir[PATH_MAX]; /* dir: of the attempt; "": none yet */
    struct stream of[2];
    bool tty;
};

static int line_print(struct amp_span line, struct amp_error *err)
{
    AMP_BUF struct amp_buf safe = {.max = 8 * LINE_MAX_BYTES};

    return amp_text_safe(line, 0, &safe, err) < 0 || amp_buf_str(&safe, "\n", err) < 0
               ? -1
               : amp_out(amp_buf_span(&safe), err);
}

/* Prints the lines of the text: on a terminal each when it is complete, or very long. */
static int text_print(struct reading *r, struct stream *s, struct amp_span text,
                      struct amp_error *err)
{
    if (!r->tty)
        return amp_out(text, err);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '\n' && amp_buf_add(&s->rest, text.p + i, 1, err) < 0)
            return -1;
        if (text.p[i] != '\n' && s->rest.len < LINE_MAX_BYTES)
            continue;
        if (line_print(amp_buf_span(&s->rest), err) < 0)
            return -1;
        amp_buf_reset(&s->rest);
    }
    return 0;
}

/* Reads what is there. */
static int stream_read(struct reading *r, int i, struct amp_error *err)
{
    static const char *const names[] = {"stdout", "stderr"};
    struct stream *s = &r->of[i];
    char path[PATH_MAX + 16], b[65536];
    struct stat st;
    ssize_t n;

    if (s->fd < 0) {
        snprintf(path, sizeof path, "%s/%s", r->dir, names[i]);
        s->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (s->fd < 0)
            return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "%s", path);
        if (fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode))
            return amp_fail(err, AMP_IOERR, not_a_file, "%s is not a file", path);
    }
    while ((n = read(s->fd, b, sizeof b)) > 0)
        if (text_print(r, s, (struct amp_span){b, (size_t)n}, err) < 0)
            return -1;
    return n < 0 ? amp_fail_errno(err, AMP_IOERR, "%s/%s", r->dir, names[i]) : 0;
}

static int attempt_read(struct reading *r, struct amp_error *err)
{
    return stream_read(r, 0, err) < 0 || stream_read(r, 1, err) < 0 ? -1 : amp_out_flush(err);
}

/* Ends the attempt that is being read. */
static int attempt_end(struct reading *r, struct amp_error *err)
{
    int rc = *r->dir ? attempt_read(r, err) : 0;

    for (int i = 0; i < 2; i++) {
        struct stream *s = &r->of[i];
        if (rc == 0 && s->rest.len)
            rc = line_print(amp_buf_span(&s->rest), err);
        amp_buf_release(&s->rest);
        amp_auto_close(&s->fd);
        *s = (struct stream){.fd = -1, .rest = {.max = 2 * LINE_MAX_BYTES}};
    }
    return rc < 0 ? -1 : amp_out_flush(err);
}

/* Reads the attempt that was begun before, then those that came after it; first only the newest. */
static int attempts_read(struct reading *r, const struct amp_story *st, struct amp_error *err)
{
    size_t i = 0;

    while (i < st->n_attempts && strcmp(st->attempts[i].dir, r->dir) != 0)
        i++;
    if (i < st->n_attempts)
        i++; /* it has its own dir */
    else if (!*r->dir)
        i = st->n_attempts ? st->n_attempts - 1 : 0;
    if (*r->dir && attempt_read(r, err) < 0)
        return -1;
    for (; i < st->n_attempts; i++) {
        const struct amp_story_attempt *a = &st->attempts[i];
        if (attempt_end(r, err) < 0)
            return -1;
        snprintf(r->dir, sizeof r->dir, "%s", a->dir);
        amp_note("%s: attempt %lld by %s", a->subtask, (long long)a->number, a->agent);
        if (attempt_read(r, err) < 0)
            return -1;
    }
    return 0;
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

static int log_follow(struct reading *r, struct amp_command *c, struct amp_error *err)
{
    int64_t looked_ms = amp_mono_ms();
    int ended = task_look(r, c, err);

    while (ended >= 0) {
        AMP_STORY st = {0};
        if (amp_story_attempts(task_state, r->id, &st, err) < 0 || attempts_read(r, &st, err) < 0)
            return -1;
        if (!follow || ended || amp_stop)
            return amp_stop ? amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted") : 0;
        amp_poll(NULL, 0, LOOK_MS, &amp_stop);
        if (amp_mono_ms() - looked_ms >= STATE_MS) {
            looked_ms = amp_mono_ms();
            ended = task_look(r, c, err);
        }
    }
    return -1;
}

static int tasks_log(struct amp_command *c, struct amp_error *err)
{
    struct reading r = {.of = {{.fd = -1, .rest = {.max = 2 * LINE_MAX_BYTES}},
                               {.fd = -1, .rest = {.max = 2 * LINE_MAX_BYTES}}},
                        .tty = isatty(STDOUT_FILENO)};
    struct amp_error more;

    int rc = log_follow(&r, c, err);
    if (rc == 0 && !*r.dir)
        amp_note("no agent has worked on %s", r.id);
    return attempt_end(&r, rc < 0 ? &more : err) < 0 ? -1 : rc;
}

const struct amp_verb log_verbs[] = {
    {"log", "TASK", "print the output of a task's agent", tasks_log_opts, tasks_log,
     .opens = AMP_OPENS_READ, .signals = true, .least = 1, .most = 1,
     .usage = "log needs one task: log TASK (task-dispatch list shows them)", .finds_state = true,
     .values = "task"},
    {0},
};

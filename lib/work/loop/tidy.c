/* Removes the files of tasks that ended long ago. */
#include "work/loop/tidy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>

#include "work/git/snapshot/restore.h"
#include "work/task/record.h"
#include "work/task/task.h"

#define DAY_MS  (24 * 60 * 60 * INT64_C(1000))
#define LATE_MS INT64_C(5000)
#define STAMP   ".tidied" /* in run/: its time is that of the last run */
#define LOOP    "loop."   /* begins the names of the loop's own directories in run/ */

static int64_t time_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static int dir_of(struct amp_store *s, const char *name)
{
    char path[4200];
    int n = snprintf(path, sizeof path, "%s/%s", amp_store_dir(s), name);
    return n < (int)sizeof path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

int amp_tidy_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                 struct amp_error *err)
{
    struct stat st;
    AMP_CLOSE int run = dir_of(s, "run");
    (void)c;
    (void)err;
    *ms = 0;
    if (run < 0 || !amp_store_kept_ms(s, AMP_KEEP_tasks))
        return 0;
    /* Without a stamp it is due, also for a caller that read the clock before. */
    *ms = fstatat(run, STAMP, &st, AT_SYMLINK_NOFOLLOW) == 0 ? time_of(&st) + DAY_MS
                                                             : amp_now_ms() - LATE_MS;
    return 0;
}

/* The newest change of a directory and of what is directly in it; now if it cannot be read. */
static int64_t newest_in(int run, const char *name, int64_t now_ms)
{
    struct stat st;
    AMP_DIR DIR *d = amp_dir_open(run, name);
    if (!d || fstat(dirfd(d), &st) < 0)
        return now_ms;
    int64_t newest = time_of(&st);
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && time_of(&st) > newest)
            newest = time_of(&st);
    return newest;
}

/* Whether run/.unfinished names an attempt at the task. */
static bool is_unfinished(int run, const char *task)
{
    const size_t n = strlen(task);
    AMP_DIR DIR *d = amp_dir_open(run, ".unfinished");
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, task, n) == 0 && e->d_name[n] == '.')
            return true;
    return false;
}

/* Whether the task's record is found, and whether it has ended. */
static int task_find(struct amp_store *s, const char *task, bool *found, bool *ended,
                     struct amp_error *err)
{
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_KEY(AMP_TASK_KIND, amp_span_str(task)), &rec, err) < 0)
        return -1;
    int state = rec.found ? amp_fsm_state(&amp_task_fsm, rec.state) : -1;
    *found = rec.found;
    *ended = state >= 0 && amp_task_ended((uint8_t)state);
    return 0;
}

static int run_tidy(struct amp_store *s, int run, int64_t before_ms, int64_t now_ms, uint32_t *done,
                    struct amp_error *err)
{
    AMP_DIR DIR *d = amp_dir_open(run, ".");
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        bool found, ended;
        if (e->d_name[0] == '.' || strncmp(e->d_name, LOOP, sizeof LOOP - 1) == 0 ||
            fstatat(run, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
            newest_in(run, e->d_name, now_ms) >= before_ms || is_unfinished(run, e->d_name))
            continue;
        if (task_find(s, e->d_name, &found, &ended, err) < 0)
            return -1;
        /* A failed removal must not stop the other deadlines; it is tried again. */
        if (!found || ended)
            *done += amp_restore_remove(run, e->d_name, NULL) == 0;
    }
    return 0;
}

static int files_tidy(struct amp_store *s, int tasks, int64_t before_ms, struct amp_error *err)
{
    AMP_DIR DIR *d = amp_dir_open(tasks, ".");
    for (struct dirent *e; d && (e = readdir(d));) {
        char task[AMP_TASK_ID_MAX];
        struct stat st;
        bool found, ended;
        const char *end = strrchr(e->d_name, '.');
        if (e->d_name[0] == '.' || !end || strcmp(end, ".json") != 0 ||
            !amp_span_copy((struct amp_span){e->d_name, (size_t)(end - e->d_name)}, task,
                           sizeof task) ||
            fstatat(tasks, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || time_of(&st) >= before_ms)
            continue;
        if (task_find(s, task, &found, &ended, err) < 0)
            return -1;
        if (!found)
            unlinkat(tasks, e->d_name, 0);
    }
    return 0;
}

int amp_tidy_run(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                 struct amp_error *err)
{
    const int64_t before = now_ms - amp_store_kept_ms(s, AMP_KEEP_tasks);
    AMP_CLOSE int run = dir_of(s, "run"), tasks = dir_of(s, "tasks");
    (void)actor;
    if (run < 0)
        return 0;
    AMP_CLOSE int stamp =
        openat(run, STAMP, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    const struct timespec at = {.tv_sec = now_ms / 1000, .tv_nsec = now_ms % 1000 * 1000000};
    if (stamp < 0 || futimens(stamp, (const struct timespec[]){at, at}) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s/run/" STAMP, amp_store_dir(s));
    if (run_tidy(s, run, before, now_ms, done, err) < 0)
        return -1;
    return tasks < 0 ? 0 : files_tidy(s, tasks, before, err);
}

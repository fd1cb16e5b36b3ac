/* The lines of the new tasks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/protocol/protocol.h>

#include "base/file/repository.h"
#include "loop.h"
#include "task/task.h"

#define FILE_MAX       ((size_t)8 << 20)
#define LINE_MAX_BYTES (4 * FILE_MAX)
#define KEPT           "run/loop.tasks"

/* The name under which the line of a file's task is kept: the digest of its text and of the
 * repository. "": none, for a pipe or what `new` refuses anyway. */
static int kept_name(const char *path, char out[AMP_SHA256_MAX], struct amp_error *err)
{
    struct amp_repository repo;
    struct stat st;
    char cwd[PATH_MAX];
    AMP_BUF struct amp_buf text = {0};
    *out = '\0';
    amp_buf_init(&text, FILE_MAX + PATH_MAX + 1);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MAX ||
        !getcwd(cwd, sizeof cwd))
        return 0;
    if (amp_repository_find(cwd, &repo, NULL) == 0 && repo.found)
        memcpy(cwd, repo.common, sizeof cwd);
    if (amp_buf_str(&text, cwd, err) < 0 || amp_buf_str(&text, "\n", err) < 0)
        return -1;
    if (amp_file_read_any(path, text.len + FILE_MAX, &text, NULL) == 0)
        amp_sha256_hex(amp_buf_span(&text), out);
    return 0;
}

enum kept { KEPT_NONE, KEPT_OPEN, KEPT_UNKNOWN };

/* What became of the task with this line: nothing or it has ended, open, or the coordinator never
 * got it. */
static int kept_judge(struct amp_store *store, struct amp_span line, enum kept *out,
                      char id[AMP_TASK_ID_MAX], struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct amp_task_status status;
    struct amp_view v;
    struct amp_reader *reader = amp_reader_new(NULL, err);
    *out = KEPT_NONE;
    int rc = reader ? amp_reader_line(reader, line, &any, &v, NULL, NULL, err) : -1;
    if (rc > 0 && amp_span_copy(v.task, id, AMP_TASK_ID_MAX) && *id &&
        (rc = amp_task_status(store, amp_span_str(id), &status, err)) == 0)
        *out = !status.found ? KEPT_UNKNOWN : status.terminal ? KEPT_NONE : KEPT_OPEN;
    amp_reader_free(reader);
    return rc < 0 ? -1 : 0;
}

static int new_run(const char *path, int fd, int *status, struct amp_error *err)
{
    struct amp_child child;
    struct amp_child_end end;
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return amp_fail_errno(err, AMP_IOERR, "/proc/self/exe");
    self[n] = '\0';
    const char *const args[] = {self, "new", "--", path, NULL};
    const struct amp_child_spec spec = {.argv = args,
                                        .fd_in = STDIN_FILENO,
                                        .fd_out = fd,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true,
                                        .dies_with_us = true};
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, -1, 1000, &amp_stop, &end, err) < 0)
        return -1;
    *status = amp_stop ? AMP_INTERRUPTED : end.exited ? end.exit_code : AMP_INTERNAL;
    return 0;
}

/* Keeps what fd has from the offset on. */
static int line_keep(struct amp_store *store, const char *kept, int fd, off_t from,
                     struct amp_error *err)
{
    char dir[PATH_MAX + 32];
    AMP_BUF struct amp_buf line = {0};
    off_t end = lseek(fd, 0, SEEK_CUR);
    amp_buf_init(&line, LINE_MAX_BYTES);
    if (end < from || (size_t)(end - from) > LINE_MAX_BYTES)
        return 0;
    size_t n = (size_t)(end - from);
    if (amp_buf_reserve(&line, n, err) < 0)
        return -1;
    if (pread(fd, line.data, n, from) != (ssize_t)n)
        return amp_fail_errno(err, AMP_IOERR, "the new tasks");
    snprintf(dir, sizeof dir, "%s/" KEPT, amp_store_dir(store));
    return amp_mkdirs(dir, 0700, err) < 0
               ? -1
               : amp_file_write_atomic(AT_FDCWD, kept, 0600, (struct amp_span){line.data, n}, err);
}

static int task_make(struct amp_store *store, const char *path, int fd, int *status,
                     struct amp_error *err)
{
    char name[AMP_SHA256_MAX], kept[PATH_MAX + 128], id[AMP_TASK_ID_MAX] = "";
    AMP_BUF struct amp_buf line = {0};
    enum kept found = KEPT_NONE;
    amp_buf_init(&line, LINE_MAX_BYTES);
    if (kept_name(path, name, err) < 0)
        return -1;
    snprintf(kept, sizeof kept, "%s/" KEPT "/%s", amp_store_dir(store), name);
    if (*name && access(kept, F_OK) == 0 &&
        (amp_file_read(AT_FDCWD, kept, LINE_MAX_BYTES - 1, &line, err) < 0 ||
         (line.len &&
          kept_judge(store, (struct amp_span){line.data, line.len - 1}, &found, id, err) < 0)))
        return -1;
    if (found != KEPT_NONE)
        amp_note("%s: this is %s, which is open: it continues", path, id);
    if (found == KEPT_UNKNOWN)
        return amp_write_all(fd, amp_buf_span(&line), err);
    off_t from = lseek(fd, 0, SEEK_CUR);
    if (found == KEPT_OPEN)
        return 0;
    if (from < 0)
        return amp_fail_errno(err, AMP_IOERR, "the new tasks");
    if (new_run(path, fd, status, err) < 0)
        return -1;
    return *status == AMP_OK && *name ? line_keep(store, kept, fd, from, err) : 0;
}

int loop_tasks_make(struct amp_store *store, int argc, char **argv, int fd, int *status,
                    struct amp_error *err)
{
    *status = AMP_OK;
    for (int i = 0; i < argc && *status != AMP_INTERRUPTED; i++) {
        int one = AMP_OK;
        if (task_make(store, argv[i], fd, &one, err) < 0)
            return -1;
        *status = (int)amp_status_worse((enum amp_status) * status, (enum amp_status)one);
    }
    return 0;
}

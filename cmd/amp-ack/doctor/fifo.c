/*
 * Checks of FIFOs. Opening one changes it: a writer that waits for a reader would continue and lose
 * its output. So the check finds the processes that have it open in /proc, and opens it only if one
 * of them already reads it.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

struct ends {
    unsigned readers, writers;
    char who_reads[200], who_writes[200];
};

static void end_fn(void *ctx, pid_t pid, const char *name, bool reads, bool writes)
{
    struct ends *e = ctx;
    if (reads) {
        e->readers++;
        doctor_add_process(e->who_reads, sizeof(e->who_reads), pid, name);
    }
    if (writes) {
        e->writers++;
        doctor_add_process(e->who_writes, sizeof(e->who_writes), pid, name);
    }
}

/* The number of unread bytes; -1 if they cannot be counted without a change. */
static int unread_bytes(const char *path, const struct ends *e, int *room)
{
    int n = -1;
    if (e->readers == 0)
        return -1;
    AMP_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, FIONREAD, &n) < 0)
        return -1;
    *room = fcntl(fd, F_GETPIPE_SZ);
    return n;
}

static void check_fifo(const char *path, const struct stat *st)
{
    struct ends e = {0};
    int room = 0;
    doctor_holders(st->st_dev, st->st_ino, end_fn, &e);
    int n = unread_bytes(path, &e, &room);
    bool half = st->st_mode & S_ISVTX;
    if (half && e.writers == 0)
        doctor_say(DOCTOR_WARN, "chmod -t @", path,
                   "%s: a writer ended within a line; the next writer ends the line", path);
    if (e.readers == 0 && e.writers > 0)
        doctor_say(DOCTOR_FAIL, "# start its reader again", NULL, "%s: %s %s, and no process reads",
                   path, e.who_writes, e.writers == 1 ? "writes" : "write");
    else if (e.readers == 0)
        doctor_say(DOCTOR_WARN, "# start its reader and its writer", NULL,
                   "%s: no process has it open", path);
    else if (n > 0 && room > 0 && n > room - 4096)
        doctor_say(DOCTOR_FAIL, "# check what its reader waits for", NULL,
                   "%s: it is full (%d bytes), and %s does not read", path, n, e.who_reads);
    else if (e.writers == 0)
        doctor_say(DOCTOR_WARN, "# start its writer", NULL, "%s: %s waits for a writer%s", path,
                   e.who_reads, n > 0 ? ", with bytes unread" : "");
    else
        doctor_say(DOCTOR_OK, NULL, NULL, "%s: %s to %s, %d byte%s unread", path, e.who_writes,
                   e.who_reads, n, n == 1 ? "" : "s");
}

static void check_path(const char *path, bool named_by_route)
{
    struct stat st;
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path);
    bool lost = *parent && access(parent, F_OK) < 0;
    if (stat(path, &st) < 0)
        doctor_say(DOCTOR_FAIL, lost ? "mkdir -p \"$(dirname @)\" && mkfifo @" : "mkfifo @", path,
                   "%s: no such file", path);
    else if (S_ISFIFO(st.st_mode))
        check_fifo(path, &st);
    else if (named_by_route)
        doctor_say(DOCTOR_FAIL, "mv @ @.was && mkfifo @", path, "%s is not a FIFO", path);
}

static int port_fn(void *arg, const char *port, struct amp_error *err)
{
    unsigned *n = arg;
    (void)err;
    if (strncmp(port, "fifo:", 5) != 0)
        return 0;
    ++*n;
    check_path(port + 5, true);
    return 0;
}

void doctor_fifos(struct doctor *d)
{
    struct amp_error err;
    unsigned n = (unsigned)d->n_files;
    for (int i = 0; i < d->n_files; i++)
        check_path(d->files[i], false);
    if (doctor_ports(d->dir, port_fn, &n, &err) < 0)
        return; /* the check "peers" reports it */
    if (n == 0)
        doctor_say(DOCTOR_OK, NULL, NULL, "no FIFOs given or configured");
}

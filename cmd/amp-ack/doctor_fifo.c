/*
 * FIFOs. Opening one changes it: a writer that waits for a reader would go on, and lose what it
 * wrote. So who has it open is read from /proc, and it is opened only where somebody reads already.
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

static void add(char out[200], pid_t pid, const char *name)
{
    size_t n = strlen(out);
    snprintf(out + n, 200 - n, "%s%s (pid %d)", n ? ", " : "", name, (int)pid);
}

static void end_fn(void *ctx, pid_t pid, const char *name, bool reads, bool writes)
{
    struct ends *e = ctx;
    if (reads) {
        e->readers++;
        add(e->who_reads, pid, name);
    }
    if (writes) {
        e->writers++;
        add(e->who_writes, pid, name);
    }
}

/* Bytes that nobody has read yet, -1 where that cannot be told without harm. */
static int unread(const char *path, const struct ends *e, int *room)
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
    char m[DOCTOR_FIX_MAX];
    int room = 0;
    doctor_holders(st->st_dev, st->st_ino, end_fn, &e);
    int n = unread(path, &e, &room);
    bool half = st->st_mode & S_ISVTX;
    if (half && e.writers == 0) {
        snprintf(m, sizeof(m), "chmod -t %s", doctor_quote(path));
        doctor_say(DOCTOR_FIFOS, DOCTOR_WARN, m,
                   "%s: a writer ended amid a line; the next one of ours ends it", path);
    }
    if (e.readers == 0 && e.writers > 0)
        doctor_say(DOCTOR_FIFOS, DOCTOR_FAIL, "# start its reader again",
                   "%s: %s %s, and nobody reads", path, e.who_writes,
                   e.writers == 1 ? "writes" : "write");
    else if (e.readers == 0)
        doctor_say(DOCTOR_FIFOS, DOCTOR_WARN, "# start its reader and its writer",
                   "%s: nobody has it open", path);
    else if (n > 0 && room > 0 && n > room - 4096)
        doctor_say(DOCTOR_FIFOS, DOCTOR_FAIL, "# see what its reader waits for",
                   "%s: it is full (%d bytes), and %s does not read", path, n, e.who_reads);
    else if (e.writers == 0)
        doctor_say(DOCTOR_FIFOS, DOCTOR_WARN, "# start its writer", "%s: %s waits for a writer%s",
                   path, e.who_reads, n > 0 ? ", with bytes unread" : "");
    else
        doctor_say(DOCTOR_FIFOS, DOCTOR_OK, NULL, "%s: %s to %s, %d bytes unread", path,
                   e.who_writes, e.who_reads, n);
}

static void not_a_fifo(const char *path)
{
    char m[DOCTOR_FIX_MAX];
    const char *q = doctor_quote(path);
    snprintf(m, sizeof(m), "mv %s %s.was && mkfifo %s", q, q, q);
    doctor_say(DOCTOR_FIFOS, DOCTOR_FAIL, m, "%s is no FIFO", path);
}

static void check_path(const char *path, bool named_by_route)
{
    struct stat st;
    char m[DOCTOR_FIX_MAX], parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path);
    if (*parent && access(parent, F_OK) < 0)
        doctor_fix(m, "mkdir -p %s && mkfifo %s", doctor_quote(parent), doctor_quote(path));
    else
        doctor_fix(m, "mkfifo %s", doctor_quote(path));
    if (stat(path, &st) < 0)
        doctor_say(DOCTOR_FIFOS, DOCTOR_FAIL, m, "%s: there is no such file", path);
    else if (S_ISFIFO(st.st_mode))
        check_fifo(path, &st);
    else if (named_by_route)
        not_a_fifo(path);
}

static int port_fn(void *arg, const char *text, struct amp_error *err)
{
    unsigned *n = arg;
    const char *port = strstr(text, "=>");
    (void)err;
    port = port ? port + 2 : strchr(text, '=') ? strchr(text, '=') + 1 : text;
    port += strspn(port, " ");
    if (strncmp(port, "fifo:", 5) != 0)
        return 0;
    ++*n;
    check_path(port + 5, true);
    return 0;
}

void doctor_fifos(const char *dir, int n_files, char **files)
{
    static const char *const keys[] = {"route.routes", "route.agents"};
    struct amp_error err;
    unsigned n = (unsigned)n_files;
    for (int i = 0; i < n_files; i++)
        check_path(files[i], false);
    for (size_t i = 0; i < 2; i++)
        if (amp_config_values(doctor_opt.config, dir, keys[i], port_fn, &n, &err) < 0)
            return; /* told with the peers */
    if (n == 0)
        doctor_say(DOCTOR_FIFOS, DOCTOR_OK, NULL, "none is named, here or in amp.json");
}

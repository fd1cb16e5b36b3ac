/* Checks of the state directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/json/tape.h>

#include "base/codes.h"
#include "doctor.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/record/record.h"
#include "message/store/history/history.h"
#include "work/git/push.h"
#include "work/git/rule.h"
#include "work/loop/pool/lost.h"

#define OVERDUE_MS 10000 /* a watcher is never that late */

/* ---- the directory ---- */

static bool check_directory(const char *dir)
{
    struct stat st;
    struct statvfs fs;
    if (stat(dir, &st) < 0) {
        if (errno == ENOENT)
            doctor_say(DOCTOR_FAIL, "amp-ack track --state @ </dev/null", dir,
                       "there is no state directory %s", dir);
        else
            doctor_say(DOCTOR_FAIL, "namei -l @", dir, "cannot read %s: %s", dir, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode)) {
        doctor_say(DOCTOR_FAIL, "# name another one with --state", NULL, "%s is not a directory",
                   dir);
        return false;
    }
    if (st.st_uid != geteuid())
        doctor_say(DOCTOR_FAIL, doctor_fix("%schown -R %u @", doctor_sudo(), (unsigned)geteuid()),
                   dir, "%s belongs to user %u", dir, (unsigned)st.st_uid);
    if (st.st_mode & 077)
        doctor_say(DOCTOR_FAIL, "chmod 700 @", dir, "other users can enter %s (mode %o)", dir,
                   (unsigned)st.st_mode & 0777);
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && amp_fs_is_network(fd))
        doctor_say(DOCTOR_FAIL,
                   "# stop its programs, then cp -a @ to a local disk, and use that with --state",
                   dir, "%s is on a network file system, where locks and syncs are not reliable",
                   dir);
    if (fd >= 0 && fstatvfs(fd, &fs) == 0) {
        unsigned long long room = (unsigned long long)fs.f_bavail * fs.f_frsize;
        if (room < (unsigned long long)doctor_opt.min_free)
            doctor_say(DOCTOR_FAIL, "df -h @ # and make room there", dir,
                       "%llu KiB are free on its disk", room >> 10);
        if (fs.f_files > 0 && fs.f_favail < 100)
            doctor_say(DOCTOR_FAIL, "df -i @ # and remove files there", dir,
                       "%llu file%s can still be made on its disk", (unsigned long long)fs.f_favail,
                       fs.f_favail == 1 ? "" : "s");
    }
    return true;
}

static const char *path_below(const char *dir, const char *below)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s%s%s", dir, *below ? "/" : "", below);
    return path;
}

/* Files that others may read: the settings of the guard, which git reads for every user of the
 * repository. doctor_permissions looks at amp.json. */
static bool is_public(const char *name, mode_t mode)
{
    return strcmp(name, "amp.json") == 0 ||
           (!(mode & 022) &&
            (strcmp(name, AMP_RULE_FILE) == 0 || strcmp(name, AMP_PUSH_SETTINGS) == 0 ||
             strcmp(name, AMP_PUSH_SECTIONS) == 0));
}

/* Reports the first file below that other users may read or write; returns how many there are. */
static unsigned check_modes(const char *dir, const char *below)
{
    unsigned n = 0;
    const char *path = path_below(dir, below);
    AMP_DIR DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            S_ISLNK(st.st_mode) || !(st.st_mode & 077) ||
            (!*below && is_public(e->d_name, st.st_mode)))
            continue;
        if (n++ == 0)
            doctor_say(DOCTOR_FAIL, "chmod -R go= @", dir, "other users can open %s/%s", path,
                       e->d_name);
    }
    return n;
}

/* Reports a FIFO or a device in place of a file: every program that needs the file fails. */
static bool has_files(const char *dir, const char *below)
{
    static const char *const names[] = {"amp.json", "error*.ndjson", "index*", "*.lock",
                                        "watermark"};
    char file[PATH_MAX + 256];
    bool good = true;
    const char *path = path_below(dir, below);
    AMP_DIR DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        struct stat st;
        bool file_here = false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            file_here |= amp_span_glob(amp_span_str(e->d_name), amp_span_str(names[i]));
        if (!file_here || fstatat(dirfd(d), e->d_name, &st, 0) < 0 || S_ISREG(st.st_mode))
            continue;
        good = false;
        snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
        /* Programs that only read the state do not create locks. */
        bool lock = amp_span_glob(amp_span_str(e->d_name), AMP_SPAN("*.lock"));
        doctor_say(DOCTOR_FAIL, lock ? "rm -r @ && install -m 600 /dev/null @" : "rm -r @", file,
                   "%s is not a regular file", file);
    }
    return good;
}

/* Reports a directory that cannot be read. */
static bool is_readable(const char *dir, const char *below)
{
    struct stat st;
    const char *path = path_below(dir, below);
    AMP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if ((fd >= 0 && faccessat(fd, ".", R_OK | X_OK, AT_EACCESS) == 0) || errno == ENOENT)
        return true;
    int why = errno;
    bool own = lstat(path, &st) == 0 && st.st_uid == geteuid();
    doctor_say(DOCTOR_FAIL, why == EACCES && own ? "chmod 700 @" : "namei -l @", path,
               "cannot read the directory %s: %s", path, strerror(why));
    return false;
}

static struct amp_store *open_state(const char *dir)
{
    struct amp_error err;
    struct amp_store *s = NULL;
    struct amp_store_options opt = {.lock_timeout_ms = 2000, .read_only = true};
    uint64_t n = 0;
    int damaged = 0;
    if (amp_store_open(dir, &opt, &s, &err) == 0 &&
        (damaged = doctor_segments(s, dir, &err)) == 0 &&
        amp_store_count(s, AMP_MESSAGE_KIND, &n, &err) == 0) {
        doctor_index_pages(s, dir);
        if (doctor_blobs(s, dir) == 0)
            doctor_say(DOCTOR_OK, NULL, NULL, "%s is readable: %llu message%s", dir,
                       (unsigned long long)n, n == 1 ? "" : "s");
        return s;
    }
    /* These are reported already. */
    if (damaged <= 0 && !amp_code_is(err.code, state_permissions) &&
        !amp_code_is(err.code, state_not_ours) && !amp_code_is(err.code, state_network_fs))
        doctor_unreadable(dir, dir, &err);
    amp_store_close(s);
    return NULL;
}

void doctor_state(struct doctor *d)
{
    char path[PATH_MAX];
    const char *dir = d->dir;
    if (!dir)
        return;
    d->dir = NULL; /* no other check reports it again */
    if (!check_directory(dir) || !is_readable(dir, "") || !is_readable(dir, "log") ||
        !is_readable(dir, "run"))
        return;
    d->dir = dir;
    d->have = DOCTOR_USABLE;
    if (check_modes(dir, "") == 0)
        check_modes(dir, "log");
    if (!has_files(dir, "") || !has_files(dir, "log"))
        return;
    snprintf(path, sizeof(path), "%s/log/FAILED", dir);
    if (access(path, F_OK) == 0) {
        doctor_say(DOCTOR_FAIL, "amp-ack repair --state @", dir,
                   "a write to the log failed; every tool refuses to write until it is repaired");
        return;
    }
    snprintf(path, sizeof(path), "%s/log", dir);
    if (access(path, F_OK) < 0) {
        doctor_say(DOCTOR_OK, NULL, NULL, "%s is empty", dir);
        return;
    }
    doctor_tail(dir);
    doctor_index(dir);
    d->store = open_state(dir);
    if (d->store)
        d->have = DOCTOR_STORE;
}

/* ---- locks ---- */

struct held {
    char who[400];
    pid_t stopped;
};

static bool is_stopped(pid_t pid)
{
    AMP_BUF struct amp_buf b = {0};
    char path[64];
    amp_buf_init(&b, 8192);
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    return amp_file_read(AT_FDCWD, path, 4096, &b, NULL) == 0 && b.len > 0 &&
           memmem(b.data, b.len, "State:\tT", 8);
}

static void held_fn(void *ctx, pid_t pid, const char *name, bool reads, bool writes)
{
    struct held *h = ctx;
    (void)reads;
    (void)writes;
    doctor_add_process(h->who, sizeof(h->who), pid, name);
    if (is_stopped(pid))
        h->stopped = pid;
}

static bool is_locked(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* The main lock is held only briefly. */
static void check_main_lock(const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    struct held h = {.who = ""};
    snprintf(path, sizeof(path), "%s/log/main.lock", dir);
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, path, O_RDONLY, 0, NULL);
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    for (int i = 0; i < 10; i++) {
        if (!is_locked(fd))
            return;
        usleep(100000);
    }
    doctor_holders(st.st_dev, st.st_ino, held_fn, &h);
    doctor_say(DOCTOR_FAIL,
               h.stopped ? doctor_fix("kill -CONT %d", (int)h.stopped)
                         : "# check what these processes do, and end the one that hangs",
               NULL, "the state's lock is held for more than a second; opened by %s",
               h.who[0] ? h.who : "another user's process");
}

void doctor_locks(struct doctor *d)
{
    char path[PATH_MAX];
    check_main_lock(d->dir);
    snprintf(path, sizeof(path), "%s/run", d->dir);
    AMP_DIR DIR *run = opendir(path);
    struct dirent *e;
    while (run && (e = readdir(run))) {
        struct stat st;
        struct held h = {.who = ""};
        if (!amp_span_glob(amp_span_str(e->d_name), AMP_SPAN("*.lock")))
            continue;
        AMP_CLOSE int fd = amp_file_open(dirfd(run), e->d_name, O_RDONLY, 0, NULL);
        if (fd < 0 || fstat(fd, &st) < 0 || !is_locked(fd))
            continue;
        doctor_holders(st.st_dev, st.st_ino, held_fn, &h);
        if (h.stopped)
            doctor_say(DOCTOR_WARN, doctor_fix("kill -CONT %d", (int)h.stopped), NULL,
                       "run/%s is held by a stopped process: %s", e->d_name, h.who);
        else
            doctor_say(DOCTOR_OK, NULL, NULL, "run/%s is held by %s", e->d_name,
                       h.who[0] ? h.who : "another user's process");
    }
    doctor_ok("no locks held");
}

/* ---- pending work ---- */

struct waiting {
    uint32_t n;
    uint64_t oldest; /* frame */
};

static int entry_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct waiting *w = ctx;
    if (e->wants_ack)
        return 0; /* has a deadline of its own */
    if (w->n++ == 0 || e->n < w->oldest)
        w->oldest = e->n;
    return 0;
}

/* The command that writes the outbox of this name. */
static const char *outbox_fix(const char *dir, const char *name, bool inbox_waits)
{
    const char *q = doctor_quote(dir);
    if (strcmp(name, "amp-ack.dead") == 0)
        return doctor_fix("amp-ack dead requeue --state %s - </dev/null >>messages.ndjson", q);
    if (strcmp(name, SWEEP_NAME) == 0)
        return doctor_fix("amp-ack sweep --state %s >>escalations.ndjson", q);
    if (strncmp(name, "inbox:", 6) != 0)
        return doctor_fix("# restart the program that is named %s (--as) on this state directory",
                          name);
    /* A command that writes them would also hand over the waiting messages to its caller. */
    if (inbox_waits)
        return doctor_fix("# they are written when %s next reads its inbox with --acks", name + 6);
    return doctor_fix("amp-route inbox %s --state %s --acks file:acks.ndjson",
                      doctor_quote(name + 6), q);
}

static void check_outbox(const struct doctor *d, const char *name, bool inbox_waits)
{
    char when[AMP_TIME_MAX];
    struct waiting w = {0};
    int64_t at_ms = 0;
    struct amp_error err;
    if (amp_store_outbox(d->store, name, entry_fn, &w, &err) < 0 ||
        (w.n > 0 && doctor_frame_time(d->store, w.oldest, &at_ms, &err) < 0)) {
        doctor_unreadable(d->dir, name, &err);
        return;
    }
    if (w.n == 0)
        return;
    amp_time_format(at_ms, when);
    bool old = amp_now_ms() - at_ms > doctor_opt.old_ms;
    doctor_say(old ? DOCTOR_WARN : DOCTOR_OK, old ? outbox_fix(d->dir, name, inbox_waits) : NULL,
               NULL, "%s: %u %s to be written, the oldest since %s", name, w.n,
               w.n == 1 ? "line waits" : "lines wait", when);
}

/* Acknowledgements of an agent's messages. */
static int inbox_fn(void *ctx, const struct amp_inbox_info *i, struct amp_error *err)
{
    char name[AMP_INBOX_AGENT_MAX + 8];
    snprintf(name, sizeof(name), "inbox:%.*s", (int)i->agent.n, i->agent.p);
    check_outbox(ctx, name, i->waiting > 0);
    return 0;
}

/* A program with the lock run/NAME.lock has an outbox of that name, and perhaps one for answers. */
void doctor_outbox(struct doctor *d)
{
    struct amp_error err;
    char path[PATH_MAX], name[NAME_MAX + 16];
    snprintf(path, sizeof(path), "%s/run", d->dir);
    AMP_DIR DIR *run = opendir(path);
    struct dirent *e;
    while (run && (e = readdir(run))) {
        struct amp_span file = amp_span_str(e->d_name);
        if (!amp_span_glob(file, AMP_SPAN("?*.lock")))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(file.n - 5), file.p);
        check_outbox(d, name, false);
        snprintf(name, sizeof(name), "%.*s.answers", (int)(file.n - 5), file.p);
        check_outbox(d, name, false);
    }
    if (amp_inbox_infos(d->store, inbox_fn, d, &err) < 0)
        doctor_unreadable(d->dir, "the inboxes", &err);
}

static int lost_fn(void *ctx, const struct amp_lost *l, struct amp_error *err)
{
    const struct doctor *d = ctx;
    (void)err;
    doctor_say(DOCTOR_WARN, "amp-ack sweep --state @", d->dir,
               "the process of %s %.*s was killed%s%.*s; no amp-ack watch is running", l->what,
               AMP_CLIP(l->name, 160), l->task.n ? " at work on " : "", AMP_CLIP(l->task, 160));
    return 0;
}

void doctor_deadlines(struct doctor *d)
{
    char when[AMP_TIME_MAX];
    int64_t now = amp_now_ms();
    struct amp_deadline_ctx ctx = sweep_deadlines(NULL);
    struct amp_error err;
    for (unsigned i = 0; amp_deadlines[i].name; i++) {
        int64_t due = 0;
        if (amp_deadline_next(&amp_deadlines[i], d->store, &ctx, &due, &err) < 0) {
            doctor_unreadable(d->dir, amp_deadlines[i].name, &err);
        } else if (amp_deadlines[i].run == amp_lost_run) {
            if (due > 0 && due < now && amp_lost_each(d->store, lost_fn, d, &err) < 0)
                doctor_unreadable(d->dir, amp_deadlines[i].name, &err);
        } else if (due > 0 && due < now - OVERDUE_MS) {
            amp_time_format(due, when);
            doctor_say(amp_deadlines[i].upkeep ? DOCTOR_OK : DOCTOR_WARN,
                       "amp-ack watch --state @ >>escalations.ndjson", d->dir,
                       "%s: overdue since %s; no amp-ack watch is running", amp_deadlines[i].name,
                       when);
        }
    }
    doctor_ok("nothing is overdue");
}

static int count_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                    struct amp_error *err)
{
    ++*(int64_t *)ctx;
    return 0;
}

void doctor_dead(struct doctor *d)
{
    int64_t n = 0;
    struct amp_error err;
    if (amp_store_each(d->store, AMP_DEAD_KIND, "DEAD", count_fn, &n, &err) < 0) {
        doctor_unreadable(d->dir, "the dead letters", &err);
        return;
    }
    bool many = n > doctor_opt.most_dead;
    doctor_say(many ? DOCTOR_WARN : DOCTOR_OK,
               many ? "amp-ack dead list --state @ # then dead requeue, or dead purge" : NULL,
               d->dir, "%lld dead %s", (long long)n, n == 1 ? "letter" : "letters");
}

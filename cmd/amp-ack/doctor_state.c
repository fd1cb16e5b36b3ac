/* What the doctor sees in a state directory. */
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

#include "doctor.h"
#include "due.h"
#include "message/dead.h"
#include "message/inbox.h"
#include "store/history.h"

#define MEND_MAX   (PATH_MAX + 128)
#define OVERDUE_MS 10000 /* later than any watcher would be */

__attribute__((format(printf, 2, 3))) static const char *mend(char out[MEND_MAX], const char *fmt,
                                                              ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, MEND_MAX, fmt, ap);
    va_end(ap);
    return out;
}

static void since(int64_t ms, char out[AMP_TIME_MAX])
{
    amp_time_format(ms, out);
}

/* ---- the directory ---- */

static bool check_directory(const char *dir)
{
    char m[MEND_MAX];
    struct stat st;
    struct statvfs fs;
    if (stat(dir, &st) < 0) {
        if (errno == ENOENT)
            doctor_say(DOCTOR_STATE, DOCTOR_FAIL,
                       mend(m, "amp-ack track --state %s </dev/null", doctor_quote(dir)),
                       "there is no state directory %s", dir);
        else
            doctor_say(DOCTOR_STATE, DOCTOR_FAIL, mend(m, "namei -l %s", doctor_quote(dir)),
                       "cannot look at %s: %s", dir, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode)) {
        doctor_say(DOCTOR_STATE, DOCTOR_FAIL, "name another one with --state", "%s is no directory",
                   dir);
        return false;
    }
    if (st.st_uid != geteuid())
        doctor_say(DOCTOR_STATE, DOCTOR_FAIL,
                   mend(m, "sudo chown -R %u %s", (unsigned)geteuid(), doctor_quote(dir)),
                   "%s belongs to user %u", dir, (unsigned)st.st_uid);
    if (st.st_mode & 077)
        doctor_say(DOCTOR_STATE, DOCTOR_FAIL, mend(m, "chmod 700 %s", doctor_quote(dir)),
                   "others may enter %s (mode %o)", dir, (unsigned)st.st_mode & 0777);
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && amp_fs_is_network(fd))
        doctor_say(DOCTOR_STATE, DOCTOR_FAIL,
                   mend(m,
                        "end its programs, then cp -a %s to a local disk, and name that with "
                        "--state",
                        doctor_quote(dir)),
                   "%s lies on a network file system, where locks and syncs cannot be trusted",
                   dir);
    if (fd >= 0 && fstatvfs(fd, &fs) == 0) {
        unsigned long long room = (unsigned long long)fs.f_bavail * fs.f_frsize;
        if (room < (unsigned long long)doctor_opt.min_free)
            doctor_say(DOCTOR_STATE, DOCTOR_FAIL,
                       mend(m, "df -h %s # and make room there", doctor_quote(dir)),
                       "%llu KiB are free on its disk", room >> 10);
        if (fs.f_files > 0 && fs.f_favail < 100)
            doctor_say(DOCTOR_STATE, DOCTOR_FAIL,
                       mend(m, "df -i %s # and remove files there", doctor_quote(dir)),
                       "%llu files can still be made on its disk", (unsigned long long)fs.f_favail);
    }
    return true;
}

/* Each file below that somebody else may read or write. */
static unsigned check_modes(const char *dir, const char *below)
{
    char path[PATH_MAX], m[MEND_MAX];
    unsigned n = 0;
    snprintf(path, sizeof(path), "%s/%s", dir, below);
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            S_ISLNK(st.st_mode) || !(st.st_mode & 077))
            continue;
        if (n++ == 0)
            doctor_say(DOCTOR_STATE, DOCTOR_FAIL, mend(m, "chmod -R go= %s", doctor_quote(dir)),
                       "others may open %s/%s", path, e->d_name);
    }
    if (d)
        closedir(d);
    return n;
}

bool doctor_last_segment(const char *dir, char out[PATH_MAX])
{
    char path[PATH_MAX - NAME_MAX - 2], name[NAME_MAX + 1] = "";
    snprintf(path, sizeof(path), "%s/log", dir);
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (amp_span_glob(amp_span_str(e->d_name), AMP_SPAN("??????.ndjson")) &&
            strcmp(e->d_name, name) > 0)
            snprintf(name, sizeof(name), "%s", e->d_name);
    if (d)
        closedir(d);
    snprintf(out, PATH_MAX, "%s/%s", path, name);
    return name[0] != '\0';
}

static void check_tail(const char *dir)
{
    char path[PATH_MAX], m[MEND_MAX], c = '\n';
    if (!doctor_last_segment(dir, path))
        return;
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, path, O_RDONLY, 0, NULL);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    if (end > 0 && pread(fd, &c, 1, end - 1) == 1 && c != '\n')
        doctor_say(DOCTOR_STATE, DOCTOR_WARN,
                   mend(m, "amp-ack sweep --state %s >>escalations.ndjson", doctor_quote(dir)),
                   "the last line of %s is torn, as by a writer that was killed: the next "
                   "writer cuts it",
                   path);
}

/* Nothing is lost with it, but looking up takes the whole log until it is built again. */
static void check_index(const char *dir)
{
    char path[PATH_MAX], m[MEND_MAX];
    bool any = false, segments = doctor_last_segment(dir, path);
    DIR *d = opendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        char head[16] = "";
        struct amp_span name = amp_span_str(e->d_name);
        if (!amp_span_glob(name, AMP_SPAN("index*.db")))
            continue;
        any = true;
        AMP_CLOSE int fd = amp_file_open(dirfd(d), e->d_name, O_RDONLY, 0, NULL);
        struct stat st;
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
            (pread(fd, head, 16, 0) != 16 || memcmp(head, "SQLite format 3", 16) != 0))
            doctor_say(DOCTOR_STATE, DOCTOR_WARN, mend(m, "rm %s/%s", doctor_quote(dir), e->d_name),
                       "%s is damaged; the next writer builds it again from the log", e->d_name);
    }
    if (d)
        closedir(d);
    if (!any && segments)
        doctor_say(DOCTOR_STATE, DOCTOR_WARN,
                   mend(m, "amp-ack sweep --state %s >>escalations.ndjson", doctor_quote(dir)),
                   "there is no index; the next writer builds it from the log");
}

struct amp_store *doctor_state(const char *dir)
{
    char m[MEND_MAX], path[PATH_MAX];
    struct amp_error err;
    struct amp_store *s = NULL;
    struct amp_store_options opt = {.lock_timeout_ms = 2000, .read_only = true};
    uint64_t n = 0;
    if (!check_directory(dir))
        return NULL;
    if (check_modes(dir, ".") == 0)
        check_modes(dir, "log");
    snprintf(path, sizeof(path), "%s/log/FAILED", dir);
    if (access(path, F_OK) == 0) {
        doctor_say(DOCTOR_STATE, DOCTOR_FAIL,
                   mend(m, "amp-ack repair --state %s", doctor_quote(dir)),
                   "a write to the log failed; nobody writes until it is mended");
        return NULL;
    }
    snprintf(path, sizeof(path), "%s/log", dir);
    if (access(path, F_OK) < 0) {
        doctor_say(DOCTOR_STATE, DOCTOR_OK, NULL, "%s is empty", dir);
        return NULL;
    }
    check_tail(dir);
    check_index(dir);
    if (amp_store_open(dir, &opt, &s, &err) < 0 || amp_store_count(s, "message", &n, &err) < 0) {
        /* check_directory told already, and how to mend it. */
        if (strcmp(err.code, "state_permissions") == 0 || strcmp(err.code, "state_not_ours") == 0 ||
            strcmp(err.code, "state_network_fs") == 0)
            return NULL;
        bool repair = strcmp(err.code, "log_damaged") == 0 || strcmp(err.code, "log_failed") == 0;
        doctor_say(DOCTOR_STATE, DOCTOR_FAIL,
                   repair ? mend(m, "amp-ack repair --state %s", doctor_quote(dir))
                          : mend(m, "fuser -v %s/log/main.lock", doctor_quote(dir)),
                   "it cannot be read: %s: %s", err.code, err.what);
        amp_store_close(s);
        return NULL;
    }
    doctor_say(DOCTOR_STATE, DOCTOR_OK, NULL, "%s can be read: %llu messages", dir,
               (unsigned long long)n);
    return s;
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
    size_t n = strlen(h->who);
    (void)reads;
    (void)writes;
    snprintf(h->who + n, sizeof(h->who) - n, "%s%s (pid %d)", n ? ", " : "", name, (int)pid);
    if (is_stopped(pid))
        h->stopped = pid;
}

static bool is_locked(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* A lock that is taken for short times only. */
static void check_main(const char *dir)
{
    char path[PATH_MAX], m[MEND_MAX];
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
    doctor_say(DOCTOR_LOCKS, DOCTOR_FAIL,
               h.stopped ? mend(m, "kill -CONT %d", (int)h.stopped)
                         : mend(m, "fuser -v %s", doctor_quote(path)),
               "the state's lock is held for a second and longer; open by %s",
               h.who[0] ? h.who : "somebody else's process");
}

void doctor_locks(const char *dir)
{
    char path[PATH_MAX], m[MEND_MAX];
    unsigned n = 0;
    check_main(dir);
    snprintf(path, sizeof(path), "%s/run", dir);
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        struct stat st;
        struct held h = {.who = ""};
        if (!amp_span_glob(amp_span_str(e->d_name), AMP_SPAN("*.lock")))
            continue;
        AMP_CLOSE int fd = amp_file_open(dirfd(d), e->d_name, O_RDONLY, 0, NULL);
        if (fd < 0 || fstat(fd, &st) < 0 || !is_locked(fd))
            continue;
        n++;
        doctor_holders(st.st_dev, st.st_ino, held_fn, &h);
        if (h.stopped)
            doctor_say(DOCTOR_LOCKS, DOCTOR_WARN, mend(m, "kill -CONT %d", (int)h.stopped),
                       "run/%s is held by a stopped process: %s", e->d_name, h.who);
        else
            doctor_say(DOCTOR_LOCKS, DOCTOR_OK, NULL, "run/%s is held by %s", e->d_name,
                       h.who[0] ? h.who : "somebody else's process");
    }
    if (d)
        closedir(d);
    if (n == 0)
        doctor_say(DOCTOR_LOCKS, DOCTOR_OK, NULL, "nobody runs on it");
}

/* ---- what is open ---- */

struct waiting {
    uint32_t n;
    uint64_t oldest; /* frame */
    int64_t at_ms;
};

static int entry_fn(void *ctx, const struct amp_store_entry *e)
{
    struct waiting *w = ctx;
    if (e->wants_ack)
        return 0; /* has a deadline of its own */
    if (w->n++ == 0 || e->n < w->oldest)
        w->oldest = e->n;
    return 0;
}

static int frame_fn(void *ctx, uint64_t n, struct amp_span frame)
{
    struct waiting *w = ctx;
    struct amp_tape t;
    struct amp_json_fault fault;
    struct amp_span at;
    AMP_BUF struct amp_buf arena = {0};
    (void)n;
    amp_buf_init(&arena, 4096);
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, frame.p, frame.n, &fault) == 0) {
        uint32_t tok = amp_tape_get(&t, 0, AMP_SPAN("at"));
        if (tok != AMP_TOK_NONE && amp_tok_text(&t, tok, &arena, &at, NULL) == 0)
            amp_time_parse(at, &w->at_ms);
    }
    amp_tape_release(&t);
    return 1;
}

/* Whose run/NAME.lock there is has an outbox of that name, and perhaps one for its answers. */
static void check_outbox(struct amp_store *s, const char *dir, const char *name)
{
    char m[MEND_MAX], when[AMP_TIME_MAX];
    const char *q = doctor_quote(dir);
    struct waiting w = {0};
    struct amp_error err;
    if (amp_store_outbox(s, name, entry_fn, &w, &err) < 0 ||
        (w.n > 0 && amp_store_frames(s, w.oldest, frame_fn, &w, &err) < 0)) {
        doctor_say(DOCTOR_OUTBOX, DOCTOR_FAIL, mend(m, "amp-ack repair --state %s", q),
                   "%s cannot be read: %s", name, err.what);
        return;
    }
    if (w.n == 0)
        return;
    since(w.at_ms, when);
    bool old = amp_now_ms() - w.at_ms > doctor_opt.old_ms;
    if (strcmp(name, "amp-ack.dead") == 0)
        mend(m, "amp-ack dead requeue --state %s - </dev/null >>messages.ndjson", q);
    else if (strcmp(name, "amp-ack.sweep") == 0)
        mend(m, "amp-ack sweep --state %s >>escalations.ndjson", q);
    else if (strncmp(name, "inbox:", 6) == 0)
        mend(m, "amp-route inbox %s --state %s --acks file:acks.ndjson", doctor_quote(name + 6), q);
    else
        mend(m, "start the program again that is named %s (--as) on this state directory", name);
    doctor_say(DOCTOR_OUTBOX, old ? DOCTOR_WARN : DOCTOR_OK, old ? m : NULL,
               "%s: %u %s to be written, the oldest since %s", name, w.n,
               w.n == 1 ? "line waits" : "lines wait", when);
}

struct inboxes {
    struct amp_store *store;
    const char *dir;
};

/* Acknowledgements of what an agent was handed over. */
static int inbox_fn(void *ctx, const struct amp_inbox_info *i)
{
    const struct inboxes *in = ctx;
    char name[AMP_INBOX_AGENT_MAX + 8];
    snprintf(name, sizeof(name), "inbox:%.*s", (int)i->agent.n, i->agent.p);
    check_outbox(in->store, in->dir, name);
    return 0;
}

void doctor_outbox(struct amp_store *s, const char *dir)
{
    struct inboxes in = {.store = s, .dir = dir};
    struct amp_error err;
    char path[PATH_MAX], name[NAME_MAX + 16];
    snprintf(path, sizeof(path), "%s/run", dir);
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        struct amp_span file = amp_span_str(e->d_name);
        if (!amp_span_glob(file, AMP_SPAN("?*.lock")))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(file.n - 5), file.p);
        check_outbox(s, dir, name);
        snprintf(name, sizeof(name), "%.*s.answers", (int)(file.n - 5), file.p);
        check_outbox(s, dir, name);
    }
    if (d)
        closedir(d);
    if (amp_inbox_infos(s, inbox_fn, &in, &err) < 0)
        doctor_say(DOCTOR_OUTBOX, DOCTOR_FAIL, NULL, "inboxes cannot be read: %s", err.what);
}

void doctor_deadlines(struct amp_store *s, const char *dir)
{
    char m[MEND_MAX], when[AMP_TIME_MAX];
    int64_t now = amp_now_ms();
    struct amp_deadline_ctx ctx;
    struct amp_error err;
    bool any = false;
    due_ctx(NULL, &ctx);
    for (unsigned i = 0; amp_deadlines[i].name; i++) {
        int64_t due = 0;
        if (amp_deadlines[i].next_due(s, &ctx, &due, &err) < 0) {
            doctor_say(DOCTOR_DEADLINES, DOCTOR_FAIL,
                       mend(m, "amp-ack repair --state %s", doctor_quote(dir)), "%s: %s",
                       amp_deadlines[i].name, err.what);
            any = true;
        } else if (due > 0 && due < now - OVERDUE_MS) {
            since(due, when);
            doctor_say(DOCTOR_DEADLINES, amp_deadlines[i].upkeep ? DOCTOR_OK : DOCTOR_WARN,
                       mend(m, "amp-ack watch --state %s >>escalations.ndjson", doctor_quote(dir)),
                       "%s: overdue since %s, and nobody watches", amp_deadlines[i].name, when);
            any = true;
        }
    }
    if (!any)
        doctor_say(DOCTOR_DEADLINES, DOCTOR_OK, NULL, "nothing is overdue");
}

static int count_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    int64_t *n = ctx;
    (void)id;
    (void)rec;
    ++*n;
    return 0;
}

void doctor_dead(struct amp_store *s, const char *dir)
{
    char m[MEND_MAX];
    int64_t n = 0;
    struct amp_error err;
    if (amp_store_each(s, "dead", "DEAD", count_fn, &n, &err) < 0) {
        doctor_say(DOCTOR_DEAD, DOCTOR_FAIL,
                   mend(m, "amp-ack repair --state %s", doctor_quote(dir)),
                   "they cannot be read: %s", err.what);
        return;
    }
    bool many = n > doctor_opt.most_dead;
    doctor_say(DOCTOR_DEAD, many ? DOCTOR_WARN : DOCTOR_OK,
               many ? mend(m, "amp-ack dead list --state %s # then dead requeue, or dead purge",
                           doctor_quote(dir))
                    : NULL,
               "%lld dead %s", (long long)n, n == 1 ? "letter" : "letters");
}

struct suspended {
    const char *dir;
    unsigned n;
};

static int task_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct suspended *sp = ctx;
    char m[MEND_MAX], state[32];
    if (!amp_span_is(rec->state, "suspended") && !amp_span_is(rec->state, "locked"))
        return 0;
    sp->n++;
    amp_span_copy(rec->state, state, sizeof(state));
    doctor_say(DOCTOR_TASKS, DOCTOR_WARN,
               mend(m,
                    "hitl-prompt --state %s <escalations.ndjson | task-dispatch coordinate --state "
                    "%s",
                    doctor_quote(sp->dir), doctor_quote(sp->dir)),
               "%.*s is %s: a person has to decide", (int)(id.n > 200 ? 200 : id.n), id.p, state);
    return 0;
}

void doctor_tasks(struct amp_store *s, const char *dir)
{
    struct suspended sp = {.dir = dir};
    struct amp_error err;
    if (amp_store_each(s, "task", NULL, task_fn, &sp, &err) < 0)
        doctor_say(DOCTOR_TASKS, DOCTOR_FAIL, NULL, "they cannot be read: %s", err.what);
    else if (sp.n == 0)
        doctor_say(DOCTOR_TASKS, DOCTOR_OK, NULL, "none is suspended");
}

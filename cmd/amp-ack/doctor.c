/*
 * amp-ack doctor: goes through what could keep messages from flowing, says what is wrong and the
 * command that fixes it. It changes nothing: the store is opened read-only, a FIFO is looked at
 * through /proc, and opened only where somebody reads it already.
 */
#include "doctor.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/num.h>
#include <amp/json/writer.h>

static bool json, strict;
static struct amp_list skip;
struct doctor_options doctor_opt = {
    .min_free = 64 << 20, .old_ms = 10 * 60 * 1000, .most_dead = 100};
static unsigned wrong[DOCTOR_FAIL + 1];

const struct amp_opt doctor_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "one record a line"},
    {'C', "repo", AMP_OPT_DIR, &doctor_opt.repo, "DIR",
     .doc = "the repository whose guard is looked at; the one here, unless given"},
    {0, "strict", AMP_OPT_FLAG, &strict, NULL, .doc = "exit with 1 for warnings, too"},
    {0, "skip", AMP_OPT_LIST, &skip, "CHECK", .doc = "leave a check out"},
    {0, "min-free", AMP_OPT_SIZE, &doctor_opt.min_free, "SIZE",
     .doc = "room that the state's disk must have"},
    {0, "old-after", AMP_OPT_DURATION, &doctor_opt.old_ms, "TIME",
     .doc = "how long a line may wait to be written"},
    {0, "most-dead", AMP_OPT_INT, &doctor_opt.most_dead, "N",
     .doc = "dead letters that need no word"},
    AMP_OPT_END,
};

static const char *const names[] = {
#define X(id, name, doc) name,
    DOCTOR_CHECKS(X)
#undef X
};
static const char *const levels[] = {"ok", "warn", "fail"};

struct remedy {
    const char *label, *text;
};

/* A command is a fix; what begins with "# " is advice for a person. */
static struct remedy read_remedy(const char *fix)
{
    bool is_advice = fix && strncmp(fix, "# ", 2) == 0;
    return is_advice ? (struct remedy){"advice", fix + 2} : (struct remedy){"fix", fix};
}

static int record(enum doctor_check check, enum doctor_level level, struct remedy remedy,
                  const char *what, struct amp_buf *out)
{
    const char *const texts[] = {"check", names[check], "level",      levels[level],
                                 "what",  what,         remedy.label, remedy.text};
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i += 2) {
        if (!texts[i + 1])
            continue;
        amp_jw_key(&w, texts[i]);
        amp_jw_str(&w, amp_span_str(texts[i + 1]));
    }
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, NULL);
}

void doctor_say(enum doctor_check check, enum doctor_level level, const char *fix, const char *fmt,
                ...)
{
    AMP_BUF struct amp_buf out = {0};
    char what[2048];
    struct amp_error err;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    wrong[level]++;
    amp_buf_init(&out, 1 << 20);
    int rc;
    struct remedy remedy = read_remedy(fix);
    if (json) {
        rc = record(check, level, remedy, what, &out);
    } else {
        rc = amp_buf_fmt(&out, &err, "%-4s  %-11s  ", levels[level], names[check]);
        rc |= amp_text_safe(amp_span_str(what), 0, &out, &err);
        if (remedy.text) {
            rc |= amp_buf_fmt(&out, &err, "\n      %s: ", remedy.label);
            rc |= amp_text_safe(amp_span_str(remedy.text), 0, &out, &err);
        }
    }
    if (rc < 0 || amp_buf_str(&out, "\n", &err) < 0 || amp_out(amp_buf_span(&out), &err) < 0)
        amp_status_note(AMP_IOERR);
}

const char *doctor_fix(char out[DOCTOR_FIX_MAX], const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, DOCTOR_FIX_MAX, fmt, ap);
    va_end(ap);
    return out;
}

const char *doctor_sudo(void)
{
    return geteuid() == 0 ? "" : "sudo ";
}

void doctor_unreadable(enum doctor_check check, const char *dir, const char *what,
                       const struct amp_error *err)
{
    char m[DOCTOR_FIX_MAX];
    const char *fix = "# amp-exit(7) explains the code";
    if (strcmp(err->code, "log_damaged") == 0 || strcmp(err->code, "log_failed") == 0)
        fix = doctor_fix(m, "amp-ack repair --state %s", doctor_quote(dir));
    else if (strcmp(err->code, "lock_timeout") == 0)
        fix = "# end or continue the process that the check 'locks' names";
    else if (strcmp(err->code, "config_invalid") == 0)
        fix = doctor_fix(m, "# correct %s/amp.json", doctor_quote(dir));
    doctor_say(check, DOCTOR_FAIL, fix, "cannot read %s: %s: %s", what, err->code, err->what);
}

const char *doctor_quote(const char *path)
{
    static char text[4][PATH_MAX + 16];
    static unsigned turn;
    char *out = text[turn++ % 4];
    size_t n = 0;
    char below[PATH_MAX + 2];
    if (*path == '-') {
        snprintf(below, sizeof(below), "./%s", path);
        path = below;
    }
    bool plain = *path != '\0';
    for (const char *p = path; *p; p++)
        plain = plain && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
                          (*p >= 'A' && *p <= 'Z') || strchr("/._-+,:=@%", *p));
    if (plain) {
        snprintf(out, sizeof(text[0]), "%s", path);
        return out;
    }
    out[n++] = '\'';
    for (const char *p = path; *p && n < PATH_MAX; p++) {
        if (*p == '\'')
            n += (size_t)snprintf(out + n, 8, "'\\''");
        else
            out[n++] = *p;
    }
    out[n++] = '\'';
    out[n] = '\0';
    return out;
}

/* The name of a process, from its comm. */
static void name_of(pid_t pid, char out[32])
{
    AMP_BUF struct amp_buf b = {0};
    char path[64];
    amp_buf_init(&b, 256);
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    snprintf(out, 32, "?");
    if (amp_file_read(AT_FDCWD, path, 128, &b, NULL) == 0 && b.len > 0) {
        amp_span_copy((struct amp_span){b.data, b.len - 1}, out, 32);
    }
}

static void holder(pid_t pid, dev_t dev, ino_t ino, doctor_holder_fn fn, void *ctx)
{
    char path[64], name[32];
    bool reads = false, writes = false, any = false;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        struct stat st, link;
        if (fstatat(dirfd(d), e->d_name, &st, 0) < 0 || st.st_dev != dev || st.st_ino != ino ||
            fstatat(dirfd(d), e->d_name, &link, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        any = true;
        reads |= (link.st_mode & S_IRUSR) != 0;
        writes |= (link.st_mode & S_IWUSR) != 0;
    }
    if (d)
        closedir(d);
    if (any) {
        name_of(pid, name);
        fn(ctx, pid, name, reads, writes);
    }
}

void doctor_holders(dev_t dev, ino_t ino, doctor_holder_fn fn, void *ctx)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    while (d && (e = readdir(d))) {
        int64_t pid;
        if (amp_num_parse(amp_span_str(e->d_name), 1, INT32_MAX, &pid, NULL) == 0 &&
            pid != getpid())
            holder((pid_t)pid, dev, ino, fn, ctx);
    }
    if (d)
        closedir(d);
}

static bool skipped(enum doctor_check check)
{
    for (int i = 0; i < skip.n; i++)
        if (strcmp(skip.v[i], names[check]) == 0)
            return true;
    return false;
}

static void check_skips(void)
{
    for (int i = 0; i < skip.n; i++) {
        unsigned c = 0;
        while (c < DOCTOR_COUNT && strcmp(skip.v[i], names[c]) != 0)
            c++;
        if (c == DOCTOR_COUNT)
            amp_die_usage("--skip: there is no check '%s'", skip.v[i]);
    }
}

/* false: nothing in it can be looked at. */
static bool about_store(void)
{
    bool usable = false;
    struct amp_store *s = doctor_state(ack_state, &usable);
    if (!usable)
        return false;
    if (!skipped(DOCTOR_LOCKS))
        doctor_locks(ack_state);
    if (s && !skipped(DOCTOR_OUTBOX))
        doctor_outbox(s, ack_state);
    if (s && !skipped(DOCTOR_DEADLINES))
        doctor_deadlines(s, ack_state);
    if (s && !skipped(DOCTOR_DEAD))
        doctor_dead(s, ack_state);
    if (s && !skipped(DOCTOR_TASKS))
        doctor_tasks(s, ack_state);
    amp_store_close(s);
    return true;
}

static void sum_up(void)
{
    if (!json && wrong[DOCTOR_FAIL] + wrong[DOCTOR_WARN] > 0)
        amp_note("%u %s, %u %s", wrong[DOCTOR_FAIL],
                 wrong[DOCTOR_FAIL] == 1 ? "problem" : "problems", wrong[DOCTOR_WARN],
                 wrong[DOCTOR_WARN] == 1 ? "warning" : "warnings");
}

int ack_doctor(int argc, char **argv)
{
    check_skips();
    doctor_opt.config = ack_config;
    /* What cannot be read is one finding; no other check says it again. */
    const char *dir = ack_state && (skipped(DOCTOR_STATE) || about_store()) ? ack_state : NULL;
    if (!skipped(DOCTOR_PEERS))
        doctor_peers(dir);
    if (!skipped(DOCTOR_PERMISSIONS))
        doctor_permissions(dir, argc, argv);
    if (!skipped(DOCTOR_HOOKS))
        doctor_hooks();
    if (!skipped(DOCTOR_FIFOS))
        doctor_fifos(dir, argc, argv);
    if (!skipped(DOCTOR_CLOCK))
        doctor_clock(dir);
    sum_up();
    return wrong[DOCTOR_FAIL] > 0 || (strict && wrong[DOCTOR_WARN] > 0) ? AMP_NO : 0;
}

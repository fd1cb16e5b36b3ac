/*
 * amp-ack doctor: checks everything that can stop messages, and prints each problem with the
 * command that fixes it. It changes nothing: the store is opened read-only, and a FIFO is inspected
 * through /proc and opened only if a process already reads it.
 */
#include "doctor.h"
#include "base/codes.h"
#include "base/process/quote.h"

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

static const struct amp_opt doctor_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print one JSON object per line"},
    {'C', "repo", AMP_OPT_DIR, &doctor_opt.repo, "DIR",
     .doc = "repository whose guard is checked (default: the current one)"},
    {0, "strict", AMP_OPT_FLAG, &strict, NULL, .doc = "exit with 1 for warnings, too"},
    {0, "skip", AMP_OPT_LIST, &skip, "CHECK", .doc = "skip a check; may be repeated"},
    {0, "min-free", AMP_OPT_SIZE, &doctor_opt.min_free, "SIZE",
     .doc = "free space that the disk must have"},
    {0, "old-after", AMP_OPT_DURATION, &doctor_opt.old_ms, "TIME",
     .doc = "how long a line may wait to be written"},
    {0, "most-dead", AMP_OPT_INT, &doctor_opt.most_dead, "N",
     .doc = "number of dead letters without a warning"},
    AMP_OPT_END,
};

static const struct {
    const char *name;
    enum doctor_need need;
    void (*look)(struct doctor *d);
} checks[] = {
#define X(name, need) {#name, DOCTOR_##need, doctor_##name},
    DOCTOR_CHECKS(X)
#undef X
};
enum { CHECKS = sizeof(checks) / sizeof(*checks) };
static unsigned running;   /* the index of the running check */
static unsigned n_printed; /* lines of the running check */
static const char *const levels[] = {"ok", "warn", "fail"};

static int line_json(enum doctor_level level, const char *label, const char *fix, const char *what,
                     struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "check", checks[running].name);
    amp_jw_member_text(&w, "level", levels[level]);
    amp_jw_member_text(&w, "what", what);
    if (fix)
        amp_jw_member_text(&w, label, fix);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static int line_text(enum doctor_level level, const char *label, const char *fix, const char *what,
                     struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "%-4s  %-11s  ", levels[level], checks[running].name) < 0 ||
        amp_text_safe(amp_span_str(what), 0, out, err) < 0)
        return -1;
    if (fix && (amp_buf_fmt(out, err, "\n      %s: ", label) < 0 ||
                amp_text_safe(amp_span_str(fix), 0, out, err) < 0))
        return -1;
    return amp_buf_str(out, "\n", err);
}

/* Appends the fix with the path for each "@" in it, and a NUL. */
static int fix_fill(const char *fix, const char *path, struct amp_buf *out, struct amp_error *err)
{
    for (const char *p = fix; *p; p++)
        if ((path && *p == '@' ? amp_buf_str(out, doctor_quote(path), err)
                               : amp_buf_add(out, p, 1, err)) < 0)
            return -1;
    return amp_buf_add(out, "", 1, err);
}

__attribute__((format(printf, 4, 0))) static void
line_print(enum doctor_level level, const char *fix, const char *path, const char *fmt, va_list ap)
{
    AMP_BUF struct amp_buf out = {.max = 1 << 20}, filled = {.max = 1 << 20};
    char what[2048];
    struct amp_error err;
    vsnprintf(what, sizeof(what), fmt, ap);
    wrong[level]++;
    n_printed++;
    bool advice = fix && strncmp(fix, "# ", 2) == 0;
    if ((fix && fix_fill(advice ? fix + 2 : fix, path, &filled, &err) < 0) ||
        (json ? line_json : line_text)(level, advice ? "advice" : "fix", fix ? filled.data : NULL,
                                       what, &out, &err) < 0 ||
        amp_out(amp_buf_span(&out), &err) < 0)
        amp_status_note(AMP_IOERR);
}

void doctor_say(enum doctor_level level, const char *fix, const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    line_print(level, fix, path, fmt, ap);
    va_end(ap);
}

void doctor_ok(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (n_printed == 0)
        line_print(DOCTOR_OK, NULL, NULL, fmt, ap);
    va_end(ap);
}

const char *doctor_fix(const char *fmt, ...)
{
    static char text[4][4 * PATH_MAX + 128];
    static unsigned turn;
    char *out = text[turn++ % 4];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, sizeof(text[0]), fmt, ap);
    va_end(ap);
    return out;
}

const char *doctor_sudo(void)
{
    return geteuid() == 0 ? "" : "sudo ";
}

void doctor_unreadable(const char *dir, const char *what, const struct amp_error *err)
{
    const char *fix = "# amp-exit(7) explains the code";
    if (amp_code_is(err->code, log_damaged) || amp_code_is(err->code, log_failed))
        fix = "amp-ack repair --state @";
    else if (amp_code_is(err->code, lock_timeout))
        fix = "# end or continue the process that the check 'locks' names";
    else if (amp_code_is(err->code, config_invalid))
        fix = "# correct @/amp.json";
    doctor_say(DOCTOR_FAIL, fix, dir, "cannot read %s: %s: %s", what, err->code, err->what);
}

const char *doctor_quote(const char *path)
{
    static char text[4][4 * PATH_MAX + 4];
    static unsigned turn;
    char *out = text[turn++ % 4];
    AMP_BUF struct amp_buf quoted = {.max = sizeof text[0]};
    char below[PATH_MAX + 2];
    if (*path == '-') {
        snprintf(below, sizeof(below), "./%s", path);
        path = below;
    }
    bool fits = amp_shell_quote(amp_span_str(path), &quoted, NULL) == 0;
    amp_span_copy(fits ? amp_buf_span(&quoted) : AMP_SPAN("PATH"), out, sizeof text[0]);
    return out;
}

void doctor_add_process(char *list, size_t size, pid_t pid, const char *name)
{
    size_t n = strlen(list);
    snprintf(list + n, size - n, "%s%s (pid %d)", n ? ", " : "", name, (int)pid);
}

/* The name of a process, from its comm. */
static void process_name(pid_t pid, char out[32])
{
    AMP_BUF struct amp_buf b = {0};
    char path[64];
    amp_buf_init(&b, 256);
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    snprintf(out, 32, "?");
    if (amp_file_read(AT_FDCWD, path, 128, &b, NULL) == 0 && b.len > 0)
        amp_span_copy((struct amp_span){b.data, b.len - 1}, out, 32);
}

static void holder_look(pid_t pid, dev_t dev, ino_t ino, doctor_holder_fn fn, void *ctx)
{
    char path[64], name[32];
    bool reads = false, writes = false, any = false;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    AMP_DIR DIR *d = opendir(path);
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
    if (any) {
        process_name(pid, name);
        fn(ctx, pid, name, reads, writes);
    }
}

void doctor_holders(dev_t dev, ino_t ino, doctor_holder_fn fn, void *ctx)
{
    AMP_DIR DIR *d = opendir("/proc");
    struct dirent *e;
    while (d && (e = readdir(d))) {
        int64_t pid;
        if (amp_num_parse(amp_span_str(e->d_name), 1, INT32_MAX, &pid, NULL) == 0 &&
            pid != getpid())
            holder_look((pid_t)pid, dev, ino, fn, ctx);
    }
}

static bool is_skipped(unsigned check)
{
    for (int i = 0; i < skip.n; i++)
        if (strcmp(skip.v[i], checks[check].name) == 0)
            return true;
    return false;
}

static void refuse_unknown_skips(void)
{
    for (int i = 0; i < skip.n; i++) {
        unsigned c = 0;
        while (c < CHECKS && strcmp(skip.v[i], checks[c].name) != 0)
            c++;
        if (c == CHECKS)
            amp_die_usage("--skip: there is no check '%s'", skip.v[i]);
    }
}

static void totals_print(void)
{
    if (!json && wrong[DOCTOR_FAIL] + wrong[DOCTOR_WARN] > 0)
        amp_note("%u %s, %u %s", wrong[DOCTOR_FAIL],
                 wrong[DOCTOR_FAIL] == 1 ? "problem" : "problems", wrong[DOCTOR_WARN],
                 wrong[DOCTOR_WARN] == 1 ? "warning" : "warnings");
}

static int ack_doctor(struct amp_command *c, struct amp_error *err)
{
    struct doctor d = {.dir = c->state, .n_files = c->argc, .files = c->argv};
    (void)err;
    refuse_unknown_skips();
    doctor_opt.config = ack_config;
    for (running = 0; running < CHECKS; running++) {
        n_printed = 0;
        if (!is_skipped(running) && checks[running].need <= d.have)
            checks[running].look(&d);
    }
    amp_store_close(d.store);
    totals_print();
    return wrong[DOCTOR_FAIL] > 0 || (strict && wrong[DOCTOR_WARN] > 0) ? AMP_NO : 0;
}

const struct amp_verb doctor_verbs[] = {
    {"doctor", "[FILE…]", "find problems and print the commands that fix them", doctor_opts,
     ack_doctor, .group = "Repairing"},
    {0},
};

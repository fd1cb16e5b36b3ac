/*
 * amp-ack doctor: goes through what could keep messages from flowing, says what is wrong and the
 * command that fixes it. It changes nothing: the store is opened read-only, a FIFO is looked at
 * through /proc, and opened only where a process reads it already.
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
#define X(id, name, need) {#name, DOCTOR_##need, doctor_##name},
    DOCTOR_CHECKS(X)
#undef X
};
static const char *const levels[] = {"ok", "warn", "fail"};

struct remedy {
    const char *label, *text;
};

/* A command is a fix; what begins with "# " is advice for a person. */
static struct remedy remedy_of(const char *fix)
{
    bool is_advice = fix && strncmp(fix, "# ", 2) == 0;
    return is_advice ? (struct remedy){"advice", fix + 2} : (struct remedy){"fix", fix};
}

static int finding_json(enum doctor_check check, enum doctor_level level, struct remedy remedy,
                        const char *what, struct amp_buf *out)
{
    const char *const texts[] = {"check", checks[check].name, "level",    levels[level], "what",
                                 what,    remedy.label,       remedy.text};
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i += 2)
        if (texts[i + 1])
            amp_jw_member_text(&w, texts[i], texts[i + 1]);
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
    struct remedy remedy = remedy_of(fix);
    if (json) {
        rc = finding_json(check, level, remedy, what, &out);
    } else {
        rc = amp_buf_fmt(&out, &err, "%-4s  %-11s  ", levels[level], checks[check].name);
        rc |= amp_text_safe(amp_span_str(what), 0, &out, &err);
        if (remedy.text) {
            rc |= amp_buf_fmt(&out, &err, "\n      %s: ", remedy.label);
            rc |= amp_text_safe(amp_span_str(remedy.text), 0, &out, &err);
        }
    }
    if (rc < 0 || amp_buf_str(&out, "\n", &err) < 0 || amp_out(amp_buf_span(&out), &err) < 0)
        amp_status_note(AMP_IOERR);
}

const char *doctor_fix(const char *fmt, ...)
{
    static char text[4][3 * PATH_MAX + 128];
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

void doctor_unreadable(enum doctor_check check, const char *dir, const char *what,
                       const struct amp_error *err)
{
    const char *fix = "# amp-exit(7) explains the code";
    if (strcmp(err->code, "log_damaged") == 0 || strcmp(err->code, "log_failed") == 0)
        fix = doctor_fix("amp-ack repair --state %s", doctor_quote(dir));
    else if (strcmp(err->code, "lock_timeout") == 0)
        fix = "# end or continue the process that the check 'locks' names";
    else if (strcmp(err->code, "config_invalid") == 0)
        fix = doctor_fix("# correct %s/amp.json", doctor_quote(dir));
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
    if (amp_file_read(AT_FDCWD, path, 128, &b, NULL) == 0 && b.len > 0) {
        amp_span_copy((struct amp_span){b.data, b.len - 1}, out, 32);
    }
}

static void holder_look(pid_t pid, dev_t dev, ino_t ino, doctor_holder_fn fn, void *ctx)
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
        process_name(pid, name);
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
            holder_look((pid_t)pid, dev, ino, fn, ctx);
    }
    if (d)
        closedir(d);
}

static bool is_skipped(enum doctor_check check)
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
        while (c < DOCTOR_COUNT && strcmp(skip.v[i], checks[c].name) != 0)
            c++;
        if (c == DOCTOR_COUNT)
            amp_die_usage("--skip: there is no check '%s'", skip.v[i]);
    }
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
    struct doctor d = {.dir = ack_state, .n_files = argc, .files = argv};
    refuse_unknown_skips();
    doctor_opt.config = ack_config;
    for (int c = 0; c < DOCTOR_COUNT; c++)
        if (!is_skipped((enum doctor_check)c) && checks[c].need <= d.have)
            checks[c].look(&d);
    amp_store_close(d.store);
    sum_up();
    return wrong[DOCTOR_FAIL] > 0 || (strict && wrong[DOCTOR_WARN] > 0) ? AMP_NO : 0;
}

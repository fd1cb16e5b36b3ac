/* Checks outside of the state directory: programs, files with secrets, the guard, the clock. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "cli/config.h"
#include "doctor.h"
#include "message/protocol/redact/redact.h"
#include "message/store/history/history.h"
#include "work/git/hooks.h"

#define CONFIG_MAX  (1 << 20)
#define AHEAD_MS    2000 /* rounding of file systems */
#define VERSION_SEC 10
#define JUMP_MS     50

/* ---- programs ---- */

/* Reads the first line that a program prints; false if it cannot be run or fails. */
static bool prints_line(const char *const *argv, char out[160])
{
    int p[2];
    struct amp_child c;
    struct amp_child_end end = {0};
    struct amp_error err;
    out[0] = '\0';
    if (pipe2(p, O_CLOEXEC) < 0)
        return false;
    AMP_CLOSE int in = p[0];
    struct amp_child_spec spec = {
        .argv = argv, .fd_in = -1, .fd_out = p[1], .fd_err = -1, .dies_with_us = true};
    int rc = amp_child_start(&spec, &c, &err);
    close(p[1]);
    if (rc < 0 || amp_child_wait(&c, VERSION_SEC * 1000, 100, NULL, &end, &err) < 0)
        return false;
    ssize_t n = read(in, out, 159);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return end.exited && end.exit_code == 0;
}

static void check_helper(const char *name)
{
    char path[PATH_MAX], said[160], want[80];
    struct amp_error err;
    static const char install[] = "# install the toolkit again: make install";
    snprintf(want, sizeof(want), "%s %s", name, AMP_VERSION);
    if (amp_helper_path(name, path, sizeof(path), &err) < 0 || access(path, X_OK) < 0)
        doctor_say(DOCTOR_FAIL, install, NULL, "the helper %s is missing, or not executable", name);
    else if (!prints_line((const char *const[]){path, "--version", NULL}, said))
        doctor_say(DOCTOR_FAIL, install, NULL, "%s does not run", path);
    else if (strcmp(said, want) != 0)
        doctor_say(DOCTOR_FAIL, install, NULL, "%s has the wrong version: %.100s, expected %s",
                   path, said, want);
}

struct ports {
    int (*fn)(void *ctx, const char *port, struct amp_error *err);
    void *ctx;
};

/* "NAME=PORT", "PREDICATE => PORT" or a port alone. */
static int entry_fn(void *arg, const char *text, struct amp_error *err)
{
    const struct ports *p = arg;
    const char *port = strstr(text, "=>");
    port = port ? port + 2 : strchr(text, '=') ? strchr(text, '=') + 1 : text;
    return p->fn(p->ctx, port + strspn(port, " "), err);
}

int doctor_ports(const char *dir, int (*fn)(void *ctx, const char *port, struct amp_error *err),
                 void *ctx, struct amp_error *err)
{
    struct ports p = {fn, ctx};
    if (amp_config_values(doctor_opt.config, dir, "route.routes", entry_fn, &p, err) < 0)
        return -1;
    return amp_config_values(doctor_opt.config, dir, "route.agents", entry_fn, &p, err);
}

/* Checks the command of a route's or an agent's port. */
static int port_fn(void *arg, const char *port, struct amp_error *err)
{
    char name[1024], path[PATH_MAX];
    (void)arg;
    (void)err;
    if (strncmp(port, "command:", 8) != 0 && strncmp(port, "exec-each:", 10) != 0)
        return 0;
    port = strchr(port, ':') + 1;
    port += strspn(port, " ");
    size_t n = strcspn(port, " ");
    snprintf(name, sizeof(name), "%.*s", (int)n, port);
    if (n > 0 && *port != '\'' && *port != '"' &&
        amp_child_find(name, environ, path, sizeof(path), NULL) < 0)
        doctor_say(DOCTOR_FAIL, "# install it, or give its path", NULL,
                   "the command %s of a route does not exist", name);
    return 0;
}

void doctor_peers(struct doctor *d)
{
    static const char *const helpers[] = {"jq-worker", "port-http", "git-worker", "state-worker",
                                          "branch-guard"};
    char git[160] = "";
    struct amp_error err;
    for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++)
        check_helper(helpers[i]);
    if (!prints_line((const char *const[]){"git", "--version", NULL}, git))
        doctor_say(DOCTOR_WARN, doctor_fix("%sapt-get install git", doctor_sudo()), NULL,
                   "git is missing; agents need it");
    if (doctor_ports(d->dir, port_fn, NULL, &err) < 0)
        doctor_say(DOCTOR_FAIL, NULL, NULL, "amp.json: %s", err.what);
    doctor_ok("all helpers are of version %s; %s", AMP_VERSION, git);
}

/* ---- files with secrets ---- */

/* Whether the file contains a secret, by the rules of redaction. */
static bool has_secrets(const char *path)
{
    AMP_BUF struct amp_buf text = {0}, clean = {0};
    amp_buf_init(&text, CONFIG_MAX);
    amp_buf_init(&clean, 32 * CONFIG_MAX);
    if (amp_file_read(AT_FDCWD, path, CONFIG_MAX, &text, NULL) < 0 ||
        amp_redact_text(amp_buf_span(&text), false, &clean, NULL) < 0)
        return true;
    return !amp_span_eq(amp_buf_span(&text), amp_buf_span(&clean));
}

/* always: the purpose of the file is to hold secrets. */
static void check_file(const char *path, bool always)
{
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    static const char fix[] = "chmod go= @";
    if (st.st_mode & 022)
        doctor_say(DOCTOR_FAIL, fix, path, "other users can write %s (mode %o)", path,
                   (unsigned)st.st_mode & 0777);
    else if ((st.st_mode & 044) && (always || has_secrets(path)))
        doctor_say(DOCTOR_FAIL, fix, path, "other users can read %s (mode %o), %s", path,
                   (unsigned)st.st_mode & 0777,
                   always ? "which is for secrets" : "which contains a secret");
    else if (st.st_uid != geteuid() && st.st_uid != 0)
        doctor_say(DOCTOR_FAIL, doctor_fix("%schown %u @", doctor_sudo(), (unsigned)geteuid()),
                   path, "%s belongs to user %u", path, (unsigned)st.st_uid);
}

/* Settings that are ignored because every writer of the state directory could change them. */
static void check_ignored(void)
{
    char parent[PATH_MAX];
    const char *fix;
    struct amp_config_files f = amp_config_files();
    if (f.ignored.n == 0)
        return;
    const char *from = doctor_quote(f.state_path), *to = doctor_quote(f.user_path);
    const char *slash = strrchr(f.user_path, '/');
    snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - f.user_path) : 0, f.user_path);
    /* The complete file can move if none of its settings belongs to the state directory. */
    if (slash && f.user.n == 0 && !memmem(f.state.p, f.state.n, "\"store\"", 7))
        fix = doctor_fix("mkdir -p %s && mv -n %s %s", doctor_quote(parent), from, to);
    else
        fix = doctor_fix("${EDITOR:-vi} %s %s", from, to);
    doctor_say(DOCTOR_WARN, fix, NULL,
               "%s: ignored: %.*s; a state directory may set only store and redact", f.state_path,
               (int)f.ignored.n, f.ignored.p);
}

void doctor_permissions(struct doctor *d)
{
    char path[PATH_MAX];
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
    if (doctor_opt.config)
        check_file(doctor_opt.config, false);
    if (xdg)
        snprintf(path, sizeof(path), "%s/amp/amp.json", xdg);
    else
        snprintf(path, sizeof(path), "%s/.config/amp/amp.json", home ? home : "");
    check_file(path, false);
    if (d->dir) {
        snprintf(path, sizeof(path), "%s/amp.json", d->dir);
        check_file(path, false);
    }
    check_ignored();
    for (int i = 0; i < d->n_files; i++)
        check_file(d->files[i], true);
    doctor_ok("no secret is readable by others");
}

/* ---- the guard ---- */

struct guard_check {
    const char *repo;
    const struct amp_hooks *hooks;
};

static const char install_fix[] = "worktree-bind hooks install --repo @";

static void hook_fn(void *ctx, const struct amp_hook_finding *f)
{
    const struct guard_check *g = ctx;
    const char *dir = doctor_quote(amp_hooks_where_git_looks(g->hooks));
    const char *repo = doctor_quote(g->repo), *fix = install_fix;
    if (strcmp(f->code, "relative_hooks_path") == 0)
        fix = doctor_fix("git -C %s config core.hooksPath %s", repo, dir);
    else if (g->hooks->foreign[0])
        fix = doctor_fix("worktree-bind hooks install --repo %s --hooks-dir %s", repo, dir);
    doctor_say(f->severity == AMP_HOOK_ERROR ? DOCTOR_FAIL : DOCTOR_WARN, fix,
               fix == install_fix ? g->repo : NULL, "%s: %s: %s", f->path, f->code, f->what);
}

static void check_guard(struct amp_git *g, const char *repo)
{
    char path[PATH_MAX + 16], program[PATH_MAX];
    struct amp_hooks h = {.server = false};
    struct amp_git_info info;
    struct amp_error err;
    struct guard_check found = {.repo = repo, .hooks = &h};
    if (amp_git_info(g, repo, &info, &err) < 0 || amp_hooks_find(g, repo, NULL, &h, &err) < 0) {
        bool no_git = amp_code_is(err.code, repo_not_git);
        if (no_git && !doctor_opt.repo)
            doctor_say(DOCTOR_OK, NULL, NULL, "not in a git repository (--repo)");
        else
            doctor_say(DOCTOR_FAIL, no_git ? "git init @" : install_fix, repo, "%s", err.what);
        return;
    }
    snprintf(path, sizeof(path), "%s/amp/guard", h.common);
    if (access(path, F_OK) < 0) {
        doctor_say(doctor_opt.repo ? DOCTOR_WARN : DOCTOR_OK, doctor_opt.repo ? install_fix : NULL,
                   repo, "no guard is installed in %s", h.common);
        return;
    }
    snprintf(path, sizeof(path), "%s/update", amp_hooks_where_git_looks(&h));
    h.server = info.bare && access(path, F_OK) == 0;
    bool known = amp_helper_path(AMP_HOOK_PROGRAM, program, sizeof(program), NULL) == 0;
    if (amp_hooks_check(&h, known ? program : NULL, getenv("PATH"), hook_fn, &found, &err) < 0)
        doctor_say(DOCTOR_FAIL, install_fix, repo, "%s", err.what);
    else
        doctor_ok("the guard of %s is complete", h.common);
}

void doctor_hooks(struct doctor *d)
{
    struct amp_git *g;
    struct amp_error err;
    if (amp_git_open(NULL, &g, &err) < 0) {
        doctor_say(DOCTOR_FAIL, NULL, NULL, "%s", err.what);
        return;
    }
    check_guard(g, doctor_opt.repo ? doctor_opt.repo : ".");
    amp_git_close(g);
}

/* ---- identities ---- */

void doctor_identity(struct doctor *d)
{
    char keys[PATH_MAX];
    struct stat st;
    const char *word = ack_identity_word();
    if (strcmp(word, "off") == 0)
        doctor_say(DOCTOR_WARN, "# remove AMP_IDENTITY=off, or identity.require from amp.json",
                   NULL, "identities are off: messages are neither signed nor verified");
    if (d->dir) {
        snprintf(keys, sizeof keys, "%s/keys", d->dir);
        if (lstat(keys, &st) == 0 && (!S_ISDIR(st.st_mode) || (st.st_mode & 077)))
            doctor_say(DOCTOR_FAIL, "chmod 0700 @", keys, "others can reach the keys in %s", keys);
    }
    doctor_ok("messages are signed (identity.require: %s)", word);
}

/* ---- the clock ---- */

/* Measures how far the wall clock and the monotonic clock diverge within a tenth of a second. */
static int64_t jump_ms(void)
{
    int64_t wall = amp_now_ms(), mono = amp_mono_ms();
    struct timespec t = {.tv_nsec = 100000000};
    nanosleep(&t, NULL);
    int64_t d = (amp_now_ms() - wall) - (amp_mono_ms() - mono);
    return d < 0 ? -d : d;
}

static const char *ntp_fix(void)
{
    return doctor_fix("%stimedatectl set-ntp true", doctor_sudo());
}

static void check_ahead(const struct doctor *d)
{
    char path[PATH_MAX];
    struct stat st;
    struct amp_error err;
    int64_t now = amp_now_ms(), frame = 0;
    uint64_t first, last = 0;
    if (d->store && amp_store_range(d->store, &first, &last, &err) == 0 && last > 0 &&
        doctor_frame_time(d->store, last, &frame, &err) == 0 && frame > now + AHEAD_MS)
        doctor_say(DOCTOR_FAIL, ntp_fix(), NULL,
                   "the last line of the log is %lld s in the future: the clock was set back, and "
                   "deadlines come late",
                   (long long)(frame - now) / 1000);
    if (doctor_last_segment(d->dir, path) && stat(path, &st) == 0 &&
        (int64_t)st.st_mtim.tv_sec * 1000 > now + AHEAD_MS)
        doctor_say(DOCTOR_FAIL, ntp_fix(), NULL,
                   "the log was written %lld s in the future by the file system's time",
                   (long long)((int64_t)st.st_mtim.tv_sec - now / 1000));
}

void doctor_clock(struct doctor *d)
{
    struct timex tx = {.modes = 0};
    if (d->dir)
        check_ahead(d);
    int64_t jump = jump_ms();
    if (jump > JUMP_MS)
        doctor_say(DOCTOR_FAIL, "journalctl -n 50 -u '*ntp*' -u '*time*' # what sets it", NULL,
                   "the clock jumped by %lld ms within a tenth of a second", (long long)jump);
    int state = adjtimex(&tx);
    if (state == TIME_ERROR || (state >= 0 && tx.status & STA_UNSYNC))
        doctor_say(DOCTOR_WARN, ntp_fix(), NULL, "the clock is not synchronized");
    doctor_ok("the clock agrees with the log and is synchronized");
}

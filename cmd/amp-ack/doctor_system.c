/* What the doctor sees beside the state directory: programs, files with secrets, the guard, time.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/json/tape.h>

#include "doctor.h"
#include "protocol/redact/redact.h"
#include "worktree/hooks.h"

#define CONFIG_MAX  (1 << 20)
#define AHEAD_MS    2000 /* what a file system may round */
#define VERSION_SEC 10
#define TAIL_MAX    ((off_t)4 << 20)
#define JUMP_MS     50

/* ---- programs ---- */

/* The first line that a program says; false where it cannot be run or fails. */
static bool says(const char *const *argv, char out[160])
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

static unsigned check_helper(const char *name)
{
    char path[PATH_MAX], said[160], want[80];
    struct amp_error err;
    if (amp_helper_path(name, path, sizeof(path), &err) < 0 || access(path, X_OK) < 0) {
        doctor_say(DOCTOR_PEERS, DOCTOR_FAIL, "# install the toolkit again: make install",
                   "the helper %s is missing, or not executable", name);
        return 1;
    }
    snprintf(want, sizeof(want), "%s %s", name, AMP_VERSION);
    if (!says((const char *const[]){path, "--version", NULL}, said)) {
        doctor_say(DOCTOR_PEERS, DOCTOR_FAIL, "# install the toolkit again: make install",
                   "%s does not run", path);
        return 1;
    }
    if (strcmp(said, want) != 0) {
        doctor_say(DOCTOR_PEERS, DOCTOR_FAIL, "# install the toolkit again: make install",
                   "%s is of another version: %.100s, not %s", path, said, want);
        return 1;
    }
    return 0;
}

/* Whether a command can be started, as PATH says. */
static bool is_command(const char *name)
{
    char path[PATH_MAX * 2];
    const char *dirs = getenv("PATH");
    if (strchr(name, '/'))
        return access(name, X_OK) == 0;
    for (const char *p = dirs; p && *p;) {
        size_t n = strcspn(p, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)n, p, name);
        if (n > 0 && access(path, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* The command of a route's or an agent's port. */
static int port_fn(void *arg, const char *text, struct amp_error *err)
{
    unsigned *wrong = arg;
    char name[1024];
    const char *port = strstr(text, "=>");
    (void)err;
    port = port ? port + 2 : strchr(text, '=') ? strchr(text, '=') + 1 : text;
    port += strspn(port, " ");
    if (strncmp(port, "command:", 8) != 0 && strncmp(port, "exec-each:", 10) != 0)
        return 0;
    port = strchr(port, ':') + 1;
    port += strspn(port, " ");
    size_t n = strcspn(port, " ");
    snprintf(name, sizeof(name), "%.*s", (int)n, port);
    if (n > 0 && *port != '\'' && *port != '"' && !is_command(name)) {
        doctor_say(DOCTOR_PEERS, DOCTOR_FAIL, "# install it, or name it with its path",
                   "the command %s of a route is not found", name);
        ++*wrong;
    }
    return 0;
}

void doctor_peers(const char *dir)
{
    static const char *const helpers[] = {"jq-worker", "port-http", "git-worker", "state-worker",
                                          "branch-guard"};
    char git[160] = "";
    struct amp_error err;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++)
        wrong += check_helper(helpers[i]);
    if (!says((const char *const[]){"git", "--version", NULL}, git)) {
        doctor_say(DOCTOR_PEERS, DOCTOR_WARN,
                   geteuid() == 0 ? "apt-get install git" : "sudo apt-get install git",
                   "git is not found; agents work with it");
        wrong++;
    }
    static const char *const keys[] = {"route.routes", "route.agents"};
    for (size_t i = 0; i < 2; i++) {
        if (amp_config_values(doctor_opt.config, dir, keys[i], port_fn, &wrong, &err) < 0) {
            doctor_say(DOCTOR_PEERS, DOCTOR_FAIL, NULL, "amp.json: %s", err.what);
            wrong++;
            break;
        }
    }
    if (wrong == 0)
        doctor_say(DOCTOR_PEERS, DOCTOR_OK, NULL, "all helpers are of version %s; %s", AMP_VERSION,
                   git);
}

/* ---- files with secrets ---- */

/* Whether something in it is a secret by the same rules by which it would be redacted. */
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

/* always: it holds secrets by what it is for. */
static unsigned check_file(const char *path, bool always)
{
    char m[DOCTOR_FIX_MAX];
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    snprintf(m, sizeof(m), "chmod go= %s", doctor_quote(path));
    if (st.st_mode & 022) {
        doctor_say(DOCTOR_PERMISSIONS, DOCTOR_FAIL, m, "others may write %s (mode %o)", path,
                   (unsigned)st.st_mode & 0777);
        return 1;
    }
    if ((st.st_mode & 044) && (always || has_secrets(path))) {
        doctor_say(DOCTOR_PERMISSIONS, DOCTOR_FAIL, m, "others may read %s (mode %o), %s", path,
                   (unsigned)st.st_mode & 0777,
                   always ? "which is there for secrets" : "and a secret stands in it");
        return 1;
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        doctor_fix(m, "%schown %u %s", doctor_sudo(), (unsigned)geteuid(), doctor_quote(path));
        doctor_say(DOCTOR_PERMISSIONS, DOCTOR_FAIL, m, "%s belongs to user %u", path,
                   (unsigned)st.st_uid);
        return 1;
    }
    return 0;
}

/* Settings that would grant power, in a file that whoever writes to the state could change. */
static unsigned check_ignored(void)
{
    char m[3 * PATH_MAX + 128], parent[PATH_MAX];
    struct amp_config_files f = amp_config_files();
    if (f.ignored.n == 0)
        return 0;
    const char *from = doctor_quote(f.state_path), *to = doctor_quote(f.user_path);
    const char *slash = strrchr(f.user_path, '/');
    snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - f.user_path) : 0, f.user_path);
    /* All of it can move where nothing there belongs to the state directory. */
    if (slash && f.user.n == 0 && !memmem(f.state.p, f.state.n, "\"store\"", 7))
        snprintf(m, sizeof(m), "mkdir -p %s && mv -n %s %s", doctor_quote(parent), from, to);
    else
        snprintf(m, sizeof(m), "${EDITOR:-vi} %s %s", from, to);
    doctor_say(DOCTOR_PERMISSIONS, DOCTOR_WARN, m,
               "%s: ignored: %.*s; only settings of storage and display are read from a state "
               "directory",
               f.state_path, (int)f.ignored.n, f.ignored.p);
    return 1;
}

void doctor_permissions(const char *dir, int n_files, char **files)
{
    char path[PATH_MAX];
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
    unsigned wrong = 0;
    if (doctor_opt.config)
        wrong += check_file(doctor_opt.config, false);
    snprintf(path, sizeof(path), "%s%s/amp/amp.json",
             xdg    ? xdg
             : home ? home
                    : "",
             xdg ? "" : "/.config");
    wrong += check_file(path, false);
    if (dir) {
        snprintf(path, sizeof(path), "%s/amp.json", dir);
        wrong += check_file(path, false);
    }
    wrong += check_ignored();
    for (int i = 0; i < n_files; i++)
        wrong += check_file(files[i], true);
    if (wrong == 0)
        doctor_say(DOCTOR_PERMISSIONS, DOCTOR_OK, NULL, "no secret lies open");
}

/* ---- the guard ---- */

struct guard {
    const char *repo;
    const struct amp_hooks *hooks;
    unsigned wrong;
};

static void hook_fn(void *ctx, const struct amp_hook_finding *f)
{
    struct guard *g = ctx;
    char m[DOCTOR_FIX_MAX];
    const char *dir = amp_hooks_where_git_looks(g->hooks);
    if (strcmp(f->code, "relative_hooks_path") == 0) {
        int n = snprintf(m, sizeof(m), "git -C %s config core.hooksPath ", doctor_quote(g->repo));
        snprintf(m + n, sizeof(m) - (size_t)n, "%s", doctor_quote(dir));
    } else {
        int n =
            snprintf(m, sizeof(m), "worktree-bind hooks install --repo %s", doctor_quote(g->repo));
        if (g->hooks->foreign[0])
            snprintf(m + n, sizeof(m) - (size_t)n, " --hooks-dir %s", doctor_quote(dir));
    }
    g->wrong++;
    doctor_say(DOCTOR_HOOKS, f->severity == AMP_HOOK_ERROR ? DOCTOR_FAIL : DOCTOR_WARN, m,
               "%s: %s: %s", f->path, f->code, f->what);
}

static void check_guard(struct amp_git *g, const char *repo)
{
    char m[DOCTOR_FIX_MAX], path[PATH_MAX + 16], program[PATH_MAX];
    struct amp_hooks h = {.server = false};
    struct amp_git_info info;
    struct amp_error err;
    struct guard found = {.repo = repo, .hooks = &h};
    snprintf(m, sizeof(m), "worktree-bind hooks install --repo %s", doctor_quote(repo));
    if (amp_git_info(g, repo, &info, &err) < 0 || amp_hooks_find(g, repo, NULL, &h, &err) < 0) {
        bool none = strcmp(err.code, "repo_not_git") == 0 && !doctor_opt.repo;
        if (strcmp(err.code, "repo_not_git") == 0)
            snprintf(m, sizeof(m), "git init %s", doctor_quote(repo));
        doctor_say(DOCTOR_HOOKS, none ? DOCTOR_OK : DOCTOR_FAIL, none ? NULL : m, "%s",
                   none ? "no repository here (--repo)" : err.what);
        return;
    }
    snprintf(path, sizeof(path), "%s/amp/guard", h.common);
    if (access(path, F_OK) < 0) {
        doctor_say(DOCTOR_HOOKS, doctor_opt.repo ? DOCTOR_WARN : DOCTOR_OK,
                   doctor_opt.repo ? m : NULL, "no guard is installed in %s", h.common);
        return;
    }
    snprintf(path, sizeof(path), "%s/update", amp_hooks_where_git_looks(&h));
    h.server = info.bare && access(path, F_OK) == 0;
    bool known = amp_helper_path(AMP_HOOK_PROGRAM, program, sizeof(program), NULL) == 0;
    if (amp_hooks_check(&h, known ? program : NULL, getenv("PATH"), hook_fn, &found, &err) < 0)
        doctor_say(DOCTOR_HOOKS, DOCTOR_FAIL, m, "%s", err.what);
    else if (found.wrong == 0)
        doctor_say(DOCTOR_HOOKS, DOCTOR_OK, NULL, "the guard of %s is whole", h.common);
}

void doctor_hooks(void)
{
    struct amp_git *g;
    struct amp_error err;
    if (amp_git_open(NULL, &g, &err) < 0) {
        doctor_say(DOCTOR_HOOKS, DOCTOR_FAIL, NULL, "%s", err.what);
        return;
    }
    check_guard(g, doctor_opt.repo ? doctor_opt.repo : ".");
    amp_git_close(g);
}

/* ---- time ---- */

/* The newest segment's last whole frame is at the latest as old as this. */
static int64_t last_frame(const char *dir)
{
    char path[PATH_MAX];
    AMP_BUF struct amp_buf part = {0}, arena = {0};
    int64_t at_ms = 0;
    struct amp_span at;
    amp_buf_init(&part, TAIL_MAX + 1);
    amp_buf_init(&arena, 4096);
    if (!doctor_last_segment(dir, path) || amp_buf_reserve(&part, TAIL_MAX, NULL) < 0)
        return 0;
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, path, O_RDONLY, 0, NULL);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    off_t from = size > TAIL_MAX ? size - TAIL_MAX : 0;
    ssize_t n = fd < 0 ? 0 : pread(fd, part.data, TAIL_MAX, from);
    struct amp_tape t;
    struct amp_json_fault fault;
    amp_tape_init(&t, NULL);
    while (n > 0 && part.data[n - 1] != '\n') /* a torn line */
        n--;
    while (n > 1 && at_ms == 0) {
        const char *nl = memrchr(part.data, '\n', (size_t)n - 1);
        const char *line = nl ? nl + 1 : part.data;
        if (amp_tape_scan(&t, line, (size_t)(part.data + n - line), &fault) == 0) {
            uint32_t tok = amp_tape_get(&t, 0, AMP_SPAN("at"));
            if (tok != AMP_TOK_NONE && amp_tok_text(&t, tok, &arena, &at, NULL) == 0)
                amp_time_parse(at, &at_ms);
        }
        n = line - part.data;
    }
    amp_tape_release(&t);
    return at_ms;
}

/* How far the wall's clock and the other one went apart within a short time. */
static int64_t jump_ms(void)
{
    int64_t wall = amp_now_ms(), mono = amp_mono_ms();
    struct timespec t = {.tv_nsec = 100000000};
    nanosleep(&t, NULL);
    int64_t d = (amp_now_ms() - wall) - (amp_mono_ms() - mono);
    return d < 0 ? -d : d;
}

static const char *set_ntp(void)
{
    return geteuid() == 0 ? "timedatectl set-ntp true" : "sudo timedatectl set-ntp true";
}

static unsigned check_ahead(const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    int64_t now = amp_now_ms(), frame = last_frame(dir);
    unsigned wrong = 0;
    if (frame > now + AHEAD_MS) {
        doctor_say(DOCTOR_CLOCK, DOCTOR_FAIL, set_ntp(),
                   "the last line of the log is %lld s in the future: the clock was set back, and "
                   "deadlines come late",
                   (long long)(frame - now) / 1000);
        wrong++;
    }
    if (doctor_last_segment(dir, path) && stat(path, &st) == 0 &&
        (int64_t)st.st_mtim.tv_sec * 1000 > now + AHEAD_MS) {
        doctor_say(DOCTOR_CLOCK, DOCTOR_FAIL, set_ntp(),
                   "the log was written %lld s in the future by the file system's time",
                   (long long)((int64_t)st.st_mtim.tv_sec - now / 1000));
        wrong++;
    }
    return wrong;
}

void doctor_clock(const char *dir)
{
    struct timex tx = {.modes = 0};
    unsigned wrong = dir ? check_ahead(dir) : 0;
    int64_t jump = jump_ms();
    if (jump > JUMP_MS) {
        doctor_say(DOCTOR_CLOCK, DOCTOR_FAIL,
                   "journalctl -n 50 -u '*ntp*' -u '*time*' # what sets it",
                   "it jumped by %lld ms within a tenth of a second", (long long)jump);
        wrong++;
    }
    int state = adjtimex(&tx);
    if (state == TIME_ERROR || (state >= 0 && tx.status & STA_UNSYNC)) {
        doctor_say(DOCTOR_CLOCK, DOCTOR_WARN, set_ntp(), "it is not synchronised with any other");
        wrong++;
    }
    if (wrong == 0)
        doctor_say(DOCTOR_CLOCK, DOCTOR_OK, NULL, "it agrees with the log and is synchronised");
}

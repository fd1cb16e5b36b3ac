/*
 * open(2) for this program and for the library: the dynamic linker prefers a program's definition
 * to libc's. The library opens every file with a name of git (.gitignore, .git/config, HEAD, a
 * loose ref), and an agent could have put anything there. This open never blocks, opens only
 * regular files and directories, follows no link to a file of a repository, and reads the
 * configuration of a repository without the sections that include other files.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "worker.h"

#define CONFIG_MAX  (8u << 20)
#define ROOTS_MAX   3
#define SEARCH_DIRS 8

static char refused[4096];

const char *open_refused(void)
{
    return refused[0] ? refused : NULL;
}

void open_refused_clear(void)
{
    refused[0] = '\0';
}

/* Devices that the libraries open. */
static bool is_system(const char *path)
{
    return strcmp(path, "/dev/null") == 0 || strcmp(path, "/dev/urandom") == 0 ||
           strcmp(path, "/dev/random") == 0;
}

static char roots[ROOTS_MAX][4096];
static char search[SEARCH_DIRS][4096]; /* where the configuration of this user and system is */

void open_guard(const char *repo, const char *worktree, const char *path)
{
    const char *const given[ROOTS_MAX] = {repo, worktree, path};
    for (int i = 0; i < ROOTS_MAX; i++)
        amp_span_copy(amp_span_str(given[i] && given[i][0] == '/' ? given[i] : ""), roots[i],
                      sizeof roots[i]);
}

void open_init(void)
{
    static const int levels[] = {GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG,
                                 GIT_CONFIG_LEVEL_GLOBAL, GIT_CONFIG_LEVEL_PROGRAMDATA};
    int n = 0;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        git_buf dirs = {0};
        if (git_libgit2_opts(GIT_OPT_GET_SEARCH_PATH, levels[i], &dirs) == 0)
            for (const char *p = dirs.ptr; p && *p && n < SEARCH_DIRS;) {
                size_t len = strcspn(p, ":"), kept = len;
                while (kept > 1 && p[kept - 1] == '/')
                    kept--;
                n += kept && amp_span_copy((struct amp_span){p, kept}, search[n], sizeof search[n]);
                p += len + (p[len] == ':');
            }
        git_buf_dispose(&dirs);
    }
}

bool open_has_attributes(void)
{
    static const char *const names[] = {"gitattributes", "attributes"};
    char path[sizeof search[0] + 16];
    for (int i = 0; i < 2 * SEARCH_DIRS; i++) {
        snprintf(path, sizeof path, "%s/%s", search[i / 2], names[i % 2]);
        if (search[i / 2][0] && access(path, F_OK) == 0)
            return true;
    }
    return false;
}

/* Whether a path is a file of a repository or worktree, which an agent could write. */
static bool is_repositorys(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t dir = slash ? (size_t)(slash - path) : 0;
    for (int i = 0; i < SEARCH_DIRS; i++)
        if (dir && strlen(search[i]) == dir && strncmp(search[i], path, dir) == 0)
            return false;
    for (int i = 0; i < ROOTS_MAX; i++) {
        size_t n = strlen(roots[i]);
        if (n && strncmp(path, roots[i], n) == 0 && (path[n] == '/' || path[n] == '\0'))
            return true;
    }
    const char *git = strstr(path, "/.git");
    while (git && git[5] != '/' && git[5] != '\0')
        git = strstr(git + 1, "/.git");
    return git != NULL;
}

static bool is_config(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && (strcmp(slash, "/config") == 0 || strcmp(slash, "/config.worktree") == 0);
}

/* Whether a section that includes other files begins here. */
static bool begins_include(const char *p, const char *end)
{
    static const char word[] = "include";
    for (p++; p < end && isspace((unsigned char)*p); p++)
        ;
    size_t i = 0;
    while (i < sizeof word - 1 && p + i < end && tolower((unsigned char)p[i]) == word[i])
        i++;
    return i == sizeof word - 1;
}

/* Overwrites such sections with comments. The length stays, because the library reads as many bytes
 * as the file has. */
static void includes_blank(char *text, size_t n)
{
    bool blank = false, line_start = true;
    for (char *p = text; p < text + n; p++) {
        if (*p == '[' && (line_start || !blank))
            blank = begins_include(p, text + n);
        line_start = *p == '\n' || (line_start && isspace((unsigned char)*p));
        if (blank && *p != '\n')
            *p = '#';
    }
}

/* Replaces the descriptor of a configuration by one without includes. */
static int config_open(int fd)
{
    AMP_BUF struct amp_buf text = {0};
    char self[32];
    struct amp_error err;
    int copy = -1;
    amp_buf_init(&text, CONFIG_MAX + 1);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (amp_file_read(AT_FDCWD, self, CONFIG_MAX, &text, &err) == 0) {
        includes_blank(text.data, text.len);
        copy = memfd_create("config", MFD_CLOEXEC);
        if (copy >= 0 &&
            (amp_write_all(copy, amp_buf_span(&text), &err) < 0 || lseek(copy, 0, SEEK_SET) != 0)) {
            close(copy);
            copy = -1;
        }
    }
    close(fd);
    if (copy < 0)
        errno = EINVAL;
    return copy;
}

int worker_open(const char *path, int flags, ...) __asm__("open");
int worker_open(const char *path, int flags, ...)
{
    struct stat st;
    mode_t mode = 0;
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list ap;
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    bool repositorys = is_repositorys(path);
    if (repositorys)
        flags |= O_NOFOLLOW;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_NONBLOCK | O_NOCTTY, mode);
    if (fd < 0 && errno != ENXIO && !(repositorys && errno == ELOOP))
        return fd;
    bool known = fd >= 0 && fstat(fd, &st) == 0;
    if (known && repositorys && S_ISREG(st.st_mode) && (flags & O_ACCMODE) == O_RDONLY &&
        is_config(path))
        return config_open(fd);
    if (known &&
        (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || (flags & O_PATH) || is_system(path)))
        return fd;
    if (fd >= 0)
        close(fd);
    amp_span_copy(amp_span_str(path), refused, sizeof refused);
    errno = EINVAL;
    return -1;
}

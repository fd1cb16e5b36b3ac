/*
 * attempts: tries to get out of a confinement.
 *
 *   attempts world DIR TREE [WORD...]   the processes and sockets outside; writes TREE/.facts; runs
 * until the end of its standard input attempts run TREE          tries everything; prints
 * "NAME<tab>STATUS<tab>PROOF" for each attempts judge TREE TOKEN  outside, with that output as its
 * input: prints "NAME works" or "NAME stopped" for each attempts list "NAME<tab>LEVELS<tab>WHAT"
 * for each
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "escape.h"

#define ATTEMPT_MS 10000

static const struct attempt *const groups[] = {file_attempts, process_attempts, kernel_attempts,
                                               git_attempts,  net_attempts,     limit_attempts};
enum { GROUPS = sizeof groups / sizeof *groups };

const char *at(const char *dir, const char *rest)
{
    static char ring[8][600];
    static unsigned next;
    char *p = ring[next++ % 8];
    snprintf(p, sizeof ring[0], "%s/%s", dir, rest);
    return p;
}

int slurp(const char *path, char out[PROOF_MAX])
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, out, PROOF_MAX - 1);
    int rc = n < 0 ? -errno : 0;
    out[n < 0 ? 0 : n] = '\0';
    close(fd);
    return rc;
}

int spill(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int rc = write(fd, text, strlen(text)) < 0 ? -errno : 0;
    close(fd);
    return rc;
}

int shell(const char *script, const struct world *w)
{
    int status;
    pid_t pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        setenv("DIR", w->dir, 1);
        setenv("TREE", w->tree, 1);
        dup2(null, 0);
        dup2(null, 1);
        if (!getenv("ESCAPE_DEBUG"))
            dup2(null, 2);
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

bool marked(const char *path, const char *text)
{
    char all[1 << 16];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, all, sizeof all);
    close(fd);
    return n > 0 && memmem(all, (size_t)n, text, strlen(text)) != NULL;
}

static int facts_read(const char *tree, struct world *w)
{
    memset(w, 0, sizeof *w);
    snprintf(w->tree, sizeof w->tree, "%s", tree);
    FILE *f = fopen(at(tree, ".facts"), "re");
    if (!f)
        return -1;
    int n = fscanf(f, "%255s %63s %d %d %d %lu %d %d %d %d %d", w->dir, w->abstract, &w->pid,
                   &w->fd, &w->fifo_fd, &w->addr, &w->tcp, &w->udp, &w->tcp6, &w->shm, &w->dev);
    fclose(f);
    return n == 11 ? 0 : -1;
}

struct result {
    int rc;
    char proof[PROOF_MAX];
};

/* Each in a process of its own, so that none changes the next. */
static void attempt_run(const struct attempt *a, const struct world *w, struct result *r)
{
    int p[2], status = 0;
    *r = (struct result){.rc = -EAGAIN};
    if (pipe2(p, O_CLOEXEC) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        struct result mine = {0};
        mine.rc = a->run(w, mine.proof);
        ssize_t n = write(p[1], &mine, sizeof mine);
        _exit(n == (ssize_t)sizeof mine ? 0 : 1);
    }
    close(p[1]);
    if (pid < 0) {
        close(p[0]);
        return;
    }
    struct pollfd wait = {p[0], POLLIN, 0};
    bool late = poll(&wait, 1, ATTEMPT_MS) <= 0;
    if (late || read(p[0], r, sizeof *r) != (ssize_t)sizeof *r)
        r->rc = late ? -ETIMEDOUT : -ECHILD; /* killed */
    close(p[0]);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

static void result_print(const struct attempt *a, const struct result *r)
{
    char safe[PROOF_MAX];
    size_t n = 0;
    for (; n < PROOF_MAX - 1 && r->proof[n]; n++)
        safe[n] = r->proof[n] < ' ' || r->proof[n] > '~' ? '.' : r->proof[n];
    safe[n] = '\0';
    printf("%s\t%d\t%s\n", a->name, r->rc, safe);
    fflush(stdout);
}

static const struct attempt *attempt_find(const char *name)
{
    for (int g = 0; g < GROUPS; g++)
        for (const struct attempt *a = groups[g]; a->name; a++)
            if (strcmp(a->name, name) == 0)
                return a;
    return NULL;
}

static int run(const struct world *w, char **only)
{
    struct result r;
    for (int g = 0; g < GROUPS; g++)
        for (const struct attempt *a = groups[g]; a->name; a++) {
            bool wanted = !*only;
            for (char **o = only; *o; o++)
                wanted = wanted || strcmp(*o, a->name) == 0;
            if (!wanted)
                continue;
            attempt_run(a, w, &r);
            result_print(a, &r);
        }
    return 0;
}

static int judge(const struct world *w, const char *token)
{
    char line[1024];
    int n = 0;
    while (fgets(line, sizeof line, stdin)) {
        char *name = strtok(line, "\t"), *rc = strtok(NULL, "\t"), *proof = strtok(NULL, "\n");
        const struct attempt *a = name ? attempt_find(name) : NULL;
        if (!a || !rc)
            continue;
        long status = strtol(rc, NULL, 10);
        bool works = a->judge   ? a->judge(w)
                     : a->reads ? proof && strstr(proof, token) != NULL
                                : status >= 0;
        printf("%s %s %s\n", a->name, works ? "works" : "stopped",
               works || status >= 0 ? "-" : strerror((int)-status));
        n++;
    }
    return n ? 0 : 1;
}

static int pty(char **command)
{
    int status, main_end = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (main_end < 0 || grantpt(main_end) != 0 || unlockpt(main_end) != 0)
        return 70;
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        int end = open(ptsname(main_end), O_RDWR | O_CLOEXEC); /* becomes its terminal */
        if (end < 0 || dup2(end, STDIN_FILENO) < 0)
            _exit(70);
        execvp(command[0], command);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    struct world w;
    if (argc >= 4 && strcmp(argv[1], "world") == 0)
        return world_main(argv[2], argv[3]);
    if (argc >= 3 && strcmp(argv[1], "run") == 0)
        return facts_read(argv[2], &w) < 0 ? 2 : run(&w, argv + 3);
    if (argc == 4 && argv[3][0] && strcmp(argv[1], "judge") == 0)
        return facts_read(argv[2], &w) < 0 ? 2 : judge(&w, argv[3]);
    if (argc >= 3 && strcmp(argv[1], "pty") == 0)
        return pty(argv + 2);
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        static const char *const levels[] = {"none", "full", "landlock", "full,landlock"};
        for (int g = 0; g < GROUPS; g++)
            for (const struct attempt *a = groups[g]; a->name; a++)
                printf("%s\t%s\t%s\n", a->name, levels[a->stops], a->what);
        return 0;
    }
    fprintf(stderr, "usage: attempts world DIR TREE | run TREE [NAME...] | judge TREE TOKEN |"
                    " pty COMMAND... | list\n");
    return 64;
}

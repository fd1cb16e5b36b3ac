/* Finds what can be enforced on this machine: each part is set up in a process of its own, exactly
 * as for a command. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amp/json/writer.h>

#include "confine.h"

/* Runs the setup in a child; true: it worked. why gets the reason otherwise. */
static bool try_plan(struct plan p, char *why, size_t size)
{
    int report[2];
    char text[600];
    if (pipe(report) < 0)
        return false;
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        close(report[0]);
        p.status_fd = report[1];
        _exit(outer_run(&p));
    }
    close(report[1]);
    ssize_t n = pid < 0 ? -1 : read(report[0], text, sizeof text - 1);
    int status = 1;
    close(report[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return false;
    text[n > 0 ? n : 0] = '\0';
    /* "STATUS CODE TEXT" */
    const char *at = strchr(text, ' ');
    at = at ? strchr(at + 1, ' ') : NULL;
    if (why)
        snprintf(why, size, "%s", at ? at + 1 : "");
    return status == 0;
}

/* Whether uid 0, which is exempt from RLIMIT_NPROC, can be limited in a namespace. */
static bool processes_limited(bool namespaces)
{
    return namespaces && (geteuid() != 0 || root_pids_limited());
}

int probe_run(void)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_jw w;
    char why[512] = "";
    const struct plan none = {.probe = true, .status_fd = -1, .gate_fd = -1};
    struct plan namespaces = none, filter = none, files = none, all;
    if (chdir("/") < 0) /* every sandbox has it */
        return 74;
    namespaces.namespaces = true;
    namespaces.home = "/var/home";
    filter.seccomp = true;
    files.landlock = true;
    all = namespaces;
    all.seccomp = all.landlock = true;
    /* If everything works, one trial is enough. */
    bool works = try_plan(all, NULL, 0);
    bool landlock = works || (landlock_abi() > 0 && try_plan(files, NULL, 0));
    bool seccomp = works || try_plan(filter, NULL, 0);
    bool rooms = works || try_plan(namespaces, why, sizeof why);
    amp_buf_init(&out, 4096);
    amp_jw_init(&w, &out);
    amp_jw_open(&w, '{');
    amp_jw_member_bool(&w, "namespaces", rooms);
    amp_jw_member_bool(&w, "processes", processes_limited(rooms));
    amp_jw_member_int(&w, "landlock", landlock ? landlock_abi() : 0);
    amp_jw_member_bool(&w, "seccomp", seccomp);
    amp_jw_member_text(&w, "why", why);
    amp_jw_close(&w, '}');
    if (amp_jw_end_line(&w, NULL) < 0)
        return 75;
    return write(STDOUT_FILENO, out.data, out.len) == (ssize_t)out.len ? 0 : 74;
}

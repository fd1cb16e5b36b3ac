/* Other processes, read from /proc; the descendants of a child. */
#include "base/process/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/num.h>

#include "base/grow.h"

bool amp_process_environ(pid_t pid, struct amp_buf *out)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    AMP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    amp_buf_reset(out);
    while (fd >= 0 && !amp_buf_reserve(out, 65536, NULL)) {
        ssize_t n = read(fd, out->data + out->len, 65536);
        if (n <= 0)
            return n == 0 && out->len;
        out->len += (size_t)n;
    }
    return false;
}

bool amp_environ_get(struct amp_span env, const char *name, struct amp_span *value)
{
    size_t n = strlen(name);

    for (size_t at = 0; at < env.n;) {
        const char *entry = env.p + at;
        size_t len = strnlen(entry, env.n - at);
        if (len > n && !memcmp(entry, name, n) && entry[n] == '=') {
            *value = (struct amp_span){entry + n + 1, len - n - 1};
            return true;
        }
        at += len + 1;
    }
    return false;
}

pid_t amp_process_parent(pid_t pid)
{
    char path[64];
    AMP_BUF struct amp_buf b = {0};
    int64_t parent = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    amp_buf_init(&b, 65536);
    if (amp_file_read(AT_FDCWD, path, 65536, &b, NULL) || !b.len)
        return 0;
    const char *at = memmem(b.data, b.len, "\nPPid:\t", 7);
    if (at)
        amp_num_parse((struct amp_span){at + 7, strspn(at + 7, "0123456789")}, 0, 1 << 30, &parent,
                      NULL);
    return (pid_t)parent;
}

int64_t amp_process_started(pid_t pid)
{
    enum { STATE = 3, STARTED = 22 };
    char path[64];
    AMP_BUF struct amp_buf b = {0};
    int64_t ticks = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    amp_buf_init(&b, 65536);
    if (amp_file_read(AT_FDCWD, path, 65536, &b, NULL) || !b.len)
        return 0;
    /* The name may have spaces and parentheses. */
    const char *at = memrchr(b.data, ')', b.len), *end = b.data + b.len;
    if (!at || end - at < 3 || at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = STATE - 1; at && field < STARTED; field++) {
        at = memchr(at, ' ', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    size_t n = 0;
    while (at && at + n < end && at[n] >= '0' && at[n] <= '9')
        n++;
    return n > 0 && amp_num_parse((struct amp_span){at, n}, 0, INT64_MAX, &ticks, NULL) == 0 ? ticks
                                                                                             : 0;
}

/* ---- descendants: a process belongs to the tree of child C if it descends from C, has C's session
 * or group, or is an orphan whose parent became this process (the subreaper) while no other living
 * child owns a tree. A daemon that forked twice and left its session is such an orphan. ---- */

static struct known {
    pid_t pid;
    bool owns_tree;
} * known;
static size_t known_n, known_cap;

int amp_child_tree_know(pid_t pid, bool owns_tree, struct amp_error *err)
{
    if (amp_grow(&known, &known_cap, known_n, sizeof *known, err) < 0)
        return -1;
    known[known_n++] = (struct known){pid, owns_tree};
    return 0;
}

void amp_child_tree_forget(pid_t pid)
{
    for (size_t i = 0; i < known_n; i++)
        if (known[i].pid == pid)
            known[i] = known[--known_n];
    if (known_n == 0) {
        free(known);
        known = NULL;
        known_cap = 0;
    }
}

static bool is_known(pid_t pid)
{
    for (size_t i = 0; i < known_n; i++)
        if (known[i].pid == pid)
            return true;
    return false;
}

struct process {
    pid_t pid, parent, group, session;
    bool zombie, ours;
};

struct processes {
    struct process *v;
    size_t n, cap;
};

static bool read_process(const char *name, struct process *out)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%.10s/stat", name);
    AMP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    /* The name in parentheses may contain any character; the fields are after the last ")". */
    const char *p = strrchr(text, ')');
    char state;
    int parent, group, session;
    if (!p || sscanf(p + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4)
        return false;
    *out = (struct process){
        .pid = (pid_t)strtol(name, NULL, 10),
        .parent = parent,
        .group = group,
        .session = session,
        .zombie = state == 'Z' || state == 'X',
    };
    return true;
}

static int list_processes(struct processes *list)
{
    DIR *d = opendir("/proc");
    if (!d)
        return -1;
    struct dirent *e;
    while ((e = readdir(d))) {
        struct process p;
        if (!isdigit((unsigned char)e->d_name[0]) || !read_process(e->d_name, &p))
            continue;
        if (amp_grow(&list->v, &list->cap, list->n, sizeof *list->v, NULL) < 0)
            break; /* signal these now, the others in the next round */
        list->v[list->n++] = p;
    }
    closedir(d);
    return 0;
}

/* Adds the children that a thread started or adopted. false: this kernel does not tell them. */
static bool list_thread_children(const char *path, struct processes *list)
{
    AMP_BUF struct amp_buf text = {.max = 16 << 20};
    struct process p;
    char *rest = NULL;

    if (amp_file_read(AT_FDCWD, path, text.max - 1, &text, NULL) < 0 ||
        amp_buf_add(&text, "", 1, NULL) < 0)
        return false;
    for (char *name = strtok_r(text.data, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        if (read_process(name, &p)) {
            if (amp_grow(&list->v, &list->cap, list->n, sizeof *list->v, NULL) < 0)
                return false;
            list->v[list->n++] = p;
        }
    return true;
}

static bool list_children(pid_t pid, struct processes *list)
{
    char path[600];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    bool told = d != NULL;
    struct dirent *e;
    while (told && (e = readdir(d))) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, e->d_name);
        told = !isdigit((unsigned char)e->d_name[0]) || list_thread_children(path, list);
    }
    if (d)
        closedir(d);
    return told;
}

/* Lists the descendants of this process alone, which takes no look at every process of the machine.
 * Its own children are all there, as it reaps them itself; of the children of a living one, some
 * that are started or end at the same time may be missing. */
static bool list_descendants(struct processes *list)
{
    bool told = list_children(getpid(), list);
    for (size_t i = 0; told && i < list->n; i++)
        list_children(list->v[i].pid, list); /* it may have ended */
    return told;
}

int amp_process_descendants(pid_t **out, size_t *n, struct amp_error *err)
{
    struct processes list = {0};
    bool told = list_descendants(&list);
    *n = 0;
    *out = told ? calloc(list.n + 1, sizeof **out) : NULL;
    for (size_t i = 0; *out && i < list.n; i++)
        if (!list.v[i].zombie)
            (*out)[(*n)++] = list.v[i].pid;
    free(list.v);
    return *out ? 0 : told ? amp_fail_memory(err) : 1;
}

/* Whether an orphan may belong to another child; then it is not signalled until that one ends. */
static bool others_own_trees(pid_t root)
{
    for (size_t i = 0; i < known_n; i++)
        if (known[i].owns_tree && known[i].pid != root)
            return true;
    return false;
}

static void mark_tree(struct processes *list, pid_t root)
{
    pid_t self = getpid();
    bool orphans = !others_own_trees(root);
    for (size_t i = 0; i < list->n; i++) {
        struct process *p = &list->v[i];
        p->ours = p->pid == root || p->session == root || p->group == root ||
                  (orphans && p->parent == self && !is_known(p->pid));
    }
    /* Descendants of a process of the tree belong to it, to any depth. */
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < list->n; i++) {
            struct process *p = &list->v[i];
            for (size_t j = 0; !p->ours && j < list->n; j++)
                if (list->v[j].ours && list->v[j].pid == p->parent && p->pid != self)
                    p->ours = more = true;
        }
    }
}

int amp_child_tree_signal(pid_t root, int sig)
{
    struct processes list = {0};
    /* Every process of the tree descends from this one, the subreaper. KILL is repeated until none
     * is left, so another round finds what the quick look lacked. */
    if (sig != SIGKILL || !list_descendants(&list)) {
        list.n = 0;
        if (list_processes(&list)) {
            free(list.v);
            return 0;
        }
    }
    mark_tree(&list, root);
    int living = 0;
    pid_t self = getpid();
    for (size_t i = 0; i < list.n; i++) {
        struct process *p = &list.v[i];
        /* An orphan that has ended is waited for, whosever it was. */
        if (p->zombie && p->parent == self && !is_known(p->pid))
            waitpid(p->pid, NULL, WNOHANG);
        if (!p->ours || p->pid == self || p->zombie)
            continue;
        living++;
        kill(p->pid, sig);
    }
    free(list.v);
    return living;
}

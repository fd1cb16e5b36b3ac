/*
 * Crash images from a trace, each recovered by the store.
 *
 * replay TRACE WORKDIR STORETOOL SEED IMAGES|each
 *
 * So many images, each of a crash at a point that the seed chooses; or for each sync two, just
 * before it and just after it.
 *
 * An image is the directory as it could stand after a power loss at some point of the trace: all
 * that was synced before it, and of the rest a subset chosen by the seed: each 4 KiB page of each
 * write, each truncation, each change of a directory for itself; a file's size may have grown
 * without its data. Then `STORETOOL IMAGE check` must find every id that was acknowledged by then.
 * Prints what failed, and in how many images the index was damaged, so that the store made a new
 * one; the exit status is 0 when nothing was lost, 1 when something was, 2 when
 * the trace or the machine is at fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/num.h>

#include "trace.h"

enum { PAGE = 4096, NAMES_MAX = 4096, FILES_MAX = 4096 };

struct op {
    struct trace_record r;
    const char *path, *path2, *data;
    int file; /* index of the file object, -1 none */
};

struct name {
    char path[256];
    int file; /* -1: a directory */
};

struct content {
    char *p;
    size_t n, cap;
};

static struct op *ops;
static size_t n_ops;
static int n_files;
static struct name names[NAMES_MAX];
static int n_names;
static uint64_t rng;

static void die(const char *what)
{
    fprintf(stderr, "replay: %s\n", what);
    exit(2);
}

static uint64_t dice(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng * 0x2545f4914f6cdd1dull >> 16;
}

static bool chance(unsigned percent)
{
    return dice() % 100 < percent;
}

/* Gives every file that the trace makes a number; an inode's number may be used again. */
static void number_files(void)
{
    static struct {
        unsigned long long ino;
        int file;
    } known[FILES_MAX];
    int n = 0;
    for (size_t i = 0; i < n_ops; i++) {
        struct op *o = &ops[i];
        o->file = -1;
        if (!o->r.ino || o->r.op == TRACE_SYNC_DIR || o->r.op == TRACE_MKDIR)
            continue;
        int k = n - 1;
        while (k >= 0 && known[k].ino != o->r.ino)
            k--;
        if (k < 0 || o->r.op == TRACE_CREATE) {
            if (n == FILES_MAX)
                die("too many files");
            k = n++;
            known[k].ino = o->r.ino;
            known[k].file = n_files++;
        }
        o->file = known[k].file;
    }
}

static void load(const char *path)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_error err;
    amp_buf_init(&b, 1u << 30);
    if (amp_file_read(AT_FDCWD, path, 1u << 30, &b, &err) != 0)
        die(err.what);
    char *text = malloc(b.len + 1);
    if (!text)
        die("no memory");
    memcpy(text, b.data, b.len);
    for (size_t at = 0; at < b.len;) {
        if (n_ops % 1024 == 0 && !(ops = realloc(ops, (n_ops + 1024) * sizeof *ops)))
            die("no memory");
        struct op *o = &ops[n_ops++];
        if (b.len - at < sizeof o->r)
            die("the trace ends within a record");
        memcpy(&o->r, text + at, sizeof o->r);
        at += sizeof o->r;
        o->path = text + at;
        at += o->r.n_path;
        o->path2 = text + at;
        at += o->r.n_path2;
        o->data = text + at;
        at += o->r.n;
        if (at > b.len)
            die("the trace ends within a record");
    }
    number_files();
}

static void grow(struct content *c, size_t n)
{
    if (n > c->cap) {
        c->cap = n * 2;
        if (!(c->p = realloc(c->p, c->cap)))
            die("no memory");
    }
    if (n > c->n) {
        memset(c->p + c->n, 0, n - c->n);
        c->n = n;
    }
}

/* One write: whole when it was synced, else page by page as the dice fall. */
static void apply_write(struct content *c, const struct op *o, bool durable, unsigned keep)
{
    size_t off = (size_t)o->r.off, end = off + o->r.n;
    for (size_t at = off; at < end;) {
        size_t stop = (at / PAGE + 1) * PAGE < end ? (at / PAGE + 1) * PAGE : end;
        if (durable || chance(keep)) {
            grow(c, stop);
            memcpy(c->p + at, o->data + (at - off), stop - at);
        } else if (chance(keep / 2)) {
            grow(c, stop); /* the size came to the disk, the data did not */
        }
        at = stop;
    }
}

static void apply_truncate(struct content *c, size_t size)
{
    if (size > c->n)
        grow(c, size);
    c->n = size;
}

/* The file's bytes after a crash before op t. */
static void build_content(struct content *c, int file, size_t t, unsigned keep)
{
    size_t synced = 0;
    c->n = 0;
    for (size_t i = 0; i < t; i++)
        if (ops[i].file == file && ops[i].r.op == TRACE_SYNC)
            synced = i;
    for (size_t i = 0; i < t; i++) {
        if (ops[i].file != file)
            continue;
        if (ops[i].r.op == TRACE_WRITE)
            apply_write(c, &ops[i], i < synced, keep);
        else if (ops[i].r.op == TRACE_TRUNCATE && (i < synced || chance(keep)))
            apply_truncate(c, (size_t)ops[i].r.off);
    }
}

static bool dir_synced(const char *path, size_t from, size_t t)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    for (size_t i = from; i < t; i++)
        if (ops[i].r.op == TRACE_SYNC_DIR && strlen(ops[i].path) == n &&
            memcmp(ops[i].path, path, n) == 0)
            return true;
    return false;
}

static void unbind(const char *path)
{
    for (int i = 0; i < n_names; i++)
        if (strcmp(names[i].path, path) == 0) {
            names[i] = names[--n_names];
            return;
        }
}

static void bind_name(const char *path, int file)
{
    unbind(path);
    if (n_names == NAMES_MAX)
        die("too many names");
    snprintf(names[n_names].path, sizeof names->path, "%s", path);
    names[n_names++].file = file;
}

/* Which names stand after a crash before op t. Directories come before what is in them. */
static void build_names(size_t t, unsigned keep)
{
    n_names = 0;
    for (size_t i = 0; i < t; i++) {
        const struct op *o = &ops[i];
        const char *changed = o->r.n_path2 ? o->path2 : o->path;
        if (o->r.op < TRACE_CREATE || o->r.op > TRACE_UNLINK)
            continue;
        if (!dir_synced(changed, i, t) && !chance(keep))
            continue;
        if (o->r.op == TRACE_UNLINK || o->r.op == TRACE_RENAME)
            unbind(o->path);
        if (o->r.op == TRACE_MKDIR)
            bind_name(o->path, -1);
        else if (o->r.op != TRACE_UNLINK)
            bind_name(changed, o->file);
    }
}

static int write_image(const char *dir, size_t t, unsigned keep)
{
    struct content c = {0};
    char path[PATH_MAX];
    mkdir(dir, 0700);
    build_names(t, keep);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n_names; i++) {
            if (snprintf(path, sizeof path, "%s/%s", dir, names[i].path) >= (int)sizeof path)
                die("a path is too long");
            if ((names[i].file < 0) != (pass == 0))
                continue;
            if (pass == 0) {
                mkdir(path, 0700);
                continue;
            }
            int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
            if (fd < 0)
                continue; /* its directory did not come to the disk */
            build_content(&c, names[i].file, t, keep);
            if (c.n && write(fd, c.p, c.n) != (ssize_t)c.n)
                die("cannot write an image");
            close(fd);
        }
    free(c.p);
    return 0;
}

static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            die("cannot wait");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(const char *const argv[], int in)
{
    pid_t pid = fork();
    if (pid < 0)
        die("cannot fork");
    if (pid == 0) {
        if (in >= 0)
            dup2(in, 0);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return wait_for(pid);
}

/* The ids acknowledged before op t, in a file. */
static int acked(const char *path, size_t t, long *n)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    *n = 0;
    for (size_t i = 0; i < t; i++)
        if (ops[i].r.op == TRACE_ACK) {
            if (write(fd, ops[i].data, ops[i].r.n) != (ssize_t)ops[i].r.n)
                die("cannot write the acknowledged ids");
            for (unsigned k = 0; k < ops[i].r.n; k++)
                *n += ops[i].data[k] == '\n';
        }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static long number(const char *text, int64_t max)
{
    int64_t v;
    if (amp_num_parse(amp_span_str(text), 1, max, &v, NULL) != 0)
        die("not a number");
    return (long)v;
}

static bool is_sync(const struct op *o)
{
    return o->r.op == TRACE_SYNC || o->r.op == TRACE_SYNC_DIR;
}

/* The first sync of the checksums of the index's pages; before it there is only an empty index. */
static size_t index_synced(void)
{
    static const char name[] = "index.db-sums";
    int file = -1;
    for (size_t i = 0; i < n_ops; i++) {
        const struct op *o = &ops[i];
        size_t n = strlen(o->path);
        if (o->r.op == TRACE_CREATE && n >= sizeof name - 1 &&
            strcmp(o->path + n - (sizeof name - 1), name) == 0)
            file = o->file;
        if (o->r.op == TRACE_SYNC && file >= 0 && o->file == file)
            return i;
    }
    return n_ops;
}

int main(int argc, char **argv)
{
    static const unsigned keeps[] = {0, 20, 50, 80, 100};
    char image[PATH_MAX], ids[PATH_MAX];
    long failures = 0, most = 0;
    if (argc != 6)
        die("usage: replay TRACE WORKDIR STORETOOL SEED IMAGES");
    load(argv[1]);
    bool each = strcmp(argv[5], "each") == 0;
    long seed = number(argv[4], INT32_MAX), images = each ? 0 : number(argv[5], 1000000), made = 0,
         renewed = 0;
    char next[PATH_MAX + 16];
    size_t synced = index_synced();
    snprintf(image, sizeof image, "%s/image", argv[2]);
    snprintf(ids, sizeof ids, "%s/acked", argv[2]);
    for (long k = 0; k < (each ? 2 * (long)n_ops : images); k++) {
        long n;
        rng = (uint64_t)seed * 1000003u + (uint64_t)k + 88172645463325252ull;
        for (int i = 0; i < 8; i++)
            dice();
        size_t t = each ? (size_t)(k / 2 + k % 2) : dice() % (n_ops + 1);
        unsigned keep = keeps[dice() % 5];
        if (each && !is_sync(&ops[k / 2]))
            continue;
        made++;
        run((const char *const[]){"rm", "-rf", image, NULL}, -1);
        write_image(image, t, keep);
        int in = acked(ids, t, &n);
        int rc = run((const char *const[]){argv[3], image, "check", NULL}, in);
        close(in);
        snprintf(next, sizeof next, "%s/index.1.db", image);
        renewed += t > synced && access(next, F_OK) == 0;
        most = n > most ? n : most;
        if (rc != 0 && failures++ < 5)
            printf("image %ld of seed %ld: crash before op %zu of %zu, %u %% kept, %ld "
                   "acknowledged: check says %d\n",
                   k, seed, t, n_ops, keep, n, rc);
    }
    printf("%ld images from %zu operations, at most %ld acknowledged, %ld with a new index: %ld "
           "failed\n",
           made, n_ops, most, renewed, failures);
    return failures ? 1 : 0;
}

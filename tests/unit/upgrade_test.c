/* Two processes that go on with an upgrade whose log is converted: one converts the records. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "scratch.h"
#include "store/store.h"
#include "tap.h"

static struct amp_error err;
static struct shared {
    _Atomic int begun, calls;
} * shared;
static char marker[128];

/* Whether a process waits for a lock on the file. */
static bool is_waited_for(const char *path)
{
    struct stat st;
    char line[256], inode[32];
    bool found = false;
    FILE *f = fopen("/proc/locks", "r");
    if (!f || stat(path, &st) < 0)
        return f && (fclose(f), false);
    snprintf(inode, sizeof inode, ":%llu ", (unsigned long long)st.st_ino);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, "->") && strstr(line, inode);
    fclose(f);
    return found;
}

static int first_fn(struct amp_store *s, struct amp_error *e)
{
    (void)s, (void)e;
    shared->calls++;
    shared->begun = 1;
    while (shared->calls == 1 && !is_waited_for(marker))
        usleep(1000);
    return 0;
}

static int second_fn(struct amp_store *s, struct amp_error *e)
{
    (void)s, (void)e;
    shared->calls++;
    return 0;
}

static int upgrade(const char *dir, amp_store_upgrade_fn fn)
{
    struct amp_buf said = {0};
    amp_buf_init(&said, 4096);
    int rc = amp_store_upgrade(dir, fn, &said, &err);
    amp_buf_release(&said);
    return rc;
}

static int row_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *e)
{
    (void)ctx, (void)now, (void)e;
    *c = (struct amp_store_change){.event = "test", .to = "N", .json = AMP_SPAN("{}")};
    return 0;
}

int main(void)
{
    struct amp_store *s;
    const char *dir = scratch();
    int status;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || amp_store_open(dir, NULL, &s, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    TAP_INT(amp_store_update(s, AMP_KEY("task", AMP_SPAN("t")), NULL, row_fn, NULL, NULL, &err), 0,
            "a record");
    amp_store_close(s);
    snprintf(marker, sizeof marker, "%s/log/UPGRADING", dir);
    TAP_INT(amp_file_write_atomic(AT_FDCWD, marker, 0600, AMP_SPAN(""), &err), 0, "not complete");
    fflush(NULL);
    pid_t second = fork();
    if (second == 0) {
        while (!shared->begun)
            usleep(1000);
        _exit(upgrade(dir, second_fn) < 0);
    }
    TAP_INT(upgrade(dir, first_fn), 0, "the first converts");
    TAP_INT(waitpid(second, &status, 0), second, "the second ends");
    TAP_INT(status, 0, "well");
    TAP_INT(shared->calls, 1, "the records were converted once");
    TAP_OK(access(marker, F_OK) < 0, "the upgrade is complete");
    return tap_done();
}

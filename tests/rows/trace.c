/* Linked around amp_fsm_step (ld --wrap): appends "MACHINE ROW FILE TEST" to the file $ROWS_TRACE
 * for each row that a step takes, once a process: the row's number from 1, the bats file, the
 * number of its test. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <amp/machines.h>

#define MACHINES_MAX 16
#define ROWS_MAX     128

int __real_amp_fsm_step(const struct amp_fsm *m, uint8_t state, uint8_t event, uint32_t facts,
                        struct amp_fsm_result *out, struct amp_error *err);
int __wrap_amp_fsm_step(const struct amp_fsm *m, uint8_t state, uint8_t event, uint32_t facts,
                        struct amp_fsm_result *out, struct amp_error *err);

/* Whether the row was written before. */
static bool row_seen(const struct amp_fsm *m, size_t row)
{
    static struct {
        const struct amp_fsm *m;
        bool row[ROWS_MAX];
    } seen[MACHINES_MAX];
    for (size_t i = 0; i < MACHINES_MAX && row < ROWS_MAX; i++) {
        if (seen[i].m && seen[i].m != m)
            continue;
        bool before = seen[i].row[row];
        seen[i].m = m;
        seen[i].row[row] = true;
        return before;
    }
    return false;
}

int __wrap_amp_fsm_step(const struct amp_fsm *m, uint8_t state, uint8_t event, uint32_t facts,
                        struct amp_fsm_result *out, struct amp_error *err)
{
    if (__real_amp_fsm_step(m, state, event, facts, out, err) < 0)
        return -1;
    size_t row = (size_t)(out->row - m->rows);
    const char *path = getenv("ROWS_TRACE"), *file = getenv("BATS_TEST_FILENAME"),
               *test = getenv("BATS_TEST_NUMBER");
    if (!path || !file || !test || row_seen(m, row))
        return 0;
    char line[512];
    int n = snprintf(line, sizeof(line), "%s %zu %s %s\n", m->name, row + 1, file, test);
    /* System calls, because a test may have a library that lets these functions of libc fail. */
    int fd =
        (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && n > 0 && (size_t)n < sizeof(line))
        (void)!syscall(SYS_write, fd, line, (size_t)n);
    if (fd >= 0)
        (void)syscall(SYS_close, fd);
    return 0;
}

/* Other processes, by their files below /proc. */
#include "base/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/num.h>

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

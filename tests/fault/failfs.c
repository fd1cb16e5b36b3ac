/* A file system that is a network's: fstatfs says so (NFS) of what lies beneath FAIL_FS_ROOT, an
 * absolute path without links. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

int fstatfs(int fd, struct statfs *fs)
{
    int (*real)(int, struct statfs *) = (int (*)(int, struct statfs *))dlsym(RTLD_NEXT, "fstatfs");
    const char *root = getenv("FAIL_FS_ROOT");
    char link[64], path[PATH_MAX] = "";
    int rc = real(fd, fs);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (rc == 0 && root && readlink(link, path, sizeof(path) - 1) > 0 &&
        strncmp(path, root, strlen(root)) == 0)
        fs->f_type = 0x6969;
    return rc;
}

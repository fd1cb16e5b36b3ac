/* Where the helper programs are. */
#include <amp/base/child.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int amp_helper_path(const char *name, char *out, size_t size, struct amp_error *err)
{
    const char *dir = secure_getenv("AMP_LIBEXEC");
    if (dir && *dir) {
        int n = snprintf(out, size, "%s/%s", dir, name);
        if (n < 0 || (size_t)n >= size || access(out, X_OK))
            return amp_fail(err, AMP_UNAVAILABLE, "helper_missing", "no helper %s in %s", name,
                            dir);
        return 0;
    }
    char self[PATH_MAX];
    ssize_t got = readlink("/proc/self/exe", self, sizeof self - 1);
    if (got <= 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot find the running program's path");
    self[got] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    /* Beside bin; beside ourselves, for a helper; and for the programs of the build tree's tests.
     */
    static const char *const places[] = {"../libexec/amp", ".", "../../libexec/amp"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[PATH_MAX + 64];
        int n = snprintf(path, sizeof path, "%s/%s/%s", self, places[i], name);
        if (n > 0 && (size_t)n < sizeof path && access(path, X_OK) == 0 &&
            amp_span_copy(amp_span_str(path), out, size))
            return 0;
    }
    return amp_fail(err, AMP_UNAVAILABLE, "helper_missing", "no helper %s beside %s", name, self);
}

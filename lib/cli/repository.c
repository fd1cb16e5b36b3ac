/* The state directory of the repository around the current directory. */
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/repository.h"
#include "cli/cli.h"

enum amp_repository_state amp_cli_repository(char *out, size_t size)
{
    char cwd[PATH_MAX];
    struct amp_repository r;
    struct stat st;
    /* A sandbox does not show the repository, or shows what an agent wrote. */
    if (getenv("AMP_CONTROL") || !getcwd(cwd, sizeof cwd) || cwd[0] != '/' ||
        amp_repository_find(cwd, &r, NULL) < 0 || !r.found)
        return AMP_REPOSITORY_NONE;
    int n = snprintf(out, size, "%s/amp", r.common);
    if (n < 0 || (size_t)n >= size)
        return AMP_REPOSITORY_NONE;
    if (lstat(out, &st) != 0)
        return AMP_REPOSITORY_WITHOUT;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() ? AMP_REPOSITORY_FOUND
                                                         : AMP_REPOSITORY_FOREIGN;
}

void amp_die_no_state(void)
{
    char dir[PATH_MAX];
    switch (amp_cli_repository(dir, sizeof dir)) {
    case AMP_REPOSITORY_FOUND:
        amp_die_usage("a state directory is needed: --state DIR or AMP_STATE; that of this "
                      "repository is %s",
                      dir);
    case AMP_REPOSITORY_FOREIGN:
        amp_die_usage("a state directory is needed: --state DIR or AMP_STATE; %s does not belong "
                      "to you",
                      dir);
    case AMP_REPOSITORY_WITHOUT:
        amp_die_usage("a state directory is needed: --state DIR or AMP_STATE; this repository has "
                      "none ('task-dispatch init' makes it)");
    case AMP_REPOSITORY_NONE:
        break;
    }
    amp_die_usage("a state directory is needed: --state DIR or AMP_STATE");
}

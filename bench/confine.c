/* confine WORKTREE: starts /bin/true bare and confined, in turn, and prints for each level the
 * median and the best of the differences to the bare start before it, in milliseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "work/confine/confine.h"

#define ROUNDS 300

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One start and its end; the time in milliseconds. */
static double once(const struct amp_confine *c, const char *cwd)
{
    static const char *const argv[] = {"/bin/true", NULL};
    const struct amp_child_spec spec = {
        .argv = argv, .cwd = cwd, .fd_in = -1, .fd_out = -1, .fd_err = -1};
    struct amp_child child;
    struct amp_child_end end;
    struct amp_error err;
    double begin = now();
    int rc = c ? amp_confine_start(c, &spec, &child, &err) : amp_child_start(&spec, &child, &err);
    if (rc < 0 || amp_child_wait(&child, -1, 0, NULL, &end, &err) < 0 || end.exit_code) {
        fprintf(stderr, "confine: %s\n", rc < 0 ? err.what : "the command failed");
        exit(1);
    }
    return now() - begin;
}

int main(int argc, char **argv)
{
    static double bare[ROUNDS], more[ROUNDS];
    struct amp_confine_policy policy;
    struct amp_confine_report full, landlock;
    struct amp_error err;
    char scratch[4096];
    if (argc != 2)
        return 64;
    amp_confine_policy_init(&policy);
    if (amp_confine_choose(AMP_CONFINE_BEST_EFFORT, &policy, &full, &err) < 0 ||
        amp_confine_scratch_make("/tmp", scratch, sizeof scratch, &err) < 0) {
        fprintf(stderr, "confine: %s\n", err.what);
        return 1;
    }
    landlock = full;
    landlock.means.namespaces = false;
    const struct {
        const char *name;
        const struct amp_confine_report *report;
        bool possible;
        double target;
    } levels[] = {{"landlock", &landlock, full.level >= AMP_LEVEL_LANDLOCK, 1},
                  {"full", &full, full.level == AMP_LEVEL_FULL, 5}};
    for (int l = 0; l < 2; l++) {
        const struct amp_confine c = {.policy = &policy,
                                      .report = levels[l].report,
                                      .worktree = argv[1],
                                      .scratch = scratch,
                                      .gate_fd = -1};
        if (!levels[l].possible) {
            printf("%-9s not possible here\n", levels[l].name);
            continue;
        }
        for (int i = 0; i < ROUNDS; i++) {
            bare[i] = once(NULL, argv[1]);
            more[i] = once(&c, argv[1]) - bare[i];
        }
        qsort(bare, ROUNDS, sizeof *bare, compare);
        qsort(more, ROUNDS, sizeof *more, compare);
        printf("%-9s bare %.2f ms (best %.2f); confined +%.2f ms (best +%.2f, target +%.0f)\n",
               levels[l].name, bare[ROUNDS / 2], bare[0], more[ROUNDS / 2], more[ROUNDS / 20],
               levels[l].target);
    }
    amp_confine_scratch_remove(scratch, &err);
    return 0;
}

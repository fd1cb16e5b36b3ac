/* measure INPUT RUNS PROGRAM ARGS...: the program is run so many times, one after another, its
 * standard input from the file and its output thrown away. Prints the mean time in milliseconds,
 * the largest resident memory in KiB, and the mean time of processors in milliseconds. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    posix_spawn_file_actions_t fa;
    struct rusage used;
    long runs = argc > 3 ? atol(argv[2]) : 0, most = 0;
    double worked = 0;
    if (runs < 1)
        return 64;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, argv[1], O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    double start = now();
    for (long i = 0; i < runs; i++) {
        pid_t pid;
        int status;
        if (posix_spawnp(&pid, argv[3], &fa, NULL, argv + 3, environ))
            return 69;
        if (wait4(pid, &status, 0, &used) != pid || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
            return 70;
        worked += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
                  (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
        most = used.ru_maxrss > most ? used.ru_maxrss : most;
    }
    printf("%.3f %ld %.3f\n", (now() - start) / (double)runs, most, worked / (double)runs);
    return 0;
}

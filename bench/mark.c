/*
 * A job of bench/peers.sh as a command, linked statically: mark LIST [NUMBER] appends "NUMBER TIME"
 * to the list, with the time of the monotonic clock in nanoseconds. Without a number it is that of
 * the agent's task.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *number = argc > 2 ? argv[2] : getenv("AMP_TASK_ID");
    struct timespec t;
    char line[64];

    if (argc < 2 || !number)
        return 64;
    int fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    clock_gettime(CLOCK_MONOTONIC, &t);
    number += strcspn(number, "0123456789");
    int n = snprintf(line, sizeof line, "%ld %lld\n", strtol(number, NULL, 10),
                     t.tv_sec * 1000000000LL + t.tv_nsec);
    return fd < 0 || write(fd, line, (size_t)n) != n;
}

/* A setrlimit that leaves address space alone: for a program that limits its own, under valgrind,
 * whose memory it would be. */
#include <dlfcn.h>
#include <sys/resource.h>

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    if (resource == RLIMIT_AS)
        return 0;
    return ((__typeof__(&setrlimit))dlsym(RTLD_NEXT, "setrlimit"))(resource, limit);
}

/*
 * TAP for unit tests. A test program calls the checks and ends main with `return tap_done();`.
 *
 *     TAP_OK(cond, "what holds");
 *     TAP_INT(got, want, "name");   TAP_STR(got, want, "name");   TAP_SPAN(span, "text", "name");
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include <amp/base/buf.h>

static int tap_count, tap_failed;

__attribute__((unused, format(printf, 4, 5))) static bool tap_ok(bool ok, const char *file,
                                                                 int line, const char *fmt, ...)
{
    char name[256];
    __builtin_va_list ap;
    __builtin_va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    __builtin_va_end(ap);
    printf("%sok %d - %s\n", ok ? "" : "not ", ++tap_count, name);
    if (!ok) {
        tap_failed++;
        printf("# at %s:%d\n", file, line);
    }
    fflush(stdout);
    return ok;
}

__attribute__((unused)) static bool tap_int(int64_t got, int64_t want, const char *file, int line,
                                            const char *name)
{
    bool ok = tap_ok(got == want, file, line, "%s", name);
    if (!ok)
        printf("# got %" PRId64 ", want %" PRId64 "\n", got, want);
    return ok;
}

__attribute__((unused)) static bool tap_span(struct amp_span got, const char *want,
                                             const char *file, int line, const char *name)
{
    bool ok = tap_ok(amp_span_is(got, want), file, line, "%s", name);
    if (!ok)
        printf("# got '%.*s', want '%s'\n", (int)got.n, got.n ? got.p : "", want);
    return ok;
}

__attribute__((unused)) static void tap_skip(int n, const char *why)
{
    while (n-- > 0)
        printf("ok %d # SKIP %s\n", ++tap_count, why);
}

/* Returns a limit in ms, multiplied by the number of running processes for each processor (at least
 * 1). */
__attribute__((unused)) static int tap_patient(int ms)
{
    double load = 0;
    int running = 0;
    FILE *f = fopen("/proc/loadavg", "re");
    if (f) {
        if (fscanf(f, "%lf %*f %*f %d", &load, &running) != 2)
            running = 0;
        fclose(f);
    }
    load = (load > running ? load : running) / get_nprocs();
    return load > 1 ? (int)(ms * load) : ms;
}

__attribute__((unused)) static int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed ? 1 : 0;
}

#define TAP_OK(cond, ...)         tap_ok((cond), __FILE__, __LINE__, __VA_ARGS__)
#define TAP_INT(got, want, name)  tap_int((got), (want), __FILE__, __LINE__, (name))
#define TAP_STR(got, want, name)  tap_span(amp_span_str(got), (want), __FILE__, __LINE__, (name))
#define TAP_SPAN(got, want, name) tap_span((got), (want), __FILE__, __LINE__, (name))

#endif

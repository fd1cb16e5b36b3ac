/* How routing speaks to a person: what the command line has for that (lib/cli). */
#ifndef AMP_ROUTE_VOICE_H
#define AMP_ROUTE_VOICE_H

#include <stdint.h>

#include <amp/base/error.h>

struct amp_route_voice {
    void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    int (*complain)(const struct amp_error *err); /* returns its status */
    void (*status)(int status);                   /* a worse one than before counts */
    void (*refused)(const char *code, uint64_t n);
};

#endif

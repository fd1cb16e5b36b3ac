/* Identifiers and randomness. */
#include <amp/base/id.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

void amp_random(void *p, size_t n)
{
    unsigned char *at = p;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort(); /* without random numbers no id is unique */
        at += got;
        n -= (size_t)got;
    }
}

void amp_uuid4(char out[AMP_UUID_MAX])
{
    unsigned char b[16];
    amp_random(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    static const char hex[] = "0123456789abcdef";
    char *o = out;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *o++ = '-';
        *o++ = hex[b[i] >> 4];
        *o++ = hex[b[i] & 15];
    }
    *o = '\0';
}

void amp_id_tail(int64_t now_ms, char out[AMP_ID_TAIL_MAX])
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    uint32_t r;
    amp_random(&r, sizeof r);
    snprintf(out, AMP_ID_TAIL_MAX, "%" PRIu64 "%06u%06u", now_ms > 0 ? (uint64_t)now_ms : 0,
             (unsigned)(ts.tv_nsec % 1000000), (unsigned)(r % 1000000));
}

int64_t amp_id_number(int64_t now_ms)
{
    static _Thread_local int64_t last;
    last = now_ms * 1000 > last ? now_ms * 1000 : last + 1;
    return last;
}

bool amp_id_is_safe(struct amp_span text)
{
    if (text.n < 1 || text.n > 128 || text.p[0] == '.' || text.p[0] == '-')
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
        if (!ok)
            return false;
    }
    return true;
}

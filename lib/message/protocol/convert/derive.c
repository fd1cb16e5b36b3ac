/*
 * Ids and times in the form that a protocol requires. The same text always gives the same id, so
 * that messages with the same id still have the same id after a conversion.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/protocol/convert/convert.h"

static uint64_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

/* FNV-1a, mixed. It must never change: the same message always converts to the same bytes. */
static uint64_t text_digest(struct amp_span s, uint64_t seed)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ seed;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
    return mix(h);
}

__attribute__((format(printf, 2, 3))) static struct amp_span span_print(struct amp_arena *arena,
                                                                        const char *fmt, ...)
{
    enum { MOST = 256 };
    char *p = amp_arena_get(arena, MOST);
    if (!p)
        return (struct amp_span){NULL, 0};
    __builtin_va_list ap;
    __builtin_va_start(ap, fmt);
    int n = vsnprintf(p, MOST, fmt, ap);
    __builtin_va_end(ap);
    return (struct amp_span){p, n < 0 ? 0 : n < MOST ? (size_t)n : MOST - 1};
}

/* '9' in the form is any digit, 'x' any hexadecimal digit. */
static bool has_form(struct amp_span s, const char *form)
{
    size_t n = strlen(form);
    if (s.n != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (form[i] == '9' ? !isdigit(c) : form[i] == 'x' ? !isxdigit(c) : c != form[i])
            return false;
    }
    return true;
}

struct amp_span amp_cv_uuid(struct amp_span text, struct amp_arena *arena)
{
    if (has_form(text, "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx") && memchr("89abAB", text.p[19], 6))
        return text;
    uint64_t a = text_digest(text, 1), b = text_digest(text, 2);
    return span_print(arena, "%08" PRIx32 "-%04x-4%03x-%x%03x-%012" PRIx64, (uint32_t)(a >> 32),
                      (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
                      (unsigned)(8 + (b >> 62)), (unsigned)(b >> 48 & 0xfff),
                      b & UINT64_C(0xffffffffffff));
}

struct amp_span amp_cv_task_amp(struct amp_span text, struct amp_arena *arena)
{
    if (has_form(text, "T-9999-999"))
        return text;
    if (has_form(text, "TASK-9999-01-01-999"))
        return span_print(arena, "T-%.4s-%.3s", text.p + 5, text.p + 16);
    unsigned k = (unsigned)(text_digest(text, 3) % 10000000);
    return span_print(arena, "T-%04u-%03u", k / 1000, k % 1000);
}

static bool is_task_aof(struct amp_span text)
{
    size_t i = sizeof "TASK-9999-99-99-" - 1;
    struct amp_span head = {text.p, i};
    if (text.n < i + 3 || text.n > i + 8 || !has_form(head, "TASK-9999-99-99-"))
        return false;
    bool number = isdigit((unsigned char)text.p[i]) && isdigit((unsigned char)text.p[i + 1]) &&
                  isdigit((unsigned char)text.p[i + 2]);
    return number && (text.n == i + 3 || (text.n == i + 6 && text.p[i + 3] == '-' &&
                                          isdigit((unsigned char)text.p[i + 4]) &&
                                          isdigit((unsigned char)text.p[i + 5])));
}

struct amp_span amp_cv_task_aof(struct amp_span text, struct amp_arena *arena)
{
    if (is_task_aof(text))
        return text;
    if (has_form(text, "T-9999-999"))
        return span_print(arena, "TASK-%.4s-01-01-%.3s", text.p + 2, text.p + 7);
    unsigned k = (unsigned)(text_digest(text, 4) % 100000000);
    return span_print(arena, "TASK-%04u-%02u-%02u-%03u", k / 10000 % 10000, k / 800 % 12 + 1,
                      k % 28 + 1, k / 28 % 1000);
}

struct amp_span amp_cv_msg_id(struct amp_span type, struct amp_span task, struct amp_span id,
                              int64_t ms, struct amp_arena *arena)
{
    size_t most = type.n + task.n + 2;
    if (id.n > most && id.n <= 200 && memcmp(id.p, type.p, type.n) == 0 && id.p[type.n] == '-' &&
        memcmp(id.p + type.n + 1, task.p, task.n) == 0 && id.p[most - 1] == '-') {
        size_t i = most;
        while (i < id.n && isdigit((unsigned char)id.p[i]))
            i++;
        if (i == id.n)
            return id;
    }
    return span_print(arena, "%.*s-%.*s-%" PRIu64 "%06u", (int)type.n, type.p, (int)task.n, task.p,
                      ms > 0 ? (uint64_t)ms : 0, (unsigned)(text_digest(id, 5) % 1000000));
}

struct amp_span amp_cv_time_z(struct amp_span text, struct amp_arena *arena)
{
    int64_t ms;
    if (text.n > 0 && text.p[text.n - 1] == 'Z' && memchr(text.p, 'T', text.n))
        return text;
    char *p = amp_arena_get(arena, AMP_TIME_MAX);
    if (!p || !amp_time_parse(text, &ms))
        return text;
    amp_time_format(ms, p);
    return amp_span_str(p);
}

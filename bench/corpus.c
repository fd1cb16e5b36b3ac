/*
 * Prints messages for the benchmarks: corpus KIND MEGABYTES. The same arguments always print the
 * same bytes. The kinds: mixed (all five protocols, realistic, about 1 KB a line); amp and amp-bad
 * (AMP alone, valid or each line with one fault); invalid (mixed, each line with one fault);
 * strings, escapes, numbers, keys, deep, broken (one construct over and over); long (lines of
 * 60 KiB); sw4rm, aop, aof, rtp, task_result (one protocol of the mix, or one type).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus.h"

static uint64_t state = 88172645463325252u;
static char line[1 << 20];
static size_t used;

unsigned corpus_pick(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state % n);
}

void corpus_put(const char *fmt, ...)
{
    __builtin_va_list ap;
    __builtin_va_start(ap, fmt);
    used += (size_t)vsnprintf(line + used, sizeof line - used, fmt, ap);
    __builtin_va_end(ap);
}

size_t corpus_used(void)
{
    return used;
}

void corpus_words(unsigned n)
{
    static const char *const list[] = {
        "the",    "timer",  "drift",  "after",   "sleep",      "rebuild",      "window", "handle",
        "error",  "test",   "passes", "module",  "a",          "of",           "and",    "when",
        "branch", "commit", "review", "restart", "\\\"ok\\\"", "na\xc3\xafve", "retry",  "\\n",
        "queue",  "with",   "state",  "lock",    "file.c",     "agent",        "must",   "not",
    };
    for (unsigned i = 0; i < n; i++)
        corpus_put("%s%s", i ? " " : "", list[corpus_pick(sizeof list / sizeof *list)]);
}

void corpus_text(unsigned n)
{
    corpus_put("\"");
    corpus_words(n);
    corpus_put("\"");
}

void corpus_uuid(void)
{
    corpus_put("\"%04x%04x-%04x-4%03x-9%03x-%04x%04x%04x\"", corpus_pick(65536), corpus_pick(65536),
               corpus_pick(65536), corpus_pick(4096), corpus_pick(4096), corpus_pick(65536),
               corpus_pick(65536), corpus_pick(65536));
}

void corpus_time(void)
{
    corpus_put("\"2026-02-%02uT%02u:%02u:%02u.%03uZ\"", 1 + corpus_pick(28), corpus_pick(24),
               corpus_pick(60), corpus_pick(60), corpus_pick(1000));
}

static void mixed(void)
{
    unsigned which = corpus_pick(100), type = corpus_pick(10);
    if (which < 30)
        corpus_amp("mixed", type);
    else if (which < 55)
        corpus_sw4rm(type);
    else if (which < 75)
        corpus_aop(type);
    else if (which < 87)
        corpus_aof(type);
    else
        corpus_rtp(type);
}

/* The quote that ends some string turns into a letter, or the line loses its end. */
static void spoil(void)
{
    char *at = line + used * (corpus_pick(8) + 1) / 10;
    if (corpus_pick(2) && (at = strstr(at, "\",\"")))
        *at = 'x';
    else
        used -= used / 4;
}

/* An AOP task whose version the contract does not know, an AMP message to nobody, and so on: the
 * first value of a key that stands early or late is spoiled. */
static void wrong_value(void)
{
    static const char *const keys[] = {"\"timestamp\":\"2",   "\"from\":\"",   "\"role\":\"",
                                       "\"content_type\":\"", "\"sentAt\":\"", "\"createdAt\":\"",
                                       "\"state\":\"",        "\"event\":\""};
    unsigned first = corpus_pick(sizeof keys / sizeof *keys);
    line[used] = '\0';
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *at = strstr(line, keys[(first + i) % (sizeof keys / sizeof *keys)]);
        if (at) {
            at[strcspn(at + 3, ":") + 5] = '!';
            return;
        }
    }
}

static void one_line(const char *kind)
{
    if (!strcmp(kind, "mixed") || !strcmp(kind, "invalid") || !strcmp(kind, "broken"))
        mixed();
    else if (!strcmp(kind, "amp") || !strcmp(kind, "amp-bad"))
        corpus_amp(kind, corpus_pick(10));
    else if (!strcmp(kind, "task_result"))
        corpus_amp("amp", 3);
    else if (!strcmp(kind, "sw4rm"))
        corpus_sw4rm(corpus_pick(10));
    else if (!strcmp(kind, "aop"))
        corpus_aop(corpus_pick(10));
    else if (!strcmp(kind, "aof"))
        corpus_aof(corpus_pick(10));
    else if (!strcmp(kind, "rtp"))
        corpus_rtp(corpus_pick(10));
    else
        corpus_amp(kind, 0);
    if (!strcmp(kind, "invalid"))
        wrong_value();
    else if (!strcmp(kind, "broken"))
        spoil();
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 64;
    unsigned long long want = strtoull(argv[2], NULL, 10) * 1000000, done = 0;
    while (done < want) {
        used = 0;
        one_line(argv[1]);
        line[used++] = '\n';
        if (fwrite(line, 1, used, stdout) != used)
            return 74;
        done += used;
    }
    return fflush(stdout) ? 74 : 0;
}

/* Ports from inside: words of a command, spool names, the queue of a port, the spool's promise. */
#include <stdlib.h>
#include <unistd.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/port/port.h"
#include "message/port/private.h"
#include "message/port/queue.h"

static void words(const char *text, const char *want)
{
    char **argv, got[256] = "";
    struct amp_error err;
    if (amp_argv_split(text, &argv, &err) < 0) {
        snprintf(got, sizeof(got), "%s", err.code);
    } else {
        for (char **w = argv; *w; w++)
            snprintf(got + strlen(got), sizeof(got) - strlen(got), "[%s]", *w);
        amp_argv_free(argv);
    }
    TAP_STR(got, want, text);
}

static void names(void)
{
    char a[AMP_SPOOL_NAME_MAX], b[AMP_SPOOL_NAME_MAX];
    struct amp_span none = {"", 0};
    amp_spool_name("one", AMP_SPAN("id"), AMP_SPAN("line"), a);
    TAP_INT((int64_t)strlen(a), 37, "32 digits and .json");
    amp_spool_name("one", AMP_SPAN("id"), AMP_SPAN("other line"), b);
    TAP_STR(b, a, "the id names it, not the bytes");
    amp_spool_name("two", AMP_SPAN("id"), AMP_SPAN("line"), b);
    TAP_OK(strcmp(a, b) != 0, "another consumer, another name");
    amp_spool_name("one", AMP_SPAN("id2"), AMP_SPAN("line"), b);
    TAP_OK(strcmp(a, b) != 0, "another id, another name");
    amp_spool_name("one", none, AMP_SPAN("line"), a);
    amp_spool_name("one", none, AMP_SPAN("other line"), b);
    TAP_OK(strcmp(a, b) != 0, "without an id the bytes name it");
    amp_spool_name("one\nx", AMP_SPAN("y"), none, a);
    amp_spool_name("one", AMP_SPAN("x\ny"), none, b);
    TAP_OK(strcmp(a, b) != 0, "consumer and id do not run together");
}

static void spool(void)
{
    char dir[128], path[256], to[256];
    struct amp_spool s;
    struct amp_error err;
    snprintf(dir, sizeof(dir), "%s/box", scratch());
    TAP_INT(amp_spool_open(&s, dir, &err), 0, "opens and makes its rooms");
    TAP_INT(amp_spool_put(&s, "a.json", AMP_SPAN("{}"), &err), AMP_SPOOLED_NEW, "published");
    TAP_INT(amp_spool_put(&s, "a.json", AMP_SPAN("{}"), &err), AMP_SPOOLED_BEFORE,
            "known while in new");
    TAP_INT(amp_spool_put(&s, "a.json", AMP_SPAN("{}x"), &err), AMP_SPOOLED_FAILED,
            "another is refused");
    TAP_STR(err.code, "duplicate_msg_id", "as a duplicate");
    TAP_INT(amp_spool_put(&s, "a.json", AMP_SPAN("{"), &err), AMP_SPOOLED_FAILED,
            "a shorter one too");
    static const char *const way[] = {"new", "cur", "done"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s/a.json", dir, way[i]);
        snprintf(to, sizeof(to), "%s/%s/a.json", dir, way[i + 1]);
        TAP_INT(rename(path, to), 0, way[i + 1]);
        TAP_INT(amp_spool_put(&s, "a.json", AMP_SPAN("{}"), &err), AMP_SPOOLED_BEFORE,
                "known there too");
    }
    TAP_INT(truncate(to, 0), 0, "made empty");
    TAP_INT(amp_spool_put(&s, "a.json", AMP_SPAN("{}"), &err), AMP_SPOOLED_BEFORE,
            "known by its name");
    TAP_INT(unlink(to), 0, "removed");
    TAP_INT(amp_spool_put(&s, "a.json", AMP_SPAN("{}"), &err), AMP_SPOOLED_NEW,
            "then it may come again");
    amp_spool_close(&s);
}

static void queue(void)
{
    struct amp_queue q;
    struct amp_error err = {0};
    uint32_t n;
    char line[100];
    memset(line, 'x', sizeof(line));
    amp_queue_init(&q, 1000);
    for (uint64_t i = 0; i < 9; i++)
        TAP_INT(amp_queue_add(&q, (struct amp_span){line, 100}, i, 0, &err), 0, "taken");
    TAP_INT(amp_queue_add(&q, (struct amp_span){line, 100}, 9, 0, &err), -1, "past the bound");
    TAP_STR(err.code, "buffer_full", "its code");
    TAP_INT((int64_t)amp_queue_bytes(&q, 0, 0, 250, &n).n, 202, "whole lines within the most");
    TAP_INT((int64_t)amp_queue_bytes(&q, 0, 0, 5, &n).n, 101, "at least one");
    amp_queue_pop(&q);
    TAP_INT((int64_t)amp_queue_at(&q, 0)->tag, 1, "the next is first");
    TAP_INT(amp_queue_add(&q, (struct amp_span){line, 100}, 9, 0, &err), 0, "room again");
    TAP_INT((int64_t)amp_queue_pending(&q), 909, "bytes pending");
    while (q.n > 0)
        amp_queue_pop(&q);
    TAP_INT((int64_t)amp_queue_pending(&q), 0, "empty");
    amp_queue_release(&q);
}

/* Pseudo-random traffic: what comes out is what went in, in order. */
static void queue_order(void)
{
    struct amp_queue q;
    uint64_t in = 0, out = 0, wrong = 0;
    unsigned r = 1;
    amp_queue_init(&q, 1 << 20);
    while (out < 20000) {
        r = r * 1103515245u + 12345u;
        if ((r >> 16) % 3 && q.n < 500) {
            char text[32];
            int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)in);
            wrong += amp_queue_add(&q, (struct amp_span){text, (size_t)len}, in, 0, NULL) < 0;
            in++;
        } else if (q.n > 0) {
            uint32_t n;
            struct amp_span line = amp_queue_bytes(&q, 0, 0, 1, &n);
            wrong += strtoull(line.p, NULL, 10) != out || amp_queue_at(&q, 0)->tag != out;
            amp_queue_pop(&q);
            out++;
        }
    }
    TAP_INT((int64_t)wrong, 0, "20,000 lines keep order and bytes");
    amp_queue_release(&q);
}

int main(void)
{
    words("cat", "[cat]");
    words("  a  b\tc ", "[a][b][c]");
    words("sh -c 'a b' \"c d\"e f\\ g", "[sh][-c][a b][c de][f g]");
    words("x '' \"\"", "[x][][]");
    words("$HOME `id` *", "[$HOME][`id`][*]");
    words("'a\\b' \"a\\\"b\"", "[a\\b][a\"b]");
    words("", "bad_port");
    words("a 'b", "bad_port");
    names();
    spool();
    queue();
    queue_order();
    return tap_done();
}

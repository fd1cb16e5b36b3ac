/* Reassembly: any order, repetitions, what is wrong, limits, time, and a receiver that restarts. */
#include <dirent.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/transfer/transfer.h"
#include "message/delivery/transfer/units.h"
#include "message/protocol/compose/unit.h"

enum { CHUNKS_MOST = 64, AT_ONCE = 4, NOW = 1000000 };

static struct amp_error err;
static struct amp_reader *reader;
static struct amp_store *store; /* NULL: in memory */
static struct amp_units *units;
static const char *dir;
static uint64_t seed = 0x9e3779b97f4a7c15;

static uint32_t random_below(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % n;
}

/* A message and its chunks. */
struct sent {
    struct amp_unit_transfer t;
    char bytes[8192];
    char *chunk[CHUNKS_MOST];
};

static char *chunk_line(const struct amp_unit_transfer *t, uint32_t index)
{
    AMP_BUF struct amp_buf out = {0};
    char id[AMP_UUID_MAX];
    amp_buf_init(&out, 1 << 20);
    if (amp_unit_chunk(t, index, "router", NOW, id, &out, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        exit(1);
    }
    return amp_span_dup(amp_buf_span(&out));
}

/* Any bytes that a line may have. */
static void sent_make(struct sent *s, uint32_t size, uint32_t each)
{
    for (uint32_t i = 0; i < size; i++)
        do
            s->bytes[i] = (char)random_below(256);
        while (s->bytes[i] == '\n' || s->bytes[i] == '\0');
    s->t = (struct amp_unit_transfer){.line = {s->bytes, size},
                                      .chunk_size = each,
                                      .protocol = AMP_PROTO_SW4RM,
                                      .ref = AMP_SPAN("5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab0001"),
                                      .from = AMP_SPAN("cli")};
    amp_unit_transfer_begin(&s->t);
    for (uint32_t i = 0; i < s->t.count; i++)
        s->chunk[i] = chunk_line(&s->t, i);
}

static void sent_free(struct sent *s)
{
    for (uint32_t i = 0; i < s->t.count; i++)
        free(s->chunk[i]);
}

static void units_open(void)
{
    static const struct amp_store_options opt = {.lock_timeout_ms = 5000};
    if ((dir && amp_store_open(dir, &opt, &store, &err) < 0) ||
        amp_units_new(store, "reader", "reader", &units, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        exit(1);
    }
}

static void units_close(void)
{
    amp_units_free(units);
    amp_store_close(store);
    units = NULL;
    store = NULL;
}

static struct amp_unit_refusal why;

/* The code of the refusal, or "". */
static const char *give(const char *line)
{
    static const struct amp_check_options opt = {0};
    struct amp_view v;
    if (amp_reader_line(reader, amp_span_str(line), &opt, &v, NULL, NULL, &err) != 1)
        return "not valid";
    switch (amp_units_take(units, &v, NOW, &why, &err)) {
    case AMP_UNIT_TAKEN:
        return "";
    case AMP_UNIT_REFUSED:
        return why.why.code;
    default:
        return err.code;
    }
}

/* The number of lines that are ready; the last one is in `line`, until the next chunk. */
static struct amp_span line;
static int ready(void)
{
    static char kept[sizeof((struct sent *)0)->bytes];
    int n = 0, rc;
    while ((rc = amp_units_next(units, NOW, &line, &err)) > 0) {
        n++;
        memcpy(kept, line.p, line.n < sizeof kept ? line.n : sizeof kept);
        line.p = kept;
    }
    return rc < 0 ? rc : n;
}

static const char *give_all(const struct sent *s)
{
    for (uint32_t i = 0; i < s->t.count; i++) {
        const char *code = give(s->chunk[i]);
        if (*code)
            return code;
    }
    return "";
}

/* The files of the transfers that are not ended. */
static int files(void)
{
    char path[256];
    int n = 0;
    snprintf(path, sizeof path, "%s/transfers", dir);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* Some messages at once, their chunks in a random order, some twice; each comes out once and byte
 * for byte. `reopen`: the receiver restarts now and then. */
static void any_order(int rounds, bool reopen)
{
    static struct sent sent[AT_ONCE];
    int wrong = 0, restarts = 0;
    for (int round = 0; round < rounds && wrong == 0; round++) {
        struct {
            uint32_t of, index;
        } order[AT_ONCE * CHUNKS_MOST * 2], swap;
        uint32_t n = 0;
        int out[AT_ONCE] = {0};
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            uint32_t size = 1 + random_below(reopen ? 1200 : 5000);
            sent_make(&sent[i], size, size / CHUNKS_MOST + 1 + random_below(size));
            for (uint32_t k = 0; k < sent[i].t.count; k++)
                for (uint32_t twice = 0; twice < 1 + (random_below(4) == 0); twice++) {
                    order[n].of = i;
                    order[n++].index = k;
                }
        }
        for (uint32_t i = n; i > 1; i--) {
            uint32_t k = random_below(i);
            swap = order[i - 1];
            order[i - 1] = order[k];
            order[k] = swap;
        }
        for (uint32_t i = 0; i < n; i++) {
            const struct sent *s = &sent[order[i].of];
            wrong += give(s->chunk[order[i].index])[0] != '\0';
            int got = ready();
            if (got != 0) {
                out[order[i].of] += got;
                wrong += !amp_span_eq(line, s->t.line);
            }
            if (reopen && random_below(16) == 0) {
                units_close();
                units_open();
                restarts++;
            }
        }
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            wrong += out[i] != 1;
            sent_free(&sent[i]);
        }
    }
    TAP_OK(wrong == 0, "%d messages in any order come out once and byte for byte%s",
           rounds * AT_ONCE, reopen ? ", over restarts" : "");
    if (reopen)
        TAP_OK(restarts > 10, "after %d restarts", restarts);
}

static void repeated(void)
{
    static struct sent s, other;
    sent_make(&s, 1000, 300);
    TAP_STR(give(s.chunk[3]), "", "the last chunk first");
    TAP_STR(give(s.chunk[3]), "", "and once more");
    TAP_STR(give(s.chunk[0]), "", "then the first");
    TAP_STR(give(s.chunk[2]), "", "and the third");
    TAP_INT(ready(), 0, "nothing is ready while one is missing");
    TAP_STR(give(s.chunk[1]), "", "the missing one");
    TAP_OK(ready() == 1 && amp_span_eq(line, s.t.line), "makes the message");
    for (uint32_t i = 0; i < s.t.count; i++)
        TAP_OK(*give(s.chunk[i]) == '\0' && ready() == 0, "a late chunk makes nothing");
    /* What comes late is not compared with anything. */
    sent_make(&other, 900, 300);
    memcpy(other.t.id, s.t.id, sizeof other.t.id);
    char *late = chunk_line(&other.t, 0);
    TAP_OK(*give(late) == '\0' && ready() == 0, "nor one of another message with its id");
    free(late);
    sent_free(&s);
    sent_free(&other);
}

/* A transfer that is begun with s and gets this chunk ends with the code. */
static void breaks(const char *what, const struct sent *s, char *chunk, const char *code)
{
    TAP_STR(give(chunk), code, what);
    TAP_SPAN(why.of.id, "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab0001", "the refusal is of the message");
    TAP_SPAN(why.of.from, "cli", "and for its sender");
    for (uint32_t i = 0; i < s->t.count; i++)
        give(s->chunk[i]);
    TAP_INT(ready(), 0, "nothing comes of what was right");
    free(chunk);
}

static char *changed(const char *chunk, const char *member, char to)
{
    char *copy = amp_span_dup(amp_span_str(chunk)), *at = strstr(copy, member);
    if (!at) {
        printf("Bail out! no %s\n", member);
        exit(1);
    }
    at += strlen(member);
    *at = *at == to ? (char)(to + 1) : to;
    return copy;
}

static void wrong_chunks(void)
{
    static struct sent s, other;
    struct amp_unit_transfer t;
#define BEGIN()                                                                                    \
    sent_make(&s, 1000, 300);                                                                      \
    give(s.chunk[0]);                                                                              \
    t = s.t
    BEGIN();
    breaks("a changed byte", &s, changed(s.chunk[1], "\"data\":\"", 'A'), "chunk_corrupt");
    sent_free(&s);
    BEGIN();
    breaks("a wrong digest of a chunk", &s, changed(s.chunk[1], "\"sha256\":\"", '0'),
           "chunk_corrupt");
    sent_free(&s);
    BEGIN();
    breaks("a digest of the message that differs from the first chunk's", &s,
           changed(s.chunk[1], "\"total_sha256\":\"", '0'), "chunk_mismatch");
    sent_free(&s);
    BEGIN();
    t.count = 5;
    breaks("another count", &s, chunk_line(&t, 1), "chunk_mismatch");
    sent_free(&s);
    BEGIN();
    t.line.n = 999;
    breaks("another size of the message", &s, chunk_line(&t, 1), "chunk_mismatch");
    sent_free(&s);
    BEGIN();
    t.chunk_size = 250;
    breaks("another size of the chunks", &s, chunk_line(&t, 1), "chunk_mismatch");
    sent_free(&s);
    BEGIN();
    t.from = AMP_SPAN("eve");
    char *said = chunk_line(&t, 1);
    TAP_STR(give(said), "chunk_mismatch", "another sender of the message");
    free(said);
    TAP_SPAN(why.of.from, "cli", "the answer is for the sender of the first chunk");
    sent_free(&s);
    BEGIN();
    sent_make(&other, 1000, 300);
    t.line = other.t.line;
    breaks("the place of a chunk with other bytes", &s, chunk_line(&t, 0), "chunk_mismatch");
    sent_free(&s);
    sent_free(&other);

    /* Each chunk is right, and the message is not. */
    sent_make(&s, 1000, 300);
    memset(s.t.digest, '0', 64);
    for (uint32_t i = 0; i < s.t.count; i++) {
        free(s.chunk[i]);
        s.chunk[i] = chunk_line(&s.t, i);
    }
    TAP_STR(give_all(&s), "chunk_corrupt", "a digest that is not the message's");
    TAP_INT(ready(), 0, "so there is no message");
    sent_free(&s);

    /* Two messages with one id of a transfer, from two senders of chunks, do not mix. */
    sent_make(&s, 1000, 300);
    sent_make(&other, 1000, 300);
    memcpy(other.t.id, s.t.id, sizeof other.t.id);
    for (uint32_t i = 0; i < 4; i++) {
        said = chunk_line(&other.t, i);
        char *by = strstr(said, "\"producer_id\":\"router\"");
        memcpy(by, "\"producer_id\":\"second\"", strlen("\"producer_id\":\"second\""));
        TAP_STR(give(s.chunk[i]), "", "a chunk of the first");
        TAP_OK(ready() == (i == 3) && (i < 3 || amp_span_eq(line, s.t.line)), "the first message");
        TAP_STR(give(said), "", "a chunk of the second");
        TAP_OK(ready() == (i == 3) && (i < 3 || amp_span_eq(line, other.t.line)), "the second");
        free(said);
    }
    sent_free(&s);
    sent_free(&other);
}

static void limits(void)
{
    const struct amp_unit_limits before = amp_unit_limits;
    static struct sent s[3];
    for (int i = 0; i < 3; i++)
        sent_make(&s[i], 1000, 300);
    amp_unit_limits.chunks = 3;
    TAP_STR(give(s[0].chunk[0]), "oversize_payload", "too many chunks");
    amp_unit_limits.chunks = 4;
    TAP_STR(give(s[0].chunk[0]), "", "what was refused stays refused");
    TAP_OK(*give_all(&s[0]) == '\0' && ready() == 0, "also with all its chunks");
    amp_unit_limits = before;
    amp_unit_limits.message = 999;
    TAP_STR(give(s[1].chunk[0]), "oversize_payload", "too many bytes");
    amp_unit_limits = before;
    for (int i = 0; i < 3; i++) {
        sent_free(&s[i]);
        sent_make(&s[i], 1000, 300);
    }
    amp_unit_limits.message = 1000;
    amp_unit_limits.chunks = 4;
    amp_unit_limits.unfinished = 2;
    TAP_STR(give(s[0].chunk[0]), "", "a message at its limits");
    TAP_STR(give(s[1].chunk[0]), "", "and a second one");
    TAP_STR(give(s[2].chunk[0]), "buffer_full", "too many at once");
    TAP_STR(give_all(&s[0]), "", "the first ends");
    TAP_INT(ready(), 1, "with its message");
    sent_free(&s[2]);
    sent_make(&s[2], 1000, 300);
    TAP_STR(give(s[2].chunk[0]), "", "and makes room");
    TAP_STR(give_all(&s[1]), "", "the second ends");
    TAP_INT(ready(), 1, "with its message");
    amp_unit_limits.unfinished = before.unfinished;
    amp_unit_limits.waiting = 1999;
    sent_free(&s[1]);
    sent_make(&s[1], 1000, 300);
    TAP_STR(give(s[1].chunk[0]), "buffer_full", "too many bytes of all of them");
    TAP_STR(give_all(&s[2]), "", "the one that was there ends");
    TAP_INT(ready(), 1, "with its message");
    amp_unit_limits = before;
    for (int i = 0; i < 3; i++)
        sent_free(&s[i]);
}

static enum amp_unit_took sweep(int64_t now_ms, uint32_t *done)
{
    if (!store)
        return amp_units_expire(units, now_ms, false, &why, &err);
    return amp_transfers_sweep(store, now_ms, "sweep", done, &err) < 0 ? AMP_UNIT_FAILED
                                                                       : AMP_UNIT_TAKEN;
}

static void expiry(void)
{
    static struct sent s;
    uint32_t done = 0;
    int64_t due = NOW + amp_unit_limits.timeout_ms;
    sent_make(&s, 1000, 300);
    give(s.chunk[0]);
    TAP_OK(sweep(due - 1, &done) == AMP_UNIT_TAKEN && done == 0, "before its time it stays");
    enum amp_unit_took took = sweep(due, &done);
    if (store)
        TAP_OK(took == AMP_UNIT_TAKEN && done > 0 && files() == 0, "then it is dropped");
    else
        TAP_OK(took == AMP_UNIT_REFUSED && strcmp(why.why.code, "partial_delivery") == 0,
               "then it is dropped");
    TAP_OK(*give_all(&s) == '\0' && ready() == 0, "its other chunks come too late");
    sent_free(&s);
    if (store)
        return;
    sent_make(&s, 1000, 300);
    give(s.chunk[0]);
    TAP_INT(amp_units_expire(units, NOW, true, &why, &err), AMP_UNIT_REFUSED,
            "at the end of input it is dropped at once");
    TAP_INT(amp_units_expire(units, NOW, true, &why, &err), AMP_UNIT_TAKEN, "once");
    sent_free(&s);
}

/* The messages that a receiver of this name finds when it starts. */
static int resumed(const char *by)
{
    int n = 0;
    amp_units_free(units);
    units = NULL;
    if (amp_units_new(store, "reader", by, &units, &err) < 0)
        return -1;
    int found = amp_units_leftovers(units, &err);
    if (found > 0)
        n = ready();
    return found < 0 ? -1 : n;
}

/* A receiver that ends when a message is complete, before it asks for the next one. */
static void killed(void)
{
    static struct sent s, part;
    struct amp_units *first;
    uint32_t done = 0;
    sent_make(&s, 1000, 300);
    sent_make(&part, 1000, 300);
    TAP_STR(give(part.chunk[0]), "", "one is not complete");
    TAP_STR(give_all(&s), "", "one is complete");
    first = units;
    units = NULL;
    TAP_INT(resumed("reader"), 0, "while its process lives, nobody else takes it");
    amp_units_free(first);
    TAP_INT(resumed("other"), 0, "later another receiver does not");
    TAP_INT(resumed("reader"), 1, "the same one does");
    TAP_OK(amp_span_eq(line, s.t.line), "and has it byte for byte");
    TAP_INT(resumed("reader"), 0, "once");
    TAP_OK(*give_all(&s) == '\0' && ready() == 0, "its chunks may come again");
    TAP_OK(*give_all(&part) == '\0' && ready() == 1, "the other one becomes complete");
    sent_free(&s);
    sent_make(&s, 1000, 300);
    give_all(&s);
    amp_units_free(units);
    units = NULL;
    TAP_OK(sweep(NOW + amp_unit_limits.timeout_ms, &done) == AMP_UNIT_TAKEN && done > 0,
           "nobody resumes one in time");
    TAP_INT(resumed("reader"), 0, "so it is dropped");
    TAP_INT(files(), 0, "with its bytes");
    sent_free(&s);
    sent_free(&part);
}

static void all(int rounds)
{
    units_open();
    any_order(rounds, false);
    repeated();
    wrong_chunks();
    limits();
    expiry();
    units_close();
}

int main(void)
{
    if (!(reader = amp_reader_new(NULL, &err)))
        return 1;
    all(150);
    dir = scratch();
    all(10);
    units_open();
    any_order(20, true);
    killed();
    TAP_INT(files(), 0, "no bytes are left");
    units_close();
    amp_reader_free(reader);
    return tap_done();
}

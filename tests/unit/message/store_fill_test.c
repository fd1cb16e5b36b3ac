/* The store past the size of its cache: what is in memory and what is in the index answers alike,
 * to two stores that take turns. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/store/store_int.h"

enum { IDS = 3 * AMP_CACHE_FRAMES + 500, STORES = 2 };

static struct amp_error err;
static struct amp_store *store[STORES];
static unsigned revs[IDS];  /* of each key; 0: it was never there, or is gone */
static unsigned last[IDS];  /* of each key's frames, counting removals */
static uint64_t frame[IDS]; /* of the open line of each key; 0: none */
static unsigned wrong;
static uint64_t seed = 20260226;

static unsigned any(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

struct step {
    char json[64];
    bool remove;
    uint64_t saw;
    struct amp_store_emit emit;
};

static int take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                struct amp_error *e)
{
    struct step *st = ctx;
    (void)e;
    st->saw = now->found ? now->rev : 0;
    *c = (struct amp_store_change){.event = "step",
                                   .to = "THERE",
                                   .json = amp_span_str(st->json),
                                   .emits = &st->emit,
                                   .n_emits = st->remove ? 0 : 1,
                                   .remove = st->remove};
    return 0;
}

static void fault(const char *what, unsigned k)
{
    if (wrong++ < 10)
        printf("# %u: %s (%s)\n", k, what, err.code);
}

/* The input's bytes are told by the number of the key's frame: each is taken once. */
static enum amp_store_outcome change(struct amp_store *s, unsigned k, unsigned number, bool remove,
                                     uint64_t *saw)
{
    char id[32], input[48];
    struct step st = {.remove = remove};
    enum amp_store_outcome what = AMP_STORE_UNCHANGED;
    snprintf(id, sizeof id, "k%u", k * 7919u % IDS);
    snprintf(input, sizeof input, "%s-%u", id, number);
    snprintf(st.json, sizeof st.json, "{\"n\":%u}", number);
    st.emit = (struct amp_store_emit){amp_span_str(input), amp_span_str(st.json), false};
    struct amp_store_input in = {"test", amp_span_str(input), amp_span_str(st.json)};
    if (amp_store_update(s, AMP_KEY("key", amp_span_str(id)), &in, take, &st, &what, &err) != 0)
        fault("cannot be changed", k);
    *saw = st.saw;
    return what;
}

static void step(struct amp_store *s, unsigned k)
{
    uint64_t saw;
    bool remove = revs[k] && any(8) == 0;
    if (last[k] && any(4) == 0) {
        if (change(s, k, 1 + any(last[k]), false, &saw) != AMP_STORE_REDELIVERED)
            fault("an input is not known any more", k);
        return;
    }
    if (change(s, k, ++last[k], remove, &saw) != AMP_STORE_COMMITTED)
        fault("an input is said to be known", k);
    else if (saw != revs[k])
        fault("has another revision", k);
    revs[k] = remove ? 0 : revs[k] + 1;
    if (!remove && !frame[k])
        frame[k] = amp_store_last_frame(s);
    else if (frame[k] && any(2) == 0) {
        struct amp_store_entry_id e = {frame[k], 0};
        if (amp_store_outbox_close(s, "test", &e, 1, &err) != 0)
            fault("its line cannot be closed", k);
        frame[k] = 0;
    }
}

static void look(struct amp_store *s, unsigned k)
{
    char id[32];
    struct amp_store_rec rec;
    snprintf(id, sizeof id, "k%u", k * 7919u % IDS);
    if (amp_store_get(s, AMP_KEY("key", amp_span_str(id)), &rec, &err) != 0 ||
        rec.found != (revs[k] > 0) || rec.rev != revs[k])
        fault("is not what it was", k);
}

static void turns(unsigned from, unsigned to)
{
    for (unsigned k = from; k < to;) {
        struct amp_store *s = store[any(STORES)];
        unsigned n = any(4) ? 1 + any(200) : 1;
        if (n > 1 && amp_store_begin(s, &err) != 0)
            fault("no turn", k);
        for (unsigned i = 0; i < n && k < to; i++, k++) {
            step(s, k);
            step(s, any(k + 1));
            look(s, any(IDS));
        }
        if (n > 1)
            amp_store_end(s);
    }
}

static void all(const char *what)
{
    uint64_t there = 0, n = 0;
    for (unsigned k = 0; k < IDS; k++)
        there += revs[k] > 0;
    for (unsigned i = 0; i < STORES; i++) {
        for (unsigned k = 0; k < IDS; k++)
            look(store[i], k);
        if (amp_store_count(store[i], "key", &n, &err) != 0 || n != there)
            fault("is not the number of keys", (unsigned)n);
    }
    TAP_OK(wrong == 0, "%s: %u wrong", what, wrong);
}

static void open_all(const char *dir, uint64_t segment)
{
    struct amp_store_options o = {.lock_timeout_ms = -1, .segment_bytes = segment};
    for (unsigned i = 0; i < STORES; i++) {
        if (store[i])
            amp_store_close(store[i]);
        store[i] = NULL;
        if (amp_store_open(dir, &o, &store[i], &err) != 0) {
            printf("Bail out! %s\n", err.what);
            exit(1);
        }
    }
}

/* A growing segment has blocks behind its end, which its size does not tell; a sealed one has none.
 */
static void test_room(const char *dir)
{
    struct amp_log *l = &store[0]->log;
    struct stat now, sealed;
    char path[192];
    snprintf(path, sizeof path, "%s/log/%06u.ndjson", dir, l->first);
    if (l->no_room || fstat(l->fd, &now) != 0 || stat(path, &sealed) != 0) {
        printf("# no blocks in advance here\n");
        return;
    }
    TAP_OK((uint64_t)now.st_size == l->end.off, "the newest segment ends where its last line does");
    TAP_OK(now.st_blocks * 512 >= now.st_size + 8192, "and has room: %lld bytes, blocks for %lld",
           (long long)now.st_size, (long long)now.st_blocks * 512);
    TAP_OK(l->first < l->last && sealed.st_blocks * 512 < sealed.st_size + 65536,
           "a sealed one has not: %lld, %lld", (long long)sealed.st_size,
           (long long)sealed.st_blocks * 512);
}

int main(void)
{
    char dir[128], index[160];
    snprintf(dir, sizeof dir, "%s/state", scratch());
    snprintf(index, sizeof index, "%s/index.db", dir);
    open_all(dir, 0);
    turns(0, IDS / 2);
    TAP_OK(store[0]->index.pos.n > AMP_CACHE_FRAMES, "the index lags, but not for long");
    all("half of them");
    turns(IDS / 2, IDS);
    all("all of them");
    open_all(dir, 1024 * 1024);
    turns(0, 1000);
    all("opened again");
    test_room(dir);
    /* A removed index is noticed. */
    turns(0, AMP_CACHE_FRAMES / 2);
    unlink(index);
    turns(0, AMP_CACHE_FRAMES);
    all("with an index that was removed");
    TAP_OK(amp_store_sync(store[0], &err) == 0, "and it syncs");
    store[0]->cache.off = true;
    turns(0, 1000);
    all("one of them without a cache");
    for (unsigned i = 0; i < STORES; i++)
        amp_store_close(store[i]);
    return tap_done();
}

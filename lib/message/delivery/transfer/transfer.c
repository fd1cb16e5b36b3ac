/*
 * The records of transfers and their bytes. A chunk's bytes are written before the commit that says
 * so. They are not synced: if they are lost with the power, the digest of the complete message is
 * wrong, and the sender is told.
 */
#include "message/delivery/transfer/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "json/record.h"

#define ENDED_MOST 256 /* ended transfers that are remembered in memory */

#define FIELD(as, key, member) AMP_REC(as, struct amp_transfer, key, member)
static const struct amp_rec_field fields[] = {
    FIELD(TEXT, "producer", producer),
    FIELD(TEXT, "transfer", id),
    FIELD(TEXT, "msg_id", ref),
    FIELD(TEXT, "from", from),
    FIELD(TEXT, "protocol", protocol),
    FIELD(TEXT, "correlation", correlation),
    FIELD(TEXT, "task", task),
    FIELD(TEXT, "sha256", digest),
    FIELD(TEXT, "by", by),
    FIELD(TEXT, "have", have),
    FIELD(INT, "count", count),
    FIELD(INT, "chunk_size", chunk_size),
    FIELD(INT, "size", size),
    FIELD(INT, "got", got),
};
AMP_REC_TABLE(transfer_rec, "the record of a transfer", struct amp_transfer, fields);

int amp_transfer_parse(struct amp_span json, struct amp_buf *mem, struct amp_transfer *out,
                       struct amp_error *err)
{
    return amp_rec_parse(&transfer_rec, json, mem, out, err);
}

void amp_transfer_now_release(struct amp_transfer_now *n)
{
    amp_buf_release(&n->mem);
}

/* ---- in memory ---- */

static bool is_open(uint8_t state)
{
    return state == AMP_TRANSFER_RECEIVING || state == AMP_TRANSFER_ASSEMBLED;
}

static void held_free(struct amp_transfer_held *h)
{
    free(h->json);
    free(h->bytes);
    free(h);
}

void amp_transfers_release(struct amp_transfers *all)
{
    for (struct amp_transfer_held *h = all->held, *next; h; h = next) {
        next = h->next;
        held_free(h);
    }
    all->held = NULL;
    amp_buf_release(&all->gone);
}

static struct amp_transfer_held *held_find(const struct amp_transfers *all, const char *name)
{
    struct amp_transfer_held *h = all->held;
    while (h && strcmp(h->name, name) != 0)
        h = h->next;
    return h;
}

/* Forgets the oldest of many ended ones; the newest is the first. */
static void held_prune(struct amp_transfers *all)
{
    uint32_t n = 0;
    for (struct amp_transfer_held **at = &all->held; *at;) {
        struct amp_transfer_held *h = *at;
        if (!is_open(h->state) && ++n > ENDED_MOST) {
            *at = h->next;
            held_free(h);
        } else {
            at = &h->next;
        }
    }
}

/* The transfer of that name, or a new one. NULL: out of memory. */
static struct amp_transfer_held *held_make(struct amp_transfers *all, const char *name)
{
    struct amp_transfer_held *h = held_find(all, name);
    if (h || !(h = calloc(1, sizeof *h)))
        return h;
    memcpy(h->name, name, sizeof h->name);
    h->next = all->held;
    return all->held = h;
}

static int held_save(struct amp_transfers *all, const struct amp_transfer_now *n, uint8_t to,
                     int64_t due_ms, struct amp_span json, struct amp_error *err)
{
    struct amp_transfer_held *h = held_make(all, n->name);
    char *copy = amp_span_dup(json);
    if (!copy || !h) {
        free(copy);
        return amp_fail_memory(err);
    }
    free(h->json);
    h->json = copy;
    h->state = to;
    h->due_ms = due_ms;
    held_prune(all);
    return 0;
}

/* ---- records ---- */

static struct amp_key key_of(struct amp_span producer, struct amp_span id)
{
    return AMP_KEY(AMP_TRANSFER_KIND, producer, id);
}

int amp_transfer_find(struct amp_transfers *all, struct amp_span producer, struct amp_span id,
                      struct amp_transfer_now *out, struct amp_error *err)
{
    const struct amp_span parts[] = {producer, id};
    struct amp_span json = {0};
    amp_transfer_now_release(out);
    *out = (struct amp_transfer_now){.mem = {.max = AMP_TRANSFER_RECORD_MAX},
                                     .state = AMP_TRANSFER_RECEIVING};
    if (amp_key_digest(parts, 2, out->name, err) < 0)
        return -1;
    if (all->store) {
        struct amp_store_rec rec;
        if (amp_store_get(all->store, key_of(producer, id), &rec, err) < 0)
            return -1;
        int state = rec.found ? amp_fsm_state(&amp_transfer_fsm, rec.state) : 0;
        if (state < 0)
            return amp_fail(err, AMP_IOERR, log_damaged, "a transfer has an unknown state");
        out->found = rec.found;
        out->state = (uint8_t)state;
        out->rev = rec.rev;
        out->due_ms = rec.due_ms;
        json = rec.json;
    } else {
        const struct amp_transfer_held *h = held_find(all, out->name);
        out->found = h && h->json;
        if (out->found) {
            out->state = h->state;
            out->due_ms = h->due_ms;
            json = amp_span_str(h->json);
        }
    }
    return out->found ? amp_transfer_parse(json, &out->mem, &out->t, err) : 0;
}

struct saving {
    const struct amp_transfer_now *n;
    const char *actor;
    uint8_t event, to;
    int64_t due_ms;
    struct amp_span json;
    const struct amp_store_emit *emit;
    bool changed;
};

static int save_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                   struct amp_error *err)
{
    struct saving *s = ctx;
    (void)err;
    s->changed = now->found != s->n->found || now->rev != s->n->rev;
    if (s->changed)
        return 1;
    change->event = amp_transfer_fsm.events[s->event].name;
    change->to = amp_transfer_fsm.states[s->to].name;
    change->json = s->json;
    change->due_ms = s->due_ms;
    change->actor = s->actor;
    change->emits = s->emit;
    change->n_emits = s->emit != NULL;
    return 0;
}

int amp_transfer_save(struct amp_transfers *all, struct amp_transfer_now *n, uint8_t event,
                      uint8_t to, int64_t due_ms, const struct amp_store_emit *emit,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf json = {.max = AMP_TRANSFER_RECORD_MAX};
    if (amp_rec_write(&transfer_rec, &n->t, &json, err) < 0)
        return -1;
    if (!all->store)
        return held_save(all, n, to, due_ms, amp_buf_span(&json), err);
    struct saving s = {.n = n,
                       .actor = all->actor,
                       .event = event,
                       .to = to,
                       .due_ms = due_ms,
                       .json = amp_buf_span(&json),
                       .emit = emit};
    if (amp_store_update(all->store, key_of(n->t.producer, n->t.id), NULL, save_fn, &s, NULL, err) <
        0)
        return -1;
    return s.changed;
}

/* ---- bytes ---- */

static int file_open(const struct amp_transfers *all, const char *name, int flags,
                     struct amp_error *err)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/transfers", amp_store_dir(all->store));
    if (n < 0 || (size_t)n + AMP_KEY_NAME_MAX + 1 > sizeof path)
        return amp_fail(err, AMP_IOERR, path_too_long, "the state's path is too long");
    if (flags & O_CREAT && mkdir(path, 0700) < 0 && errno != EEXIST)
        return amp_fail_errno(err, AMP_IOERR, "mkdir %s", path);
    AMP_CLOSE int dir = open(path, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return amp_fail_errno(err, AMP_IOERR, "open %s", path);
    return amp_file_open(dir, name, flags | O_NOFOLLOW, 0600, err);
}

int amp_transfer_write(struct amp_transfers *all, const struct amp_transfer_now *n, uint64_t at,
                       struct amp_span bytes, struct amp_error *err)
{
    if (!all->store) {
        struct amp_transfer_held *h = held_make(all, n->name);
        if (!h || (!h->bytes && !(h->bytes = malloc((size_t)n->t.size))))
            return amp_fail_memory(err);
        memcpy(h->bytes + at, bytes.p, bytes.n);
        return 0;
    }
    AMP_CLOSE int fd = file_open(all, n->name, O_RDWR | O_CREAT, err);
    if (fd < 0)
        return -1;
    while (bytes.n > 0) {
        ssize_t wrote = pwrite(fd, bytes.p, bytes.n, (off_t)at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return amp_fail_errno(err, AMP_IOERR, "write %s/transfers/%s",
                                  amp_store_dir(all->store), n->name);
        bytes.p += wrote;
        bytes.n -= (size_t)wrote;
        at += (uint64_t)wrote;
    }
    return 0;
}

int amp_transfer_read(struct amp_transfers *all, const struct amp_transfer_now *n, uint64_t at,
                      size_t bytes, struct amp_buf *out, struct amp_error *err)
{
    if (!all->store) {
        const struct amp_transfer_held *h = held_find(all, n->name);
        if (!h || !h->bytes)
            return amp_fail(err, AMP_DATAERR, partial_delivery, "its bytes are missing");
        return amp_buf_add(out, h->bytes + at, bytes, err);
    }
    struct amp_error gone;
    AMP_CLOSE int fd = file_open(all, n->name, O_RDONLY, &gone);
    if (fd < 0)
        return amp_fail(err, AMP_DATAERR, partial_delivery, "its bytes are missing: %.300s",
                        gone.what);
    if (amp_buf_reserve(out, bytes, err) < 0)
        return -1;
    for (size_t left = bytes; left > 0;) {
        ssize_t got = pread(fd, out->data + out->len, left, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return amp_fail_errno(err, AMP_IOERR, "read %s/transfers/%s", amp_store_dir(all->store),
                                  n->name);
        if (got == 0)
            return amp_fail(err, AMP_DATAERR, partial_delivery, "%zu of its bytes are missing",
                            left);
        out->len += (size_t)got;
        at += (uint64_t)got;
        left -= (size_t)got;
    }
    return 0;
}

int amp_transfer_lock(struct amp_transfers *all, const struct amp_transfer_now *n, int *fd,
                      struct amp_error *err)
{
    *fd = -1;
    if (!all->store)
        return 1;
    *fd = file_open(all, n->name, O_RDWR, err);
    if (*fd < 0)
        return errno == ENOENT ? 0 : -1;
    if (amp_lock(*fd, 0, err) == 0)
        return 1;
    close(*fd);
    *fd = -1;
    return err->status == AMP_TEMPFAIL ? 0 : -1;
}

static void name_unlink(const struct amp_transfers *all, const char *name)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/transfers/%s", amp_store_dir(all->store), name);
    if (len > 0 && (size_t)len < sizeof path)
        unlink(path); /* a missing file is what is wanted */
}

void amp_transfer_drop(struct amp_transfers *all, const struct amp_transfer_now *n)
{
    if (all->store && amp_store_in_batch(all->store)) {
        if (all->gone.max == 0)
            amp_buf_init(&all->gone, (size_t)1 << 20);
        /* Without memory it is left to the sweep. */
        amp_buf_add(&all->gone, n->name, strlen(n->name) + 1, NULL);
    } else if (all->store) {
        name_unlink(all, n->name);
    } else {
        struct amp_transfer_held *h = held_find(all, n->name);
        if (h) {
            free(h->bytes);
            h->bytes = NULL;
        }
    }
}

void amp_transfers_tidy(struct amp_transfers *all)
{
    if (all->gone.len == 0 || amp_store_in_batch(all->store))
        return;
    for (size_t at = 0; at < all->gone.len; at += strlen(all->gone.data + at) + 1)
        name_unlink(all, all->gone.data + at);
    amp_buf_reset(&all->gone);
}

void amp_transfer_clear(struct amp_transfers *all, const struct amp_transfer_now *n)
{
    name_unlink(all, n->name);
}

/* ---- counting ---- */

struct counting {
    uint32_t n;
    uint64_t bytes;
};

static int count_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                    struct amp_error *err)
{
    struct counting *c = ctx;
    struct amp_transfer t;
    AMP_BUF struct amp_buf mem = {.max = AMP_TRANSFER_RECORD_MAX};
    (void)id;
    if (amp_transfer_parse(rec->json, &mem, &t, err) < 0)
        return -1;
    c->n++;
    c->bytes += (uint64_t)t.size;
    return 0;
}

int amp_transfers_count(struct amp_transfers *all, uint32_t *n, uint64_t *bytes,
                        struct amp_error *err)
{
    struct counting c = {0};
    for (uint8_t state = 0; state < AMP_TRANSFER_STATE_COUNT; state++) {
        if (!is_open(state))
            continue;
        if (all->store &&
            amp_store_each(all->store, AMP_TRANSFER_KIND, amp_transfer_fsm.states[state].name,
                           count_fn, &c, err) < 0)
            return -1;
        for (const struct amp_transfer_held *h = all->held; h; h = h->next) {
            const struct amp_store_rec rec = {.json = amp_span_str(h->json)};
            if (h->state == state && h->json && count_fn(&c, (struct amp_span){0}, &rec, err) < 0)
                return -1;
        }
    }
    *n = c.n;
    *bytes = c.bytes;
    return 0;
}

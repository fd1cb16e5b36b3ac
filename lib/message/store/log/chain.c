/* The keyed chain: its key, its page, and the hashes of frames. */
#include "message/store/log/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "message/store/log/frame.h"

#define KEYS     "keys"
#define KEY      "log"
#define PAGE     "log.end"
#define KEY_LEAD "amp-log-key-v1 "

enum { PAGE_SIZE = 4096, KEY_MAX = 256, KEY_HEX = 64 };

struct amp_chain_page {
    char magic[8];
    _Atomic uint64_t first, end;
};

static const char magic[8] = "ampend1";
static const char tail_lead[] = ",\"m\":\"", head_lead[] = ",\"head\":\"",
                  sig_lead[] = "\",\"sig\":";

void amp_chain_init(struct amp_chain *c, int dirfd, bool read_only)
{
    *c = (struct amp_chain){.dirfd = dirfd, .read_only = read_only};
}

void amp_chain_release(struct amp_chain *c)
{
    if (c->page)
        munmap(c->page, PAGE_SIZE);
    sodium_memzero(c->key, sizeof c->key);
    *c = (struct amp_chain){.dirfd = -1};
}

static int keys_open(const struct amp_chain *c, bool create)
{
    if (create && mkdirat(c->dirfd, KEYS, 0700) == 0 && fsync(c->dirfd) != 0)
        return -1;
    return openat(c->dirfd, KEYS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* LEAD, the key in hex, a space, the first frame's number, LF. */
static int key_parse(struct amp_chain *c, struct amp_span text, struct amp_error *err)
{
    const size_t lead = sizeof KEY_LEAD - 1, at = lead + KEY_HEX + 1;
    int64_t start;
    size_t n = 0;
    if (text.n <= at + 1 || memcmp(text.p, KEY_LEAD, lead) != 0 || text.p[at - 1] != ' ' ||
        text.p[text.n - 1] != '\n' ||
        sodium_hex2bin(c->key, sizeof c->key, text.p + lead, KEY_HEX, NULL, &n, NULL) != 0 ||
        n != sizeof c->key ||
        amp_num_parse((struct amp_span){text.p + at, text.n - at - 1}, 1, INT64_MAX, &start,
                      NULL) != 0)
        return amp_fail(err, AMP_CONFIG, log_key_invalid,
                        "keys/" KEY " of the state directory is not a key of a log");
    /* Chooses the fastest hash for this processor. Without it, a slower one is used. */
    if (sodium_init() < 0)
        return amp_fail(err, AMP_INTERNAL, no_random, "libsodium does not start");
    c->start = (uint64_t)start;
    c->has_key = true;
    return 0;
}

/* Writes a new page, without a hole: on a full disk a write to a mapped one raises SIGBUS. Returns
 * after it is on disk. */
static int page_make(int fd, int keys, uint64_t first)
{
    char bytes[PAGE_SIZE] = {0};
    struct amp_chain_page page = {.first = first};
    memcpy(page.magic, magic, sizeof magic);
    memcpy(bytes, &page, sizeof page);
    return pwrite(fd, bytes, sizeof bytes, 0) != sizeof bytes || fsync(fd) != 0 || fsync(keys) != 0
               ? -1
               : 0;
}

/* Maps the page. With `create` it is made with the first number; otherwise a page that is missing,
 * or is not one, is gone. A page that cannot be mapped for another reason is not used. */
static void page_map(struct amp_chain *c, int keys, bool create, uint64_t first)
{
    struct stat st;
    int flags = c->read_only ? O_RDONLY : create ? O_RDWR | O_CREAT : O_RDWR;
    AMP_CLOSE int fd = amp_file_open(keys, PAGE, flags | O_NOFOLLOW, 0600, NULL);
    c->page_gone = fd < 0 && (errno == ENOENT || errno == ELOOP || errno == EINVAL);
    if (fd < 0 || fstat(fd, &st) != 0)
        return;
    c->page_gone = !create && st.st_size < PAGE_SIZE;
    if (c->page_gone || (st.st_size < PAGE_SIZE && page_make(fd, keys, first) < 0))
        return;
    void *p =
        mmap(NULL, PAGE_SIZE, c->read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return;
    c->page = p;
    c->page_gone = memcmp(c->page->magic, magic, sizeof magic) != 0;
    if (c->page_gone) {
        munmap(p, PAGE_SIZE);
        c->page = NULL;
    }
}

int amp_chain_open(struct amp_chain *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_error why;
    if (c->opened)
        return 0;
    AMP_CLOSE int keys = keys_open(c, false);
    if (keys < 0)
        return errno == ENOENT
                   ? 0
                   : amp_fail_errno(err, AMP_CONFIG, "cannot open keys/ of the state directory");
    AMP_CLOSE int fd = amp_file_open(keys, KEY, O_RDONLY | O_NOFOLLOW, 0, &why);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return amp_fail_again(err, AMP_CONFIG, "keys/" KEY, &why);
    amp_buf_init(&text, KEY_MAX);
    if (amp_file_read(keys, KEY, KEY_MAX, &text, err) < 0)
        return -1;
    int rc = key_parse(c, amp_buf_span(&text), err);
    sodium_memzero(text.data, text.len);
    if (rc < 0)
        return -1;
    page_map(c, keys, false, 1);
    c->opened = true;
    return 0;
}

static int page_sync(struct amp_chain *c, struct amp_error *err)
{
    return msync(c->page, PAGE_SIZE, MS_SYNC) != 0
               ? amp_fail_errno(err, AMP_TEMPFAIL, "cannot sync keys/" PAGE)
               : 0;
}

static int key_make(struct amp_chain *c, uint64_t next, uint64_t first, struct amp_error *err)
{
    unsigned char key[32];
    char hex[KEY_HEX + 1];
    AMP_BUF struct amp_buf text = {0};
    AMP_CLOSE int keys = keys_open(c, true);
    if (keys < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make keys/ in the state directory");
    amp_random(key, sizeof key);
    sodium_bin2hex(hex, sizeof hex, key, sizeof key);
    sodium_memzero(key, sizeof key);
    amp_buf_init(&text, KEY_MAX);
    /* A page of an earlier key may have numbers of another log. */
    if (unlinkat(keys, PAGE, 0) != 0 && errno != ENOENT)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot remove keys/" PAGE);
    /* On disk before the key: a key without its page means that the page was removed. */
    page_map(c, keys, true, first);
    if (!c->page)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make keys/" PAGE);
    if (amp_buf_fmt(&text, err, KEY_LEAD "%s %" PRIu64 "\n", hex, next) < 0)
        return -1;
    int rc = amp_file_write_atomic(keys, KEY, 0600, amp_buf_span(&text), err);
    if (rc == 0)
        rc = key_parse(c, amp_buf_span(&text), err);
    sodium_memzero(hex, sizeof hex);
    sodium_memzero(text.data, text.len);
    if (rc < 0 && c->page) {
        munmap(c->page, PAGE_SIZE);
        c->page = NULL;
    }
    c->opened = rc == 0;
    return rc;
}

int amp_chain_ready(struct amp_chain *c, uint64_t next, uint64_t first, struct amp_error *err)
{
    if (c->has_key)
        return 0;
    if (amp_chain_open(c, err) < 0)
        return -1;
    return c->has_key ? 0 : key_make(c, next, first, err);
}

uint64_t amp_chain_end(const struct amp_chain *c)
{
    return c->page ? atomic_load(&c->page->end) : 0;
}

uint64_t amp_chain_first(const struct amp_chain *c)
{
    return c->page ? atomic_load(&c->page->first) : 0;
}

void amp_chain_raise(struct amp_chain *c, uint64_t end)
{
    if (!c->page || c->read_only)
        return;
    uint64_t now = atomic_load(&c->page->end);
    while (now < end && !atomic_compare_exchange_weak(&c->page->end, &now, end))
        continue;
}

int amp_chain_drop(struct amp_chain *c, uint64_t first, struct amp_error *err)
{
    if (!c->page || c->read_only || atomic_load(&c->page->first) >= first)
        return 0;
    atomic_store(&c->page->first, first);
    return page_sync(c, err);
}

int amp_chain_reset(struct amp_chain *c, uint64_t first, uint64_t end, struct amp_error *err)
{
    AMP_CLOSE int keys = c->page_gone && !c->read_only ? keys_open(c, false) : -1;
    if (keys >= 0) {
        if (unlinkat(keys, PAGE, 0) != 0 && errno != ENOENT)
            return amp_fail_errno(err, AMP_CANTCREAT, "cannot replace keys/" PAGE);
        page_map(c, keys, true, first);
    }
    if (!c->page || c->read_only)
        return 0;
    atomic_store(&c->page->first, first);
    atomic_store(&c->page->end, end);
    return page_sync(c, err);
}

/* ---- hashes ---- */

static void keyed_hash(const struct amp_chain *c, struct amp_span body, unsigned char *out,
                       size_t size)
{
    crypto_generichash(out, size, (const unsigned char *)body.p, body.n, c->key, sizeof c->key);
}

void amp_chain_hash(const struct amp_chain *c, struct amp_span body, char *out)
{
    unsigned char hash[AMP_CHAIN_HEX / 2];
    keyed_hash(c, body, hash, sizeof hash);
    for (size_t i = 0; i < sizeof hash; i++) {
        out[2 * i] = "0123456789abcdef"[hash[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
    }
}

bool amp_chain_has(struct amp_span frame)
{
    const size_t lead = sizeof tail_lead - 1;
    if (frame.n < AMP_FRAME_HEAD + AMP_CHAIN_TAIL)
        return false;
    const char *p = frame.p + frame.n - AMP_CHAIN_TAIL;
    return memcmp(p, tail_lead, lead) == 0 && memcmp(p + AMP_CHAIN_TAIL - 3, "\"}\n", 3) == 0;
}

/* The part of a frame that its hash covers. */
static struct amp_span frame_body(struct amp_span frame)
{
    return (struct amp_span){frame.p + AMP_FRAME_HEAD, frame.n - AMP_FRAME_HEAD - AMP_CHAIN_TAIL};
}

bool amp_chain_holds(const struct amp_chain *c, struct amp_span frame)
{
    char is[AMP_CHAIN_HEX];
    if (!amp_chain_has(frame))
        return false;
    amp_chain_hash(c, frame_body(frame), is);
    return sodium_memcmp(is, frame.p + frame.n - AMP_CHAIN_TAIL + sizeof tail_lead - 1,
                         sizeof is) == 0;
}

/* ---- the signed head ---- */

static int head_text(uint64_t n, struct amp_span head, struct amp_buf *out, struct amp_error *err)
{
    return amp_buf_fmt(out, err, "amp-log-head-v1\n%" PRIu64 "\n%.*s\n", n, (int)head.n, head.p);
}

static void head_hash(const struct amp_chain *c, struct amp_span body,
                      char hex[AMP_CHAIN_HEAD_HEX + 1])
{
    unsigned char hash[AMP_CHAIN_HEAD_HEX / 2];
    keyed_hash(c, body, hash, sizeof hash);
    sodium_bin2hex(hex, AMP_CHAIN_HEAD_HEX + 1, hash, sizeof hash);
}

int amp_chain_sign(const struct amp_chain *c, uint64_t n, struct amp_span body, struct amp_buf *out,
                   struct amp_error *err)
{
    char hex[AMP_CHAIN_HEAD_HEX + 1];
    AMP_BUF struct amp_buf text = {0}, sig = {0};
    if (!c->sign)
        return 0;
    amp_buf_init(&text, 256);
    amp_buf_init(&sig, 8192);
    head_hash(c, body, hex);
    if (head_text(n, amp_span_str(hex), &text, err) < 0)
        return -1;
    /* A segment must end also if the key cannot be read: amp-ack audit reports the seal. */
    if (c->sign(c->dir, amp_buf_span(&text), &sig, NULL) < 0)
        return 0;
    return amp_buf_fmt(out, err, "%s%s%s%.*s", head_lead, hex, sig_lead, (int)sig.len, sig.data);
}

bool amp_chain_head(const struct amp_chain *c, uint64_t n, struct amp_span frame,
                    struct amp_buf *text, struct amp_span *sig)
{
    const size_t lead = sizeof head_lead - 1, more = sizeof sig_lead - 1;
    char hex[AMP_CHAIN_HEAD_HEX + 1];
    struct amp_span body = frame_body(frame);
    const char *p = memmem(body.p, body.n, head_lead, lead);
    if (!p || (size_t)(body.p + body.n - p) < lead + AMP_CHAIN_HEAD_HEX + more)
        return false;
    head_hash(c, (struct amp_span){body.p, (size_t)(p - body.p)}, hex);
    const char *at = p + lead + AMP_CHAIN_HEAD_HEX;
    if (sodium_memcmp(hex, p + lead, AMP_CHAIN_HEAD_HEX) != 0 || memcmp(at, sig_lead, more) != 0)
        return false;
    *sig = (struct amp_span){at + more, (size_t)(body.p + body.n - at - more)};
    return head_text(n, amp_span_str(hex), text, NULL) == 0;
}

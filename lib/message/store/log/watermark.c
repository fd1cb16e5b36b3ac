/*
 * The watermark. The page names its boot and its log directory: after a restart of the machine, or
 * in a copy of the directory, it is ignored.
 */
#include "message/store/log/watermark.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

enum { PAGE = 4096, BOOT_MAX = 40 };

struct amp_wm_page {
    char magic[8];
    char boot[BOOT_MAX];
    uint64_t dev, ino;
    _Atomic uint64_t durable;
    _Atomic uint32_t failed, verified, epoch, crowd;
    _Atomic uint64_t index, index_written; /* the latter for earlier builds: not a time */
    _Atomic uint64_t index_wal;
};

static const char magic[8] = "ampwm1\n";

static bool boot_id(char out[BOOT_MAX])
{
    memset(out, 0, BOOT_MAX);
    AMP_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, out, BOOT_MAX - 1) >= 36;
}

static bool page_is_ours(const struct amp_wm_page *p, int logfd, char boot[BOOT_MAX],
                         struct stat *st)
{
    return boot_id(boot) && fstat(logfd, st) == 0 && memcmp(p->magic, magic, sizeof magic) == 0 &&
           memcmp(p->boot, boot, BOOT_MAX) == 0 && p->dev == st->st_dev && p->ino == st->st_ino;
}

/* Whether the page has a disk block. A write to a mapped hole on a full disk raises SIGBUS. */
static bool has_block(int fd, const struct stat *st, bool read_only)
{
    if (!S_ISREG(st->st_mode))
        return false;
    if (read_only || (st->st_size >= PAGE && st->st_blocks * 512 >= PAGE))
        return st->st_size >= PAGE;
    return posix_fallocate(fd, 0, PAGE) == 0;
}

void amp_wm_open(struct amp_watermark *w, int logfd, bool read_only)
{
    *w = (struct amp_watermark){.read_only = read_only};
    int flags = read_only ? O_RDONLY : O_RDWR | O_CREAT;
    AMP_CLOSE int fd = amp_file_open(logfd, "watermark", flags | O_NOFOLLOW, 0600, NULL);
    if (fd < 0)
        return;
    struct stat st;
    if (fstat(fd, &st) == 0 && has_block(fd, &st, read_only)) {
        void *p =
            mmap(NULL, PAGE, read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED) {
            char boot[BOOT_MAX];
            w->page = p;
            w->ours = page_is_ours(w->page, logfd, boot, &st);
        }
    }
}

void amp_wm_close(struct amp_watermark *w)
{
    if (w->page)
        munmap(w->page, PAGE);
    *w = (struct amp_watermark){0};
}

bool amp_wm_claim(struct amp_watermark *w, int logfd)
{
    char boot[BOOT_MAX];
    struct stat st;
    if (!w->page || w->read_only)
        return false;
    if (!w->ours) {
        if (!page_is_ours(w->page, logfd, boot, &st)) {
            if (!boot[0])
                return false;
            memset(w->page->magic, 0, sizeof magic);
            atomic_store(&w->page->durable, 0);
            atomic_store(&w->page->failed, 0);
            atomic_store(&w->page->verified, 0);
            atomic_store(&w->page->epoch, 1);
            atomic_store(&w->page->index, 0);
            atomic_store(&w->page->index_wal, 0);
            memcpy(w->page->boot, boot, BOOT_MAX);
            w->page->dev = st.st_dev;
            w->page->ino = st.st_ino;
            memcpy(w->page->magic, magic, sizeof magic);
        }
        w->ours = true;
    }
    return atomic_load(&w->page->verified) != 0;
}

void amp_wm_set_verified(struct amp_watermark *w, bool verified)
{
    if (w->ours && !w->read_only)
        atomic_store(&w->page->verified, verified);
}

uint64_t amp_wm_get(const struct amp_watermark *w)
{
    uint64_t n = w->ours ? atomic_load(&w->page->durable) : 0;
    return n > w->own ? n : w->own;
}

void amp_wm_raise(struct amp_watermark *w, uint64_t n)
{
    if (n > w->own)
        w->own = n;
    if (!w->ours || w->read_only)
        return;
    uint64_t now = atomic_load(&w->page->durable);
    while (now < n && !atomic_compare_exchange_weak(&w->page->durable, &now, n))
        continue;
}

void amp_wm_reset(struct amp_watermark *w)
{
    w->own = 0;
    if (!w->ours || w->read_only)
        return;
    atomic_store(&w->page->durable, 0);
    atomic_fetch_add(&w->page->epoch, 1);
}

uint32_t amp_wm_epoch(const struct amp_watermark *w)
{
    return w->ours ? atomic_load(&w->page->epoch) : 0;
}

void amp_wm_set_failed(struct amp_watermark *w, bool failed)
{
    if (w->ours && !w->read_only)
        atomic_store(&w->page->failed, failed);
}

bool amp_wm_failed(const struct amp_watermark *w)
{
    return w->ours && atomic_load(&w->page->failed);
}

bool amp_wm_index(const struct amp_watermark *w, uint64_t ino, uint64_t *wal)
{
    if (!w->ours || atomic_load(&w->page->index) != ino)
        return false;
    *wal = atomic_load(&w->page->index_wal);
    return true;
}

void amp_wm_set_index(struct amp_watermark *w, uint64_t ino, uint64_t wal)
{
    if (!w->ours || w->read_only)
        return;
    atomic_store(&w->page->index_wal, wal);
    atomic_store(&w->page->index_written, 1);
    atomic_store(&w->page->index, ino);
}

_Atomic uint32_t *amp_wm_crowd(const struct amp_watermark *w)
{
    return w->page && !w->read_only ? &w->page->crowd : NULL;
}

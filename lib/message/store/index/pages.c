/* The VFS: reading and writing pages with their checksums, and the file of checksums. */
#include "message/store/index/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "message/store/log/frame.h"

/* Newer versions of SQLite may read a part of a page if the VFS allows it. */
#ifndef SQLITE_IOCAP_SUBPAGE_READ
#define SQLITE_IOCAP_SUBPAGE_READ 0x00008000
#endif

enum { HEAD = 64, BLOCK = 512, SMALLEST_PAGE = 512, NAME_SPACE = 4400 };

static const char magic[8] = "ampsum1";

/* The file of checksums begins with this; from byte HEAD on it has 8 bytes for each page, 0: the
 * page was never written. */
struct head {
    char magic[8];
    uint64_t seed;
    uint64_t floor, reached; /* frames of the log */
    uint32_t writing;        /* pages are being moved into the file */
    uint32_t unchecked;      /* computed from the file as it was found */
};

struct page_file {
    sqlite3_file base;
    int fd; /* of the checksums; -1: none */
    bool read_only, is_new;
    bool moving; /* within a checkpoint */
    bool failed; /* a checksum could not be written: the file must not be synced */
    uint32_t bad;
    uint64_t seed, next_floor;
    uint32_t writing;
    /* The checksums of some pages in a row, not written yet. */
    uint64_t block, lowest, highest; /* highest 0: none */
    uint64_t sum[BLOCK];
    char name[NAME_SPACE];
    _Alignas(8) char real[]; /* SQLite's own file */
};

static sqlite3_vfs *own_vfs(void);

static struct page_file *mine(sqlite3_file *f)
{
    return (struct page_file *)f;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
    return (sqlite3_file *)mine(f)->real;
}

/* ---- the file of checksums ---- */

static bool bytes_read(int fd, void *p, size_t n, uint64_t off)
{
    ssize_t r;
    do
        r = pread(fd, p, n, (off_t)off);
    while (r < 0 && errno == EINTR);
    return r == (ssize_t)n;
}

static bool bytes_write(int fd, const void *p, size_t n, uint64_t off)
{
    ssize_t r;
    do
        r = pwrite(fd, p, n, (off_t)off);
    while (r < 0 && errno == EINTR);
    return r == (ssize_t)n;
}

static bool head_read(const struct page_file *f, struct head *h)
{
    return f->fd >= 0 && bytes_read(f->fd, h, sizeof *h, 0) &&
           memcmp(h->magic, magic, sizeof magic) == 0;
}

static bool number_write(const struct page_file *f, size_t at, const void *v, size_t n)
{
    return f->fd >= 0 && !f->read_only && bytes_write(f->fd, v, n, at);
}

static uint64_t entry_at(uint64_t page)
{
    return HEAD + 8 * page;
}

/* page: from 0 on. */
static uint64_t page_sum(const struct page_file *f, uint64_t page, const void *p)
{
    uint64_t key = f->seed ^ (page + 1) * 0x9e3779b97f4a7c15U;
    uint64_t sum = amp_store_hash(key, (struct amp_span){p, AMP_PAGE}, (struct amp_span){0});
    return sum ? sum : 1;
}

static bool is_zero(const char *p)
{
    return p[0] == 0 && memcmp(p, p + 1, AMP_PAGE - 1) == 0;
}

static bool page_fits(const struct page_file *f, uint64_t page, const void *p)
{
    uint64_t want;
    if (!bytes_read(f->fd, &want, sizeof want, entry_at(page)))
        want = 0;
    return want ? want == page_sum(f, page, p) : is_zero(p);
}

static bool block_flush(struct page_file *f)
{
    if (f->highest) {
        size_t from = f->lowest % BLOCK;
        if (!bytes_write(f->fd, f->sum + from, (f->highest - f->lowest) * sizeof *f->sum,
                         entry_at(f->lowest)))
            f->failed = true;
    }
    f->highest = 0;
    return !f->failed;
}

/* Notes a page's checksum. Pages come in order: those of a block are written at once. */
static void page_note(struct page_file *f, uint64_t page, const void *p)
{
    if (f->highest && page / BLOCK != f->block)
        block_flush(f);
    if (!f->highest) {
        f->block = page / BLOCK;
        f->lowest = page;
        f->highest = page + 1;
        /* The checksums between two pages of this block stay as they are. */
        memset(f->sum, 0, sizeof f->sum);
        ssize_t n = pread(f->fd, f->sum, sizeof f->sum, (off_t)entry_at(f->block * BLOCK));
        if (n < 0)
            f->failed = true;
    }
    f->sum[page % BLOCK] = page_sum(f, page, p);
    if (page < f->lowest)
        f->lowest = page;
    if (page >= f->highest)
        f->highest = page + 1;
}

static int sums_create(struct page_file *f, uint64_t size)
{
    struct head h = {.unchecked = size > 0};
    char page[AMP_PAGE];
    if (ftruncate(f->fd, 0) != 0)
        return SQLITE_CANTOPEN;
    amp_random(&h.seed, sizeof h.seed);
    f->seed = h.seed;
    f->is_new = true;
    for (uint64_t i = 0; i * AMP_PAGE < size; i++) {
        int rc = real_of(&f->base)->pMethods->xRead(real_of(&f->base), page, AMP_PAGE,
                                                    (sqlite3_int64)(i * AMP_PAGE));
        if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
            return rc;
        page_note(f, i, page);
    }
    if (!block_flush(f) || (size && fdatasync(f->fd) != 0))
        return SQLITE_CANTOPEN;
    /* The head last: without it the file is made again. */
    memcpy(h.magic, magic, sizeof magic);
    return bytes_write(f->fd, &h, sizeof h, 0) ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int sums_open(struct page_file *f, const char *name, bool read_only)
{
    struct head h;
    sqlite3_int64 size;
    if (snprintf(f->name, sizeof f->name, "%s" AMP_PAGES_SUFFIX, name) >= (int)sizeof f->name)
        return SQLITE_CANTOPEN;
    f->read_only = read_only;
    f->fd = amp_file_open(AT_FDCWD, f->name, (read_only ? O_RDONLY : O_RDWR | O_CREAT) | O_NOFOLLOW,
                          0600, NULL);
    if (f->fd < 0)
        return read_only ? SQLITE_OK : SQLITE_CANTOPEN;
    int rc = real_of(&f->base)->pMethods->xFileSize(real_of(&f->base), &size);
    if (rc != SQLITE_OK)
        return rc;
    if (size > 0 && head_read(f, &h)) {
        f->seed = h.seed;
        f->writing = h.writing;
        return SQLITE_OK;
    }
    if (!read_only)
        return sums_create(f, (uint64_t)size);
    amp_auto_close(&f->fd);
    return SQLITE_OK;
}

/* ---- SQLite's calls ---- */

static int file_close(sqlite3_file *f)
{
    if (mine(f)->fd >= 0) {
        block_flush(mine(f));
        amp_auto_close(&mine(f)->fd);
    }
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int file_read(sqlite3_file *f, void *p, int n, sqlite3_int64 off)
{
    struct page_file *m = mine(f);
    int rc = real_of(f)->pMethods->xRead(real_of(f), p, n, off);
    /* SQLite reads the file's header before it knows the size of a page, and the page later. */
    if (n < SMALLEST_PAGE || m->fd < 0 || (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ))
        return rc;
    uint64_t page = (uint64_t)off / AMP_PAGE;
    if (n == AMP_PAGE && off % AMP_PAGE == 0 && page_fits(m, page, p))
        return rc;
    m->bad = (uint32_t)page + 1;
    return SQLITE_IOERR_DATA;
}

static int file_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 off)
{
    struct page_file *m = mine(f);
    const uint32_t one = 1;
    if (m->fd >= 0 && (n != AMP_PAGE || off % AMP_PAGE != 0))
        return n < SMALLEST_PAGE ? real_of(f)->pMethods->xWrite(real_of(f), p, n, off)
                                 : SQLITE_IOERR_WRITE;
    if (m->moving && !m->writing) {
        if (!number_write(m, offsetof(struct head, writing), &one, sizeof one))
            return SQLITE_IOERR_WRITE;
        m->writing = 1;
    }
    int rc = m->failed ? SQLITE_IOERR_WRITE : real_of(f)->pMethods->xWrite(real_of(f), p, n, off);
    if (rc == SQLITE_OK && m->fd >= 0) {
        page_note(m, (uint64_t)off / AMP_PAGE, p);
        if (!m->moving && !block_flush(m))
            return SQLITE_IOERR_WRITE;
    }
    return rc;
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct page_file *m = mine(f);
    off_t want = (off_t)entry_at((uint64_t)size / AMP_PAGE);
    int rc = real_of(f)->pMethods->xTruncate(real_of(f), size);
    if (rc != SQLITE_OK || m->fd < 0)
        return rc;
    if (!block_flush(m))
        return SQLITE_IOERR_WRITE;
    /* A page that is there again later may be one that was never written. */
    return lseek(m->fd, 0, SEEK_END) > want && ftruncate(m->fd, want) != 0 ? SQLITE_IOERR_TRUNCATE
                                                                           : SQLITE_OK;
}

static int directory_sync(const char *name)
{
    char dir[NAME_SPACE];
    snprintf(dir, sizeof dir, "%s", name);
    char *slash = strrchr(dir, '/');
    if (slash)
        *slash = '\0';
    AMP_CLOSE int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fsync(fd) : -1;
}

static int file_sync(sqlite3_file *f, int flags)
{
    struct page_file *m = mine(f);
    const uint32_t none = 0;
    if (m->fd >= 0 && (!block_flush(m) || (m->is_new && directory_sync(m->name) != 0)))
        return SQLITE_IOERR_FSYNC;
    m->is_new = false;
    int rc = real_of(f)->pMethods->xSync(real_of(f), flags);
    if (rc != SQLITE_OK || m->fd < 0)
        return rc;
    if (!number_write(m, offsetof(struct head, writing), &none, sizeof none) ||
        fdatasync(m->fd) != 0)
        return SQLITE_IOERR_FSYNC;
    m->writing = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *f, int op, void *arg)
{
    struct page_file *m = mine(f);
    if (op == SQLITE_FCNTL_CKPT_START && m->fd >= 0) {
        struct head h;
        m->moving = true;
        m->failed = !head_read(m, &h) ||
                    (m->next_floor > h.floor &&
                     !number_write(m, offsetof(struct head, floor), &m->next_floor, 8));
        /* Another process may have finished it since. */
        m->writing = m->failed ? 0 : h.writing;
    } else if (op == SQLITE_FCNTL_CKPT_DONE && m->fd >= 0) {
        block_flush(m);
        m->moving = false;
    }
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int file_size(sqlite3_file *f, sqlite3_int64 *out)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), out);
}

static int file_lock(sqlite3_file *f, int lock)
{
    return real_of(f)->pMethods->xLock(real_of(f), lock);
}

static int file_unlock(sqlite3_file *f, int lock)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), lock);
}

static int file_check_lock(sqlite3_file *f, int *out)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}

static int file_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int file_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f)) & ~SQLITE_IOCAP_SUBPAGE_READ;
}

/* SQLite extends the shared memory by one byte in each page of memory. With smaller blocks on the
 * disk that leaves holes, and a write to a hole on a full disk raises SIGBUS. So all blocks are
 * allocated here; a mapping that cannot be written, and kernels before 5.14, give EINVAL. */
static int file_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    int rc = real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
    void *p;

    memcpy(&p, out, sizeof p); /* without its volatile */
    if (rc != SQLITE_OK || !p || madvise(p, (size_t)size, MADV_POPULATE_WRITE) == 0 ||
        errno != EFAULT)
        return rc;
    *out = NULL;
    return SQLITE_FULL;
}

static int file_shm_lock(sqlite3_file *f, int off, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), off, n, flags);
}

static void file_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int file_shm_unmap(sqlite3_file *f, int remove)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

/* Version 2: without xFetch, which would map pages past the checksums. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static int vfs_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
    sqlite3_vfs *below = v->pAppData;
    if (!(flags & SQLITE_OPEN_MAIN_DB))
        return below->xOpen(below, name, f, flags, out);
    struct page_file *m = mine(f);
    memset(m, 0, sizeof *m);
    m->fd = -1;
    int rc = below->xOpen(below, name, real_of(f), flags, out);
    if (rc != SQLITE_OK)
        return rc;
    rc = sums_open(m, name, (flags & SQLITE_OPEN_READONLY) != 0);
    if (rc != SQLITE_OK) {
        file_close(f);
        return rc;
    }
    f->pMethods = &methods;
    return SQLITE_OK;
}

/* A rollback journal would be played back into the file. This index never has one that matters. */
static int vfs_access(sqlite3_vfs *v, const char *name, int flags, int *out)
{
    sqlite3_vfs *below = v->pAppData;
    static const char journal[] = "-journal";
    size_t n = strlen(name), k = sizeof journal - 1;
    if (n > k && strcmp(name + n - k, journal) == 0) {
        *out = 0;
        return SQLITE_OK;
    }
    return below->xAccess(below, name, flags, out);
}

static sqlite3_vfs *own_vfs(void)
{
    static sqlite3_vfs own;
    static const char name[] = "amp-index";
    sqlite3_vfs *found = sqlite3_vfs_find(name), *below = found ? NULL : sqlite3_vfs_find(NULL);
    if (!below)
        return found;
    own = *below;
    own.zName = name;
    own.pNext = NULL;
    own.pAppData = below;
    own.szOsFile = (int)sizeof(struct page_file) + below->szOsFile;
    own.xOpen = vfs_open;
    own.xAccess = vfs_access;
    return sqlite3_vfs_register(&own, 0) == SQLITE_OK ? &own : NULL;
}

const char *amp_pages_vfs(void)
{
    sqlite3_vfs *v = own_vfs();
    return v ? v->zName : NULL;
}

/* ---- what the index asks and notes ---- */

/* NULL: not a file of this VFS. */
static struct page_file *file_of(sqlite3 *db)
{
    sqlite3_file *f = NULL;
    if (!db || sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &f) != SQLITE_OK || !f ||
        f->pMethods != &methods)
        return NULL;
    return mine(f);
}

bool amp_pages_trusted(sqlite3 *db)
{
    struct page_file *f = file_of(db);
    struct head h;
    return f && head_read(f, &h) && !h.unchecked;
}

void amp_pages_note_checked(sqlite3 *db)
{
    struct page_file *f = file_of(db);
    const uint32_t none = 0;
    if (f)
        number_write(f, offsetof(struct head, unchecked), &none, sizeof none);
}

uint32_t amp_pages_bad(sqlite3 *db)
{
    struct page_file *f = file_of(db);
    return f ? f->bad : 0;
}

void amp_pages_reached(sqlite3 *db, uint64_t n)
{
    struct page_file *f = file_of(db);
    if (f)
        number_write(f, offsetof(struct head, reached), &n, sizeof n);
}

void amp_pages_restart(sqlite3 *db)
{
    struct page_file *f = file_of(db);
    const uint64_t none[2] = {0, 0};
    if (f)
        number_write(f, offsetof(struct head, floor), none, sizeof none);
}

void amp_pages_checkpoint(sqlite3 *db)
{
    struct page_file *f = file_of(db);
    struct head h;
    if (f)
        f->next_floor = head_read(f, &h) ? h.reached : 0;
}

/* The head of SQLite's shared memory (its file format's documentation, "WAL-Index File Format"):
 * the number of frames at byte 16, the salts at byte 32. */
static bool wal_head(struct page_file *f, uint32_t *frames, uint32_t *salt)
{
    void volatile *p = NULL;
    enum { SHARED = 32768, FRAMES = 4, SALT = 8 };
    if (file_shm_map(&f->base, 0, SHARED, 0, &p) != SQLITE_OK || !p)
        return false;
    *frames = ((uint32_t volatile *)p)[FRAMES];
    *salt = ((uint32_t volatile *)p)[SALT];
    return true;
}

bool amp_pages_complete(sqlite3 *db, uint64_t n)
{
    struct page_file *f = file_of(db);
    struct head h;
    uint32_t frames, salt;
    if (!f || !head_read(f, &h))
        return true;
    return n >= h.floor && !(h.writing && wal_head(f, &frames, &salt) && frames == 0);
}

uint64_t amp_pages_wal(sqlite3 *db)
{
    struct page_file *f = file_of(db);
    uint32_t frames, salt;
    return f && wal_head(f, &frames, &salt) && frames ? (uint64_t)salt << 32 | frames : 0;
}

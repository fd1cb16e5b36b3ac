/*
 * amp-ack dead export: letters as NDJSON, or a bundle with everything that explains their failures.
 * A bundle is written and synced under a temporary name, then renamed.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "cli/config.h"
#include "dead.h"
#include "message/protocol/redact/redact.h"
#include "message/store/history/history.h"
#include "json/record.h"

#define NEEDLES_MAX 512                /* ids and correlations to search in the log */
#define FRAMES_MAX  ((size_t)64 << 20) /* bytes of the log at most */
#define ERRORS_MAX  ((off_t)1 << 20)   /* bytes from the end of the error log */
#define FILE_MAX    ((size_t)1 << 30)
#define TAR_BLOCK   512

static const char *bundle_path;

static const struct amp_opt dead_export_opts[] = {
    {0, "bundle", AMP_OPT_PATH, &bundle_path, "PATH",
     .doc = "write a bundle to PATH: a directory, or an archive if it ends in .tar"},
    DEAD_EVERY_OPT,
    DEAD_DRY_OPT,
    DEAD_ALL_OPT,
    DEAD_RAW_OPT,
    DEAD_FILTER_OPTS,
    AMP_OPT_END,
};

/* ---- the bundle ---- */

#define BUNDLE_FILES 16

struct bundle {
    struct {
        const char *name;
        struct amp_buf text;
    } file[BUNDLE_FILES];
    unsigned n;
};

/* Adds a file, to be filled. */
static struct amp_buf *bundle_file(struct bundle *b, const char *name)
{
    unsigned i = b->n < BUNDLE_FILES ? b->n++ : BUNDLE_FILES - 1;
    b->file[i].name = name;
    amp_buf_init(&b->file[i].text, FILE_MAX);
    return &b->file[i].text;
}

static void bundle_release(struct bundle *b)
{
    for (unsigned i = 0; i < b->n; i++)
        amp_buf_release(&b->file[i].text);
}

/* Adds manifest.json: name, bytes and SHA-256 of each file, and the members of `about`, a JSON
 * object without braces. */
static int bundle_manifest(struct bundle *b, struct amp_span about, struct amp_error *err)
{
    struct amp_jw w;
    unsigned n = b->n;
    struct amp_buf *out = bundle_file(b, "manifest.json");
    if (amp_buf_str(out, "{", err) < 0 || amp_buf_add(out, about.p, about.n, err) < 0 ||
        amp_buf_str(out, ",\"files\":", err) < 0)
        return -1;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '[');
    for (unsigned i = 0; i < n; i++) {
        char digest[AMP_SHA256_MAX];
        struct amp_span text = amp_buf_span(&b->file[i].text);
        amp_sha256_hex(text, digest);
        amp_jw_open(&w, '{');
        amp_jw_member_text(&w, "name", b->file[i].name);
        amp_jw_member_uint(&w, "bytes", text.n);
        amp_jw_member_text(&w, "sha256", digest);
        amp_jw_close(&w, '}');
    }
    amp_jw_close(&w, ']');
    return amp_jw_end(&w, err) < 0 ? -1 : amp_buf_str(out, "}\n", err);
}

/* A ustar header. The names are short, the sizes below 8 GiB. */
static void tar_head(char h[TAR_BLOCK], const char *dir, const char *name, size_t size, long now)
{
    unsigned sum = 0;
    memset(h, 0, TAR_BLOCK);
    snprintf(h, 100, "%.60s/%s", dir, name);
    snprintf(h + 100, 8, "%07o", 0600);
    snprintf(h + 108, 8, "%07o", 0);
    snprintf(h + 116, 8, "%07o", 0);
    snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
    snprintf(h + 136, 12, "%011lo", (unsigned long)now);
    memset(h + 148, ' ', 8);
    h[156] = '0';
    memcpy(h + 257, "ustar\00000", 8);
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum & 0777777);
}

static int write_tar(const struct bundle *b, int fd, const char *path, struct amp_error *err)
{
    static const char zeros[2 * TAR_BLOCK];
    char head[TAR_BLOCK], name[64];
    const char *base = strrchr(path, '/');
    struct amp_span stem = amp_span_str(base ? base + 1 : path);
    stem.n -= 4; /* .tar */
    amp_span_copy(stem, name, sizeof(name));
    for (unsigned i = 0; i < b->n; i++) {
        struct amp_span text = amp_buf_span(&b->file[i].text);
        size_t pad = (TAR_BLOCK - text.n % TAR_BLOCK) % TAR_BLOCK;
        tar_head(head, name, b->file[i].name, text.n, (long)(amp_now_ms() / 1000));
        if (amp_write_all(fd, (struct amp_span){head, TAR_BLOCK}, err) < 0 ||
            amp_write_all(fd, text, err) < 0 ||
            amp_write_all(fd, (struct amp_span){zeros, pad}, err) < 0)
            return -1;
    }
    if (amp_write_all(fd, (struct amp_span){zeros, sizeof(zeros)}, err) < 0)
        return -1;
    return fsync(fd) < 0 ? amp_fail_errno(err, AMP_IOERR, "cannot sync %s", path) : 0;
}

static int write_files(const struct bundle *b, const char *dir, struct amp_error *err)
{
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open %s", dir);
    for (unsigned i = 0; i < b->n; i++)
        if (amp_file_write_atomic(fd, b->file[i].name, 0600, amp_buf_span(&b->file[i].text), err) <
            0)
            return -1;
    return 0;
}

/* Removes a bundle that is not complete. */
static void bundle_discard(const struct bundle *b, const char *temp, bool tar)
{
    AMP_CLOSE int fd = tar ? -1 : open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; fd >= 0 && i < b->n; i++)
        unlinkat(fd, b->file[i].name, 0);
    if (tar)
        unlink(temp);
    else
        rmdir(temp);
}

/* Writes the bundle: a directory, or an archive if the path ends in .tar. It appears completely or
 * not at all. CANTCREAT if the path exists. */
static int bundle_write(const struct bundle *b, const char *path, struct amp_error *err)
{
    char temp[PATH_MAX], id[AMP_UUID_MAX];
    size_t n = strlen(path);
    bool tar = n > 4 && strcmp(path + n - 4, ".tar") == 0;
    struct stat st;
    int rc;
    if (lstat(path, &st) == 0)
        return amp_fail(err, AMP_CANTCREAT, exists, "%s exists already", path);
    if (n == 0 || n > PATH_MAX - 64)
        return amp_fail(err, AMP_USAGE, bad_path, "--bundle needs a path");
    amp_uuid4(id);
    snprintf(temp, sizeof(temp), "%.*s.%.8s.partial", (int)(PATH_MAX - 64), path, id);
    if (tar) {
        AMP_CLOSE int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        rc = fd < 0 ? amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s", temp)
                    : write_tar(b, fd, path, err);
    } else {
        rc = mkdir(temp, 0700) < 0 ? amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s", temp)
                                   : write_files(b, temp, err);
    }
    if (rc == 0 && renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
        rc = amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s", path);
    if (rc < 0) {
        bundle_discard(b, temp, tar);
        return -1;
    }
    return dead_sync_parent(path, err);
}

/* ---- its contents ---- */

struct export
{
    struct amp_store *s;
    struct bundle b;
    struct amp_buf *out;
    char *needle[NEEDLES_MAX];
    size_t n_needles, letters, frames;
    bool cut; /* some frames or ids did not fit */
    struct amp_error *err;
};

/* A line that another program wrote, redacted unless --raw. */
static int add_line(struct export *x, struct amp_buf *out, struct amp_span line)
{
    int rc = dead_filter.raw ? amp_buf_add(out, line.p, line.n, x->err)
                             : amp_redact_line(line, out, x->err);
    return rc < 0 ? -1 : amp_buf_str(out, "\n", x->err);
}

static int add_needle(struct export *x, struct amp_span text, struct amp_error *err)
{
    if (text.n < 2)
        return 0;
    for (size_t i = 0; i < x->n_needles; i++)
        if (amp_span_is(text, x->needle[i]))
            return 0;
    if (x->n_needles == NEEDLES_MAX) {
        x->cut = true;
        return 0;
    }
    /* Escaped as in JSON, without the quotes. */
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw w;
    amp_buf_init(&b, text.n * 6 + 16);
    amp_jw_init(&w, &b);
    amp_jw_str(&w, text);
    if (amp_jw_end(&w, err) < 0)
        return -1;
    char *copy = amp_span_dup((struct amp_span){b.data + 1, b.len - 2});
    if (!copy)
        return amp_fail_memory(err);
    x->needle[x->n_needles++] = copy;
    return 0;
}

static int letter_fn(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                     struct amp_span json, struct amp_error *err)
{
    struct export *x = ctx;
    x->letters++;
    if (dead_format(id, d, json, x->out, err) < 0 || amp_buf_str(x->out, "\n", err) < 0 ||
        add_needle(x, id, err) < 0 || add_needle(x, d->correlation, err) < 0)
        return -1;
    if (bundle_path)
        return 0;
    int rc = amp_out(amp_buf_span(x->out), err);
    amp_buf_reset(x->out);
    return rc;
}

static int frame_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *err)
{
    struct export *x = ctx;
    for (size_t i = 0; i < x->n_needles; i++) {
        if (!memmem(frame.p, frame.n, x->needle[i], strlen(x->needle[i])))
            continue;
        if (x->out->len + frame.n > FRAMES_MAX) {
            x->cut = true;
            return 1;
        }
        x->frames++;
        return add_line(x, x->out, frame);
    }
    return 0;
}

/* Adds the last lines of a file of the error log, at most *room bytes, and reduces *room. */
static int add_error_file(struct export *x, int fd, struct amp_buf *out, off_t *room)
{
    AMP_BUF struct amp_buf part = {0};
    amp_buf_init(&part, ERRORS_MAX + 1);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    off_t from = size > *room ? size - *room : 0;
    if (size <= 0 || amp_buf_reserve(&part, ERRORS_MAX, x->err) < 0)
        return size <= 0 ? 0 : -1;
    ssize_t n = pread(fd, part.data, (size_t)(size - from), from);
    *room -= size - from;
    for (ssize_t at = 0; at < n;) {
        const char *line = part.data + at, *nl = memchr(line, '\n', (size_t)(n - at));
        size_t len = nl ? (size_t)(nl - line) : (size_t)(n - at);
        /* The first line may be incomplete. */
        if (len > 0 && (at > 0 || from == 0) && add_line(x, out, (struct amp_span){line, len}) < 0)
            return -1;
        at += (ssize_t)len + 1;
    }
    return 0;
}

static int open_errors(struct export *x, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", amp_store_dir(x->s), name);
    return amp_file_open(AT_FDCWD, path, O_RDONLY, 0, NULL);
}

/* The last lines of the error log, also of its previous file, which may have just been renamed. */
static int add_errors(struct export *x)
{
    struct amp_buf *out = bundle_file(&x->b, "errors.ndjson");
    AMP_CLOSE int fd = open_errors(x, "error.ndjson");
    AMP_CLOSE int before = open_errors(x, "error.1.ndjson");
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END), room = ERRORS_MAX - size;
    if (room > 0 && add_error_file(x, before, out, &room) < 0)
        return -1;
    room = ERRORS_MAX;
    return add_error_file(x, fd, out, &room);
}

static int add_config(struct export *x)
{
    struct amp_config_files f = amp_config_files();
    if (f.user.n > 0 && add_line(x, bundle_file(&x->b, "amp.json"), f.user) < 0)
        return -1;
    if (f.state.n > 0 && add_line(x, bundle_file(&x->b, "state-amp.json"), f.state) < 0)
        return -1;
    return 0;
}

static int add_machine(struct export *x)
{
    struct utsname u;
    struct statvfs fs;
    struct amp_jw w;
    struct amp_buf *out = bundle_file(&x->b, "machine.json");
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "toolkit", AMP_VERSION);
    amp_jw_member_text(&w, "compiler", __VERSION__);
    amp_rec_time(&w, "now", amp_now_ms());
    if (uname(&u) == 0) {
        amp_jw_member_text(&w, "system", u.sysname);
        amp_jw_member_text(&w, "release", u.release);
        amp_jw_member_text(&w, "machine", u.machine);
    }
    amp_jw_member_int(&w, "processors", sysconf(_SC_NPROCESSORS_ONLN));
    amp_jw_member_int(&w, "memory", (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    amp_jw_member_int(&w, "pipe_buffer", (int64_t)sysconf(_SC_PAGESIZE) * 16);
    if (statvfs(amp_store_dir(x->s), &fs) == 0)
        amp_jw_member_int(&w, "state_disk_free", (int64_t)(fs.f_bavail * fs.f_frsize));
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, x->err);
}

/* The number of records in each state, for one kind. */
struct tally {
    struct {
        char state[32];
        uint64_t n;
    } row[32];
    unsigned n;
};

static int tally_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                    struct amp_error *err)
{
    struct tally *t = ctx;
    unsigned i = 0;
    while (i < t->n && !amp_span_is(rec->state, t->row[i].state))
        i++;
    if (i == t->n && t->n < 32)
        amp_span_copy(rec->state, t->row[t->n++].state, sizeof(t->row[0].state));
    if (i < t->n)
        t->row[i].n++;
    return 0;
}

static int add_state(struct export *x)
{
    static const char *const kinds[] = {"message", "dead",   "token", "task",
                                        "agent",   "cursor", "inbox"};
    struct amp_jw w;
    struct amp_buf *out = bundle_file(&x->b, "state.json");
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        struct tally t = {.n = 0};
        if (amp_store_each(x->s, kinds[k], NULL, tally_fn, &t, x->err) < 0)
            return -1;
        amp_jw_member_open(&w, kinds[k], '{');
        for (unsigned i = 0; i < t.n; i++) {
            amp_jw_member_uint(&w, t.row[i].state, t.row[i].n);
        }
        amp_jw_close(&w, '}');
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, x->err);
}

static int add_manifest(struct export *x)
{
    AMP_BUF struct amp_buf about = {0};
    char when[AMP_TIME_MAX];
    amp_buf_init(&about, 4096);
    amp_time_format(amp_now_ms(), when);
    if (amp_buf_fmt(&about, x->err,
                    "\"made\":\"%s\",\"by\":\"amp-ack %s\",\"redacted\":%s,\"letters\":%zu,"
                    "\"frames\":%zu,\"cut\":%s",
                    when, AMP_VERSION, dead_filter.raw ? "false" : "true", x->letters, x->frames,
                    x->cut ? "true" : "false") < 0)
        return -1;
    return bundle_manifest(&x->b, amp_buf_span(&about), x->err);
}

static int files_add(struct export *x, const struct dead_choices *c)
{
    x->out = bundle_file(&x->b, "letters.ndjson");
    if (dead_each_choice(x->s, c, letter_fn, x, x->err) < 0)
        return -1;
    if (!bundle_path)
        return 0;
    x->out = bundle_file(&x->b, "frames.ndjson");
    if (amp_store_frames(x->s, 0, frame_fn, x, x->err) < 0 || add_errors(x) < 0 ||
        add_config(x) < 0 || add_machine(x) < 0 || add_state(x) < 0 || add_manifest(x) < 0)
        return -1;
    return bundle_write(&x->b, bundle_path, x->err);
}

static int letters_export(struct amp_store *s, struct dead_choices *c, struct amp_error *err)
{
    struct export *x = calloc(1, sizeof(*x));
    int rc = 0;
    if (!x)
        return amp_fail_memory(err);
    x->s = s;
    x->err = err;
    for (size_t i = 0; dead_filter.dry_run && i < c->n && rc == 0; i++)
        rc = dead_report("export", &c->v[i], NULL, err);
    if (!dead_filter.dry_run)
        rc = files_add(x, c);
    for (size_t i = 0; i < x->n_needles; i++)
        free(x->needle[i]);
    bundle_release(&x->b);
    free(x);
    return rc;
}

static int ack_dead_export(struct amp_command *c, struct amp_error *err)
{
    return dead_with_choices(c, letters_export, err);
}

const struct amp_verb dead_export_verbs[] = {
    {"dead export", "[ID…]", "export dead letters, or a bundle for diagnosis", dead_export_opts,
     ack_dead_export, .check = dead_check, .opens = AMP_OPENS_LOOK, .signals = true,
     .values = "letter"},
    {0},
};

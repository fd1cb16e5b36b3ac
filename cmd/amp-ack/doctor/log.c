/* Checks of the log and its index. They read the complete log: other programs do not notice damage
 * in an old segment until they read that place. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/json/tape.h>

#include "doctor.h"
#include "message/store/history/history.h"
#include "message/store/history/verify.h"

enum { PROGRESS_MS = 2000 };

bool doctor_last_segment(const char *dir, char out[PATH_MAX])
{
    char path[PATH_MAX - NAME_MAX - 2], name[NAME_MAX + 1] = "";
    snprintf(path, sizeof(path), "%s/log", dir);
    AMP_DIR DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (amp_span_glob(amp_span_str(e->d_name), AMP_SPAN("??????.ndjson")) &&
            strcmp(e->d_name, name) > 0)
            snprintf(name, sizeof(name), "%s", e->d_name);
    snprintf(out, PATH_MAX, "%s/%s", path, name);
    return name[0] != '\0';
}

static int frame_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, frame.p, frame.n, &fault) == 0) {
        uint32_t at = amp_tape_get(&t, 0, AMP_SPAN("at"));
        if (at != AMP_TOK_NONE)
            amp_time_parse(amp_tok_raw(&t, at), ctx);
    }
    return 1;
}

int doctor_frame_time(struct amp_store *s, uint64_t n, int64_t *at_ms, struct amp_error *err)
{
    *at_ms = 0;
    return amp_store_frames(s, n - 1, frame_fn, at_ms, err) < 0 ? -1 : 0;
}

void doctor_tail(const char *dir)
{
    char path[PATH_MAX], c = '\n';
    if (!doctor_last_segment(dir, path))
        return;
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, path, O_RDONLY, 0, NULL);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    if (end > 0 && pread(fd, &c, 1, end - 1) == 1 && c != '\n')
        doctor_say(
            DOCTOR_WARN, "amp-ack status --state @", dir,
            "the last line of %s is incomplete (a writer was killed); the next writer removes it",
            path);
}

/* Without an index nothing is lost, but each look-up reads the complete log until it is rebuilt. */
void doctor_index(const char *dir)
{
    char path[PATH_MAX];
    bool any = false, segments = doctor_last_segment(dir, path);
    AMP_DIR DIR *d = opendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        char head[16] = "";
        struct amp_span name = amp_span_str(e->d_name);
        if (!amp_span_glob(name, AMP_SPAN("index*.db")))
            continue;
        any = true;
        AMP_CLOSE int fd = amp_file_open(dirfd(d), e->d_name, O_RDONLY, 0, NULL);
        struct stat st;
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
            (pread(fd, head, 16, 0) != 16 || memcmp(head, "SQLite format 3", 16) != 0))
            doctor_say(DOCTOR_WARN, doctor_fix("rm %s/%s", doctor_quote(dir), e->d_name), NULL,
                       "%s is damaged; the next writer rebuilds it from the log", e->d_name);
    }
    if (!any && segments)
        doctor_say(DOCTOR_WARN, "amp-ack status --state @", dir,
                   "the index is missing; the next writer builds it from the log");
}

void doctor_index_pages(struct amp_store *s, const char *dir)
{
    struct amp_error why;
    if (amp_store_check_index(s, &why) < 0)
        doctor_say(DOCTOR_WARN, "rm @/index*.db", dir,
                   "%s; without it, the next writer builds a new one from the log", why.what);
}

static void blob_fn(void *ctx, const char *name, bool missing)
{
    uint32_t *n = ctx;
    ++*n;
    doctor_say(DOCTOR_FAIL,
               "# restore the file from a backup; records and lines that need it cannot be read",
               NULL, "blob/%s is %s", name, missing ? "missing" : "damaged");
}

uint32_t doctor_blobs(struct amp_store *s, const char *dir)
{
    struct amp_error why;
    uint32_t n = 0;
    if (amp_store_check_blobs(s, blob_fn, &n, &why) < 0)
        doctor_unreadable(dir, "the blobs", &why);
    return n;
}

struct reading {
    const char *dir;
    uint32_t read, damaged;
    int64_t noted_ms;
    bool terminal;
};

static void note_progress(struct reading *r, const struct amp_store_segment *seg)
{
    int64_t now = amp_mono_ms();
    if (seg->first == seg->last || (!r->terminal && now - r->noted_ms < PROGRESS_MS))
        return;
    amp_note("reading the log: segment %u of %u", seg->number - seg->first + 1,
             seg->last - seg->first + 1);
    r->noted_ms = now;
}

static void segment_fn(void *ctx, const struct amp_store_segment *seg)
{
    struct reading *r = ctx;
    r->read++;
    note_progress(r, seg);
    if (seg->damage) {
        r->damaged++;
        doctor_say(DOCTOR_FAIL, "amp-ack repair --state @", r->dir, "%s: %s", seg->damage->code,
                   seg->damage->what);
    }
}

int doctor_segments(struct amp_store *s, const char *dir, struct amp_error *err)
{
    struct reading r = {
        .dir = dir, .noted_ms = amp_mono_ms(), .terminal = isatty(STDERR_FILENO) == 1};
    if (amp_store_segments(s, segment_fn, &r, err) < 0)
        return -1;
    return (int)r.damaged;
}

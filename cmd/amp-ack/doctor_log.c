/* What the doctor sees of the log and its index. All of the log is read: damage in an old segment
 * shows to nobody else until something needs that place. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "doctor.h"
#include "store/history/history.h"

enum { PROGRESS_MS = 2000 };

bool doctor_last_segment(const char *dir, char out[PATH_MAX])
{
    char path[PATH_MAX - NAME_MAX - 2], name[NAME_MAX + 1] = "";
    snprintf(path, sizeof(path), "%s/log", dir);
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (amp_span_glob(amp_span_str(e->d_name), AMP_SPAN("??????.ndjson")) &&
            strcmp(e->d_name, name) > 0)
            snprintf(name, sizeof(name), "%s", e->d_name);
    if (d)
        closedir(d);
    snprintf(out, PATH_MAX, "%s/%s", path, name);
    return name[0] != '\0';
}

void doctor_tail(const char *dir)
{
    char path[PATH_MAX], m[DOCTOR_FIX_MAX], c = '\n';
    if (!doctor_last_segment(dir, path))
        return;
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, path, O_RDONLY, 0, NULL);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    if (end > 0 && pread(fd, &c, 1, end - 1) == 1 && c != '\n')
        doctor_say(DOCTOR_STATE, DOCTOR_WARN,
                   doctor_fix(m, "amp-ack status --state %s", doctor_quote(dir)),
                   "the last line of %s is torn, as by a writer that was killed: the next "
                   "writer cuts it",
                   path);
}

/* Nothing is lost with it, but looking up takes the whole log until it is built again. */
void doctor_index(const char *dir)
{
    char path[PATH_MAX], m[DOCTOR_FIX_MAX];
    bool any = false, segments = doctor_last_segment(dir, path);
    DIR *d = opendir(dir);
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
            doctor_say(DOCTOR_STATE, DOCTOR_WARN,
                       doctor_fix(m, "rm %s/%s", doctor_quote(dir), e->d_name),
                       "%s is damaged; the next writer builds it again from the log", e->d_name);
    }
    if (d)
        closedir(d);
    if (!any && segments)
        doctor_say(DOCTOR_STATE, DOCTOR_WARN,
                   doctor_fix(m, "amp-ack status --state %s", doctor_quote(dir)),
                   "there is no index; the next writer builds it from the log");
}

struct reading {
    const char *dir;
    uint32_t read, damaged;
    int64_t told_ms; /* 0: nothing was yet */
    bool terminal;
};

static void tell_progress(struct reading *r, const struct amp_store_segment *seg)
{
    int64_t now = amp_mono_ms();
    if (seg->first == seg->last || (!r->terminal && now - r->told_ms < PROGRESS_MS))
        return;
    amp_note("reading the log: segment %u of %u", seg->number - seg->first + 1,
             seg->last - seg->first + 1);
    r->told_ms = now;
}

static int segment_fn(void *ctx, const struct amp_store_segment *seg)
{
    struct reading *r = ctx;
    char m[DOCTOR_FIX_MAX];
    r->read++;
    tell_progress(r, seg);
    if (seg->damage) {
        r->damaged++;
        doctor_say(DOCTOR_STATE, DOCTOR_FAIL,
                   doctor_fix(m, "amp-ack repair --state %s", doctor_quote(r->dir)), "%s: %s",
                   seg->damage->code, seg->damage->what);
    }
    return 0;
}

int doctor_segments(struct amp_store *s, const char *dir, struct amp_error *err)
{
    struct reading r = {
        .dir = dir, .told_ms = amp_mono_ms(), .terminal = isatty(STDERR_FILENO) == 1};
    if (amp_store_segments(s, segment_fn, &r, err) < 0)
        return -1;
    return (int)r.damaged;
}

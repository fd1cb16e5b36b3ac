/* Verifying the log with its key: an attacker who can write all of log/, and knows how the fast
 * checksums and links are made, but does not have the key. Every change is found. */
#include <amp/base/file.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../tap.h"
#include "../tree.h"
#include "message/store/history/verify.h"
#include "message/store/log/frame.h"
#include "message/store/store.h"

enum { SEGMENTS = 12, FRAMES = 400, TEXT = 1 << 16 };

static struct amp_error err;
static char dir[256];

/* The log as it was written, and as the attacker changed it. */
struct copy {
    size_t n[SEGMENTS];
    char text[SEGMENTS][TEXT];
    int segments;
};
static struct copy was, is;

static int take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                struct amp_error *e)
{
    *c = (struct amp_store_change){.event = "step", .to = "NEW", .json = amp_span_str(ctx)};
    return 0;
}

/* A signature of tests: the text's checksum. */
static uint64_t signature(struct amp_span text)
{
    return XXH3_64bits_withSeed(text.p, text.n, 7);
}

static int sign(const char *d, struct amp_span text, struct amp_buf *sig, struct amp_error *e)
{
    return amp_buf_fmt(sig, e, "{\"value\":\"%016" PRIx64 "\"}", signature(text));
}

static int check(void *ctx, struct amp_span text, struct amp_span sig, struct amp_error *e)
{
    char want[64];
    snprintf(want, sizeof want, "{\"value\":\"%016" PRIx64 "\"}", signature(text));
    ++*(int *)ctx;
    return amp_span_is(sig, want) ? 0 : amp_fail_text(e, AMP_NO, "bad_signature", "it is wrong");
}

static struct amp_store *store_open(bool read_only, uint64_t keep)
{
    struct amp_store_options o = {.lock_timeout_ms = 5000,
                                  .segment_bytes = 2048,
                                  .keep_segments = keep,
                                  .read_only = read_only,
                                  .sign_head = sign};
    struct amp_store *s = NULL;
    if (amp_store_open(dir, &o, &s, &err) < 0)
        printf("# open: %s %s\n", err.code, err.what);
    return s;
}

static void fill(int from, int to, uint64_t keep)
{
    struct amp_store *s = store_open(false, keep);
    for (int i = from; s && i <= to; i++) {
        char id[24], json[80];
        snprintf(id, sizeof id, "key-%02d", i % 7);
        snprintf(json, sizeof json, "{\"i\":%d}", i);
        if (amp_store_update(s, AMP_KEY("task", amp_span_str(id)), NULL, take, json, NULL, &err) ||
            amp_store_sync(s, &err))
            printf("# fill: %s %s\n", err.code, err.what);
    }
    amp_store_close(s);
}

static void name_of(int seg, char out[300])
{
    snprintf(out, 300, "%s/log/%06d.ndjson", dir, seg + 1);
}

static void copy_read(struct copy *c)
{
    char path[300];
    for (c->segments = 0; c->segments < SEGMENTS; c->segments++) {
        AMP_BUF struct amp_buf b = {0};
        name_of(c->segments, path);
        amp_buf_init(&b, TEXT);
        if (amp_file_read(AT_FDCWD, path, TEXT, &b, NULL) < 0)
            break;
        c->n[c->segments] = b.len;
        memcpy(c->text[c->segments], b.data, b.len);
    }
}

/* A segment of n SIZE_MAX does not exist. */
static void copy_write(const struct copy *c)
{
    char path[300];
    for (int i = 0; i < SEGMENTS; i++) {
        name_of(i, path);
        unlink(path);
        if (i >= c->segments || c->n[i] == SIZE_MAX)
            continue;
        AMP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || amp_write_all(fd, (struct amp_span){c->text[i], c->n[i]}, &err) < 0)
            printf("# cannot write %s\n", path);
    }
}

static struct amp_store_verdict verdict;
static int checked, notes;

static void count_note(void *ctx, uint32_t seg, uint64_t off, const char *what)
{
    notes++;
}

static int verify(void)
{
    struct amp_store *s = store_open(true, 100);
    struct amp_store_verify how = {.check = check, .ctx = &checked, .note = count_note};
    checked = notes = 0;
    err = (struct amp_error){0};
    int rc = s ? amp_store_verify(s, &how, &verdict, &err) : -2;
    amp_store_close(s);
    return rc;
}

/* Whether verify finds the change of `is`. */
static bool is_found(void)
{
    copy_write(&is);
    return verify() == -1 && strcmp(err.code, "log_tampered") == 0 && err.status == AMP_NO &&
           verdict.seg > 0 && strstr(err.what, ".ndjson, offset ");
}

static void hex(char *p, unsigned n, uint64_t v)
{
    while (n--) {
        p[n] = "0123456789abcdef"[v & 15];
        v >>= 4;
    }
}

/* Makes the fast checksums of all frames of `is` again, and the links and numbers to them. The
 * numbers keep their count of digits here. */
static void reseal(bool renumber)
{
    uint64_t sum = 0, n = 0;
    for (int s = 0; s < is.segments; s++) {
        if (is.n[s] == SIZE_MAX)
            continue;
        for (char *p = is.text[s], *end = p + is.n[s]; p < end;) {
            char *lf = memchr(p, '\n', (size_t)(end - p)), digits[24];
            if (!lf)
                break;
            char *at = memmem(p, (size_t)(lf - p), ",\"n\":", 5);
            char *link = memmem(p, (size_t)(lf - p), ",\"p\":\"", 6);
            if (at && link && renumber) {
                int64_t width = link - (at + 5);
                if (n == 0)
                    n = strtoull(at + 5, NULL, 10);
                snprintf(digits, sizeof digits, "%0*" PRIu64, (int)width, n);
                if ((int64_t)strlen(digits) == width)
                    memcpy(at + 5, digits, (size_t)width);
                n++;
                if (sum)
                    hex(link + 6, 16, sum);
            }
            size_t size = (size_t)(lf - p) - AMP_FRAME_HEAD;
            if (lf - p > AMP_FRAME_HEAD) {
                sum = XXH3_64bits(p + AMP_FRAME_HEAD, size);
                hex(p + 7, 8, size);
                hex(p + 15, 16, sum);
            }
            p = lf + 1;
        }
    }
}

/* The frame number i of a segment. */
static bool frame_at(const struct copy *c, int seg, int i, size_t *off, size_t *n)
{
    const char *p = c->text[seg], *end = p + c->n[seg];
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        if (!lf)
            return false;
        if (i-- == 0) {
            *off = (size_t)(p - c->text[seg]);
            *n = (size_t)(lf + 1 - p);
            return true;
        }
        p = lf + 1;
    }
    return false;
}

static void part_replace(int seg, size_t off, size_t drop, const char *put, size_t n)
{
    memmove(is.text[seg] + off + n, is.text[seg] + off + drop, is.n[seg] - off - drop);
    memcpy(is.text[seg] + off, put, n);
    is.n[seg] = is.n[seg] - drop + n;
}

/* ---- the changes ---- */

static void flips(bool sealed)
{
    int tried = 0, missed = 0;
    /* Every byte of the first, a middle and the last segment. */
    const int which[] = {0, was.segments / 2, was.segments - 1};
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < was.n[which[k]]; i += sealed ? 3 : 1) {
            is = was;
            is.text[which[k]][i] ^= (char)(1 << (i % 7));
            if (sealed)
                reseal(true);
            if (memcmp(is.text[which[k]], was.text[which[k]], was.n[which[k]]) == 0)
                continue; /* a byte of a checksum or a link that was made again */
            tried++;
            if (!is_found() && missed++ < 5)
                printf("# segment %d, byte %zu: %s %s\n", which[k] + 1, i, err.code, err.what);
        }
    TAP_OK(tried > 1000 && missed == 0, "each of %d flipped bytes%s is found", tried,
           sealed ? ", with new checksums and links," : "");
}

enum change { DROP, DUPLICATE, SWAP, COPY, EDIT, STRIP };

static bool frame_change(enum change how, int seg, int i)
{
    size_t off, n, next, next_n, other, other_n;
    static char one[TEXT], two[TEXT];
    if (!frame_at(&was, seg, i, &off, &n))
        return false;
    is = was;
    memcpy(one, was.text[seg] + off, n);
    switch (how) {
    case DROP:
        part_replace(seg, off, n, "", 0);
        return true;
    case DUPLICATE:
        part_replace(seg, off, 0, one, n);
        return true;
    case SWAP:
        if (!frame_at(&was, seg, i + 1, &next, &next_n))
            return false;
        memcpy(two, was.text[seg] + next, next_n);
        part_replace(seg, off, n + next_n, two, next_n);
        part_replace(seg, off + next_n, 0, one, n);
        return true;
    case COPY: /* an older frame is inserted */
        if (!frame_at(&was, 0, 0, &other, &other_n))
            return false;
        part_replace(seg, off, 0, was.text[0] + other, other_n);
        return true;
    case EDIT: {
        char *p = memmem(is.text[seg] + off, n, "\"to\":\"NEW\"", 10);
        if (!p)
            return false;
        memcpy(p + 6, "OLD", 3);
        return true;
    }
    case STRIP: { /* as an earlier build would have written it */
        char *p = memmem(is.text[seg] + off, n, ",\"m\":\"", 6);
        size_t at = (size_t)(p - is.text[seg]);
        part_replace(seg, at, off + n - at, "}\n", 2);
        return true;
    }
    }
    return false;
}

static void frames(enum change how, const char *name)
{
    int tried = 0, missed = 0;
    for (int form = 0; form < 3; form++)
        for (int seg = 0; seg < was.segments; seg += 1 + (form > 0))
            for (int i = 0; i < 20; i++) {
                if (!frame_change(how, seg, i))
                    continue;
                if (form > 0)
                    reseal(form == 2);
                tried++;
                if (!is_found() && missed++ < 5)
                    printf("# form %d, segment %d, frame %d: %s %s\n", form, seg + 1, i, err.code,
                           err.what);
            }
    TAP_OK(tried > 40 && missed == 0, "%s: each of %d is found", name, tried);
}

static void ends(void)
{
    int tried = 0, missed = 0;
    size_t off, n;
    for (int i = 0; frame_at(&was, was.segments - 1, i, &off, &n); i++) {
        for (int torn = 0; torn < 2; torn++) {
            is = was;
            is.n[was.segments - 1] = off + (torn ? n / 2 : 0);
            tried++;
            missed += !is_found();
        }
    }
    TAP_OK(tried > 2 && missed == 0, "each of %d shorter tails is found", tried);
    for (int i = 0; i < was.segments; i++) {
        is = was;
        is.n[i] = SIZE_MAX;
        TAP_OK(is_found(), "without segment %d: %.150s", i + 1, err.what);
    }
    is = was;
    for (int i = 0; i < was.segments; i++)
        is.n[i] = SIZE_MAX;
    TAP_OK(is_found(), "without any segment: %.150s", err.what);
    for (int i = 0; i + 1 < was.segments; i += 2) {
        is = was;
        memcpy(is.text[i], was.text[i + 1], TEXT);
        memcpy(is.text[i + 1], was.text[i], TEXT);
        is.n[i] = was.n[i + 1];
        is.n[i + 1] = was.n[i];
        TAP_OK(is_found(), "segments %d and %d swapped: %.120s", i + 1, i + 2, err.what);
    }
}

static bool seal_find(const struct copy *c, int seg, size_t *off, size_t *n)
{
    for (int i = 0; frame_at(c, seg, i, off, n); i++)
        if (memmem(c->text[seg] + *off, *n, "\"log\":\"seal\"", 12))
            return true;
    return false;
}

static void seals(void)
{
    size_t off, n, other = 0, other_n = 0;
    is = was;
    TAP_OK(seal_find(&was, 0, &off, &n) && seal_find(&was, 1, &other, &other_n) &&
               off + n == was.n[0],
           "segments end with a seal");
    part_replace(0, off, n, was.text[1] + other, other_n);
    TAP_OK(is_found(), "a seal replaced by another: %.150s", err.what);
    reseal(true);
    TAP_OK(is_found(), "with new checksums: %.150s", err.what);
    is = was;
    char *value = memmem(is.text[0] + off, n, "\"value\":\"", 9);
    value[9] = value[9] == '0' ? '1' : '0';
    reseal(true);
    TAP_OK(is_found(), "another signature: %.150s", err.what);
}

/* The whole log of another state directory, with its own key. */
static void other_log(void)
{
    char first[sizeof dir];
    static struct copy mine;
    mine = was;
    snprintf(dir + strlen(dir), sizeof dir - strlen(dir), "2");
    fill(1, 60, 100);
    copy_read(&is);
    snprintf(first, sizeof first, "%s", dir);
    dir[strlen(dir) - 1] = '\0';
    TAP_OK(is.segments == mine.segments && is_found(), "the log of another key: %.150s", err.what);
    tree_remove(first);
}

/* A process that is killed at any moment leaves a log that verifies, and that can be continued. */
static void kills(void)
{
    int bad = 0;
    for (int i = 0; i < 12; i++) {
        pid_t p = fork();
        if (p == 0) {
            alarm(20);
            fill(1, 100000, 100);
            _exit(0);
        }
        usleep(500 + 1700 * (useconds_t)i); /* any moment will do */
        kill(p, SIGKILL);
        waitpid(p, NULL, 0);
        if (verify() != 0 && bad++ < 3)
            printf("# after a kill: %s %s\n", err.code, err.what);
    }
    fill(1, 3, 100);
    TAP_OK(bad == 0 && verify() == 0 && notes == 0, "after 12 kills the log verifies: %s",
           err.what);
}

static void retention(void)
{
    fill(1, 300, 3);
    TAP_OK(verify() == 0 && verdict.first > 1,
           "after old segments were removed: frames from %" PRIu64, verdict.first);
    char path[300];
    for (int i = 0; i < 100000; i++) {
        snprintf(path, sizeof path, "%s/log/%06d.ndjson", dir, i);
        if (unlink(path) == 0)
            break;
    }
    TAP_OK(verify() == -1 && strstr(err.what, "were removed"), "one more removed is found: %s",
           err.what);
}

static void repair(void)
{
    AMP_BUF struct amp_buf said = {0};
    struct amp_store *s;
    amp_buf_init(&said, 1 << 16);
    struct amp_store_rec rec;
    TAP_INT(amp_store_repair(dir, &said, &err), 0, "a repair accepts what is left");
    TAP_OK(said.len && memmem(said.data, said.len, "are gone", 8), "and reports it");
    TAP_OK(verify() == 0 && verdict.repairs == 1 && notes == 1, "then it verifies, with a note: %s",
           err.what);
    /* A frame in the middle is damaged, and the tail is cut. The frames that are added fill several
     * segments, so the damaged one has no repair frame. */
    copy_read(&was);
    TAP_INT(was.segments, 0, "its first segment is not 000001");
    fill(1, 40, 100);
    char path[300];
    int last = 0;
    for (int i = 1; i < 100000; i++) {
        snprintf(path, sizeof path, "%s/log/%06d.ndjson", dir, i);
        if (access(path, F_OK) == 0)
            last = i;
    }
    snprintf(path, sizeof path, "%s/log/%06d.ndjson", dir, last - 1);
    AMP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    TAP_OK(fd >= 0 && pwrite(fd, "#", 1, 900) == 1, "a byte is damaged");
    TAP_OK(verify() == -1, "which is found: %s", err.what);
    amp_buf_reset(&said);
    TAP_INT(amp_store_repair(dir, &said, &err), 0, "and repaired");
    TAP_OK(verify() == 0 && verdict.repairs == 2 && verdict.skipped == 0, "it verifies again: %s",
           err.what);
    snprintf(path, sizeof path, "%s/log/%06d.ndjson", dir, last);
    TAP_OK(truncate(path, 0) == 0 && verify() == -1, "the last segment is emptied: %s", err.what);
    s = store_open(false, 100);
    TAP_OK(s && amp_store_get(s, AMP_KEY("task", AMP_SPAN("key-01")), &rec, &err) < 0 &&
               strcmp(err.code, "log_damaged") == 0,
           "tools refuse it: %s", err.what);
    amp_store_close(s);
    amp_buf_reset(&said);
    TAP_INT(amp_store_repair(dir, &said, &err), 0, "repaired again");
    fill(1, 5, 100);
    TAP_OK(verify() == 0 && verdict.repairs >= 2, "and continued: %s", err.what);
}

/* The log of a build without keys, which later gets one. */
static void older(void)
{
    char path[300], key[300];
    tree_remove(dir);
    fill(1, 10, 100);
    copy_read(&is);
    for (int i = 0; i < 10; i++) {
        size_t off, n;
        if (!frame_at(&is, 0, i, &off, &n))
            break;
        char *p = memmem(is.text[0] + off, n, ",\"m\":\"", 6);
        size_t at = (size_t)(p - is.text[0]);
        part_replace(0, at, off + n - at, "}\n", 2);
    }
    is.segments = 1;
    reseal(true);
    copy_write(&is);
    snprintf(path, sizeof path, "%s/keys/log.end", dir);
    snprintf(key, sizeof key, "%s/keys/log", dir);
    unlink(path);
    unlink(key);
    snprintf(path, sizeof path, "%s/log/watermark", dir);
    unlink(path);
    TAP_OK(verify() == -1 && strcmp(err.code, "log_no_key") == 0 && err.status == AMP_CONFIG,
           "a log without a key cannot be verified");
    fill(1, 10, 100);
    bool good = verify() == 0;
    TAP_OK(good && verdict.first == 1 && verdict.from > 5, "it begins with frame %" PRIu64,
           verdict.from);
    /* Frames before are not covered, those after are. */
    copy_read(&was);
    is = was;
    char *p = memmem(is.text[was.segments - 1], is.n[was.segments - 1], "\"to\":\"NEW\"", 10);
    if (p)
        memcpy(p + 6, "OLD", 3);
    reseal(true);
    TAP_OK(p && is_found(), "a change after that is found: %s", err.what);
}

int main(void)
{
    tree_temporary(dir, sizeof dir);
    fill(1, 60, 100);
    copy_read(&was);
    TAP_OK(was.segments >= 4, "the log has %d segments", was.segments);
    TAP_OK(verify() == 0 && verdict.first == 1 && verdict.from == 1 && notes == 0,
           "it verifies: %s", err.what);
    TAP_OK(checked == was.segments - 1 && verdict.signed_ == verdict.seals &&
               verdict.seals == (uint64_t)checked,
           "with %d signed seals", checked);
    flips(false);
    flips(true);
    frames(DROP, "dropped frames");
    frames(DUPLICATE, "frames twice");
    frames(SWAP, "swapped frames");
    frames(COPY, "inserted frames");
    frames(EDIT, "edited frames");
    frames(STRIP, "frames without a keyed hash");
    ends();
    seals();
    other_log();
    copy_write(&was);
    TAP_OK(verify() == 0, "as it was, it verifies: %s", err.what);
    kills();
    retention();
    repair();
    older();
    tree_remove(dir);
    return tap_done();
}

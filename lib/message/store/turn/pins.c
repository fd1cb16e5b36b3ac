/* Pins: files under run/ that keep segments in the log for consumers that still read them. */
#include "message/store/store_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"

#define PIN      "pin."
#define PIN_MOST 80
#define LOOK_MS  1000 /* how long the result of a check is used */

int amp_store_pin(struct amp_store *s, const char *name, uint64_t from, int64_t until_ms,
                  struct amp_error *err)
{
    char path[200], text[PIN_MOST];
    if (!amp_id_is_safe(amp_span_str(name)) || strlen(name) > 128)
        return amp_fail(err, AMP_USAGE, bad_name, "a pin's name has other characters");
    if (mkdirat(s->dirfd, "run", 0700) != 0 && errno != EEXIST)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/run", s->dir);
    snprintf(path, sizeof path, "run/" PIN "%s", name);
    if (until_ms == 0)
        return unlinkat(s->dirfd, path, 0) != 0 && errno != ENOENT
                   ? amp_fail_errno(err, AMP_IOERR, "cannot remove %s/%s", s->dir, path)
                   : 0;
    snprintf(text, sizeof text, "%" PRIu64 " %" PRId64 "\n", from, until_ms);
    return amp_file_write_atomic(s->dirfd, path, 0600, amp_span_str(text), err);
}

static bool pin_holds(struct amp_store *s, const char *name, uint64_t before, int64_t now_ms)
{
    char path[300];
    AMP_BUF struct amp_buf text = {0};
    uint64_t from;
    int64_t until;
    amp_buf_init(&text, PIN_MOST);
    snprintf(path, sizeof path, "run/%.255s", name);
    if (amp_file_read(s->dirfd, path, PIN_MOST - 1, &text, NULL) != 0 ||
        sscanf(text.data ? text.data : "", "%" SCNu64 " %" SCNd64, &from, &until) != 2)
        return false;
    return from < before && until > now_ms;
}

bool amp_store_pinned(struct amp_store *s, uint64_t before)
{
    int64_t now = amp_now_ms();
    if (s->pins.bound == before && now - s->pins.at_ms < LOOK_MS && now >= s->pins.at_ms)
        return s->pins.held;
    s->pins.bound = before;
    s->pins.at_ms = now;
    s->pins.held = false;
    AMP_DIR DIR *d = amp_dir_open(s->dirfd, "run");
    for (struct dirent *e; d && !s->pins.held && (e = readdir(d));)
        if (strncmp(e->d_name, PIN, strlen(PIN)) == 0)
            s->pins.held = pin_holds(s, e->d_name, before, now);
    return s->pins.held;
}

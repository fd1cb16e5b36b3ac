/* Findings for people (one line on stderr) or for programs (one record on the error log). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "cli/cli.h"
#include "validate.h"

enum { GATHER = 64 * 1024, PENDING_MOST = 16 * 1024 * 1024, RECORD_MOST = 64 * 1024 };

static struct amp_outq records = {.fd = -1};
static bool to_records, failed;
static struct amp_error first;

int report_open(const char *path, struct amp_error *err)
{
    if (!path)
        return 0;
    int fd = 2;
    bool own = strcmp(path, "-") != 0;
    if (own) {
        struct stat st;
        if (stat(path, &st) < 0) {
            int made = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
            if (made < 0)
                return amp_fail_errno(err, AMP_CANTCREAT, "cannot create %s", path);
            fd = made;
        } else if (amp_output_open(path, -1, &amp_stop, &fd, err) < 0) {
            return -1;
        }
    }
    to_records = true;
    return amp_outq_open(&records, fd, own, PENDING_MOST, err);
}

static void fail(const struct amp_error *err)
{
    if (!failed)
        first = *err;
    failed = true;
}

/* One line: place, field, code, what is wrong, what was found, what would be right. */
static void say(const struct amp_finding *f, const char *file, const struct amp_line_place *at)
{
    struct amp_error text = {.status = AMP_NO};
    char place[80], found[120] = "", expected[200] = "";
    snprintf(place, sizeof place, "%.60s:%llu", file, (unsigned long long)at->line);
    size_t n = strlen(f->message);
    bool asks = n > 0 && f->message[n - 1] == '?';
    if (f->found[0])
        snprintf(found, sizeof found, "%s found %s", asks ? "" : ";", f->found);
    if (f->expected[0])
        snprintf(expected, sizeof expected, "; expected %s", f->expected);
    snprintf(text.what, sizeof text.what, "%s: %.80s%s%s: %s%s%s", place, f->field,
             f->field[0] ? ": " : "", f->code, f->message, found, expected);
    if (f->severity == AMP_SEV_ERROR)
        amp_complain(&text);
    else
        amp_warn("%s", text.what);
}

void report(const struct amp_finding *f, const char *file, const struct amp_line_place *at)
{
    if (!to_records) {
        say(f, file, at);
        return;
    }
    if (failed)
        return;
    struct amp_error err;
    AMP_BUF struct amp_buf line;
    amp_buf_init(&line, RECORD_MOST);
    if (amp_finding_record(f, at, &line, &err) < 0 ||
        amp_outq_add(&records, amp_buf_span(&line), &err) < 0)
        fail(&err);
    else if (amp_outq_pending(&records) >= GATHER)
        report_flush(NULL);
}

int report_flush(struct amp_error *err)
{
    struct amp_error local;
    if (to_records && !failed && records.fd >= 0 && amp_outq_pending(&records) > 0 &&
        amp_outq_drain(&records, -1, &amp_stop, &local) < 0)
        fail(&local);
    if (!failed)
        return 0;
    if (err)
        *err = first;
    return -1;
}

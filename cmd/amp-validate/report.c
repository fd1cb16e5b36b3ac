/* Findings for people (one line on stderr) or for programs (one record on the error log). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/pipe.h>
#include <amp/json/writer.h>

#include "cli/cli.h"
#include "shared/finding.h"
#include "validate.h"
#include "json/record.h"

enum { GATHER = 64 * 1024, PENDING_MOST = 1 << 30, SENTENCE_MOST = 16 * 1024 };

static struct amp_outq records = {.fd = -1};
static const char *log_name;
static bool log_failed;
static struct amp_error log_error; /* the first one */

int report_open(const struct validate_options *opt, struct amp_error *err)
{
    const char *path = opt->errors;
    if (!path)
        return 0;
    log_name = path;
    int fd = 2;
    bool own = strcmp(path, "-") != 0;
    if (own) {
        struct stat st;
        if (stat(path, &st) < 0) {
            int made = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
            if (made < 0)
                return amp_fail_errno(err, AMP_CANTCREAT, "cannot create %s", path);
            fd = made;
        } else if (amp_output_open(path, -1, -1, &amp_stop, &fd, err) < 0) {
            return -1;
        }
    }
    return amp_outq_open(&records, fd, own, PENDING_MOST, err);
}

struct line_place place_of(const struct line_verdict *v, const struct amp_finding *f)
{
    struct line_place at = {v->line, v->offset};
    for (size_t i = 0; f && v->chunk->document && i < f->offset && i < v->bytes.n; i++)
        if (v->bytes.p[i] == '\n')
            at = (struct line_place){at.line + 1, v->offset + i + 1};
    return at;
}

static const char *file_of(const struct validate_options *opt, const struct line_verdict *v)
{
    return opt->name_files ? v->chunk->file : NULL;
}

/* A record of its own form, because the message is valid. */
static int add_found_record(const struct validate_options *opt, const struct line_verdict *v,
                            struct amp_buf *out, struct amp_error *err)
{
    const struct amp_found *at = v->chunk->found;
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_rec_time(&w, "time", amp_now_ms());
    amp_jw_member_text(&w, "tool", amp_cli_name());
    if (file_of(opt, v))
        amp_jw_member_text(&w, "file", file_of(opt, v));
    amp_jw_member_text(&w, "found", amp_found_name(at->in));
    amp_jw_member_uint(&w, "line", at->line);
    amp_jw_member_uint(&w, "column", at->column);
    amp_jw_member_uint(&w, "offset", at->offset);
    amp_jw_member_text(&w, "protocol", amp_protocol_name(v->view->protocol));
    amp_jw_member_str(&w, "type", v->view->type);
    amp_jw_member_str(&w, "id", v->view->id);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

int report_found(const struct validate_options *opt, const struct line_verdict *v,
                 struct amp_buf *out, struct amp_error *err)
{
    static const char *const where[] = {"on a line", "in a fence", "in prose", "inside an object",
                                        "in a string"};
    const struct amp_found *at = v->chunk->found;
    char type[80];
    amp_span_copy(v->view->type, type, sizeof type);
    if (opt->errors)
        return add_found_record(opt, v, out, err);
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, SENTENCE_MOST);
    if (amp_buf_fmt(&text, err, "%s:%llu:%llu: %s %s %s", v->chunk->file,
                    (unsigned long long)at->line, (unsigned long long)at->column,
                    amp_protocol_name(v->view->protocol), type, where[at->in]) < 0)
        return -1;
    return amp_diagnostic(AMP_DIAG_NOTE, opt->color, amp_buf_span(&text), out, err);
}

int report_add(const struct validate_options *opt, const struct line_verdict *v,
               const struct amp_finding *f, struct amp_buf *out, struct amp_error *err)
{
    struct amp_line_place at = {.tool = amp_cli_name(),
                                .file = opt->errors ? file_of(opt, v) : v->chunk->file,
                                .line = place_of(v, f).line,
                                .offset = v->offset,
                                .now_ms = amp_now_ms()};
    return opt->errors ? amp_finding_record(f, &at, out, err)
                       : amp_finding_line(f, &at, v->chunk->document, opt->color, out, err);
}

static int log_fail(struct amp_error *err, const struct amp_error *why)
{
    if (!log_failed) {
        log_error = *why;
        snprintf(log_error.what, sizeof log_error.what, "%.100s: %.150s", log_name, why->what);
    }
    log_failed = true;
    *err = log_error;
    return -1;
}

int report_write(struct amp_span bytes, struct amp_error *err)
{
    struct amp_error local;
    if (bytes.n == 0)
        return 0;
    if (records.fd < 0) { /* a failure to write for people has no effect */
        amp_err(bytes);
        return 0;
    }
    if (log_failed || amp_outq_add(&records, bytes, &local) < 0)
        return log_fail(err, &local);
    return amp_outq_pending(&records) >= GATHER ? report_flush(err) : 0;
}

int report_flush(struct amp_error *err)
{
    struct amp_error local;
    if (log_failed || (records.fd >= 0 && amp_outq_pending(&records) > 0 &&
                       amp_outq_drain(&records, -1, &amp_stop, &local) < 0))
        return log_fail(err, &local);
    return 0;
}

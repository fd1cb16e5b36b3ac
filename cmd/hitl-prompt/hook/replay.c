/*
 * hitl-prompt hook --replay shows what the rules of amp.json decide about the tool calls of a
 * recording. Nothing is asked, recorded or run.
 */
#include "replay.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/pipe.h>
#include <amp/json/lines.h>

#include "base/codes.h"
#include "cli/cli.h"
#include "work/git/call/event/recorded.h"
#include "work/git/worktree.h"

#define WHAT_MAX ((size_t)16 << 10) /* bytes of a command or a path that a line shows */
#define WIDTH    160                /* its columns */

struct replay {
    const struct replay_spec *spec;
    struct amp_recording recorded;
    struct amp_lines lines;
    struct amp_buf out;
    uint64_t line; /* the number of the present one */
    uint64_t calls, allowed, asked, denied, others, unknown, first_unknown;
    bool elsewhere; /* it was said that a directory does not exist */
};

/* ---- a decision ---- */

/* Writes what the call does: its command line, or its first path. */
static int what_put(const struct amp_call_event *e, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_call_command *c = &e->commands[0];
    struct amp_span text = e->n_commands ? c->line
                           : e->n_paths  ? amp_span_str(e->paths[0])
                                         : AMP_SPAN("");
    for (size_t i = 0; e->n_commands && i < c->n && out->len < WHAT_MAX; i++)
        if ((i && amp_buf_str(out, " ", err) < 0) || amp_buf_str(out, c->words[i], err) < 0)
            return -1;
    return amp_buf_add(out, text.p, text.n < WHAT_MAX ? text.n : WHAT_MAX, err);
}

static int json_print(struct replay *r, const struct amp_call_event *e, const char *decision,
                      size_t rule, struct amp_span what, const char *why, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, &r->out);
    amp_jw_open(&w, '{');
    amp_jw_member_uint(&w, "line", r->line);
    amp_jw_member_text(&w, "decision", decision);
    amp_jw_some_str(&w, "cli", amp_span_str(amp_call_cli_name(e->cli)));
    amp_jw_some_str(&w, "tool", e->tool);
    amp_jw_member_text(&w, "kind", amp_call_kind_name(e->kind));
    amp_jw_some_str(&w, "what", what);
    if (rule)
        amp_jw_member_uint(&w, "rule", rule);
    amp_jw_member_text(&w, "why", why);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static int text_print(struct replay *r, const struct amp_call_event *e, const char *decision,
                      struct amp_span what, const char *why, struct amp_error *err)
{
    if (amp_buf_fmt(&r->out, err, "%" PRIu64 ": %s: ", r->line, decision) < 0 ||
        amp_text_safe(e->tool.n ? e->tool : AMP_SPAN("-"), WIDTH, &r->out, err) < 0 ||
        (what.n && amp_buf_str(&r->out, ": ", err) < 0) ||
        amp_text_safe(what, WIDTH, &r->out, err) < 0 || amp_buf_str(&r->out, ": ", err) < 0 ||
        amp_text_safe(amp_span_str(why), 0, &r->out, err) < 0)
        return -1;
    return amp_buf_str(&r->out, "\n", err);
}

static int call_print(struct replay *r, const struct amp_call_event *e, bool denied, size_t rule,
                      const char *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf what = {0};
    amp_buf_init(&what, 2 * (size_t)AMP_CALL_INPUT_MAX);
    amp_buf_reset(&r->out);
    if (what_put(e, &what, err) < 0)
        return -1;
    struct amp_span shown = amp_buf_span(&what);
    int rc = r->spec->json ? json_print(r, e, denied ? "deny" : "ask", rule, shown, why, err)
                           : text_print(r, e, denied ? "denied" : "asked", shown, why, err);
    return rc < 0 ? -1 : amp_out(amp_buf_span(&r->out), err);
}

/* Finds where the call was made. A directory of another machine is taken as it is written. */
static int place_find(struct replay *r, const struct amp_call_event *e, struct amp_hook_place *at,
                      struct amp_error *err)
{
    if (amp_hook_place_find(e->cwd, at, err) == 0)
        return 0;
    if (!e->cwd.n || *e->cwd.p != '/' || !amp_path_normal(e->cwd, at->cwd, sizeof at->cwd))
        return -1;
    memcpy(at->top, at->cwd, sizeof at->top);
    if (!r->elsewhere)
        amp_note("%.300s does not exist here; paths below it are compared as they are written",
                 at->cwd);
    r->elsewhere = true;
    return 0;
}

static int on_call(void *ctx, struct amp_span json, enum amp_call_cli expected,
                   struct amp_error *err)
{
    struct replay *r = ctx;
    AMP_CALL_EVENT struct amp_call_event e = {0};
    struct amp_hook_place at;
    struct amp_hook_result got = {.decision = AMP_HOOK_DENY};
    r->calls++;
    if (amp_call_event_read(json, expected, &e, err) < 0 || place_find(r, &e, &at, err) < 0) {
        if (err->status != AMP_DATAERR)
            return -1;
        snprintf(got.why, sizeof got.why, "%s", err->what);
    } else if (amp_hook_decide(r->spec->rules, &e, &at, &got, err) < 0) {
        return -1;
    }
    if (got.decision == AMP_HOOK_ALLOW) {
        r->allowed++;
        return 0;
    }
    bool denied =
        got.decision == AMP_HOOK_DENY || (got.decision == AMP_HOOK_UNDECIDED && r->spec->refuses);
    denied ? r->denied++ : r->asked++;
    return call_print(r, &e, denied, got.rule, got.why, err);
}

/* ---- the recording ---- */

static int line_take(struct replay *r, const struct amp_line *line, bool whole,
                     struct amp_error *err)
{
    r->line = line->number;
    enum amp_recording_line is =
        whole ? amp_recording_line(&r->recorded, line->bytes, on_call, r, err)
              : AMP_RECORDING_UNKNOWN;
    r->others += is == AMP_RECORDING_OTHER;
    r->unknown += is == AMP_RECORDING_UNKNOWN;
    if (is == AMP_RECORDING_UNKNOWN && !r->first_unknown)
        r->first_unknown = line->number;
    return is == AMP_RECORDING_FAILED ? -1 : 0;
}

/* 1: the end of the input. */
static int input_more(struct replay *r, int fd, struct amp_error *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (amp_stop)
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "the replay was interrupted");
    switch (amp_lines_fill(&r->lines, fd, err)) {
    case AMP_READ_END:
        return 1;
    case AMP_READ_FAILED:
        return -1;
    case AMP_READ_WOULD_BLOCK:
        if (amp_out_flush(err) < 0)
            return -1;
        if (amp_poll(&p, 1, -1, &amp_stop) < 0 && errno != EINTR)
            return amp_fail_errno(err, AMP_IOERR, "%s", r->spec->path);
        return 0;
    default:
        return 0;
    }
}

static int lines_take(struct replay *r, int fd, struct amp_error *err)
{
    for (int end = 0;;) {
        struct amp_line line;
        enum amp_line_result got = amp_lines_next(&r->lines, &line);
        if (got == AMP_LINE || got == AMP_LINE_TOO_LONG) {
            if (line_take(r, &line, got == AMP_LINE, err) < 0)
                return -1;
        } else if (end || got == AMP_LINE_END) {
            return 0;
        } else if ((end = input_more(r, fd, err)) < 0) {
            return -1;
        }
    }
}

/* A number with commas: 1,083. */
static const char *count_text(uint64_t n, char out[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n), to = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[to++] = ',';
        out[to++] = digits[i];
    }
    out[to] = '\0';
    return out;
}

static int end_print(struct replay *r, struct amp_error *err)
{
    char allowed[32], asked[32], denied[32], calls[32], others[32], unknown[32];
    struct amp_jw w;
    amp_buf_reset(&r->out);
    if (r->spec->json) {
        amp_jw_init(&w, &r->out);
        amp_jw_open(&w, '{');
        amp_jw_member_uint(&w, "calls", r->calls);
        amp_jw_member_uint(&w, "allowed", r->allowed);
        amp_jw_member_uint(&w, "asked", r->asked);
        amp_jw_member_uint(&w, "denied", r->denied);
        amp_jw_member_uint(&w, "other_lines", r->others);
        amp_jw_member_uint(&w, "unknown_lines", r->unknown);
        if (r->first_unknown)
            amp_jw_member_uint(&w, "first_unknown", r->first_unknown);
        amp_jw_close(&w, '}');
        if (amp_jw_end_line(&w, err) < 0)
            return -1;
    } else {
        if (r->unknown &&
            amp_buf_fmt(&r->out, err, "lines of unknown form: %s, the first is line %" PRIu64 "\n",
                        count_text(r->unknown, unknown), r->first_unknown) < 0)
            return -1;
        if (amp_buf_fmt(&r->out, err,
                        "would have allowed %s, asked %s, denied %s of %s; lines without a call: "
                        "%s\n",
                        count_text(r->allowed, allowed), count_text(r->asked, asked),
                        count_text(r->denied, denied), count_text(r->calls, calls),
                        count_text(r->others, others)) < 0)
            return -1;
    }
    return amp_out(amp_buf_span(&r->out), err) < 0 ? -1 : amp_out_flush(err);
}

int replay_run(const struct replay_spec *spec, uint64_t *calls, struct amp_error *err)
{
    struct replay r = {.spec = spec};
    struct amp_input in = {-1, -1, false};
    amp_recording_init(&r.recorded, spec->cli);
    amp_lines_init(&r.lines, AMP_CALL_INPUT_MAX);
    amp_buf_init(&r.out, 1 << 20);
    int rc = amp_input_open(spec->path, false, &in, err);
    if (rc == 0)
        rc = lines_take(&r, in.fd, err);
    if (rc == 0)
        rc = end_print(&r, err);
    *calls = r.calls;
    amp_input_close(&in);
    amp_buf_release(&r.out);
    amp_lines_release(&r.lines);
    amp_recording_release(&r.recorded);
    return rc;
}

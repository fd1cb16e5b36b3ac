/*
 * One turn at a time: takes all complete lines of one read, syncs the records of the verb once,
 * then adds the lines to the output's queue. The input waits only while this queue is full.
 */
#include "pass.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "base/loop.h"
#include "count.h"
#include "message/delivery/admit/tokens.h"
#include "message/delivery/ledger/refused.h"
#include "message/delivery/sender/identity.h"
#include "shared/finding.h"

#define PENDING_MAX     ((size_t)64 << 20) /* in addition to one turn, which may be one long line */
#define DIAGNOSTICS_MAX ((size_t)64 << 20)
#define TURN_MAX        ((size_t)128 << 20)

struct pass_options pass_options = {
    .in_path = "-", .out_path = "-", .open_timeout_ms = AMP_OPEN_TIMEOUT_MS};

const char *pass_actor(const struct pass *p)
{
    return ack_as ? ack_as : p->name;
}

int pass_emit(struct pass *p, struct amp_span line, struct amp_error *err)
{
    if (amp_buf_add(&p->turn, line.p, line.n, err) < 0)
        return -1;
    return amp_buf_add(&p->turn, "\n", 1, err);
}

static int identities_open(struct pass *p, const char *role, struct amp_error *err)
{
    if (p->ids && (!role || strcmp(p->speaker, role) == 0))
        return 0;
    amp_identities_close(p->ids);
    p->ids = NULL;
    snprintf(p->speaker, sizeof p->speaker, "%s", role ? role : "");
    return ack_identities(role, &p->ids, err);
}

int pass_say(struct pass *p, const char *role, struct amp_span line, struct amp_error *err)
{
    if (p->store && amp_principal_is(amp_span_str(role)) &&
        (identities_open(p, role, err) < 0 || amp_identities_sign(p->ids, line, &p->turn, err) < 0))
        return -1;
    bool done = p->store && amp_principal_is(amp_span_str(role));
    return done ? amp_buf_add(&p->turn, "\n", 1, err) : pass_emit(p, line, err);
}

int pass_hears(struct pass *p, const struct amp_view *ack, struct amp_error *why,
               struct amp_error *err)
{
    struct amp_said said;
    bool trusted = amp_input_is_trusted(pass_options.in_path);
    if (identities_open(p, NULL, err) < 0 || amp_identities_refresh(p->ids, err) < 0)
        return -1;
    int rc = amp_identities_who(p->ids, ack, trusted, &said, why, err);
    return rc > 0 ? amp_said_by_addressee(p->store, ack, &said, why, err) : rc;
}

/* Keeps a finding until the end of the turn, because the state's lock is held. */
static void finding_keep(void *ctx, const struct amp_finding *f, const struct amp_line_place *at)
{
    struct pass *p = ctx;
    if (f->severity == AMP_SEV_ERROR)
        amp_finding_line(f, at, false, amp_color(stderr), &p->diagnostics, NULL);
}

void pass_warn(struct pass *p, const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    amp_diagnostic(AMP_DIAG_WARNING, amp_color(stderr), amp_span_str(text), &p->diagnostics, NULL);
}

int pass_reject(struct pass *p, const struct amp_view *v, const struct amp_error *why,
                struct amp_error *err)
{
    amp_status_note(AMP_NO);
    count_rejected(p->metrics, v->protocol, why->code);
    if (p->store && amp_refused_record(p->store, v, why, pass_actor(p), amp_now_ms(), err) < 0)
        return -1;
    return amp_intake_refuse(&p->intake, v, why, err);
}

/* Checks that the sender signed the message, which is required of all (SW4RM §6.2). */
static int signature_admit(struct pass *p, const struct amp_view *v, struct amp_error *why,
                           struct amp_error *err)
{
    struct amp_said said;
    return amp_identities_refresh(p->ids, err) < 0
               ? -1
               : amp_identities_who(p->ids, v, false, &said, why, err);
}

/* Tells whether the message may pass by its signature and its token, if it needs them. If not, it
 * was refused, or *rc is negative. */
static bool sender_admit(struct pass *p, const struct amp_view *v, int *rc, struct amp_error *err)
{
    bool signs = p->name && strcmp(ack_identity_word(), "all") == 0;
    bool tokens = p->store && amp_tokens_are_needed();
    struct amp_error why = {0};
    int admits = 1;
    if (!signs && !tokens)
        return true;
    if (identities_open(p, NULL, err) < 0)
        admits = -1;
    if (admits > 0 && signs)
        admits = signature_admit(p, v, &why, err);
    if (admits > 0 && tokens)
        admits = amp_tokens_admit(p->ids, p->store, v, amp_input_is_trusted(pass_options.in_path),
                                  NULL, &why, err);
    if (admits < 0 || (admits == 0 && pass_reject(p, v, &why, err) < 0))
        *rc = -1;
    return admits > 0;
}

/* The answer of a protocol that falls back, such as the work for a version 1 agent. */
static int malformed_answer(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, TURN_MAX);
    int rc = p->answers ? amp_intake_answer(&p->intake, v, amp_now_ms(), &line, err) : 0;
    if (rc <= 0)
        return rc;
    line.len--; /* its LF */
    return pass_say(p, pass_actor(p), amp_buf_span(&line), err);
}

static int take_turn(struct pass *p, struct amp_error *err)
{
    struct amp_view v;
    int rc;
    if ((p->begin && p->begin(p, err) < 0) || (p->store && amp_store_begin(p->store, err) < 0))
        return -1;
    while ((rc = amp_intake_next(&p->intake, &v, err)) > 0) {
        if (p->store)
            amp_store_unit(p->store);
        if (rc == AMP_INTAKE_BAD) {
            amp_status_note(AMP_NO);
            count_rejected(p->metrics, AMP_PROTO_NONE, p->intake.bad_code);
            rc = malformed_answer(p, &v, err);
        } else if (sender_admit(p, &v, &rc, err) && p->take(p, &v, err) < 0)
            rc = -1;
        if (rc < 0)
            break;
    }
    struct amp_error late = {0};
    int settled = 0;
    if (p->store) {
        amp_store_end(p->store);
        if (p->intake.units)
            amp_units_settled(p->intake.units);
        settled = amp_store_sync(p->store, rc < 0 ? &late : err);
    }
    amp_err(amp_buf_span(&p->diagnostics));
    amp_buf_reset(&p->diagnostics);
    if (rc < 0 || settled < 0) {
        /* Lines whose records are not synced are not written. */
        amp_buf_reset(&p->turn);
        return -1;
    }
    rc = p->turn.len > 0 ? amp_outq_add(&p->out, amp_buf_span(&p->turn), err) : 0;
    amp_buf_reset(&p->turn);
    return rc;
}

/* 1: end of input, 0: more may come, -1: failure. */
static int input_read(struct pass *p, struct amp_error *err)
{
    enum amp_read got = amp_lines_fill(&p->intake.lines, p->in.fd, err);
    if (got == AMP_READ_FAILED)
        return errno == EINTR ? 0 : -1;
    if (got == AMP_READ_WOULD_BLOCK)
        return 0;
    if (take_turn(p, err) < 0)
        return -1;
    return got == AMP_READ_END;
}

static int pass_loop(struct pass *p, struct amp_error *err)
{
    struct amp_error late;
    /* The turn of begin(). */
    if (take_turn(p, err) < 0)
        return -1;
    for (;;) {
        if (amp_outq_flush(&p->out, err) < 0)
            return -1;
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        bool full = amp_outq_pending(&p->out) >= PENDING_MAX;
        struct pollfd fds[2];
        struct amp_loop turn = amp_loop_turn(fds, 2, &amp_stop, NULL);
        const struct pollfd *in = amp_loop_add(&turn, full ? -1 : p->in.fd, POLLIN);
        amp_loop_add(&turn, amp_outq_events(&p->out) ? p->out.fd : -1, POLLOUT);
        amp_loop_within(&turn, amp_outq_timeout(&p->out));
        amp_loop_within(&turn, amp_metrics_timeout(p->metrics));
        if (amp_metrics_tick(p->metrics, &late) < 0)
            amp_warn("%s", late.what);
        int rc = amp_loop_wait(&turn, err);
        if (rc < 0)
            return -1;
        if (in->revents == 0)
            continue;
        rc = input_read(p, err);
        if (rc < 0)
            return -1;
        if (rc == 1)
            return amp_outq_drain(&p->out, -1, &amp_stop, err);
    }
}

/* 1: the input (-1: none) ended before the output had a reader. */
static int open_output(int input, struct amp_outq *q, struct amp_error *err)
{
    const struct pass_options *o = &pass_options;
    int fd = STDOUT_FILENO, rc = 0;
    bool own = strcmp(o->out_path, "-") != 0;
    if (own)
        rc = amp_output_open(o->out_path, o->open_timeout_ms, input, &amp_stop, &fd, err);
    if (rc != 0 || amp_outq_open(q, fd, own, PENDING_MAX + TURN_MAX, err) == 0)
        return rc;
    if (own)
        close(fd);
    return -1;
}

int ack_open_output(struct amp_outq *q, struct amp_error *err)
{
    return open_output(-1, q, err);
}

/* 1: the input ended before the output had a reader, without a message. */
static int open_all(struct pass *p, struct amp_error *err)
{
    amp_buf_init(&p->turn, TURN_MAX);
    amp_buf_init(&p->diagnostics, DIAGNOSTICS_MAX);
    ack_metrics.tool = p->name;
    if (p->name && amp_metrics_open(&ack_metrics, &p->metrics, err) < 0)
        return -1;
    if (amp_intake_init(&p->intake, p->store, amp_cli_name(), err) < 0 ||
        amp_intake_resume(&p->intake, pass_actor(p) ? pass_actor(p) : amp_cli_name(),
                          amp_input_is_trusted(pass_options.in_path), err) < 0)
        return -1;
    p->intake.say = finding_keep;
    p->intake.say_ctx = p;
    amp_note_terminal(pass_options.in_path);
    if (amp_input_open(pass_options.in_path, pass_options.hold, &p->in, err) < 0)
        return -1;
    return open_output(p->store ? -1 : p->in.fd, &p->out, err);
}

int pass_run(struct pass *p, struct amp_error *err)
{
    p->in.fd = p->in.hold = p->out.fd = -1;
    int rc = open_all(p, err);
    if (rc == 0)
        rc = pass_loop(p, err);
    rc = rc < 0 ? amp_complain(err) : 0;
    if (ack_metrics_end(p->metrics, 0, err) < 0)
        rc = (int)amp_status_worse((enum amp_status)rc, (enum amp_status)amp_complain(err));
    if (p->intake.reader)
        amp_intake_release(&p->intake);
    if (p->in.fd >= 0)
        amp_input_close(&p->in);
    if (p->out.fd >= 0)
        amp_outq_close(&p->out);
    amp_buf_release(&p->turn);
    amp_buf_release(&p->diagnostics);
    amp_identities_close(p->ids);
    return rc;
}

int ack_outbox_emit(struct amp_store *s, const char *name, const char *speaker, struct amp_outq *q,
                    struct amp_error *err)
{
    struct amp_outbox box = {.store = s, .name = name, .out = q, .sends_again = true};
    bool any;
    if (amp_outbox_any(s, name, &any, err) < 0)
        return -1;
    if (any && amp_principal_is(amp_span_str(speaker)) &&
        ack_identities(speaker, &box.ids, err) < 0)
        return -1;
    int rc = amp_outbox_finish(&box, &amp_stop, err);
    amp_outbox_release(&box);
    amp_identities_close(box.ids);
    return rc;
}

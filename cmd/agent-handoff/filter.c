/*
 * agent-handoff: takes the messages of handoffs from standard input and passes all others
 * on. Each step and the lines that it emits are one commit.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/loop.h"
#include "handoff.h"
#include "message/delivery/intake.h"
#include "message/protocol/answers.h"
#include "message/protocol/compose/answer.h"
#include "shared/finding.h"
#include "shared/work/tool.h"

#define BOX "agent-handoff"

static const struct amp_opt handoff_opts[] = {AMP_OPT_END};

struct filter {
    struct handoff_desk desk;
    struct amp_input in;
    struct amp_intake intake;
    struct amp_buf turn; /* lines to write at the end of the turn */
    bool eof, trusted;
};

static int line_pass(struct filter *f, struct amp_span line, struct amp_error *err)
{
    return amp_buf_add(&f->turn, line.p, line.n, err) < 0 || amp_buf_str(&f->turn, "\n", err) < 0
               ? -1
               : 0;
}

/* Answers the sender of a refused message; an offer is declined in the words of its protocol. */
static int refusal_answer(struct filter *f, const struct amp_view *v, const struct amp_error *why,
                          struct amp_error *err)
{
    const struct amp_answer_terms *t = amp_answers_of(v->protocol);
    struct amp_handoff_said said;
    const size_t before = f->turn.len;
    struct amp_error none;

    if (t->handoffs->read(v, &said) && said.act == AMP_HANDOFF_OFFERS && t->replies) {
        const struct amp_reply_said no = {.act = AMP_REPLY_FAIL,
                                          .by = f->desk.h.service,
                                          .code = why->code,
                                          .text = why->what,
                                          .now_ms = f->desk.h.now_ms};
        if (t->replies->compose(v, &no, &f->turn, &none) == 0)
            return 0;
        f->turn.len = before;
    }
    const struct amp_answer a = {.stage = AMP_STAGE_REJECTED,
                                 .by = f->desk.h.service,
                                 .code = why->code,
                                 .note = why->what,
                                 .now_ms = f->desk.h.now_ms};
    return v->id.n > 0 && v->from.n > 0 ? amp_answer_line(v, &a, &f->turn, err) : 0;
}

static int message_refuse(struct filter *f, const struct amp_view *v, const struct amp_error *why,
                          struct amp_error *err)
{
    amp_status_note(AMP_NO);
    return amp_intake_refuse(&f->intake, v, why, err) < 0 ? -1 : refusal_answer(f, v, why, err);
}

static int message_take(struct filter *f, const struct amp_view *v, struct amp_error *err)
{
    const struct amp_handoff_terms *t = amp_answers_of(v->protocol)->handoffs;
    struct amp_handoff_said about;
    struct amp_error why = {0}, refusal = {0};
    struct amp_said said;

    if (!t || !t->read(v, &about))
        return line_pass(f, v->line, err);
    if (amp_identities_who(f->desk.ids, v, f->trusted, &said, &refusal, err) < 0)
        return -1;
    f->desk.h.now_ms = amp_now_ms();
    f->desk.h.ids = f->desk.ids;
    f->desk.h.said = &said;
    f->desk.h.refusal = &refusal;
    switch (amp_handoffs_take(&f->desk.h, v, &why, err)) {
    case AMP_HANDOFF_FAILED:
        return -1;
    case AMP_HANDOFF_REFUSED:
        return message_refuse(f, v, &why, err);
    case AMP_HANDOFF_PASSES:
        return line_pass(f, v->line, err);
    case AMP_HANDOFF_TAKEN:
        break;
    }
    return 0;
}

/* Lines that passed are written before those of the steps that came after them. */
static int turn_emit(struct filter *f, struct amp_error *err)
{
    if (amp_store_sync(f->desk.h.store, err) < 0 ||
        (f->turn.len > 0 && amp_outq_add(&f->desk.out, amp_buf_span(&f->turn), err) < 0))
        return -1;
    amp_buf_reset(&f->turn);
    return amp_outbox_emit(&f->desk.box, err) < 0 ? -1 : 0;
}

static int lines_take(struct filter *f, struct amp_error *err)
{
    struct amp_view v;
    int rc;

    if (f->desk.ids && amp_identities_refresh(f->desk.ids, err) < 0)
        return -1;
    while ((rc = amp_intake_next(&f->intake, &v, err)) > 0) {
        if (rc == AMP_INTAKE_MESSAGE) {
            if (message_take(f, &v, err) < 0)
                return -1;
        } else {
            amp_status_note(AMP_NO);
            if (amp_intake_answer(&f->intake, &v, amp_now_ms(), &f->turn, err) < 0)
                return -1;
        }
    }
    return rc < 0 ? -1 : turn_emit(f, err);
}

static int input_read(struct filter *f, struct amp_error *err)
{
    enum amp_read got = amp_lines_fill(&f->intake.lines, f->in.fd, err);

    if (got == AMP_READ_FAILED)
        return errno == EINTR ? 0 : -1;
    if (got == AMP_READ_WOULD_BLOCK)
        return 0;
    f->eof = got == AMP_READ_END;
    return lines_take(f, err);
}

static int filter_run(struct filter *f, struct amp_error *err)
{
    while (!f->eof) {
        if (amp_outq_flush(&f->desk.out, err) < 0 || amp_outbox_settle(&f->desk.box, err) < 0)
            return -1;
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        bool full = amp_outq_pending(&f->desk.out) >= ((size_t)64 << 20);
        struct pollfd fds[2];
        struct amp_loop turn = amp_loop_turn(fds, 2, &amp_stop, NULL);
        const struct pollfd *in = amp_loop_add(&turn, full ? -1 : f->in.fd, POLLIN);
        amp_loop_add(&turn, amp_outq_events(&f->desk.out) ? f->desk.out.fd : -1, POLLOUT);
        amp_loop_within(&turn, amp_outq_timeout(&f->desk.out));
        if (amp_loop_wait(&turn, err) < 0 || (in->revents && input_read(f, err) < 0))
            return -1;
    }
    return handoff_desk_finish(&f->desk, err);
}

static int handoff_filter(struct amp_command *c, struct amp_error *err)
{
    struct filter f = {.desk = HANDOFF_DESK, .in = {.fd = -1, .hold = -1}};

    amp_note_terminal(NULL);
    amp_buf_init(&f.turn, (size_t)256 << 20);
    f.trusted = amp_input_is_trusted(NULL);
    int rc = handoff_desk_open(&f.desk, c->store, BOX, "coordinator", err);
    if (rc == 0)
        rc = amp_intake_init(&f.intake, c->store, amp_cli_name(), err);
    if (rc == 0) {
        f.intake.say = amp_finding_print_error;
        rc = amp_input_open("-", false, &f.in, err);
    }
    /* The lines that a killed process left come first. */
    if (rc == 0)
        rc = turn_emit(&f, err);
    if (rc == 0)
        rc = filter_run(&f, err);
    if (f.intake.reader)
        amp_intake_release(&f.intake);
    if (f.in.fd >= 0)
        amp_input_close(&f.in);
    amp_buf_release(&f.turn);
    handoff_desk_close(&f.desk);
    return rc;
}

const struct amp_verb handoff_filter_verbs[] = {
    {NULL, "", "take the handoffs on stdin and pass other messages on", handoff_opts,
     handoff_filter, .opens = AMP_OPENS_MADE, .act = "keep the handoffs", .signals = true,
     .who = AMP_WHO_PERSON},
    {0},
};

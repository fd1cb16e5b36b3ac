/*
 * The filter and the emitter of heartbeats: one loop, which waits for a line, for room in the
 * output, for the next round or for the next missed heartbeat.
 */
#include <errno.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/loop.h"
#include "message/delivery/admit/tokens.h"
#include "registry.h"
#include "shared/finding.h"

struct loop {
    struct registry *r;
    struct amp_input in;
    struct amp_intake intake;
    struct amp_identities *ids; /* opened if tokens or signatures are needed */
    bool eof;
    int64_t rounds;   /* of heartbeats; < 0: none; 0: without an end */
    int64_t done;     /* rounds so far */
    int64_t round_ms; /* the time of the next round, or of the end after the last */
    int64_t look_ms;  /* the time of the next look for missed heartbeats */
};

static int message_take(struct loop *l, const struct amp_view *v, struct amp_error *err)
{
    struct amp_error why = {0};
    enum reg_taken taken = reg_take(l->r, v, &why, err);
    if (taken == REG_FAILED)
        return -1;
    if (taken == REG_PASSES)
        return amp_buf_add(&l->r->turn, v->line.p, v->line.n, err) < 0 ||
                       amp_buf_str(&l->r->turn, "\n", err) < 0
                   ? -1
                   : 0;
    if (!why.status)
        return 0;
    amp_status_note(AMP_NO);
    return amp_intake_refuse(&l->intake, v, &why, err);
}

/* 1: the message may pass by its signature, where all must be signed, and by its token, or needs
 * none; 0: it was refused. */
static int sender_admit(struct loop *l, const struct amp_view *v, struct amp_error *err)
{
    struct amp_error why = {0};
    struct amp_said said;
    int rc = 1;
    if (reg_needs_signatures() && (rc = amp_identities_refresh(l->ids, err)) == 0)
        rc = amp_identities_who(l->ids, v, false, &said, &why, err);
    if (rc > 0 && amp_tokens_are_needed())
        rc = amp_tokens_admit(l->ids, l->r->dir.store, v, amp_input_is_trusted(NULL), NULL, &why,
                              err);
    if (rc != 0)
        return rc;
    amp_status_note(AMP_NO);
    if (amp_intake_refuse(&l->intake, v, &why, err) < 0)
        return -1;
    return reg_answer_bad(l->r, v, why.code, "", err);
}

static int lines_take(struct loop *l, struct amp_error *err)
{
    struct amp_view v;
    int rc;
    while ((rc = amp_intake_next(&l->intake, &v, err)) > 0) {
        if (rc == AMP_INTAKE_MESSAGE) {
            int admits = sender_admit(l, &v, err);
            if (admits < 0 || (admits > 0 && message_take(l, &v, err) < 0))
                return -1;
            continue;
        }
        amp_status_note(AMP_NO);
        if (reg_answer_bad(l->r, &v, l->intake.bad_code, l->intake.bad_field, err) < 0)
            return -1;
    }
    return rc < 0 ? -1 : reg_emit(l->r, err);
}

static int input_read(struct loop *l, struct amp_error *err)
{
    enum amp_read got = amp_lines_fill(&l->intake.lines, l->in.fd, err);
    if (got == AMP_READ_FAILED)
        return errno == EINTR ? 0 : -1;
    if (got == AMP_READ_WOULD_BLOCK)
        return 0;
    l->eof = got == AMP_READ_END;
    return lines_take(l, err);
}

/* Plans the next look for missed heartbeats: at the next deadline that is not over, but within an
 * interval, because other processes may register agents. */
static int look_plan(struct loop *l, int64_t now, struct amp_error *err)
{
    const struct amp_agent_sweep sweep = {.directory = &l->r->dir};
    int64_t next;
    if (amp_agent_next_due(l->r->dir.store, &sweep, &next, err) < 0)
        return -1;
    l->look_ms = now + l->r->dir.interval_ms;
    if (next > now && next < l->look_ms)
        l->look_ms = next;
    return 0;
}

/* Sends heartbeats and handles missed ones when they are due. 1: the last round is over. */
static int rounds_step(struct loop *l, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    uint32_t asked;
    bool over = false;
    if (l->rounds >= 0 && now >= l->round_ms) {
        over = l->rounds > 0 && l->done == l->rounds;
        if (!over && amp_directory_ask(&l->r->dir, now, &asked, err) < 0)
            return -1;
        l->done++;
        l->round_ms = now + (l->done == l->rounds ? l->r->dir.timeout_ms : l->r->dir.interval_ms);
    }
    if (now >= l->look_ms || over) {
        const struct amp_agent_sweep sweep = {.directory = &l->r->dir};
        uint32_t missed;
        if (amp_agent_sweep(l->r->dir.store, &sweep, now, &missed, err) < 0 ||
            look_plan(l, now, err) < 0)
            return -1;
    }
    if (reg_emit(l->r, err) < 0)
        return -1;
    return over;
}

static int64_t wait_ms(const struct loop *l)
{
    int64_t at = l->look_ms, now = amp_now_ms();
    if (l->rounds >= 0 && l->round_ms < at)
        at = l->round_ms;
    return at > now ? at - now : 0;
}

static int loop_run(struct loop *l, struct amp_error *err)
{
    for (;;) {
        int rc = rounds_step(l, err);
        if (rc < 0 || amp_outq_flush(&l->r->out, err) < 0 || amp_outbox_settle(&l->r->box, err) < 0)
            return -1;
        if (rc == 1 || (l->eof && l->rounds < 0))
            return 0;
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        bool full = amp_outq_pending(&l->r->out) >= ((size_t)64 << 20);
        struct pollfd fds[2];
        struct amp_loop turn = amp_loop_turn(fds, 2, &amp_stop, NULL);
        const struct pollfd *in = amp_loop_add(&turn, l->eof || full ? -1 : l->in.fd, POLLIN);
        amp_loop_add(&turn, amp_outq_events(&l->r->out) ? l->r->out.fd : -1, POLLOUT);
        amp_loop_within(&turn, wait_ms(l));
        amp_loop_within(&turn, amp_outq_timeout(&l->r->out));
        if (amp_loop_wait(&turn, err) < 0 || (in->revents && input_read(l, err) < 0))
            return -1;
    }
}

int reg_loop(struct registry *r, int64_t rounds, struct amp_error *err)
{
    struct loop l = {.r = r, .rounds = rounds};
    int rc = -1;
    l.in.fd = l.in.hold = -1;
    r->answer = true;
    amp_note_terminal(NULL);
    if (amp_intake_init(&l.intake, r->dir.store, amp_cli_name(), err) == 0 &&
        amp_input_open("-", false, &l.in, err) == 0) {
        l.intake.say = amp_finding_print_error;
        rc = amp_tokens_are_needed() || reg_needs_signatures() ? reg_identities(&l.ids, err) : 0;
        if (rc == 0)
            rc = look_plan(&l, amp_now_ms(), err);
        if (rc == 0)
            rc = loop_run(&l, err);
    }
    if (rc == 0)
        rc = reg_finish(r, err);
    if (l.intake.reader)
        amp_intake_release(&l.intake);
    if (l.in.fd >= 0)
        amp_input_close(&l.in);
    amp_identities_close(l.ids);
    return rc;
}

static int do_filter(struct amp_command *c, struct amp_error *err)
{
    return reg_loop(c->own, -1, err);
}

static const struct amp_opt filter_opts[] = {AMP_OPT_IDENTITIES(reg_identity), AMP_OPT_END};

const struct amp_verb filter_verbs[] = {
    {NULL, "", "consume registry messages from stdin, pass on the others", filter_opts, do_filter,
     .opens = AMP_OPENS_MADE | REG_OPENS_OUTBOX | REG_OPENS_FILTER, .act = "keep the registry",
     .signals = true, .who = AMP_WHO_PERSON},
    {0},
};

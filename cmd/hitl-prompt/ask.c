/* hitl-prompt without a verb: the filter that asks a person and writes the decisions. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "agent/agent.h"
#include "cli/config.h"
#include "cli/finding.h"
#include "cli/identity.h"
#include "flow/config.h"
#include "flow/decide/offer.h"
#include "flow/facts.h"
#include "flow/head.h"
#include "flow/person.h"
#include "hitl.h"
#include "task/record.h"

static const char *answer, *trusted_in;
static int64_t timeout_ms;
static struct amp_worker_options worker = {.open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
                                           .stop = &amp_stop,
                                           .note = amp_note,
                                           .say = amp_finding_print};

struct prompt {
    struct amp_store *store;
    struct amp_decider d;
    struct terminal tty;
    struct answers answers;
    bool asking, undecided, no_terminal;
    struct amp_question q;
    int64_t asked_ms;
    enum amp_status status;
    struct amp_error *failed; /* the error that stopped question_match */
};

static void status_add(struct prompt *p, enum amp_status status)
{
    p->status = amp_status_worse(p->status, status);
}

/* Prints an escalation that needs no decision. */
static void on_info(const struct amp_question *q)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_error err;

    amp_buf_init(&text, 1 << 18);
    if (!question_text(q, NULL, width_of(STDERR_FILENO), &text, &err))
        amp_err(amp_buf_span(&text));
}

static int question_done(struct prompt *p)
{
    amp_question_release(&p->q);
    p->asking = false;
    return 0;
}

/* Whether the question was decided by another process, or has ended. */
static bool is_settled(const struct amp_error *err)
{
    return !strcmp(err->code, "already_decided") || !strcmp(err->code, "ended");
}

static int question_pass(struct prompt *p, const char *why, struct amp_error *err)
{
    p->undecided = true;
    if (amp_question_pass(&p->d.hitl, &p->q, why, err) && !is_settled(err))
        return -1;
    return question_done(p);
}

/* Reports an answer that cannot be carried out. At a terminal the person is asked again; an answer
 * from a file counts as an invalid one. */
static int answer_refuse(struct prompt *p, const struct amp_error *why)
{
    if (why->status == AMP_NOPERM) {
        amp_warn("%s", why->what);
        status_add(p, AMP_NOPERM);
        return 1;
    }
    amp_warn("%s: the answer is refused: %s: %s", p->q.name, why->code, why->what);
    if (answer)
        status_add(p, why->status);
    return 1;
}

/* 1: the answer was refused, the question is still open. */
static int question_decide(struct prompt *p, const struct amp_operator_answer *a,
                           struct amp_error *err)
{
    struct amp_offer offer = {.q = &p->q,
                              .answer = *a,
                              .how = AMP_KNOWN_BY_LOGIN,
                              .channel = answer ? AMP_CHANNEL_FILE : AMP_CHANNEL_TERMINAL};

    if (!a->op || !*a->op)
        offer.answer.op = hitl_operator;
    switch (amp_offer_make(&p->d, &offer, err)) {
    case AMP_OFFERED_FAILED:
        return -1;
    case AMP_OFFERED_REFUSED:
        if (!is_settled(err))
            return answer_refuse(p, err);
        amp_note("%s: %s", p->q.id, err->what);
        break;
    default:
        amp_note("%s: %s by %s", p->q.name, a->action, offer.answer.op);
    }
    return question_done(p);
}

/* Answers a question from the file. One that a completely read file does not answer is left
 * undecided. */
static int question_match(void *ctx, const struct amp_question *q)
{
    struct prompt *p = ctx;
    struct amp_operator_answer a;
    struct amp_error err;
    json_t *keep;
    int found = answers_find(&p->answers, q, &a, &keep, &err), rc = found;

    if (found > 0) {
        p->q = *q;
        json_incref(p->q.message);
        rc = question_decide(p, &a, &err);
        if (rc == 1)
            question_done(p);
    }
    if (rc < 0) {
        amp_complain(&err);
        status_add(p, err.status);
    }
    json_decref(keep);
    if (!found && p->answers.done) {
        p->undecided = true;
        amp_note("%s waits for a decision%s%s%s; %s has no answer for it", q->name,
                 *q->refused ? " (the last answer was refused: " : "", q->refused,
                 *q->refused ? ")" : "", answer);
        if (amp_question_pass(&p->d.hitl, q, "no answer in the file", &err) && !is_settled(&err)) {
            *p->failed = err;
            return -1;
        }
    }
    return 0;
}

static int serve_file(struct prompt *p, struct amp_error *err)
{
    if (answers_read(&p->answers, err))
        return -1;
    p->failed = err;
    return amp_question_each(&p->d.hitl, question_match, p, err);
}

/* Prints the question with the record of its task. */
static int question_show(struct prompt *p, struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    bool found = false;

    if (p->q.about.kind == AMP_SUBJECT_TASK &&
        amp_task_load(p->store, amp_span_str(p->q.about.task), &t, &found, err) < 0)
        return -1;
    return terminal_ask(&p->tty, &p->q, found ? &t : NULL, err);
}

/* Without a terminal the questions are kept for another run. */
static void look_for_terminal(struct prompt *p)
{
    struct amp_error err;

    if (answer || !terminal_open(&p->tty, &err))
        return;
    p->no_terminal = true;
    amp_note("%s; escalations are kept for the next hitl-prompt with a terminal", err.what);
}

static int question_put(struct prompt *p, struct amp_error *err)
{
    if (p->tty.eof)
        return question_pass(p, "end of file on the terminal", err);
    if (p->no_terminal) {
        amp_warn("%s waits for a decision; there is no terminal", p->q.name);
        status_add(p, AMP_UNAVAILABLE);
        return question_pass(p, "no terminal", err);
    }
    if (!terminal_ours(&p->tty)) {
        if (!p->tty.noted)
            amp_note("%s waits for a decision; this is a background job: bring it to the "
                     "foreground (fg) to answer",
                     p->q.name);
        p->tty.noted = true;
        return 0;
    }
    p->tty.noted = false;
    if (amp_question_ask(&p->d.hitl, &p->q, err))
        return is_settled(err) ? question_done(p) : -1;
    if (question_show(p, err))
        return -1;
    p->asking = true;
    return 0;
}

static int line_take(struct prompt *p, struct amp_error *err)
{
    struct amp_operator_answer a;
    int rc = terminal_line(&p->tty);

    if (rc == 0)
        return 0;
    if (rc < 0) {
        p->tty.eof = true;
        return question_pass(p, "end of file on the terminal", err);
    }
    if (!p->tty.line.data[strspn(p->tty.line.data, " \t\r")]) {
        terminal_say(&p->tty, "  Undecided; the next run asks again.\n");
        return question_pass(p, "no answer", err);
    }
    rc = amp_answer_parse(&p->q, p->tty.line.data, &a) ? question_decide(p, &a, err) : 1;
    amp_buf_reset(&p->tty.line);
    if (rc == 1) {
        terminal_say(&p->tty, "  Please: ");
        terminal_say(&p->tty, amp_answer_words(&p->q));
        terminal_say(&p->tty, ".\n> ");
    }
    return rc < 0 ? -1 : 0;
}

/* One turn with the terminal. 1: there is no open question. */
static int serve_tty(struct prompt *p, struct amp_error *err)
{
    if (p->asking) {
        struct pollfd fd = {.fd = p->tty.fd, .events = POLLIN};
        int64_t left = timeout_ms ? p->asked_ms + timeout_ms - amp_mono_ms() : INT64_MAX;
        if (left <= 0) {
            terminal_say(&p->tty, "\n  No answer in time; undecided.\n");
            status_add(p, AMP_TIMEDOUT);
            return question_pass(p, "no answer in time", err);
        }
        if (amp_worker_turn(&p->d.w, &fd, 1, left < 1000 ? left : 1000, err))
            return -1;
        return terminal_ours(&p->tty) && fd.revents ? line_take(p, err) : 0;
    }
    if (!p->q.message) {
        int rc = amp_question_next(&p->d.hitl, &p->q, err);
        if (rc <= 0)
            return rc < 0 ? -1 : 1;
        p->asked_ms = amp_mono_ms();
    }
    if (question_put(p, err))
        return -1;
    if (p->asking || !p->q.message)
        return 0;
    if (timeout_ms && amp_mono_ms() - p->asked_ms >= timeout_ms) {
        status_add(p, AMP_TIMEDOUT);
        return question_pass(p, "no answer in time", err);
    }
    return amp_worker_turn(&p->d.w, NULL, 0, 200, err) ? -1 : 0;
}

/* Counts the open questions, which may still be answered from the FIFO. */
static int question_count(void *ctx, const struct amp_question *q)
{
    (*(int *)ctx)++;
    return 0;
}

static int prompt_loop(struct prompt *p, struct amp_error *err)
{
    int64_t ended = 0;

    while (!amp_stop) {
        int open = 0, idle = 1;
        if (answer) {
            if (serve_file(p, err) || amp_question_each(&p->d.hitl, question_count, &open, err))
                return -1;
            if (amp_worker_ended(&p->d.w)) {
                if (!ended)
                    ended = amp_mono_ms();
                bool late = timeout_ms && amp_mono_ms() - ended >= timeout_ms;
                if (!open || p->answers.done || late) {
                    p->undecided |= open > 0;
                    if (open && late)
                        p->status = AMP_TIMEDOUT;
                    return 0;
                }
            }
        } else if ((idle = serve_tty(p, err)) < 0) {
            return -1;
        } else if (idle && amp_worker_ended(&p->d.w)) {
            return 0;
        }
        struct pollfd fd = {.fd =
                                answer && p->answers.pipe && !p->answers.done ? p->answers.fd : -1,
                            .events = POLLIN};
        /* The coordinator may open a question again at any time. */
        if (idle && amp_worker_turn(&p->d.w, &fd, 1, answer && open ? 500 : 1000, err))
            return -1;
    }
    return 0;
}

int hitl_ask(int argc, char **argv)
{
    struct prompt p = {.answers = {.fd = -1}};
    struct amp_decider_people people;
    struct amp_error err;

    if (!hitl_state)
        amp_die_usage("a state directory is needed: --state DIR or AMP_STATE");
    if (hitl_people("answer escalations", &people, &err) < 0)
        return amp_complain(&err);
    amp_signals_install();
    signal(SIGTTOU, SIG_IGN);
    if (trusted_in && worker.in)
        amp_die_usage("--in and --trust-in exclude each other");
    worker.trusted = trusted_in || amp_input_is_trusted(worker.in);
    worker.in = trusted_in ? trusted_in : worker.in;
    amp_note_terminal(worker.in);
    worker.tool = amp_cli_name();
    worker.consumer = hitl_as;
    if (hitl_store(&p.store, &err) < 0)
        return amp_complain(&err);
    terminal_init(&p.tty);
    look_for_terminal(&p);
    int rc = hitl_identities(&worker.ids, &err);
    if (!rc && answer)
        rc = answers_open(&p.answers, answer, &err);
    if (!rc)
        rc = amp_decider_open(&p.d, p.store, &worker, on_info, &err);
    p.d.people = people;
    if (!rc)
        rc = prompt_loop(&p, &err);
    if (!rc) {
        status_add(&p, p.d.w.status);
        if (p.undecided)
            status_add(&p, AMP_NO);
        if (amp_stop)
            status_add(&p, AMP_INTERRUPTED);
    }
    amp_question_release(&p.q);
    amp_decider_close(&p.d);
    answers_release(&p.answers);
    terminal_release(&p.tty);
    amp_identities_close(worker.ids);
    amp_store_close(p.store);
    return rc ? amp_complain(&err) : (int)p.status;
}

const struct amp_opt ask_opts[] = {
    {'i', "in", AMP_OPT_PATH, &worker.in, "PATH", "read escalations from PATH instead of stdin"},
    {0, "trust-in", AMP_OPT_PATH, &trusted_in, "PATH",
     "the same; unsigned messages count, as those of stdin"},
    {'o', "out", AMP_OPT_PATH, &worker.out, "PATH", "write decisions to PATH instead of stdout"},
    {0, "answer", AMP_OPT_PATH, &answer, "PATH",
     "read answers from a file or FIFO instead of the terminal"},
    {'t', "timeout", AMP_OPT_DURATION, &timeout_ms, "TIME", "leave a question undecided after TIME",
     0, 30LL * 86400000},
    AMP_OPT_OPEN_TIMEOUT(worker.open_timeout_ms),
    AMP_OPT_END,
};

/* hitl-prompt without a verb: the filter that asks a person and writes the decisions. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "hitl.h"
#include "message/store/wake.h"
#include "people/answer/offer.h"
#include "shared/finding.h"
#include "shared/identity.h"
#include "terminal/dialog.h"
#include "work/attempt/io.h"

/* ---- channels ---- */

#define FDS_MAX AMP_WORKER_FDS

#define FINISH_MS 5000 /* at the end: time to notify the channels of settled questions */
struct prompt_channels {
    struct amp_channels *channels;
    struct amp_wake wake; /* of the state's log */
    bool waking;          /* there are channels */
};

static int channels_open(struct prompt_channels *c, struct amp_decider *d,
                         const struct amp_list *notify, struct amp_error *err)
{
    json_t *config = NULL;

    if (hitl_config(&config, err) < 0)
        return -1;
    const struct amp_channels_options opt = {.decider = d,
                                             .config = config,
                                             .notify = notify->v,
                                             .home = getenv("HOME"),
                                             .note = d->opt.note};
    if (amp_channels_open(&opt, &c->channels, err) < 0)
        return -1;
    if (!amp_channels_any(c->channels))
        return 0;
    c->waking = true;
    return amp_wake_open(&c->wake, amp_store_dir(d->w.store), err);
}

static void channels_close(struct prompt_channels *c)
{
    struct amp_error err;

    if (c->waking) {
        /* After a signal the next run tells the channels. */
        if (!amp_stop && amp_channels_finish(c->channels, FINISH_MS, &err) < 0)
            amp_warn("%s", err.what);
        amp_wake_close(&c->wake);
    }
    amp_channels_close(c->channels);
    *c = (struct prompt_channels){0};
}

/* After a write of another process: whether it committed lines that this one emits. */
static int lines_look(struct amp_worker *w, struct amp_error *err)
{
    bool any = false;

    if (w->io->dirty || w->io->broken)
        return 0;
    if (amp_outbox_waits(&w->io->box, &any, err) < 0)
        return -1;
    w->io->dirty = any;
    return 0;
}

/* amp_worker_turn, and a step of the channels. */
static int channels_turn(struct prompt_channels *c, struct amp_worker *w, struct pollfd *fds,
                         unsigned n_fds, int64_t wait_ms, struct amp_error *err)
{
    struct pollfd all[FDS_MAX];
    unsigned n = n_fds;

    _Static_assert(AMP_CHANNELS_FDS + 16 <= AMP_WORKER_FDS, "the descriptors of a turn fit");
    if (amp_decider_wait(w->ctx, &wait_ms, err) < 0)
        return -1;
    if (!c->waking)
        return amp_worker_turn(w, fds, n_fds, wait_ms, err);
    for (unsigned i = 0; i < n_fds; i++)
        all[i] = fds[i];
    n += amp_channels_watch(c->channels, all + n, &wait_ms);
    all[n++] = (struct pollfd){.fd = c->wake.log, .events = POLLIN};
    bool wrote = w->io->dirty;
    if (amp_worker_turn(w, all, n, wait_ms, err) < 0)
        return -1;
    for (unsigned i = 0; i < n_fds; i++)
        fds[i].revents = all[i].revents;
    int others = amp_wake_drain(&c->wake, err);
    /* Decisions of hitl-prompt receive and answer. */
    if (others < 0 || (others > 0 && lines_look(w, err) < 0))
        return -1;
    return amp_channels_step(c->channels, others > 0 || wrote, err);
}

/* ---- the filter ---- */

static const char *answer, *trusted_in;
static int64_t timeout_ms, deadline_ms, unavailable_ms = 5000;
static struct amp_hitl_policy policy = AMP_HITL_POLICY_NONE;
static bool plain;
static struct amp_list notify;
static struct amp_worker_options worker = {.open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
                                           .stop = &amp_stop,
                                           .note = amp_note,
                                           .say = amp_finding_print};

struct prompt {
    struct amp_store *store;
    struct amp_decider d;
    struct dialog dialog;
    /* The decisions of other processes; its descriptor is -1: none. It is opened for the first open
     * question, because closing it takes the kernel up to 20 ms. */
    struct amp_wake wake;
    bool watched; /* it was opened, or cannot be */
    struct answers answers;
    struct prompt_channels channels;
    bool asking, undecided, no_terminal;
    bool ended; /* the person ended the program's questions with ^D */
    bool noted; /* the note about a background job was printed */
    struct amp_question q;
    int64_t asked_ms, reach_ms; /* reach_ms: to the next fallback because nobody is there */
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

    const struct amp_page page = {hitl_width(STDERR_FILENO), amp_color(stderr), &text, &err,
                                  EVIDENCE_MORE};
    amp_buf_init(&text, 1 << 20);
    if (evidence_question(q, NULL, &page) == 0)
        amp_err(amp_buf_span(&text));
}

int hitl_width(int fd)
{
    struct winsize w;

    if (ioctl(fd, TIOCGWINSZ, &w) || !w.ws_col)
        return 80;
    return w.ws_col > 100 ? 100 : w.ws_col;
}

/* why: said on the terminal, or NULL. */
static int question_close(struct prompt *p, const char *why)
{
    if (p->asking) {
        dialog_close(&p->dialog, why);
        terminal_pass(&p->dialog.tty);
        amp_decider_hold(&p->d, false);
    }
    amp_question_release(&p->q);
    p->asking = false;
    return 0;
}

static int question_done(struct prompt *p)
{
    return question_close(p, NULL);
}

/* Whether the question was decided by another process, or has ended. */
static bool is_settled(const struct amp_error *err)
{
    return amp_code_is(err->code, already_decided) || amp_code_is(err->code, ended) ||
           !strcmp(err->code, AMP_HITL_WITHDRAWN);
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
    uint32_t left = 0;
    struct amp_offer offer = {.q = &p->q,
                              .answer = *a,
                              .how = hitl_author.how,
                              .key = hitl_author.key,
                              .principal = hitl_author.principal,
                              .channel = answer ? AMP_CHANNEL_FILE : AMP_CHANNEL_TERMINAL,
                              .shown = p->asking ? p->dialog.shown : NULL,
                              .left = &left};

    if (!a->op || !*a->op)
        offer.answer.op = hitl_operator;
    else if (strcmp(a->op, hitl_operator) != 0) /* the key proves one name only */
        offer.how = AMP_KNOWN_BY_LOGIN;
    switch (amp_offer_make(&p->d, &offer, err)) {
    case AMP_OFFERED_FAILED:
        return -1;
    case AMP_OFFERED_REFUSED:
        if (!is_settled(err))
            return answer_refuse(p, err);
        amp_note("%s: %s", p->q.id, err->what);
        break;
    case AMP_OFFERED_COUNTED:
        amp_note("%s: %s by %s is counted; %u more must agree", p->q.name, a->action,
                 offer.answer.op, left);
        if (amp_question_skip(&p->d.hitl, &p->q, err) < 0)
            return -1;
        break;
    default:
        amp_note("%s: %s by %s", p->q.name, a->action, offer.answer.op);
    }
    return question_done(p);
}

/* Answers a question from the file. A question that a completely read file does not answer is left
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
    return answers_wait(&p->answers) ? amp_question_each(&p->d.hitl, question_match, p, err) : 0;
}

static void look_for_terminal(struct prompt *p, struct amp_error *why)
{
    p->no_terminal = !answer && terminal_open(&p->dialog.tty, why);
}

/* Without a terminal and channels the questions are kept for another run. */
static void note_no_terminal(const struct prompt *p, const struct amp_error *why)
{
    if (!p->no_terminal)
        return;
    if (p->channels.waking)
        amp_note("%s; questions are asked through the channels", why->what);
    else
        amp_note("%s; escalations are kept for the next hitl-prompt with a terminal", why->what);
}

/* A question that cannot be asked is left undecided. 1: it is put later. */
static int question_put(struct prompt *p, struct amp_error *err)
{
    struct terminal *t = &p->dialog.tty;

    if (p->ended)
        return question_pass(p, "end of file on the terminal", err);
    if (p->no_terminal && amp_question_has_policy(&p->d.hitl, &p->q) && p->reach_ms < INT64_MAX)
        return 1; /* its fallback applies soon */
    if (p->no_terminal || terminal_gone(t)) {
        p->no_terminal = true;
        amp_warn("%s waits for a decision; there is no terminal", p->q.name);
        status_add(p, AMP_UNAVAILABLE);
        return question_pass(p, "no terminal", err);
    }
    if (!terminal_ours(t)) {
        if (!p->noted)
            amp_note("%s waits for a decision; this is a background job: bring it to the "
                     "foreground (fg) to answer",
                     p->q.name);
        p->noted = true;
        return 1;
    }
    if (!terminal_turn(t)) /* another hitl-prompt asks on this terminal */
        return 1;
    p->noted = false;
    if (amp_question_ask(&p->d.hitl, &p->q, err) < 0) {
        terminal_pass(t);
        return is_settled(err) ? question_done(p) : -1;
    }
    amp_decider_hold(&p->d, terminal_is(t, STDOUT_FILENO));
    p->asking = true;
    return dialog_ask(&p->dialog, &p->d, &p->q, err);
}

/* The person said something, or the terminal is gone. */
static int dialog_hear(struct prompt *p, struct amp_error *err)
{
    switch (dialog_step(&p->dialog, err)) {
    case DIALOG_FAILED:
        return -1;
    case DIALOG_WAITS:
        return 0;
    case DIALOG_ANSWERED:
        break;
    case DIALOG_PASSED:
        dialog_close(&p->dialog, "Undecided; the next run asks again.");
        return question_pass(p, "no answer", err);
    case DIALOG_ENDED:
        p->ended = true;
        return question_pass(p, "end of file on the terminal", err);
    case DIALOG_GONE:
        p->no_terminal = true;
        amp_note("the terminal is gone; %s stays open", p->q.name);
        if (p->channels.waking) /* they ask on */
            return question_done(p);
        status_add(p, AMP_UNAVAILABLE);
        return question_pass(p, "the terminal is gone", err);
    }
    int rc = question_decide(p, &p->dialog.answer, err);
    if (rc == 1)
        dialog_again(&p->dialog, NULL);
    return rc < 0 ? -1 : 0;
}

/* Whether another process decided the question meanwhile; notifies the person. */
static int others_hear(struct prompt *p, struct amp_error *err)
{
    char how[512], why[AMP_ABOUT_MAX + 600];
    int rc = amp_question_settled(p->store, &p->q, how, sizeof how, err);

    if (rc <= 0)
        return rc;
    snprintf(why, sizeof why, "%s: %s", p->q.name, how);
    question_close(p, why);
    return 0;
}

/* Waits for descriptors, the input and the channels; with an open question also for other processes
 * that write to the log: they may have decided it, and this process emits the line. */
static int turn_wait(struct prompt *p, struct pollfd *fds, unsigned n, bool open, int64_t wait_ms,
                     struct amp_error *err)
{
    int others = 1;
    bool first = open && !p->watched;

    /* Without it, the log is looked at every second. */
    if (first && amp_wake_open(&p->wake, amp_store_dir(p->store), err) < 0 &&
        strcmp(err->code, "no_inotify") != 0)
        return -1;
    p->watched |= first;
    if (first)
        wait_ms = 0;
    fds[n] = (struct pollfd){.fd = open ? p->wake.log : -1, .events = POLLIN};
    if (channels_turn(&p->channels, &p->d.w, fds, n + 1, wait_ms, err) < 0 ||
        (p->wake.log >= 0 && (others = amp_wake_drain(&p->wake, err)) < 0))
        return -1;
    return others > 0 || first ? lines_look(&p->d.w, err) : 0;
}

/* Waits with the terminal. */
static int dialog_wait(struct prompt *p, int64_t wait_ms, struct amp_error *err)
{
    struct pollfd fds[4];
    unsigned n = dialog_watch(&p->dialog, fds);

    return turn_wait(p, fds, n, true, wait_ms, err) < 0 ? -1 : others_hear(p, err);
}

/* One turn with the terminal. 1: there is no open question. */
static int serve_tty(struct prompt *p, struct amp_error *err)
{
    if (p->asking) {
        int64_t left = timeout_ms ? p->asked_ms + timeout_ms - amp_mono_ms() : INT64_MAX;
        if (left <= 0) {
            dialog_close(&p->dialog, "No answer in time; undecided.");
            status_add(p, AMP_TIMEDOUT);
            return question_pass(p, "no answer in time", err);
        }
        if (dialog_wait(p, left < 1000 ? left : 1000, err) < 0)
            return -1;
        return p->asking ? dialog_hear(p, err) : 0;
    }
    if (!p->q.message) {
        int rc = amp_question_next(&p->d.hitl, &p->q, err);
        if (rc <= 0)
            return rc < 0 ? -1 : 1;
        p->asked_ms = amp_mono_ms();
    }
    int later = question_put(p, err);
    if (later <= 0)
        return later;
    if (timeout_ms && amp_mono_ms() - p->asked_ms >= timeout_ms) {
        status_add(p, AMP_TIMEDOUT);
        return question_pass(p, "no answer in time", err);
    }
    if (dialog_wait(p, p->reach_ms < 200 ? p->reach_ms : 200, err) < 0)
        return -1;
    return 0;
}

/* Counts the open questions, which may still be answered from the FIFO. */
static int question_count(void *ctx, const struct amp_question *q)
{
    (*(int *)ctx)++;
    return 0;
}

/* Without a terminal the channels ask. 1: it goes on; 0: it ends. */
static int serve_channels(struct prompt *p, int64_t *ended, struct amp_error *err)
{
    int open = 0;

    if (!amp_worker_ended(&p->d.w))
        return 1;
    if (amp_question_each(&p->d.hitl, question_count, &open, err) < 0)
        return -1;
    if (!*ended)
        *ended = amp_mono_ms();
    bool late = timeout_ms && amp_mono_ms() - *ended >= timeout_ms;
    if (open && !late)
        return 1;
    p->undecided |= open > 0;
    if (open)
        status_add(p, AMP_TIMEDOUT);
    return 0;
}

/* Whether a person may see the question: at the terminal, or through a channel. */
static bool is_reachable(const struct prompt *p, const struct amp_question *q)
{
    return answer || !p->no_terminal ||
           (p->channels.waking &&
            amp_channels_reach(p->channels.channels, q->key) != AMP_REACH_NOBODY);
}

/* The fallback of a question that nobody can see, unavailable_ms after its arrival. */
static int question_reach(void *ctx, const struct amp_question *q)
{
    struct prompt *p = ctx;
    struct amp_question_swept swept = {0};

    if (!amp_question_has_policy(&p->d.hitl, q) || q->extensions > 0 || is_reachable(p, q))
        return 0;
    int64_t left = q->arrived_ms + unavailable_ms - amp_now_ms();
    if (left > 0) {
        if (left < p->reach_ms)
            p->reach_ms = left;
        return 0;
    }
    if (amp_question_unreachable(&p->d.hitl, q, &swept, p->failed) < 0)
        return -1;
    return 0;
}

/* Applies what is due, and finds questions that nobody can see. */
static int prompt_upkeep(struct prompt *p, struct amp_error *err)
{
    struct amp_question_swept swept = {0};

    p->reach_ms = INT64_MAX;
    p->failed = err;
    if (amp_decider_upkeep(&p->d, &swept, err) < 0)
        return -1;
    if (swept.expired)
        status_add(p, AMP_TIMEDOUT);
    return p->no_terminal && !answer ? amp_question_each(&p->d.hitl, question_reach, p, err) : 0;
}

static int prompt_loop(struct prompt *p, struct amp_error *err)
{
    int64_t ended = 0;

    while (!amp_stop) {
        int open = 0, idle = 1, waiting = 0;
        if (prompt_upkeep(p, err) < 0)
            return -1;
        if (answer) {
            if (serve_file(p, err))
                return -1;
            /* Until the input ends, it does not matter how many there are. */
            if (!amp_worker_ended(&p->d.w))
                open = 1;
            else if (amp_question_each(&p->d.hitl, question_count, &open, err) < 0)
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
        } else if (p->no_terminal && p->channels.waking) {
            int rc = serve_channels(p, &ended, err);
            if (rc <= 0)
                return rc;
        } else if ((idle = serve_tty(p, err)) < 0) {
            return -1;
        } else if (idle && amp_worker_ended(&p->d.w)) {
            return 0;
        }
        bool reads = answer && p->answers.pipe && !p->answers.done;
        struct pollfd fds[2] = {{.fd = reads ? p->answers.fd : -1, .events = POLLIN}};
        /* The coordinator may open a question again at any time. */
        if (idle && (amp_question_each(&p->d.hitl, question_count, &waiting, err) < 0 ||
                     turn_wait(p, fds, 1, waiting > 0, answer && open ? 500 : 1000, err) < 0))
            return -1;
    }
    return 0;
}

static int ask_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    if (hitl_policy(&policy, err) < 0)
        return -1;
    policy.deadline_ms = deadline_ms;
    if (trusted_in && worker.in)
        amp_die_usage("--in and --trust-in exclude each other");
    worker.trusted = trusted_in || amp_input_is_trusted(worker.in);
    worker.in = trusted_in ? trusted_in : worker.in;
    return 0;
}

static int hitl_ask(struct amp_command *c, struct amp_error *err)
{
    struct prompt p = {.store = c->store, .answers = {.fd = -1}, .wake = {-1, -1, 0}};
    struct amp_error no_terminal;

    signal(SIGTTOU, SIG_IGN);
    amp_note_terminal(worker.in);
    worker.tool = amp_cli_name();
    worker.consumer = hitl_as;
    dialog_init(&p.dialog, plain);
    look_for_terminal(&p, &no_terminal);
    int rc = hitl_identities(&worker.ids, err);
    worker.operator_name = hitl_operator;
    if (!rc && answer)
        rc = answers_open(&p.answers, answer, err);
    if (!rc)
        rc = amp_decider_open(&p.d, p.store, &worker, on_info, err);
    p.d.people = hitl_people;
    p.d.hitl.policy = &policy;
    if (!rc)
        rc = channels_open(&p.channels, &p.d, &notify, err);
    if (!rc) {
        note_no_terminal(&p, &no_terminal);
        rc = prompt_loop(&p, err);
        /* The last decision may be of another process, after the last look at the lines. */
        if (!rc && !amp_stop)
            rc = lines_look(&p.d.w, err);
    }
    if (!rc) {
        status_add(&p, p.d.w.status);
        if (p.undecided)
            status_add(&p, AMP_NO);
        if (amp_stop)
            status_add(&p, AMP_INTERRUPTED);
    }
    if (p.d.w.io)
        question_done(&p);
    dialog_release(&p.dialog);
    amp_question_release(&p.q);
    channels_close(&p.channels);
    amp_decider_close(&p.d);
    answers_release(&p.answers);
    amp_wake_close(&p.wake);
    amp_identities_close(worker.ids);
    return rc ? -1 : (int)p.status;
}

static const struct amp_opt ask_opts[] = {
    {'i', "in", AMP_OPT_PATH, &worker.in, "PATH", "read escalations from PATH instead of stdin"},
    {0, "trust-in", AMP_OPT_PATH, &trusted_in, "PATH",
     "the same; unsigned messages count, as those of stdin"},
    {'o', "out", AMP_OPT_PATH, &worker.out, "PATH", "write decisions to PATH instead of stdout"},
    {0, "answer", AMP_OPT_PATH, &answer, "PATH",
     "read answers from a file or FIFO instead of the terminal"},
    {0, "notify", AMP_OPT_LIST, &notify, "COMMAND",
     "run COMMAND (words, no shell) with each question as JSON on its input"},
    {'t', "timeout", AMP_OPT_DURATION, &timeout_ms, "TIME", "leave a question undecided after TIME",
     0, 30LL * 86400000},
    {0, "deadline", AMP_OPT_DURATION, &deadline_ms, "TIME",
     "apply the fallback TIME after the arrival (default: the protocol's deadline)", 0,
     30LL * 86400000, .config = "hitl.deadline"},
    {0, "unavailable-after", AMP_OPT_DURATION, &unavailable_ms, "TIME",
     "apply the fallback if nobody can be reached for TIME", 0, 3600000,
     .config = "hitl.unavailable_after"},
    {0, "plain", AMP_OPT_FLAG, &plain, NULL,
     "plain lines without colour or cursor movement, as for screen readers"},
    AMP_OPT_OPEN_TIMEOUT(worker.open_timeout_ms),
    AMP_OPT_END,
};

const struct amp_verb ask_verbs[] = {
    {NULL, "", "ask", ask_opts, hitl_ask, .check = ask_check,
     .opens = AMP_OPENS_MADE | HITL_OPENS_PEOPLE, .act = "answer escalations", .signals = true,
     .who = AMP_WHO_PERSON},
    {0},
};

/* Requests to stop, their time limits, and the ends that follow from them. */
#include "work/attempt/stop/stop.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "work/attempt/control.h"

static void wait_lower(int64_t *wait_ms, int64_t left)
{
    if (*wait_ms < 0 || *wait_ms > left)
        *wait_ms = left > 0 ? left : 0;
}

static void agent_ask(struct amp_worker *w, struct amp_assignment *k, const struct amp_child *agent)
{
    struct amp_error e;

    k->words.asked = true;
    w->opt->note("%s: %s is asked to stop%s", k->task, w->opt->agent,
                 w->ask.what == AMP_ASK_PREEMPT ? " for work of a higher priority"
                                                : ": the pool shuts down");
    amp_words_log(k, w->ask.what == AMP_ASK_PREEMPT ? "preemption_request" : "shutdown_request", "",
                  "", &e);
    if (k->words.signals)
        amp_child_signal(agent, SIGUSR1);
}

bool amp_words_yield(struct amp_worker *w, struct amp_assignment *k, const struct amp_child *agent,
                     int64_t *wait_ms)
{
    int64_t now = amp_mono_ms(), until = w->ask.until_ms;
    struct amp_error e;

    if (!k->words.asked)
        agent_ask(w, k, agent);
    if (k->words.forced)
        return true;
    /* A section that began before the end of the time is deferred to, and no longer than it said.
     */
    if (k->words.hold_ms > until)
        until = k->words.hold_ms;
    if (k->words.act_ms > until)
        until = k->words.act_ms;
    if (now < until) {
        wait_lower(wait_ms, until - now);
        return false;
    }
    if (k->words.safe)
        return true;
    k->words.forced = true;
    w->opt->note("%s: %s: %s", k->task,
                 w->ask.what == AMP_ASK_PREEMPT ? "forced_preemption" : "agent_shutdown_timeout",
                 k->words.hold_ms ? "the agent's hold is over" : "the agent reached no safe point");
    amp_words_log(k,
                  w->ask.what == AMP_ASK_PREEMPT ? "forced_preemption" : "agent_shutdown_timeout",
                  "", "the time is over; the agent is ended", &e);
    return true;
}

bool amp_words_starved(struct amp_worker *w, struct amp_assignment *k, int64_t *wait_ms)
{
    int64_t left = k->words.waits_to_ms - amp_mono_ms();

    if (!k->words.waits_to_ms || k->words.out_of_time)
        return k->words.out_of_time;
    if (left > 0) {
        wait_lower(wait_ms, left);
        return false;
    }
    w->opt->note("%s: resource_timeout: %s waited too long for a resource", k->task, w->opt->agent);
    k->words.out_of_time = true;
    return true;
}

static void code_set(struct amp_worker *w, struct amp_assignment *k, const char *code,
                     const char *why)
{
    snprintf(w->left.code, sizeof w->left.code, "%s", code);
    snprintf(k->why, sizeof k->why, "%s: %s", code, why);
}

void amp_stop_judge(struct amp_worker *w, struct amp_assignment *k, const struct amp_child_end *how)
{
    bool stopped = k->end == AMP_END_STOPPED, asked = w->ask.what != AMP_ASK_NOTHING;
    bool killed = stopped && how->signaled && how->signal == SIGKILL;
    /* It was told to stop and did so, if not with status 75. */
    bool obeyed = asked && k->words.safe && !how->timed_out &&
                  (k->end == AMP_END_MACHINERY ||
                   (k->end == AMP_END_FAILED && access(k->files.result, F_OK) != 0));

    if (k->end == AMP_END_DONE)
        return;
    if (stopped && k->words.out_of_time) {
        k->end = AMP_END_MACHINERY;
        code_set(w, k, AMP_CODE(resource_timeout), "the agent waited too long for a resource");
    } else if (stopped && asked && (k->words.forced || killed)) {
        bool preempted = w->ask.what == AMP_ASK_PREEMPT;
        /* SW4RM §7.2: such work has failed. Work that the end of its pool broke off is repeated. */
        if (preempted)
            k->end = AMP_END_FAILED;
        code_set(w, k, preempted ? AMP_CODE(forced_preemption) : AMP_CODE(agent_shutdown_timeout),
                 killed ? "the agent was killed" : "the agent was ended at no safe point");
    } else if (asked && (stopped || obeyed || k->end == AMP_END_REPEAT) && !k->words.limited) {
        k->end = AMP_END_STOPPED;
        w->left.yielded = k->words.safe || !stopped;
    } else if (k->words.limited && (k->end == AMP_END_FAILED || k->end == AMP_END_MACHINERY)) {
        k->end = AMP_END_REPEAT;
    }
}

/* INT and TERM end a program between frames; HUP makes it read its settings again. */
#include "cli/cli.h"

#include <signal.h>

#include <amp/base/file.h>

volatile int amp_stop, amp_hangup;

static void on_stop(int sig)
{
    amp_stop = sig;
}

void amp_signals_install(void)
{
    /* Without SA_RESTART, so that a blocking call returns and the loop sees the flag. */
    struct sigaction sa = {.sa_handler = on_stop};
    sigaction(SIGTERM, &sa, NULL);
    amp_lock_stop(&amp_stop);
    /* Background jobs of a shell ignore INT; this does not change. */
    struct sigaction old;
    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &sa, NULL);
}

void amp_signals_hangup(void)
{
    struct sigaction sa = {.sa_handler = on_stop}, old;
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &sa, NULL);
}

void amp_signals_default(void)
{
    struct sigaction now;
    const int ends[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; i++)
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == on_stop)
            signal(ends[i], SIG_DFL);
    if (amp_stop)
        raise(amp_stop);
}

static void on_hangup(int sig)
{
    (void)sig;
    amp_hangup = 1;
}

void amp_signals_reload(void)
{
    struct sigaction sa = {.sa_handler = on_hangup};
    sigaction(SIGHUP, &sa, NULL);
}

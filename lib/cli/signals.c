/* INT and TERM ask for an end between frames; HUP, where it is wanted, for a look at the settings.
 */
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
    /* No SA_RESTART: a blocking call must return, so that the loop sees the flag. */
    struct sigaction sa = {.sa_handler = on_stop};
    sigaction(SIGTERM, &sa, NULL);
    amp_lock_stop(&amp_stop);
    /* A background job of a shell ignores INT; that stays. */
    struct sigaction old;
    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &sa, NULL);
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

/* One turn of a loop: descriptors, the nearest limit, and signals that came before the wait. */
#include "base/loop.h"

#include <signal.h>
#include <unistd.h>

#include "../tap.h"

static volatile int stop, hangup;

static void on_signal(int sig)
{
    *(sig == SIGHUP ? &hangup : &stop) = sig;
}

int main(void)
{
    struct pollfd fds[4];
    struct amp_error err;
    struct sigaction sa = {.sa_handler = on_signal};
    int p[2], empty[2];
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    if (pipe(p) < 0 || pipe(empty) < 0)
        return 1;
    struct amp_loop t = amp_loop_turn(fds, 4, &stop, &hangup);
    amp_loop_within(&t, 20);
    amp_loop_within(&t, -1);
    amp_loop_within(&t, 1);
    amp_loop_within(&t, 60000);
    TAP_OK(t.wait_ms == 1, "the nearest limit");
    struct pollfd *in = amp_loop_add(&t, empty[0], POLLIN);
    TAP_INT(amp_loop_wait(&t, &err), AMP_LOOP_LATE, "nothing came");
    TAP_INT(in->revents, 0, "on the descriptor neither");

    TAP_INT(write(p[1], "x", 1), 1, "a byte is written");
    t = amp_loop_turn(fds, 4, &stop, &hangup);
    amp_loop_add(&t, -1, POLLIN);
    struct pollfd *places = amp_loop_places(&t, 2);
    TAP_OK(places[0].fd == -1 && places[1].fd == -1, "places wait for nothing");
    in = amp_loop_add(&t, p[0], POLLIN);
    TAP_INT(amp_loop_wait(&t, &err), AMP_LOOP_READY, "a descriptor is ready");
    TAP_INT(in->revents, POLLIN, "this one");

    /* Without a limit: a missed signal would let the test stand still. */
    raise(SIGTERM);
    TAP_INT(stop, SIGTERM, "the signal came before the wait");
    t = amp_loop_turn(fds, 4, &stop, &hangup);
    in = amp_loop_add(&t, empty[0], POLLIN);
    TAP_INT(amp_loop_wait(&t, &err), AMP_LOOP_SIGNAL, "and ends it");
    stop = 0;
    raise(SIGHUP);
    t = amp_loop_turn(fds, 4, &stop, &hangup);
    amp_loop_add(&t, empty[0], POLLIN);
    TAP_INT(amp_loop_wait(&t, &err), AMP_LOOP_SIGNAL, "so does a hang-up");
    t = amp_loop_turn(fds, 4, &stop, NULL);
    amp_loop_add(&t, p[0], POLLIN);
    TAP_INT(amp_loop_wait(&t, &err), AMP_LOOP_READY, "unless the loop does not ask for it");
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    TAP_OK(!sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGHUP), "signals are let in again");
    return tap_done();
}

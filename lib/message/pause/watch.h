/*
 * Suspensions by people (message/pause/pause.h) in the tools: whether something is suspended, and
 * being woken when that changes. The log wakes: nothing polls, unless the system has no more
 * inotify watches.
 */
#ifndef AMP_MESSAGE_PAUSE_WATCH_H
#define AMP_MESSAGE_PAUSE_WATCH_H

#include "message/pause/pause.h"
#include "message/store/wake.h"

/* A suspended agent gets TERM, and KILL after this time. */
#define AMP_PAUSE_GRACE_MS 400

struct amp_pause_watch {
    struct amp_store *store;
    struct amp_wake wake;
    struct amp_pauses now;
    bool later; /* the second look opens inotify */
    bool polls; /* there is no inotify */
    bool fed;   /* the owner notices the writes */
    bool due;   /* something was written since the last look */
    int64_t looked_ms;
    int64_t wrote_ms; /* the last write to the log; 0: none */
    uint64_t writes;  /* counts the times at which writes were noticed */
};
/* Begins to watch; the first look is due, and a second one 20 ms later. It never fails: without
 * inotify it polls. */
void amp_pause_watch_open(struct amp_pause_watch *p, struct amp_store *s);
/* Begins without a watch of its own: its owner calls amp_pause_watch_renew after writes. */
void amp_pause_watch_feed(struct amp_pause_watch *p, struct amp_store *s);
void amp_pause_watch_close(struct amp_pause_watch *p); /* also of a zeroed struct */
/* For a poll loop: the descriptor (-1: none), and the longest wait in ms (-1: any). */
int amp_pause_watch_fd(const struct amp_pause_watch *p);
int64_t amp_pause_watch_wait(const struct amp_pause_watch *p);
/* Whether to look again: reads the events. Under many writes it is due every 20 ms at most. */
bool amp_pause_watch_due(struct amp_pause_watch *p);
/* The next look is due at once. */
void amp_pause_watch_renew(struct amp_pause_watch *p);
/* Reads the state. 1: the task or the agent (either may be empty) is suspended, and *found is valid
 * until the next look; 0: neither is. */
int amp_pause_look(struct amp_pause_watch *p, struct amp_span task, struct amp_span agent,
                   const struct amp_pause **found, struct amp_error *err);

/* "ann suspended task T-2026-001: REASON (hitl-prompt resume T-2026-001)". */
#define AMP_PAUSE_SAID_MAX 1600
void amp_pause_say(const struct amp_pause *p, char out[AMP_PAUSE_SAID_MAX]);

#endif

/* Watches the suspensions by people. */
#include "message/pause/watch.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#define POLL_MS  200 /* without inotify */
#define QUIET_MS 20  /* between two looks under many writes */
/* A commit can be seen when it is synced, which no write to the log tells. So it is looked for this
 * long after a write. */
#define SYNC_MS 3000

void amp_pause_watch_open(struct amp_pause_watch *p, struct amp_store *s)
{
    *p = (struct amp_pause_watch){.store = s, .due = true, .later = true};
    p->wake.log = p->wake.timer = -1;
    amp_pauses_init(&p->now);
}

/* Closing inotify takes the kernel up to 20 ms, so a tool that ends before its second look does not
 * open it. */
static void inotify_open(struct amp_pause_watch *p)
{
    struct amp_error e;

    p->later = false;
    p->polls = amp_wake_open(&p->wake, amp_store_dir(p->store), &e) < 0;
}

void amp_pause_watch_feed(struct amp_pause_watch *p, struct amp_store *s)
{
    *p = (struct amp_pause_watch){.store = s, .due = true, .fed = true};
    p->wake.log = p->wake.timer = -1;
    amp_pauses_init(&p->now);
}

void amp_pause_watch_close(struct amp_pause_watch *p)
{
    if (!p->store)
        return;
    if (!p->polls && !p->fed)
        amp_wake_close(&p->wake);
    amp_pauses_release(&p->now);
    *p = (struct amp_pause_watch){0};
}

int amp_pause_watch_fd(const struct amp_pause_watch *p)
{
    return !p->store || p->polls || p->due ? -1 : p->wake.log;
}

static bool is_syncing(const struct amp_pause_watch *p, int64_t now)
{
    return p->wrote_ms && now - p->wrote_ms < SYNC_MS;
}

int64_t amp_pause_watch_wait(const struct amp_pause_watch *p)
{
    int64_t now = amp_mono_ms();

    if (!p->store || (!p->polls && !p->due && !is_syncing(p, now)))
        return -1;
    int64_t left = p->looked_ms + (p->due && !p->polls ? QUIET_MS : POLL_MS) - now;
    return left > 0 ? left : 0;
}

/* 1: something may have been written. */
static int writes_take(struct amp_pause_watch *p)
{
    struct amp_error e;
    int rc = p->polls || p->later ? 1 : p->fed ? 0 : amp_wake_drain(&p->wake, &e);

    if (rc < 0) { /* the directory is gone: the next access to the state reports it */
        amp_wake_close(&p->wake);
        p->polls = true;
    }
    p->writes += rc != 0;
    if (rc)
        p->wrote_ms = amp_mono_ms();
    return rc != 0;
}

bool amp_pause_watch_due(struct amp_pause_watch *p)
{
    if (!p->store)
        return false;
    if (!p->polls && !p->due)
        p->due = writes_take(p) > 0;
    return amp_pause_watch_wait(p) == 0;
}

void amp_pause_watch_renew(struct amp_pause_watch *p)
{
    p->due = true;
    p->looked_ms = 0;
    if (p->fed) {
        p->writes++;
        p->wrote_ms = amp_mono_ms();
    }
}

int amp_pause_look(struct amp_pause_watch *p, struct amp_span task, struct amp_span agent,
                   const struct amp_pause **found, struct amp_error *err)
{
    writes_take(p); /* this look covers them */
    if (p->later && p->looked_ms)
        inotify_open(p);
    p->due = p->later;
    p->looked_ms = amp_mono_ms();
    if (amp_pauses_read(p->store, &p->now, err) < 0)
        return -1;
    *found = amp_pauses_find(&p->now, task, agent);
    return *found != NULL;
}

void amp_pause_say(const struct amp_pause *p, char out[AMP_PAUSE_SAID_MAX])
{
    bool all = p->scope == AMP_PAUSE_ALL;

    snprintf(out, AMP_PAUSE_SAID_MAX, "%.*s suspended %s%s%.*s%s%.*s (hitl-prompt resume %s%.*s)",
             AMP_CLIP(p->person, 200), all ? "everything" : amp_pause_scope_name((int)p->scope),
             all ? "" : " ", AMP_CLIP(p->name, 256), p->reason.n ? ": " : "",
             AMP_CLIP(p->reason, 600), all ? "--all" : "", AMP_CLIP(p->name, 256));
}

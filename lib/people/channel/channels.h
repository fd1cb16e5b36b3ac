/*
 * Channels: the ways by which questions reach people who are not at the terminal, and by which
 * their answers come back: a folder, and scripts (amp-channels(7)). One process runs all of them,
 * in its loop; nothing here blocks. Each channel gets each open question once; a failed delivery is
 * repeated with growing pauses as long as the question is open. When a question is settled, the
 * channels that have it are notified: who decided what, and through which channel. The state has a
 * record (kind "told") of each delivery, so another process goes on after a crash.
 */
#ifndef AMP_PEOPLE_CHANNEL_CHANNELS_H
#define AMP_PEOPLE_CHANNEL_CHANNELS_H

#include <jansson.h>
#include <poll.h>

#include "people/answer/text/answer.h"

struct amp_channels_options {
    struct amp_decider *decider; /* open, with its store */
    const json_t *config;        /* the member `hitl` of amp.json, valid as long as the channels;
                                    NULL: none */
    const char *const *notify; /* further commands (--notify), each split into words; NULL-ended */
    const char *home;          /* for a folder that begins with "~/"; NULL: none */
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
};

struct amp_channels;
/* CONFIG bad_config, NOPERM folder_permissions, USAGE and the failures of ports and files. */
int amp_channels_open(const struct amp_channels_options *opt, struct amp_channels **out,
                      struct amp_error *err);
void amp_channels_close(struct amp_channels *c); /* NULL: nothing */
/* Whether there is any. */
bool amp_channels_any(const struct amp_channels *c);

/* For the loop: fills descriptors (-1: none) and lowers *wait_ms (< 0: no limit); returns the
 * number of descriptors. */
#define AMP_CHANNELS_FDS 96
unsigned amp_channels_watch(struct amp_channels *c, struct pollfd fds[AMP_CHANNELS_FDS],
                            int64_t *wait_ms);
/* Works without blocking: tells, reads answers and offers them, tells what was settled. changed:
 * questions may have arrived or been settled since the last call, as the state's log shows. A
 * failing channel is reported, and is no failure of this. */
int amp_channels_step(struct amp_channels *c, bool changed, struct amp_error *err);
/* Tells what was settled to the channels that know of it, for at most wait_ms; before the end. */
int amp_channels_finish(struct amp_channels *c, int64_t wait_ms, struct amp_error *err);

/* Whether a channel took the question (SW4RM §15.4). */
enum amp_reach {
    AMP_REACH_NOBODY,  /* no channel, or all of them failed */
    AMP_REACH_PENDING, /* at least one did not fail yet */
    AMP_REACH_TOLD,
};
enum amp_reach amp_channels_reach(const struct amp_channels *c, const char *question_key);

#endif

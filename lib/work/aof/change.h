/*
 * A change: what one message or one poll does to tasks, runs and the log of events, all of it or
 * nothing, also after a kill or a power loss.
 *
 * Its steps are written to .amp/change.ndjson and synced, carried out one after the other, synced,
 * and the file is removed. Whoever takes the lock next completes a change that it finds. Events are
 * logged after the other steps, which are not repeated if one of them is in the log. Each step
 * may be repeated: a move that was done finds its task in the new folder, a file is written whole
 * beside its name and renamed, an event has its number. So the file is the commit: without it
 * nothing has happened, with it everything will.
 *
 * People do not take the lock. If a task is no longer where a step expects it, the rest of the
 * change is left out and the event system.drift-detected says so: the folder is right. A task file
 * is replaced by an exchange of names: if the file that comes out is not the one that was read, its
 * contents are read again.
 */
#ifndef AMP_WORK_AOF_CHANGE_H
#define AMP_WORK_AOF_CHANGE_H

#include "work/aof/data.h"

enum { AMP_AOF_CHANGE_BYTES = 64 << 20 };

struct amp_aof_change {
    struct amp_aof_data *data;
    struct amp_buf steps;  /* lines */
    struct amp_buf events; /* those of `steps`, as lines of the log; for the caller after commit */
    const char *actor;
    int64_t now_ms;
    uint64_t next_event;
    unsigned n;
};

/* The caller has the lock from here to the commit. Steps are carried out in the order in which they
 * are added. A change moves a task at most once, and edits it after that: otherwise a repetition
 * would not find it where the step expects it. */
int amp_aof_change_init(struct amp_aof_change *c, struct amp_aof_data *a, const char *actor,
                        int64_t now_ms, struct amp_error *err);
void amp_aof_change_release(struct amp_aof_change *c);
#define AMP_AOF_CHANGE AMP_CLEANUP(amp_aof_change_release)

/* Moves a task, then its folder. */
int amp_aof_move(struct amp_aof_change *c, const char *id, uint8_t from, uint8_t to,
                 struct amp_error *err);
/* A change of a task's front matter: value p NULL removes the path. */
struct amp_aof_set {
    const char *path;
    struct amp_span value;
};
/* Changes the task file in the folder `at`; log: a line for its work log, or empty. */
int amp_aof_edit(struct amp_aof_change *c, const char *id, uint8_t at, const struct amp_aof_set *v,
                 unsigned n, struct amp_span log, struct amp_error *err);
/* Writes a file whole; path is below the data directory, in folders that are made if needed. */
int amp_aof_put(struct amp_aof_change *c, const char *path, struct amp_span text,
                struct amp_error *err);
/* Writes a file in a task's own folder; the task must be in the folder `at` then. */
int amp_aof_put_in(struct amp_aof_change *c, const char *id, uint8_t at, const char *name,
                   struct amp_span text, struct amp_error *err);
/* Removes a file. */
int amp_aof_drop(struct amp_aof_change *c, const char *path, struct amp_error *err);
/* A new task file; the task must be in no folder when the change is made. */
int amp_aof_create(struct amp_aof_change *c, const char *id, uint8_t status, struct amp_span text,
                   struct amp_error *err);
/* An event; task may be empty; payload: a JSON object. */
int amp_aof_event_add(struct amp_aof_change *c, const char *type, struct amp_span task,
                      struct amp_span payload, struct amp_error *err);

/* Makes the change. */
enum amp_aof_made {
    AMP_AOF_MADE_FAILED = -1, /* complete, unfinished (the next lock completes it), or not begun */
    AMP_AOF_MADE,
    AMP_AOF_MADE_PART /* a person moved the task, and the rest was left out; events has the lines
                         that were logged */
};
enum amp_aof_made amp_aof_commit(struct amp_aof_change *c, struct amp_error *err);

/* Completes the change that a killed writer left; the caller has the lock. Its events, of which
 * system.recovery is the last, are added to recovered. */
int amp_aof_recover(struct amp_aof_data *a, struct amp_error *err);

/* log.c: events.ndjson; the caller has the lock. The number of the next event. */
int amp_aof_log_next(struct amp_aof_data *a, uint64_t *next, struct amp_error *err);
/* 1: a line is in the log from `since` on, or its beginning is at the end; 0; -1. */
int amp_aof_log_has(struct amp_aof_data *a, int64_t since, struct amp_span line,
                    struct amp_error *err);
/* Appends lines of events, which have numbers, but not those that are in the log from `since` on.
 */
int amp_aof_log_append(struct amp_aof_data *a, int64_t since, struct amp_span lines,
                       struct amp_error *err);
/* The size of the log. */
int amp_aof_log_size(const struct amp_aof_data *a, int64_t *size, struct amp_error *err);

#endif

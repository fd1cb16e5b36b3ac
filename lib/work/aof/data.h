/*
 * The data directory of AOF/1. Its files are the truth; nothing else is stored.
 *
 *   tasks/STATUS/ID.md          a task; the folder is its status, whatever its front matter says
 *   tasks/STATUS/ID/            its inputs/, outputs/ and subtasks/, moved after the task
 *   runs/ID/run.json …          its run; these files do not move
 *   events.ndjson               what happened, a line for each event
 *   .amp/                       the locks of the writers, the change that one of them makes, and
 *                               the notifications that wait
 *
 * Writers are routers and pollers, one at a time (amp_aof_lock). People and agents also write here
 * without the lock: names, types and sizes are checked at each opening, links are not followed, and
 * what is not a task file is left alone.
 */
#ifndef AMP_WORK_AOF_DATA_H
#define AMP_WORK_AOF_DATA_H

#include <sys/stat.h>

#include <amp/base/file.h>

#include "work/aof/machine.h"

enum {
    AMP_AOF_ID_MAX = 32,          /* bytes of an id with its NUL */
    AMP_AOF_TASK_BYTES = 4 << 20, /* a larger task file is not read */
    AMP_AOF_RUN_BYTES = 1 << 20,  /* a larger file of a run is invalid */
    AMP_AOF_PATH_MAX = 512,       /* bytes of a path below the directory with its NUL */
    AMP_AOF_NUMBER_MOST = 999,    /* new tasks of a day */
    AMP_AOF_NAME_MAX = 4096,      /* bytes of an agent's name in a task; the schemas have fewer */
};

struct amp_aof_data {
    int dir;
    struct amp_turnstile turn;
    bool locked;
    /* Lines of events that were finished for a writer that was killed: the caller may print them,
     * and empties it. */
    struct amp_buf recovered;
    uint64_t last_event; /* number of the last event of a log with log_size bytes */
    int64_t log_size;    /* -1: unknown */
};

/* make: creates what is missing (0700). UNAVAILABLE "no_data_dir" if it is absent; NOPERM
 * "network_file_system": its locks cannot be trusted; CANTCREAT. */
int amp_aof_open(const char *path, bool make, struct amp_aof_data *out, struct amp_error *err);
void amp_aof_close(struct amp_aof_data *a);

/* Waits for the other writers, then completes the change of a writer that was killed
 * (change.h). TEMPFAIL lock_timeout; TEMPFAIL, IOERR: the unfinished change cannot be completed. */
int amp_aof_lock(struct amp_aof_data *a, int64_t timeout_ms, struct amp_error *err);
void amp_aof_unlock(struct amp_aof_data *a);

/* TASK-YYYY-MM-DD-NNN, also with -NN behind it or with eight of [0-9A-Za-z_-] in place of NNN. */
bool amp_aof_is_id(struct amp_span id);

const char *amp_aof_status_name(uint8_t status);
/* The status of a name, or -1. */
int amp_aof_status_find(struct amp_span name);

/* Whether the entry FOLDER/ID TAIL, if there is one, has exactly this name: in a folder that
 * ignores case the name may be that of another task. folder: below the directory. */
int amp_aof_name_fits(const struct amp_aof_data *a, const char *folder, const char *id,
                      const char *tail, struct amp_error *err);

/* Finds a task's folder. 1: found; 0: in no folder; -1: NO "two_folders" (a person copied it, or is
 * about to move it), or a failure. */
int amp_aof_find(const struct amp_aof_data *a, const char *id, uint8_t *status,
                 struct amp_error *err);

/* Calls fn for the id of each task file in a folder, in the order of their ids; a result other than
 * 0 ends the list and is returned. limit: 0, or how many at most. */
int amp_aof_each(const struct amp_aof_data *a, uint8_t status, uint32_t limit,
                 int (*fn)(void *ctx, const char *id, struct amp_error *err), void *ctx,
                 struct amp_error *err);

/* The free id with the lowest number of the day of now_ms (UTC): no folder has anything under it,
 * nor has runs. NO "too_many_tasks". The caller has the lock. */
int amp_aof_new_id(const struct amp_aof_data *a, int64_t now_ms, char out[AMP_AOF_ID_MAX],
                   struct amp_error *err);

/* A task file. Texts are in mem and text; absent ones are empty. */
struct amp_aof_task {
    char id[AMP_AOF_ID_MAX];
    uint8_t status;
    struct amp_buf text, mem;
    struct amp_span title, parent, priority, agent; /* agent: of routing */
    struct amp_span lease;                          /* agent of the lease */
    struct amp_span handoff; /* metadata.handoff: requested, accepted or rejected */
    int64_t lease_since_ms, lease_expires_ms, renewals, depth; /* times: 0 if unknown */
    bool no_review; /* metadata.reviewRequired is false */
};
#define AMP_AOF_TASK AMP_CLEANUP(amp_aof_task_release)

/* Finds and reads a task; out is initialised. 1: read; 0: there is no such task; -1: NO
 * two_folders, DATAERR not_a_file, file_too_large, bad_front_matter, "agent_too_long",
 * "id_mismatch" (the front matter has another id), "case_collision" (runs ignores case, and has the
 * run of another task), or a failure. */
int amp_aof_load(const struct amp_aof_data *a, const char *id, struct amp_aof_task *out,
                 struct amp_error *err);
void amp_aof_task_init(struct amp_aof_task *t);
void amp_aof_task_release(struct amp_aof_task *t);

/* Returns who may speak for a task: the agent of its lease, else of its routing; empty: nobody. */
struct amp_span amp_aof_owner(const struct amp_aof_task *t);

/* Reads a file below the directory without following links. 1: read; 0: absent; -1: DATAERR
 * not_a_file, file_too_large, or a failure. */
int amp_aof_get(const struct amp_aof_data *a, const char *path, size_t max, struct amp_buf *out,
                struct amp_error *err);
/* Reads below another directory; *st is the file's after 1. */
int amp_aof_get_at(int dir, const char *path, size_t max, struct amp_buf *out, struct stat *st,
                   struct amp_error *err);
/* Whether a path names a regular file below the task's own folder. */
bool amp_aof_has_output(const struct amp_aof_data *a, const struct amp_aof_task *t,
                        struct amp_span path);

#endif

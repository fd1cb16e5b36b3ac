/*
 * Task ids and task files. A file is a copy of the record for people and other programs. Reading
 * the record and writing the file happen under one lock, so that the last writer writes the newest
 * record. A crash between commit and file leaves an older file; the next start of the coordinator
 * rewrites it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "work/task/record.h"
#include "work/task/task.h"
#include "json/record.h"

#define FILE_MAX ((size_t)32 << 20)

struct counter {
    int64_t last;
};
static const struct amp_rec_field fields[] = {AMP_REC_EVER(INT, struct counter, "last", last)};
AMP_REC_TABLE(counter_rec, "the counter of task ids", struct counter, fields);

struct counting {
    struct counter counter;
    struct amp_buf *mem, *json;
};

/* The protocol's form has four digits for the year and three for the number. */
static int count_apply(void *ctx, const struct amp_store_rec *now, struct amp_store_change *out,
                       struct amp_error *err)
{
    struct counting *w = ctx;
    if (amp_rec_parse(&counter_rec, now->found ? now->json : AMP_SPAN("{}"), w->mem, &w->counter,
                      err) < 0)
        return -1;
    if (++w->counter.last > 999)
        return amp_fail(err, AMP_NO, id_space_full, "all 999 task ids of this year are used");
    amp_buf_reset(w->json);
    if (amp_rec_write(&counter_rec, &w->counter, w->json, err) < 0)
        return -1;
    out->event = "allocate";
    out->to = "counting";
    out->json = amp_buf_span(w->json);
    out->actor = "task-dispatch.new";
    return 0;
}

/* Skips ids that were given by hand. */
static int id_take(struct amp_store *s, struct counting *w, const char *year,
                   char id[AMP_TASK_ID_MAX], struct amp_error *err)
{
    enum amp_store_outcome outcome;
    struct amp_store_rec rec;
    do {
        if (amp_store_update(s, AMP_KEY("task_ids", (struct amp_span){year, 4}), NULL, count_apply,
                             w, &outcome, err) < 0)
            return -1;
        snprintf(id, AMP_TASK_ID_MAX, "T-%.4s-%03d", year, (int)w->counter.last);
        if (amp_store_get(s, AMP_KEY(AMP_TASK_KIND, amp_span_str(id)), &rec, err) < 0)
            return -1;
    } while (rec.found);
    return 0;
}

int amp_task_new_id(struct amp_store *s, int64_t now_ms, char out[AMP_TASK_ID_MAX],
                    struct amp_error *err)
{
    char time[AMP_TIME_MAX], id[AMP_TASK_ID_MAX];
    AMP_BUF struct amp_buf mem = {0}, json = {0};
    struct counting w = {.mem = &mem, .json = &json};
    amp_time_format(now_ms, time);
    amp_buf_init(&mem, AMP_REC_MAX);
    amp_buf_init(&json, AMP_REC_MAX);
    if (id_take(s, &w, time, id, err) < 0 || amp_store_sync(s, err) < 0)
        return -1;
    memcpy(out, id, sizeof id);
    return 0;
}

int amp_task_next_id(struct amp_store *s, int64_t now_ms, int64_t *last, char out[AMP_TASK_ID_MAX],
                     struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    AMP_BUF struct amp_buf mem = {0};
    struct counter c;
    struct amp_store_rec rec = {0};
    amp_time_format(now_ms, time);
    amp_buf_init(&mem, AMP_REC_MAX);
    if (s && amp_store_get(s, AMP_KEY("task_ids", (struct amp_span){time, 4}), &rec, err) < 0)
        return -1;
    if (amp_rec_parse(&counter_rec, rec.found ? rec.json : AMP_SPAN("{}"), &mem, &c, err) < 0)
        return -1;
    if (*last < c.last)
        *last = c.last;
    do {
        if (++*last > 999)
            return amp_fail(err, AMP_NO, id_space_full, "all 999 task ids of this year are used");
        snprintf(out, AMP_TASK_ID_MAX, "T-%.4s-%03d", time, (int)*last);
        if (s && amp_store_get(s, AMP_KEY(AMP_TASK_KIND, amp_span_str(out)), &rec, err) < 0)
            return -1;
    } while (s && rec.found);
    return 0;
}

/* Whether the file already has this content. */
static bool is_written(int dir, const char *name, struct amp_span bytes)
{
    struct stat st;
    AMP_BUF struct amp_buf old = {0};
    amp_buf_init(&old, bytes.n + 1);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (size_t)st.st_size != bytes.n)
        return false;
    return amp_file_read(dir, name, bytes.n, &old, NULL) == 0 &&
           amp_span_eq(amp_buf_span(&old), bytes);
}

static int file_write(struct amp_store *s, int dir, struct amp_span task_id, const char *name,
                      struct amp_error *err)
{
    struct amp_store_rec rec;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, FILE_MAX);
    if (amp_store_get(s, AMP_KEY(AMP_TASK_KIND, task_id), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    if (amp_buf_add(&text, rec.json.p, rec.json.n, err) < 0 || amp_buf_str(&text, "\n", err) < 0)
        return -1;
    if (is_written(dir, name, amp_buf_span(&text)))
        return 0;
    return amp_file_write_atomic(dir, name, 0600, amp_buf_span(&text), err);
}

int amp_task_file(struct amp_store *s, struct amp_span task_id, struct amp_error *err)
{
    AMP_BUF struct amp_buf path = {0};
    char name[AMP_TASK_ID_MAX + 8];
    amp_buf_init(&path, 8192);
    if (task_id.n >= AMP_TASK_ID_MAX || !amp_id_is_safe(task_id))
        return amp_fail(err, AMP_DATAERR, bad_task_id, "a task id that is not a file name");
    if (amp_buf_fmt(&path, err, "%s/tasks", amp_store_dir(s)) < 0 ||
        amp_mkdirs(path.data, 0700, err) < 0)
        return -1;
    AMP_CLOSE int dir = open(path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", path.data);
    AMP_CLOSE int lock = amp_file_open(dir, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600, err);
    if (lock < 0 || amp_lock(lock, -1, err) < 0)
        return -1;
    snprintf(name, sizeof name, "%.*s.json", (int)task_id.n, task_id.p);
    return file_write(s, dir, task_id, name, err);
}

bool amp_task_file_after(struct amp_store *s, struct amp_span task_id, int64_t updated_ms)
{
    AMP_BUF struct amp_buf path = {0};
    struct stat st;
    amp_buf_init(&path, 8192);
    if (amp_buf_fmt(&path, NULL, "%s/tasks/%.*s.json", amp_store_dir(s), (int)task_id.n,
                    task_id.p) < 0 ||
        stat(path.data, &st) < 0)
        return false;
    /* Strictly later: a file of the same millisecond may be older than the record. */
    return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 > updated_ms;
}

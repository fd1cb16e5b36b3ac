/* The files of a TASK around its work: snapshots before it, their restoration, and the artifacts.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "message/protocol/compose/json.h"
#include "work/aop/account/trail.h"
#include "work/aop/run/private.h"

/* ---- the audit trail ---- */

const char *amp_tasking_trail(const struct amp_tasking *t, char base[PATH_MAX])
{
    const char *storage =
        amp_json_str(json_object_get(t->opt->config, "audit_trail"), "storage_path");
    const char *dir = *t->home ? t->home : t->place;
    struct amp_repository repo = {0};
    struct amp_error no;
    bool found = amp_repository_find(dir, &repo, &no) == 0 && repo.found && *repo.top;
    snprintf(base, PATH_MAX, "%s", found ? repo.top : dir);
    return *storage ? storage : AMP_TRAIL_DEFAULT;
}

/* Its directory, which others write while the command works. */
static const char *trail_find(const struct amp_tasking *t, char out[PATH_MAX])
{
    char base[PATH_MAX];
    const char *storage = amp_tasking_trail(t, base);
    int n = *storage == '/' ? snprintf(out, PATH_MAX, "%s", storage)
                            : snprintf(out, PATH_MAX, "%s/%s", base, storage);
    return n >= 0 && n < PATH_MAX ? out : NULL;
}

/* ---- snapshots ---- */

static struct amp_snapshot_of snapshot_of(const struct amp_tasking *t, char trail[PATH_MAX])
{
    return (struct amp_snapshot_of){.git = t->w->git,
                                    .state = t->w->state_dir,
                                    .session = t->session,
                                    .task =
                                        amp_json_str(json_object_get(t->task, "task"), "task_id"),
                                    .attempt = t->v->has_attempt ? t->v->attempt : 1,
                                    .root = t->root,
                                    .place = t->place,
                                    .home = *t->home ? t->home : NULL,
                                    .trail = trail_find(t, trail),
                                    .stop = t->w->opt->stop};
}

int amp_tasking_snapshot(struct amp_tasking *t, struct amp_error *err)
{
    char trail[PATH_MAX];
    const struct amp_snapshot_of of = snapshot_of(t, trail);
    int rc = amp_snapshot_take(&of, t->task, err);
    t->has_snapshot = rc > 0;
    return rc < 0 ? -1 : 0;
}

int amp_tasking_restore(struct amp_tasking *t, const char *trigger, struct amp_error *err)
{
    AMP_CLEANUP(amp_snapshot_result_release) struct amp_snapshot_result r = {0};
    AMP_BUF struct amp_buf line = {.max = 4 << 20};
    char trail[PATH_MAX];
    const struct amp_snapshot_of of = snapshot_of(t, trail);
    struct amp_error why;
    if (!t->has_snapshot)
        return 0;
    int rc = amp_snapshot_restore(&of, &r, &why);
    if (rc > 0)
        rc = amp_fail(&why, AMP_NO, E_ROLLBACK_FAILED, "the rollback failed: its snapshot is gone");
    if (rc < 0 && why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    /* Without files nothing was found out about them. */
    if (trigger && r.n > 0 &&
        (amp_snapshot_event(&of, &r, trigger, amp_now_ms(), &line, err) < 0 ||
         amp_tasking_emit(t, amp_buf_span(&line), err) < 0))
        return -1;
    if (rc < 0) {
        t->w->opt->note("%s: E_ROLLBACK_FAILED: %s", t->of.task, why.what);
        t->failure = (struct amp_tasking_failure){0};
        amp_tasking_fail(t, AMP_CODE(E_ROLLBACK_FAILED), false, "%s", why.what);
        return 1;
    }
    return 0;
}

/* ---- artifacts ---- */

static struct amp_measure_of measure_of(const struct amp_tasking *t, char trail[PATH_MAX])
{
    return (struct amp_measure_of){.root = t->root,
                                   .place = t->place,
                                   .state = t->w->state_dir,
                                   .trail = trail_find(t, trail),
                                   .stop = t->w->opt->stop};
}

/* The file of the first measure. */
static void before_path(const struct amp_tasking *t, char *out, size_t size)
{
    snprintf(out, size, "%s/run/%s/before-%s-%lld.json", t->w->state_dir, t->of.task, t->of.subtask,
             (long long)(t->v->has_attempt ? t->v->attempt : 1));
}

static int unmeasured_warn(struct amp_tasking *t, const struct amp_error *why,
                           struct amp_error *err)
{
    return amp_tasking_warn(t, err, "the artifacts were not measured: %s: %.400s", why->code,
                            why->what);
}

int amp_tasking_measure_before(struct amp_tasking *t, struct amp_error *err)
{
    char trail[PATH_MAX];
    const struct amp_measure_of of = measure_of(t, trail);
    char dir[PATH_MAX + 300], file[PATH_MAX + 700];
    struct amp_error why;
    before_path(t, file, sizeof file);
    snprintf(dir, sizeof dir, "%s/run/%s", t->w->state_dir, t->of.task);
    if (t->job->attempts > 1 && amp_measure_load(file, &t->before, &why) == 0)
        return 0;
    if (amp_mkdirs(dir, 0700, err) < 0)
        return -1;
    if (amp_measure_take(&of, t->task, file, &t->before, &why) == 0)
        return 0;
    if (amp_code_is(why.code, file_changing))
        return unmeasured_warn(t, &why, err);
    *err = why;
    return -1;
}

void amp_tasking_measure_forget(const struct amp_tasking *t)
{
    char file[PATH_MAX + 700];
    before_path(t, file, sizeof file);
    unlink(file);
}

int amp_tasking_measure(struct amp_tasking *t, struct amp_error *err)
{
    char trail[PATH_MAX];
    const struct amp_measure_of of = measure_of(t, trail);
    struct amp_measure *after = NULL;
    struct amp_error why;
    if (!t->before)
        return 0;
    int rc = amp_measure_take(&of, t->task, NULL, &after, &why);
    if (rc == 0)
        rc = amp_measure_compare(&of, t->task, t->before, after, 0, &t->artifacts, &why);
    amp_measure_free(after);
    bool gone = rc < 0 && access(t->place, F_OK) < 0; /* the command may have removed it */
    if (gone && strcmp(t->outcome.state, "COMPLETED") == 0)
        amp_tasking_end(t, "FAILED", AMP_CODE(E_FILE_NOT_FOUND), "the workspace %.300s is gone",
                        t->root);
    if (rc < 0 && !gone && strncmp(why.code, "E_", 2) != 0 &&
        !amp_code_is(why.code, file_changing)) {
        *err = why;
        return -1;
    }
    if (rc < 0)
        return unmeasured_warn(t, &why, err);
    if (t->artifacts.omitted > 0)
        return amp_tasking_warn(t, err, "%lld further files changed",
                                (long long)t->artifacts.omitted);
    return 0;
}

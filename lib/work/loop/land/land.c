/* Lands approved work on a branch. */
#include "work/loop/land/land.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"

#define LOCK_FILE "amp-land.lock"

/* The lock of the repository; a descriptor to close, or -1. */
static int repository_lock(struct amp_git *git, const struct amp_land *l, struct amp_error *err)
{
    struct amp_git_info info;
    char path[PATH_MAX + 32];

    if (amp_git_info(git, l->repo, &info, err) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/%s", info.common, LOCK_FILE);
    AMP_CLOSE int fd =
        amp_file_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600, err);
    if (fd < 0 || amp_lock(fd, l->lock_timeout_ms, err) < 0)
        return -1;
    int kept = fd;
    fd = -1;
    return kept;
}

/* ---- what a crash left ---- */

static int landing_settle(struct amp_store *store, struct amp_git *git, const struct amp_landing *l,
                          struct amp_error *err)
{
    char repo[PATH_MAX], branch[256], to[AMP_OID_MAX];
    struct amp_git_land now;
    struct amp_error why = {0};

    if (!amp_span_copy(l->repo, repo, sizeof repo) ||
        !amp_span_copy(l->branch, branch, sizeof branch) || !amp_span_copy(l->to, to, sizeof to))
        return amp_fail(err, AMP_DATAERR, bad_record, "a landing has too long names");
    const struct amp_git_land_spec spec = {.repo = repo, .branch = branch, .commit = to};
    bool moved = false;
    if (amp_git_land_plan(git, &spec, &now, &why) == 0)
        moved = now.already;
    else if (why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    return amp_landing_step(store, moved ? AMP_LANDING_EV_MOVED : AMP_LANDING_EV_STAY, l, err) <
                       0 ||
                   amp_store_sync(store, err) < 0
               ? -1
               : 0;
}

/* Completes a landing of the task that a crash interrupted. */
static int interrupted_settle(struct amp_store *store, struct amp_git *git, struct amp_span task,
                              struct amp_error *err)
{
    AMP_LANDINGS all = {0};

    amp_landings_init(&all);
    if (amp_landings_read(store, task, &all, err) < 0)
        return -1;
    if (all.state != AMP_LANDING_MOVING)
        return 0;
    return landing_settle(store, git, &all.now, err);
}

/* ---- landing ---- */

/* The author of a merge commit: the person's identity in git, else the operator. */
static void author_find(struct amp_git *git, const struct amp_land *l, char name[256],
                        char email[320])
{
    struct amp_error ignored;

    if (amp_git_config(git, l->repo, "user.name", false, name, 256, &ignored) == 0 &&
        amp_git_config(git, l->repo, "user.email", false, email, 320, &ignored) == 0 && *name &&
        *email)
        return;
    snprintf(name, 256, "%.*s", AMP_CLIP(l->who.person, 200));
    snprintf(email, 320, "%.*s@operators.invalid", AMP_CLIP(l->who.person, 200));
}

/* The first line of a title, cut at a character, without control characters. */
static void title_copy(const char *title, char *out, size_t size)
{
    size_t n = 0;

    while (title[n] && (unsigned char)title[n] >= ' ' && title[n] != 0x7f && n < size - 1)
        n++;
    while (n && title[n] && ((unsigned char)title[n] & 0xC0) == 0x80)
        n--;
    memcpy(out, title, n);
    out[n] = '\0';
}

/* The message of a merge commit, and of git's reflog. */
static void message_make(const struct amp_land *l, bool merge, char *out, size_t size)
{
    char title[60] = "";

    title_copy(l->title ? l->title : "", title, sizeof title);
    if (!merge) {
        snprintf(out, size, "amp: land %s", l->task);
        return;
    }
    snprintf(out, size, "Land %s\n\nTask: %s\nApproved-commit: %s\nApproved-tree: %s\n",
             *title ? title : l->task, l->task, l->commit, l->tree);
}

static int landing_begin(struct amp_store *store, const struct amp_land *l,
                         const struct amp_git_land *plan, const struct amp_landing *judged,
                         struct amp_landing *rec, struct amp_error *err)
{
    *rec = l->who;
    rec->merged = judged->merged;
    rec->test = judged->test;
    rec->digest = judged->digest;
    rec->task = amp_span_str(l->task);
    rec->repo = amp_span_str(l->repo);
    rec->branch = amp_span_str(l->branch);
    rec->from = amp_span_str(plan->from);
    rec->to = amp_span_str(plan->to);
    rec->commit = amp_span_str(l->commit);
    rec->tree = amp_span_str(l->tree);
    rec->at_ms = amp_now_ms();
    return (l->sign && l->sign(l->ctx, rec, err) < 0) ||
                   amp_landing_step(store, AMP_LANDING_EV_BEGIN, rec, err) < 0 ||
                   amp_store_sync(store, err) < 0
               ? -1
               : 0;
}

/* Whether the record has this landing already. */
static int is_recorded(struct amp_store *store, const struct amp_land *l, struct amp_error *err)
{
    AMP_LANDINGS all = {0};

    amp_landings_init(&all);
    if (amp_landings_read(store, amp_span_str(l->task), &all, err) < 0)
        return -1;
    for (uint32_t i = 0; i < all.n_v; i++)
        if (amp_span_is(all.v[i].branch, l->branch) && amp_span_is(all.v[i].commit, l->commit))
            return 1;
    return 0;
}

static int move_record(struct amp_store *store, struct amp_git *git, const struct amp_land *l,
                       const struct amp_git_land_spec *spec, const struct amp_git_land *plan,
                       const struct amp_landing *judged, struct amp_error *err)
{
    struct amp_landing rec;

    int known = plan->already ? is_recorded(store, l, err) : 0;
    if (known)
        return known < 0 ? -1 : 0;
    if (landing_begin(store, l, plan, judged, &rec, err) < 0)
        return -1;
    if (!plan->already && amp_git_land_move(git, spec, plan, err) < 0) {
        struct amp_error ignored;
        /* If the worker crashed, the branch may have moved. */
        landing_settle(store, git, &rec, &ignored);
        return -1;
    }
    return amp_landing_step(store, AMP_LANDING_EV_MOVED, &rec, err) < 0 ||
                   amp_store_sync(store, err) < 0
               ? -1
               : 0;
}

/* A merge that a landing made belongs where that was: on the branch at its old value. */
static int plan_make(struct amp_git *git, const struct amp_land *l,
                     const struct amp_git_land_spec *spec, struct amp_git_land *out,
                     struct amp_error *err)
{
    if (amp_git_land_plan(git, spec, out, err) < 0)
        return -1;
    if (!l->merge_branch || out->already ||
        (strcmp(l->merge_branch, l->branch) == 0 && strcmp(l->merge_from, out->from) == 0))
        return 0;
    return amp_fail(err, AMP_NO, target_moved,
                    "%.12s is a merge into %s at %.12s, and %s is at %.12s", l->commit,
                    l->merge_branch, l->merge_from, l->branch, out->from);
}

static int conflicts_check(const struct amp_land *l, const struct amp_git_land *plan,
                           struct amp_error *err)
{
    return plan->n_conflicts == 0
               ? 0
               : amp_fail(err, AMP_NO, merge_conflict,
                          "%s at %.12s and %.12s conflict in %u file%s", l->branch, plan->from,
                          l->commit, (unsigned)plan->n_conflicts,
                          plan->n_conflicts == 1 ? "" : "s");
}

int amp_land(struct amp_store *store, struct amp_git *git, const struct amp_land *l,
             struct amp_git_land *out, struct amp_error *err)
{
    char name[256], email[320], message[1024];
    struct amp_landing judged = {0};
    const struct amp_git_land_spec spec = {.repo = l->repo,
                                           .branch = l->branch,
                                           .commit = l->commit,
                                           .base = l->base,
                                           .expect = l->old,
                                           .forward = l->forward,
                                           .merge = l->merge && !l->check,
                                           .contents = l->contents,
                                           .files = l->check || l->contents,
                                           .name = name,
                                           .email = email,
                                           .message = message};

    author_find(git, l, name, email);
    message_make(l, l->merge || l->contents, message, sizeof message);
    if (l->check)
        return plan_make(git, l, &spec, out, err) < 0 ? -1 : conflicts_check(l, out, err);
    AMP_CLOSE int lock = repository_lock(git, l, err);
    if (lock < 0 || (store && interrupted_settle(store, git, amp_span_str(l->task), err) < 0) ||
        plan_make(git, l, &spec, out, err) < 0 || conflicts_check(l, out, err) < 0 ||
        (out->merged && l->judge(l->ctx, out, &judged, err) < 0))
        return -1;
    message_make(l, l->merge || out->merged, message, sizeof message);
    if (store)
        return move_record(store, git, l, &spec, out, &judged, err);
    return out->already ? 0 : amp_git_land_move(git, &spec, out, err);
}

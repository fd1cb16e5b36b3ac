/* Whether exactly this tree was approved: for CI and for server-side hooks. */
#include <stdio.h>
#include <string.h>

#include "flow/work/verify.h"
#include "protocol/amp/compose.h"
#include "task/record.h"

#define KIND          "approval"
#define APPROVALS_MAX 64 /* verdicts that are remembered for one tree */

struct update {
    const struct amp_approval *a;
    struct amp_buf json;
};

static int change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *err)
{
    struct update *u = ctx;
    const struct amp_approval *a = u->a;
    json_t *j = now->found ? amp_json_load(now->json, err) : json_pack("{s:[]}", "verdicts");
    json_t *all = json_object_get(j, "verdicts");
    json_t *one = json_pack("{s:s, s:s, s:s, s:s}", "task", a->task, "subtask", a->subtask,
                            "commit", a->commit, "verdict", a->verdict);

    if (!all || !one) {
        json_decref(j);
        json_decref(one);
        return amp_fail_memory(err);
    }
    json_array_append_new(all, one);
    if (json_array_size(all) > APPROVALS_MAX)
        json_array_remove(all, 0);
    int rc = amp_json_dump(j, &u->json, err);
    json_decref(j);
    c->event = "approve";
    c->to = "APPROVED";
    c->json = amp_buf_span(&u->json);
    return rc;
}

int amp_approval_record(struct amp_store *s, const struct amp_approval *a, struct amp_error *err)
{
    struct update u = {a, {0}};
    enum amp_store_outcome outcome;

    amp_buf_init(&u.json, 1 << 16);
    int rc = amp_store_update(s, KIND, amp_span_str(a->tree), NULL, change, &u, &outcome, err);
    amp_buf_release(&u.json);
    return rc;
}

static const char *text(const json_t *j, const char *key)
{
    const char *t = json_string_value(json_object_get(j, key));
    return t ? t : "";
}

/* 1 the task accepted this verdict; 0 it did not. */
static int accepted(struct amp_store *s, const json_t *approval, bool no_coordinator,
                    struct amp_verified *out, struct amp_error *err)
{
    struct amp_store_rec rec;
    struct amp_task t;
    int rc = 0;

    if (amp_store_get(s, "task", amp_span_str(out->task), &rec, err))
        return -1;
    if (!rec.found && !no_coordinator)
        snprintf(out->why, sizeof out->why,
                 "no coordinator knows task %.200s (--no-coordinator accepts the reviewer's word)",
                 out->task);
    if (!rec.found)
        return no_coordinator;
    if (amp_task_read(&t, &rec, amp_span_str(out->task), err))
        return -1;
    struct amp_task_part *part = amp_task_part(&t, amp_span_str(text(approval, "subtask")));
    if (!part)
        snprintf(out->why, sizeof out->why, "task %.200s does not know the subtask", out->task);
    else if (strcmp(part->verdict_ref, out->verdict))
        snprintf(out->why, sizeof out->why, "the verdict %.200s is not the one that counts",
                 out->verdict);
    else if (part->state != AMP_QA_APPROVED)
        snprintf(out->why, sizeof out->why, "the approval of task %.200s waits for a decision",
                 out->task);
    else
        rc = 1;
    amp_task_release(&t);
    return rc;
}

static int look_up(struct amp_store *s, struct amp_git *g, const struct amp_verify *what,
                   struct amp_verified *out, struct amp_error *err)
{
    struct amp_store_rec rec;
    struct amp_verified v = {0};

    if (amp_git_resolve(g, what->repo, what->commit, v.commit, err) ||
        amp_git_tree(g, what->repo, v.commit, v.tree, err) ||
        amp_store_get(s, KIND, amp_span_str(v.tree), &rec, err))
        return -1;
    if (!rec.found) {
        snprintf(v.why, sizeof v.why, "no verdict approves the tree %.12s", v.tree);
        *out = v;
        return 0;
    }
    json_t *j = amp_json_load(rec.json, err);
    if (!j)
        return -1;
    int rc = 0;
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(j, "verdicts"), i, one)
    {
        snprintf(v.task, sizeof v.task, "%s", text(one, "task"));
        snprintf(v.verdict, sizeof v.verdict, "%s", text(one, "verdict"));
        if ((rc = accepted(s, one, what->no_coordinator, &v, err)))
            break;
    }
    json_decref(j);
    if (rc >= 0)
        *out = v;
    return rc;
}

int amp_flow_verify(struct amp_store *s, struct amp_git *g, const struct amp_verify *what,
                    struct amp_verified *out, struct amp_error *err)
{
    int rc = look_up(s, g, what, out, err);
    return rc < 0 || amp_store_sync(s, err) ? -1 : rc;
}

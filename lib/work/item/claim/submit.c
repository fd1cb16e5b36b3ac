/*
 * Submissions. The job of a message is made from its view and its members. It enters after checks
 * that change nothing; then follow the ledger's record, and the job.
 */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/settle/answer.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/work.h"
#include "work/aop/session/admit.h"
#include "work/git/paths/glob.h"
#include "work/item/claim/submit.h"
#include "work/item/follow.h"
#include "work/item/priority.h"
#include "work/item/scope.h"
#include "json/record.h"

#define MEM_MAX (1u << 20)

/* A job and the texts in it that are not in the view. */
struct submission {
    struct amp_queue_job job;
    struct amp_buf mem;
    char id[AMP_QUEUE_ID_MAX];
};

/* A path has a slash, and no character that a sentence, a list, a URL or a variable has. */
static bool looks_like_path(const char *text)
{
    static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+@*?[]()";

    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x80 && !strchr(chars, *c))
            return false;
    return strchr(text, '/');
}

/* A list of texts: paths, and names of resources. */
static json_t *scope_list(const json_t *in)
{
    json_t *scope = json_is_array(in) ? json_pack("{s:[],s:[]}", "paths", "resources") : NULL;
    const json_t *item;
    size_t i;

    json_array_foreach (in, i, item) {
        const char *text = json_string_value(item);
        bool path = text && looks_like_path(text);
        while (path && strncmp(text, "./", 2) == 0)
            text += 2 + strspn(text + 2, "/");
        if (!text || json_array_append_new(json_object_get(scope, path ? "paths" : "resources"),
                                           json_string(path && !*text ? "/" : text)) < 0) {
            json_decref(scope);
            return NULL;
        }
    }
    return scope;
}

/* An object is a scope (work/item/scope.h). A text is an object or a list in JSON, a path, or words
 * of which nothing is known but that they may mean anything. Takes no reference. */
static json_t *scope_object(const json_t *in)
{
    const char *text = json_string_value(in);

    if (json_is_object(in))
        return json_deep_copy(in);
    if (!text)
        return scope_list(in);
    json_auto_t *inside = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_auto_t *alone = inside ? NULL : json_pack("[s]", text);
    json_t *scope = inside ? scope_object(inside) : scope_list(alone);
    if (scope && !inside && !looks_like_path(text) &&
        json_object_set_new(scope, "exclusive", json_true()) < 0) {
        json_decref(scope);
        return NULL;
    }
    return scope;
}

/* The pattern of a path below root, in out; both may have backslashes. false: it is not below it,
 * or cannot be a pattern. */
static bool path_pattern(const char *root, const char *path, char *out, size_t size)
{
    char top[AMP_SCOPE_ITEM_MAX], at[AMP_SCOPE_ITEM_MAX];
    struct amp_error ignored;
    size_t n = (size_t)snprintf(top, sizeof top, "%s", root);
    size_t len = (size_t)snprintf(at, sizeof at, "%s", path);

    if (n >= sizeof top || len >= sizeof at || len == 0)
        return false;
    for (char *c = top; (c = strchr(c, '\\'));)
        *c = '/';
    for (char *c = at; (c = strchr(c, '\\'));)
        *c = '/';
    while (n > 0 && top[n - 1] == '/')
        top[--n] = '\0';
    while (len > 0 && at[len - 1] == '/')
        at[--len] = '\0';
    bool absolute = *at == '/' || at[1] == ':';
    if (absolute && (strncmp(at, top, n) != 0 || at[n] != '/'))
        return false;
    snprintf(out, size, "/%s", absolute ? at + n + 1 : at);
    return amp_glob_check(amp_span_str(out), &ignored) == 0;
}

/* Adds the paths of a list of texts, or of objects with a path that is not only read. false: the
 * list does not limit the paths. */
static bool paths_add(json_t *paths, const char *root, const json_t *list)
{
    char pattern[AMP_SCOPE_ITEM_MAX + 2];
    const json_t *item;
    size_t i;

    json_array_foreach (list, i, item) {
        const json_t *read_only = json_object_get(item, "read_only");
        const json_t *path = json_is_object(item) ? json_object_get(item, "path") : item;
        if (json_is_true(read_only) || !json_is_string(path))
            continue;
        if (!path_pattern(root, json_string_value(path), pattern, sizeof pattern) ||
            json_array_append_new(paths, json_string(pattern)) < 0)
            return false;
    }
    return true;
}

/* The workspace of a task with its branch, and the paths that it may write. */
static json_t *scope_workspace(const json_t *work, const char *root)
{
    const json_t *env = json_object_get(work, "environment");
    const json_t *files = json_object_get(json_object_get(work, "access"), "filesystem");
    const char *branch = json_string_value(json_object_get(env, "git_branch"));
    json_auto_t *paths = json_array(), *inputs = json_array();
    json_t *scope = json_pack("{s:[s]}", "repositories", root);
    const json_t *input;
    size_t i;

    if (!scope || !paths || !inputs) {
        json_decref(scope);
        return NULL;
    }
    /* An input is read only unless it says otherwise. */
    json_array_foreach (json_object_get(work, "inputs"), i, input)
        if (json_is_false(json_object_get(input, "read_only")))
            json_array_append(inputs, json_array_get(json_object_get(work, "inputs"), i));
    bool limited = paths_add(paths, root, json_object_get(files, "write_paths")) &&
                   paths_add(paths, root, json_object_get(work, "expected_outputs")) &&
                   paths_add(paths, root, inputs);
    if ((branch && json_object_set_new(scope, "branches", json_pack("[s]", branch)) < 0) ||
        (limited && json_array_size(paths) > 0 && json_object_set(scope, "paths", paths) < 0)) {
        json_decref(scope);
        return NULL;
    }
    return scope;
}

/* Returns what the message says that it touches: a scope of its own, or the repository and branch
 * of its work. */
static json_t *scope_of(const struct amp_view *v, const json_t *work)
{
    const json_t *own = json_object_get(work, "scope");
    const char *root =
        json_string_value(json_object_get(json_object_get(work, "environment"), "workspace_root"));

    if (own)
        return scope_object(own);
    if (root)
        return scope_workspace(work, root);
    if (v->kind != AMP_KIND_DISPATCH || !v->body.dispatch.repo.n)
        return json_object();
    const struct amp_span repo = v->body.dispatch.repo, branch = v->body.dispatch.branch;
    return branch.n ? json_pack("{s:[s%], s:[s%]}", "repositories", repo.p, repo.n, "branches",
                                branch.p, branch.n)
                    : json_pack("{s:[s%]}", "repositories", repo.p, repo.n);
}

static int scope_text(const json_t *scope, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0}, mem = {0};
    struct amp_scope parsed = {0};

    amp_buf_init(&text, MEM_MAX);
    amp_buf_init(&mem, MEM_MAX);
    if (amp_json_dump(scope, &text, err) < 0 ||
        amp_scope_parse(amp_buf_span(&text), &mem, &parsed, err) < 0)
        return -1;
    return amp_scope_write(&parsed, out, err);
}

/* The priority of the message, or that of the risk of a dispatch (work/item/priority.h). */
static int priority_of(const struct amp_view *v, const json_t *work, int64_t *out,
                       struct amp_error *err)
{
    const json_t *p = json_object_get(work, "priority");

    *out = 0;
    if ((!p || json_is_null(p)) && v->kind == AMP_KIND_DISPATCH &&
        v->body.dispatch.risk != AMP_RISK_NONE && json_object_get(work, "risk_level"))
        return amp_priority_of_word(amp_span_str(amp_risk_name(v->body.dispatch.risk)), out, err);
    if (!p || json_is_null(p))
        return 0;
    if (json_is_string(p))
        return amp_priority_of_word(amp_span_str(json_string_value(p)), out, err);
    *out = json_integer_value(p);
    if (json_is_integer(p) && *out >= AMP_QUEUE_HIGHEST && *out <= AMP_QUEUE_LOWEST)
        return 0;
    return amp_fail(err, AMP_NO, bad_priority, "priority: expected %d to %d", AMP_QUEUE_HIGHEST,
                    AMP_QUEUE_LOWEST);
}

static int digest_of(const json_t *content, char out[80], struct amp_error *err)
{
    AMP_FREE char *text = json_dumps(content, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    unsigned char sum[crypto_hash_sha256_BYTES];

    if (!text)
        return amp_fail_memory(err);
    crypto_hash_sha256(sum, (const unsigned char *)text, strlen(text));
    sodium_bin2hex(out, 65, sum, sizeof sum);
    return 0;
}

/* The time after which the work is not wanted any more: of the message, or of its task. */
static int64_t deadline_of(const struct amp_view *v, const json_t *work, int64_t now_ms)
{
    const char *until = json_string_value(json_object_get(work, "deadlineAt"));
    int64_t message = amp_message_expiry(v, now_ms), task = 0;

    if (until && !amp_time_parse(amp_span_str(until), &task))
        task = 0;
    return message > 0 && (task == 0 || message < task) ? message : task;
}

/* Whether the message asks for work, and must say its scope (SW4RM §9.2). */
static bool is_work(const struct amp_view *v, const json_t *work, bool *says_scope)
{
    bool params = json_object_get(work, "params") && json_object_get(work, "task_id");
    bool task = v->kind == AMP_KIND_OTHER && json_is_string(json_object_get(work, "task_type"));

    *says_scope = params || task;
    return v->kind == AMP_KIND_DISPATCH || v->kind == AMP_KIND_REVIEW || v->wants_outcome ||
           params || task;
}

/* Its type is the agent or the only recipient that the message names; may be empty. */
static int job_of(struct submission *s, const struct amp_view *v, int64_t now_ms,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf scope = {0};
    json_auto_t *doc = amp_json_load(v->text, err);
    char digest[80];
    bool says_scope;

    if (!doc)
        return -1;
    const json_t *payload = json_object_get(doc, "payload"), *task = json_object_get(doc, "task");
    const json_t *work = json_is_object(payload) ? payload : task;
    if (!json_is_object(work) || !v->id.n || !is_work(v, work, &says_scope))
        return amp_fail(err, AMP_NO, not_a_submission, "the message asks for no work");
    if (says_scope && !json_object_get(work, "scope"))
        return amp_fail(err, AMP_NO, scope_required,
                        "the submission does not say its scope: the resources, repositories, "
                        "branches or paths that it touches");
    json_auto_t *touches = scope_of(v, work);
    if (!touches)
        return amp_fail(err, AMP_NO, bad_scope, "scope: expected a text, a list or an object");
    amp_buf_init(&scope, MEM_MAX);
    amp_buf_reset(&s->mem);
    s->job = (struct amp_queue_job){.message = v->id, .from = v->from, .task = v->task};
    s->job.protocol = amp_span_str(amp_protocol_name(v->protocol));
    s->job.deadline_ms = deadline_of(v, work, now_ms);
    if (s->job.deadline_ms > 0 && s->job.deadline_ms <= now_ms)
        return amp_fail(err, AMP_NO, deadline_passed, "the message or its task has expired");
    if (scope_text(touches, &scope, err) < 0 || priority_of(v, work, &s->job.priority, err) < 0 ||
        digest_of(work, digest, err) < 0)
        return -1;
    const char *agent = json_string_value(json_object_get(work, "agent_id"));
    struct amp_span type = agent ? amp_span_str(agent) : v->n_to == 1 ? v->to[0] : AMP_SPAN("");
    size_t n = scope.len, at_digest = n + 1, at_type = at_digest + strlen(digest) + 1;
    if (amp_buf_add(&s->mem, scope.data ? scope.data : "", n, err) < 0 ||
        amp_buf_add(&s->mem, "", 1, err) < 0 ||
        amp_buf_add(&s->mem, digest, strlen(digest) + 1, err) < 0 ||
        amp_buf_add(&s->mem, type.p, type.n, err) < 0)
        return -1;
    s->job.scope = (struct amp_span){s->mem.data, n};
    s->job.digest = amp_span_str(s->mem.data + at_digest);
    s->job.type = (struct amp_span){s->mem.data + at_type, type.n};
    return 0;
}

/* ---- entering ---- */

/* The job of the message. */
static int job_make(const struct amp_submitter *q, const struct amp_view *v, int64_t now_ms,
                    struct submission *sub, struct amp_error *err)
{
    if (job_of(sub, v, now_ms, err) < 0)
        return -1;
    if (q->type)
        sub->job.type = amp_span_str(q->type);
    if (q->priority)
        sub->job.priority = *q->priority;
    if (sub->job.type.n == 0)
        return amp_fail(err, AMP_NO, type_required,
                        "neither the message nor --type names the type of agents");
    if (!amp_id_is_safe(sub->job.type) || sub->job.type.n >= AMP_QUEUE_TYPE_MAX)
        return amp_fail(err, AMP_NO, bad_value,
                        "\"%.*s\" is not a type of agents: expected letters, digits, '-', '_' and "
                        "'.', at most %d bytes",
                        AMP_CLIP(sub->job.type, 64), AMP_QUEUE_TYPE_MAX - 1);
    if (amp_queue_identity(sub->job.type, sub->job.scope, sub->job.digest, amp_span_str(q->salt),
                           sub->id, err) < 0)
        return -1;
    sub->job.id = amp_span_str(sub->id);
    sub->job.by = amp_span_str(q->by);
    sub->job.follows = amp_span_str(q->follows ? q->follows : "");
    sub->job.on_failed = amp_span_str(q->on_failed ? q->on_failed : "");
    return 0;
}

/* Checks a repeated message: its job must exist. */
static int repeated_check(struct amp_store *s, const struct amp_queue_job *job,
                          struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_queue_job now;
    int found = amp_queue_read(s, job->id, &mem, &now, err);

    if (found)
        return found < 0 ? -1 : 0;
    return amp_fail(err, AMP_NO, duplicate_msg_id,
                    "the message %.*s was submitted before, as another job or a job that is gone",
                    AMP_CLIP(job->message, 200));
}

/* Whether the job could start at once. */
static int start_check(const struct amp_submitter *q, const struct amp_queue_job *job,
                       int64_t now_ms, struct amp_error *err)
{
    struct amp_order_place place;

    if (amp_order_look(q->order, err) < 0 || amp_order_try(q->order, job, now_ms, &place, err) < 0)
        return -1;
    switch (place.why) {
    case AMP_WAITS_TURN:
        return 0;
    case AMP_WAITS_SCOPE:
        return amp_fail_text(err, AMP_NO, amp_waits_name(place.why),
                             "it cannot start at once: its scope overlaps that of job %.*s",
                             AMP_CLIP(place.behind, 64));
    case AMP_WAITS_LIMIT:
        return amp_fail_text(
            err, AMP_NO, amp_waits_name(place.why),
            "it cannot start at once: no place for agents of the type %.*s is free",
            AMP_CLIP(job->type, 64));
    case AMP_WAITS_ACCOUNT:
        return amp_fail_text(
            err, AMP_NO, amp_waits_name(place.why),
            "it cannot start at once: the account of the type %.*s has reached a usage "
            "limit",
            AMP_CLIP(job->type, 64));
    case AMP_WAITS_FOLLOWS:
        return amp_fail_text(err, AMP_NO, amp_waits_name(place.why),
                             "it cannot start at once: job %.*s, which it follows, has not ended",
                             AMP_CLIP(place.behind, 64));
    default:
        return amp_fail_text(err, AMP_NO, amp_waits_name(place.why),
                             "it cannot start at once: its task is suspended");
    }
}

static int job_enter(const struct amp_submitter *q, const struct amp_view *v,
                     const struct amp_queue_submit *e, bool *repeated, struct amp_error *err)
{
    int64_t seq;
    int known = amp_queue_check(q->store, e, err);

    *repeated = known > 0;
    if (known != 0)
        return known < 0 ? -1 : repeated_check(q->store, e->job, err);
    if (e->job->follows.n && amp_follow_check(q->store, e->job->id, e->job->follows, err) < 0)
        return -1;
    if (q->no_queue && start_check(q, e->job, e->now_ms, err) < 0)
        return -1;
    return amp_message_record(q->store, v, e->now_ms, NULL, err) < 0
               ? -1
               : amp_queue_submit(q->store, e, &seq, NULL, NULL, err);
}

/* The work gets its place in its session when it is submitted. A refusal is answered by the worker.
 */
static int session_enter(const struct amp_submitter *q, const struct amp_view *v, int64_t now_ms,
                         struct amp_error *err)
{
    const struct amp_session_voice voice = {q->store, q->actor, now_ms};
    struct amp_error why = {0};

    if (v->kind != AMP_KIND_DISPATCH || !amp_work_of(v->protocol)->in_sessions ||
        amp_session_admit(&voice, v, AMP_SIZE_UNKNOWN, &why) != AMP_ADMIT_FAILED)
        return 0;
    return amp_fail_unless_no(err, &why);
}

int amp_submit(const struct amp_submitter *q, struct amp_view *v, struct amp_submitted *out,
               struct amp_error *why, struct amp_error *err)
{
    struct submission sub = {.mem = {.max = MEM_MAX}};
    const struct amp_queue_submit e = {.job = &sub.job,
                                       .line = v->message,
                                       .again = q->again,
                                       .actor = q->actor,
                                       .now_ms = amp_now_ms()};

    out->id[0] = '\0';
    out->repeated = false;
    amp_message_name(v, out->name);
    int rc = job_make(q, v, e.now_ms, &sub, why);
    if (rc == 0)
        rc = job_enter(q, v, &e, &out->repeated, why);
    /* The queue has it, so its sender does not wait for an acknowledgement while the job waits. */
    if (rc == 0)
        rc = amp_settle_known(q->store, v->id, AMP_STAGE_RECEIVED, q->actor, AMP_SPAN(""), e.now_ms,
                              why);
    if (rc == 0 && !out->repeated)
        rc = session_enter(q, v, e.now_ms, why);
    amp_span_copy(amp_span_str(sub.id), out->id, sizeof out->id);
    amp_buf_release(&sub.mem);
    if (rc == 0)
        return 1;
    if (why->status == AMP_NO)
        return 0;
    *err = *why;
    return -1;
}

/* The job of a submitted message, from its view and its members. */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "flow/queue/queue.h"
#include "protocol/compose/json.h"
#include "queue/priority.h"
#include "queue/scope.h"

#define MEM_MAX (1u << 20)

void amp_submission_init(struct amp_submission *s)
{
    *s = (struct amp_submission){0};
    amp_buf_init(&s->mem, MEM_MAX);
}

void amp_submission_release(struct amp_submission *s)
{
    amp_buf_release(&s->mem);
}

/* A text or list of texts names resources; an object is a scope (queue/scope.h). Takes no
 * reference.
 */
static json_t *scope_object(const json_t *in)
{
    json_t *list;

    if (json_is_object(in))
        return json_deep_copy(in);
    if (json_is_string(in))
        return json_pack("{s:[s]}", "resources", json_string_value(in));
    if (!json_is_array(in))
        return NULL;
    list = json_deep_copy(in);
    return list ? json_pack("{s:o}", "resources", list) : NULL;
}

/* What the message says that it touches: a scope of its own, or the repository and branch of its
 * work. */
static json_t *scope_of(const struct amp_view *v, const json_t *work)
{
    const json_t *own = json_object_get(work, "scope");
    const char *root =
        json_string_value(json_object_get(json_object_get(work, "environment"), "workspace_root"));

    if (own)
        return scope_object(own);
    if (v->kind == AMP_KIND_DISPATCH && v->body.dispatch.repo.n)
        return json_pack("{s:[s%], s:[s%]}", "repositories", v->body.dispatch.repo.p,
                         v->body.dispatch.repo.n, "branches", v->body.dispatch.branch.p,
                         v->body.dispatch.branch.n);
    return root ? json_pack("{s:[s]}", "repositories", root) : json_object();
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

/* The priority of the message, or that of the risk of a dispatch (queue/priority.h). */
static int priority_of(const struct amp_view *v, const json_t *work, int64_t *out,
                       struct amp_error *err)
{
    const json_t *p = json_object_get(work, "priority");

    *out = 0;
    if ((!p || json_is_null(p)) && v->kind == AMP_KIND_DISPATCH &&
        v->body.dispatch.risk != AMP_RISK_NONE)
        return amp_priority_of_word(amp_span_str(amp_risk_name(v->body.dispatch.risk)), out, err);
    if (!p || json_is_null(p))
        return 0;
    if (json_is_string(p))
        return amp_priority_of_word(amp_span_str(json_string_value(p)), out, err);
    *out = json_integer_value(p);
    if (json_is_integer(p) && *out >= AMP_QUEUE_HIGHEST && *out <= AMP_QUEUE_LOWEST)
        return 0;
    return amp_fail(err, AMP_NO, "bad_priority", "priority: expected %d to %d", AMP_QUEUE_HIGHEST,
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

int amp_submission_of(struct amp_submission *s, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf scope = {0};
    json_auto_t *doc = amp_json_load(v->text, err);
    char digest[80];

    if (!doc)
        return -1;
    const json_t *payload = json_object_get(doc, "payload"), *task = json_object_get(doc, "task");
    const json_t *work = json_is_object(payload) ? payload : task;
    bool params = json_object_get(work, "params") && json_object_get(work, "task_id");
    if (!json_is_object(work) || !v->id.n ||
        (v->kind != AMP_KIND_DISPATCH && v->kind != AMP_KIND_REVIEW && !v->wants_outcome &&
         !params))
        return amp_fail(err, AMP_NO, "not_a_submission", "the message asks for no work");
    if (params && !json_object_get(work, "scope"))
        return amp_fail(err, AMP_NO, "scope_required", "the submission does not say its scope");
    json_auto_t *touches = scope_of(v, work);
    if (!touches)
        return amp_fail(err, AMP_NO, "bad_scope", "scope: expected a text, a list or an object");
    amp_buf_init(&scope, MEM_MAX);
    amp_buf_reset(&s->mem);
    s->job = (struct amp_queue_job){.message = v->id, .from = v->from, .task = v->task};
    s->job.protocol = amp_span_str(amp_protocol_name(v->protocol));
    if (scope_text(touches, &scope, err) < 0 || priority_of(v, work, &s->job.priority, err) < 0 ||
        digest_of(work, digest, err) < 0)
        return -1;
    const char *agent = json_string_value(json_object_get(work, "agent_id"));
    size_t n = scope.len, at_digest = n + 1, at_type = at_digest + strlen(digest) + 1;
    if (amp_buf_add(&s->mem, scope.data ? scope.data : "", n, err) < 0 ||
        amp_buf_add(&s->mem, "", 1, err) < 0 ||
        amp_buf_add(&s->mem, digest, strlen(digest) + 1, err) < 0 ||
        amp_buf_str(&s->mem, agent ? agent : "", err) < 0 || amp_buf_add(&s->mem, "", 1, err) < 0)
        return -1;
    s->job.scope = (struct amp_span){s->mem.data, n};
    s->job.digest = amp_span_str(s->mem.data + at_digest);
    s->job.type = amp_span_str(s->mem.data + at_type);
    return 0;
}

/* The answers of an executor to a task: acceptance, updates, the outcome. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "work/agent/capability.h"
#include "work/attempt/reply/reply.h"
#include "work/handoff/handoff.h"
#include "work/rtp/runtime.h"

/* ---- contracts: the schemas of outputs (§2, §8) ---- */

#define SCHEMA_BYTES ((size_t)4 << 20)
#define PREFIX       "schema://"

/* The file of a reference, below the directory. */
static int schema_read(const char *dir, const char *ref, struct amp_buf *text,
                       struct amp_error *err)
{
    char path[500], self[40];
    struct amp_error why;
    AMP_CLOSE int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return amp_fail_errno(err, AMP_CONFIG, "cannot open the contracts in %s", dir);
    snprintf(path, sizeof path, "%s.json", ref + strlen(PREFIX));
    AMP_CLOSE int fd =
        amp_open_beneath(at, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0, NULL);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (fd < 0 || amp_file_read(AT_FDCWD, self, SCHEMA_BYTES, text, &why) < 0)
        return amp_fail(err, AMP_NO, dependency_missing, "the contract %.200s is not in %.100s",
                        ref, dir);
    return 0;
}

/* NO dependency_missing: it is not there, or is no schema. */
static int contract_load(const char *dir, const char *ref, struct amp_schema **out,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = SCHEMA_BYTES};
    struct amp_error why = {0};
    const struct amp_schema_options opt = {.name = ref, .formats = true};
    *out = NULL;
    if (strncmp(ref, PREFIX, strlen(PREFIX)) != 0 || strstr(ref, "..") || strlen(ref) >= 400)
        return amp_fail(err, AMP_NO, dependency_missing,
                        "the contract %.200s has no file (expected " PREFIX "HOST/NAME/VERSION)",
                        ref);
    if (schema_read(dir, ref, &text, err) < 0)
        return -1;
    *out = amp_schema_compile(amp_buf_span(&text), &opt, &why);
    if (*out)
        return 0;
    if (amp_code_is(why.code, no_memory)) {
        *err = why;
        return -1;
    }
    return amp_fail(err, AMP_NO, dependency_missing, "the contract %.100s: %.200s", ref, why.what);
}

static void violation_note(void *ctx, const struct amp_violation *v)
{
    char *first = ctx;
    if (*first == '\0')
        snprintf(first, 300, "%s at %.*s, expected %.120s", v->keyword, AMP_CLIP(v->schema_at, 100),
                 v->expected);
}

static int contract_check(const struct amp_schema *schema, const char *ref, const json_t *output,
                          struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = (size_t)16 << 20};
    AMP_TAPE struct amp_tape tape = {0};
    struct amp_json_fault fault;
    char first[300] = "";
    if (!output)
        return amp_fail(err, AMP_NO, contract_violation, "%.200s: there is no output", ref);
    struct amp_schema_run *run = amp_schema_run_new(err);
    if (!run)
        return -1;
    amp_tape_init(&tape, NULL);
    int rc = amp_json_dump(output, &text, err);
    if (rc == 0 && amp_tape_scan(&tape, text.data, text.len, &fault) < 0)
        rc = amp_fail(err, AMP_NO, contract_violation, "%.200s: %.100s", ref, fault.what);
    if (rc == 0) {
        struct amp_error why = {0};
        int valid = amp_schema_check(schema, run, &tape, 0, &why);
        if (valid == 0)
            amp_schema_explain(schema, run, &tape, 0, 1, violation_note, first, &why);
        if (valid <= 0)
            rc = amp_fail(err, AMP_NO, contract_violation, "%.160s: %s", ref,
                          valid < 0 ? why.what : first);
    }
    amp_schema_run_free(run);
    return rc < 0 ? -1 : 0;
}

/* ---- what it asks for ---- */

void amp_runtime_terms_release(struct amp_runtime_terms *t)
{
    for (uint32_t i = 0; i < t->n_contracts; i++)
        amp_schema_free(t->contract[i].schema);
    t->n_contracts = 0;
}

static bool is_named(const struct amp_view *v, const char *agent)
{
    for (uint32_t i = 0; i < v->n_to; i++)
        if (amp_span_is(v->to[i], agent))
            return true;
    return false;
}

static bool is_eligible(const json_t *index, const char *agent)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(index, "eligibleAgentIds"), i, one)
        if (strcmp(json_string_value(one) ? json_string_value(one) : "", agent) == 0)
            return true;
    return false;
}

int amp_runtime_may(struct amp_store *s, const struct amp_rtp_task *t, const char *agent,
                    struct amp_error *err)
{
    bool may = t->n_capabilities > 0;
    for (uint32_t i = 0; i < t->n_capabilities && may; i++) {
        struct amp_capability cap;
        if (amp_capability_find(s, t->capability[i], &cap, err) < 0)
            return -1;
        may = cap.catalog && is_eligible(cap.index, agent);
        amp_capability_release(&cap);
    }
    return may;
}

/* Adds the contract of a published capability. */
static int contract_add(struct amp_runtime_terms *t, const json_t *catalog, const char *dir,
                        struct amp_error *err)
{
    const char *ref = amp_json_str(catalog, "contractSchemaRef");
    struct amp_runtime_contract *c = &t->contract[t->n_contracts];
    if (!*ref || !dir)
        return 0;
    if (contract_load(dir, ref, &c->schema, err) < 0)
        return -1;
    snprintf(c->ref, sizeof c->ref, "%s", ref);
    t->n_contracts++;
    return 0;
}

/* *eta_ms: the longest estimate of the capabilities. */
static int capability_look(struct amp_store *s, const struct amp_view *v, const char *agent,
                           const struct amp_runtime_options *opt, struct amp_span id,
                           struct amp_runtime_terms *t, int64_t *eta_ms, struct amp_error *err)
{
    struct amp_capability cap;
    if (amp_capability_find(s, id, &cap, err) < 0)
        return -1;
    int rc = 0;
    int64_t own = json_integer_value(json_object_get(cap.catalog, "defaultEtaSeconds")) * 1000;
    if (own > *eta_ms)
        *eta_ms = own;
    /* The agents that are named are asked whatever the index says. */
    if (cap.catalog && !t->task.skill && !is_named(v, agent) && !is_eligible(cap.index, agent))
        rc = amp_fail(err, AMP_NO, capability_unavailable, "%s is not eligible for %.*s", agent,
                      AMP_CLIP(id, 160));
    if (rc == 0 && cap.catalog && !t->task.skill)
        rc = contract_add(t, cap.catalog, opt->schemas, err);
    amp_capability_release(&cap);
    return rc;
}

int amp_runtime_terms(struct amp_store *s, const struct amp_view *v, const char *agent,
                      const struct amp_runtime_options *opt, int64_t now_ms,
                      struct amp_runtime_terms *out, struct amp_error *err)
{
    int64_t eta = 0;
    *out = (struct amp_runtime_terms){0};
    amp_rtp_task_read(v, &out->task);
    const struct amp_rtp_task *t = &out->task;
    if (t->deadline_ms > 0 && t->deadline_ms <= now_ms)
        return amp_fail(err, AMP_NO, deadline_passed, "the deadline of the task has passed");
    char owner[256];
    int given = amp_handoff_given(s, amp_span_str(agent), v->task, owner, err);
    if (given != 0)
        return given < 0 ? -1
                         : amp_fail(err, AMP_NO, handed_over, "%s handed the task over to %s",
                                    agent, owner);
    if (opt->routing && t->routing.n > 0 && !amp_span_is(t->routing, opt->routing))
        return amp_fail(err, AMP_NO, version_incompatible,
                        "it was routed by the policy %.*s; this node has %.100s",
                        AMP_CLIP(t->routing, 100), opt->routing);
    for (uint32_t i = 0; i < t->n_capabilities; i++)
        if (capability_look(s, v, agent, opt, t->capability[i], out, &eta, err) < 0)
            return -1;
    if (eta == 0)
        eta = opt->eta_ms > 0 ? opt->eta_ms : AMP_RUNTIME_ETA_MS;
    out->eta_ms = now_ms + eta;
    if (t->deadline_ms > 0 && out->eta_ms > t->deadline_ms)
        out->eta_ms = t->deadline_ms;
    return 0;
}

/* ---- answers ---- */

static int answer_give(const struct amp_runtime_voice *w, const struct amp_view *v,
                       struct amp_reply *r, struct amp_error *err)
{
    char id[AMP_MSG_ID_MAX];
    struct amp_reply_result result = {.line = {.max = AMP_REPLY_LINE_MAX}};
    amp_span_copy(v->id, id, sizeof id);
    r->id = id;
    r->by = w->agent;
    r->box = w->box;
    int rc = amp_reply(w->store, r, &result, err);
    amp_buf_release(&result.line);
    return rc;
}

int amp_runtime_accept(const struct amp_runtime_voice *w, const struct amp_view *v,
                       const struct amp_runtime_terms *t, const char *plan, int64_t now_ms,
                       struct amp_error *err)
{
    struct amp_reply r = {
        .act = AMP_REPLY_ACCEPT, .text = plan, .eta_ms = t->eta_ms, .late = true, .now_ms = now_ms};
    int rc = answer_give(w, v, &r, err);
    return rc < 0 && amp_code_is(err->code, already_accepted) ? 1 : rc;
}

/* The beginning of a text, without half a character. */
static void text_cut(const char *from, char *out, size_t size)
{
    size_t n = strlen(from);
    if (n >= size)
        for (n = size - 1; n > 0 && ((unsigned char)from[n] & 0xc0) == 0x80;)
            n--;
    memcpy(out, from, n);
    out[n] = '\0';
}

int amp_runtime_update(const struct amp_runtime_voice *w, const struct amp_view *v,
                       struct amp_runtime_terms *t, const struct amp_runtime_options *opt,
                       double percent, const char *note, int64_t now_ms, struct amp_error *err)
{
    int64_t least = opt->update_ms >= 0 ? opt->update_ms : AMP_RUNTIME_UPDATE_MS;
    char text[201];
    if (t->updated_ms > 0 && now_ms - t->updated_ms < least)
        return 1;
    text_cut(note ? note : "", text, sizeof text);
    struct amp_reply r = {.act = AMP_REPLY_PROGRESS,
                          .text = text,
                          .has_percent = percent >= 0,
                          .percent = percent,
                          .late = true,
                          .now_ms = now_ms};
    if (answer_give(w, v, &r, err) < 0)
        return -1;
    t->updated_ms = now_ms;
    return 0;
}

/* The members of the answer that the protocol has. */
static int data_make(const struct amp_runtime_end *end, bool failed, json_t **out,
                     struct amp_error *err)
{
    static const struct {
        const char *from, *to;
        bool failed;
    } members[] = {{"resultSummary", "resultSummary", false},
                   {"resultRef", "resultRef", false},
                   {"output", "result", false},
                   {"installedVersion", "installedVersion", false},
                   {"failureClass", "failureClass", true},
                   {"errorSummary", "errorSummary", true}};
    json_t *data = json_object();
    if (!data)
        return amp_fail_memory(err);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *one = json_object_get(end->answer, members[i].from);
        if (one && members[i].failed == failed && json_object_set(data, members[i].to, one) < 0) {
            json_decref(data);
            return amp_fail_memory(err);
        }
    }
    *out = data;
    return 0;
}

/* A complete result must keep the contracts, and the completion of a skill confirms its version. */
static int result_check(const struct amp_runtime_terms *t, const struct amp_runtime_end *end,
                        struct amp_error *err)
{
    const json_t *output = json_object_get(end->answer, "output");
    const char *version = amp_json_str(end->answer, "installedVersion");
    for (uint32_t i = 0; i < t->n_contracts; i++)
        if (contract_check(t->contract[i].schema, t->contract[i].ref, output, err) < 0)
            return -1;
    if (t->task.skill && t->task.version.n > 0 && !amp_span_is(t->task.version, version))
        return amp_fail(err, AMP_NO, version_incompatible,
                        "version %.*s is asked for; %s%.64s is confirmed",
                        AMP_CLIP(t->task.version, 64), *version ? "" : "none", version);
    return 0;
}

static int failure_give(const struct amp_runtime_voice *w, const struct amp_view *v,
                        const struct amp_runtime_end *end, const char *class, const char *why,
                        char code[64], int64_t now_ms, struct amp_error *err)
{
    json_t *data;
    const char *own = amp_json_str(end->answer, "failureClass");
    if (data_make(end, true, &data, err) < 0)
        return -1;
    if (class)
        json_object_del(data, "failureClass");
    if (why)
        json_object_del(data, "errorSummary");
    if (!class)
        class = *own ? own : end->failure ? end->failure : AMP_CODE(execution_error);
    const char *text = why ? why : end->said && *end->said ? end->said : class;
    if (!json_object_get(data, "errorSummary") &&
        json_object_set_new(data, "errorSummary", json_string(text)) < 0) {
        json_decref(data);
        return amp_fail(err, AMP_NO, bad_value, "the reason of the failure is not UTF-8");
    }
    struct amp_reply r = {.act = AMP_REPLY_FAIL,
                          .data = data,
                          .code = class,
                          .retryable = json_is_true(json_object_get(end->answer, "retryable")),
                          .taken = true,
                          .late = true,
                          .now_ms = now_ms};
    int rc = answer_give(w, v, &r, err);
    snprintf(code, 64, "%s", class);
    json_decref(data);
    return rc;
}

int amp_runtime_finish(const struct amp_runtime_voice *w, const struct amp_view *v,
                       const struct amp_runtime_terms *t, const struct amp_runtime_end *end,
                       char code[64], int64_t now_ms, struct amp_error *err)
{
    struct amp_error why = {0};
    json_t *data;
    *code = '\0';
    if (end->failed)
        return failure_give(w, v, end, NULL, NULL, code, now_ms, err);
    if (result_check(t, end, &why) < 0) {
        if (why.status != AMP_NO) {
            *err = why;
            return -1;
        }
        char text[700];
        bool contract = amp_code_is(why.code, contract_violation);
        snprintf(text, sizeof text, "%s: %s", why.code, why.what);
        return failure_give(w, v, end, contract ? "failed_terminal" : why.code, text, code, now_ms,
                            err);
    }
    if (data_make(end, false, &data, err) < 0)
        return -1;
    bool summary = json_object_get(data, "resultSummary") || json_object_get(data, "resultRef");
    struct amp_reply r = {.act = AMP_REPLY_COMPLETE,
                          .data = data,
                          .text = summary                   ? NULL
                                  : end->said && *end->said ? end->said
                                                            : "Done.",
                          .taken = true,
                          .late = true,
                          .now_ms = now_ms};
    int rc = answer_give(w, v, &r, err);
    json_decref(data);
    return rc;
}

int amp_runtime_refuse(const struct amp_runtime_voice *w, const struct amp_view *v,
                       const struct amp_error *why, int64_t now_ms, struct amp_error *err)
{
    struct amp_reply r = {.act = AMP_REPLY_FAIL,
                          .code = why->code,
                          .text = why->what,
                          .retryable = amp_code_is(why->code, backpressure) ||
                                       amp_code_is(why->code, approval_required),
                          .late = true,
                          .now_ms = now_ms};
    return answer_give(w, v, &r, err);
}

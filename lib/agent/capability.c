/* Publishing a capability: the checks that need the directory, the index record, and the tasks that
 * bring the delegation skill to everybody else. */
#include "agent/capability.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "message/record/sequence.h"

#define KIND     "capability"
#define LINE_MAX ((size_t)64 << 20)

struct update {
    struct amp_directory *d;
    const struct amp_publication *p;
    int64_t now_ms;
    json_t *others; /* active agents but the owner */
    int64_t first;  /* number of an event; 0: none was taken */

    struct amp_buf json, lines;
    struct amp_store_emit *emits;
    char (*ids)[192];
    uint32_t n_emits;
};

/* ---- checks ---- */

static int check_owner(const struct update *u, struct amp_error *err)
{
    const char *owner = amp_json_str(u->p->catalog, "ownerAgentId");
    uint8_t state;
    if (amp_directory_find(u->d->store, amp_span_str(owner), &state, NULL, err) < 0)
        return -1;
    if (amp_reach_active(state) || strcmp(amp_json_str(u->p->catalog, "status"), "disabled") == 0)
        return 0;
    return amp_fail(err, AMP_NO, "owner_unavailable", "ownerAgentId: %.200s is %s", owner,
                    state == AMP_REACH_UNREACHABLE ? "unreachable"
                    : state == AMP_REACH_LEFT      ? "deregistered"
                                                   : "not registered");
}

static int check_skill(const struct update *u, struct amp_error *err)
{
    const json_t *ref = json_object_get(u->p->catalog, "executorSkillRef");
    const char *path = amp_json_str(ref, "path"), *name = amp_json_str(ref, "name");
    if (!u->p->skills)
        return 0;
    while (*path == '/')
        path++;
    AMP_CLOSE int dir = open(u->p->skills, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return amp_fail_errno(err, AMP_DATAERR, "cannot open %s", u->p->skills);
    AMP_CLOSE int fd = amp_open_beneath(dir, *path ? path : name, O_PATH | O_CLOEXEC, 0, NULL);
    if (fd >= 0)
        return 0;
    return amp_fail(err, AMP_NO, "install_failed", "executorSkillRef: %.200s is not in %.100s",
                    *path ? path : name, u->p->skills);
}

/* ---- what is committed ---- */

static json_t *index_record(const struct update *u, int64_t published)
{
    char at[AMP_TIME_MAX], policy[64];
    time_t seconds = (time_t)(u->now_ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    amp_time_format(u->now_ms, at);
    snprintf(policy, sizeof policy, "cpv_%04d_%02d_%02d_%lld", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, (long long)published);
    json_t *who = json_array();
    if (strcmp(amp_json_str(u->p->catalog, "status"), "disabled") != 0)
        json_array_append(who, json_object_get(u->p->catalog, "ownerAgentId"));
    return json_pack("{s:O, s:o, s:s, s:s}", "capabilityId",
                     json_object_get(u->p->catalog, "capabilityId"), "eligibleAgentIds", who,
                     "policyVersion", policy, "updatedAt", at);
}

static void added(struct update *u, size_t before)
{
    /* The buffer may still move: the spans are set when all is written. */
    u->emits[u->n_emits++].line.n = u->lines.len - before;
}

static int task(struct update *u, const json_t *index, const char *corr, const char *agent,
                struct amp_error *err)
{
    const json_t *c = u->p->catalog, *skill = json_object_get(c, "delegationSkillRef");
    char id[AMP_UUID_MAX], name[48], by[AMP_TIME_MAX], title[201];
    amp_uuid4(id);
    snprintf(name, sizeof name, "tsk_%s", id);
    snprintf(title, sizeof title, "Install the skill for %.160s", amp_json_str(c, "capabilityId"));
    amp_time_format(u->now_ms + u->p->required_ms, by);
    json_t *p =
        json_pack("{s:s, s:s, s:s, s:[s], s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:b}", "taskId", name,
                  "taskType", "skill_distribution", "title", title, "toAgents", agent, "priority",
                  "normal", "capabilityId", amp_json_str(c, "capabilityId"), "delegationSkillRef",
                  "name", amp_json_str(skill, "name"), "version", amp_json_str(skill, "version"),
                  "requiredBy", by, "requesterAgentId", u->d->voice.name, "responseRequired", 1);
    struct amp_rtp_say s = {.kind = "task_create",
                            .to = amp_span_str(agent),
                            .corr = corr,
                            .policy = amp_json_str(index, "policyVersion"),
                            .now_ms = u->now_ms};
    size_t before = u->lines.len;
    if (amp_voice_rtp(&u->d->voice, &s, p, &u->lines, id, err) < 0)
        return -1;
    snprintf(u->ids[u->n_emits], sizeof u->ids[0], "evt_%s", id);
    added(u, before);
    return 0;
}

static int announce(struct update *u, const json_t *index, int64_t published, struct amp_error *err)
{
    char uuid[AMP_UUID_MAX], corr[48];
    size_t i;
    json_t *agent;
    if (amp_json_dump(index, &u->lines, err) < 0)
        return -1;
    snprintf(u->ids[0], sizeof u->ids[0], "%.160s.%lld", amp_json_str(index, "capabilityId"),
             (long long)published);
    added(u, 0);
    if (strcmp(amp_json_str(u->p->catalog, "status"), "active") != 0)
        return 0;
    amp_uuid4(uuid);
    snprintf(corr, sizeof corr, "corr_%s", uuid);
    json_array_foreach(u->others, i, agent)
    {
        if (task(u, index, corr, json_string_value(agent), err) < 0)
            return -1;
    }
    return 0;
}

static int check_version(const struct update *u, const json_t *old, struct amp_error *err)
{
    const char *was = amp_json_str(json_object_get(old, "catalog"), "version");
    const char *is = amp_json_str(u->p->catalog, "version");
    int c = amp_semver_compare(amp_span_str(is), amp_span_str(was));
    if (c > 0)
        return 0;
    if (json_equal(json_object_get(old, "catalog"), u->p->catalog))
        return 1;
    /* Its state may change without a new version. */
    json_t *a = json_copy(json_object_get(old, "catalog")), *b = json_copy(u->p->catalog);
    static const char *const free_to_change[] = {"status", "publishedAt", "publishedByAgentId"};
    for (size_t i = 0; i < 3; i++) {
        json_object_del(a, free_to_change[i]);
        json_object_del(b, free_to_change[i]);
    }
    bool same = c == 0 && json_equal(a, b);
    json_decref(a);
    json_decref(b);
    if (same)
        return 0;
    return amp_fail(err, AMP_NO, "version_incompatible",
                    "version: %.64s is published already%s, not %.64s", was,
                    c == 0 ? " with other contents" : "", is);
}

static int change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *err)
{
    struct update *u = ctx;
    json_t *old = now->found ? amp_json_record(now->json, "a capability's record", err) : NULL;
    if (now->found && !old)
        return -1;
    int64_t n = json_integer_value(json_object_get(old, "published")) + 1;
    u->n_emits = 0;
    u->d->voice.event = u->first;
    amp_buf_reset(&u->json);
    amp_buf_reset(&u->lines);
    int rc = old ? check_version(u, old, err) : 0;
    json_decref(old);
    if (rc != 0)
        return rc;
    json_t *index = index_record(u, n);
    json_t *j = json_pack("{s:O, s:O, s:I}", "catalog", u->p->catalog, "index", index, "published",
                          (json_int_t)n);
    if (!j)
        rc = amp_fail_memory(err);
    else if (announce(u, index, n, err) < 0 || amp_json_dump(j, &u->json, err) < 0)
        rc = -1;
    json_decref(index);
    json_decref(j);
    size_t at = 0;
    for (uint32_t i = 0; rc == 0 && i < u->n_emits; i++) {
        u->emits[i].line.p = u->lines.data + at;
        u->emits[i].id = amp_span_str(u->ids[i]);
        u->emits[i].wants_ack = false;
        at += u->emits[i].line.n;
    }
    c->actor = u->d->voice.name;
    c->event = "publish";
    c->to = amp_json_str(u->p->catalog, "status");
    c->json = amp_buf_span(&u->json);
    c->emits = u->emits;
    c->n_emits = u->n_emits;
    return rc;
}

static int other(void *ctx, struct amp_span agent, uint8_t state, uint64_t rev, const json_t *rec)
{
    struct update *u = ctx;
    (void)rev;
    (void)rec;
    if (amp_reach_active(state) && !amp_span_is(agent, amp_json_str(u->p->catalog, "ownerAgentId")))
        json_array_append_new(u->others, json_stringn(agent.p, agent.n));
    return 0;
}

/* Numbers for the events, one after the other in the node's outbox. None are taken for a record
 * that is refused or the same, for its readers wait for each of them. */
static int take_numbers(struct update *u, struct amp_error *err)
{
    struct amp_voice *v = &u->d->voice;
    uint32_t n = (uint32_t)json_array_size(u->others);
    json_t *old = NULL;
    if (n == 0 || strcmp(amp_json_str(u->p->catalog, "status"), "active") != 0)
        return 0;
    if (amp_capability_find(u->d->store, amp_span_str(amp_json_str(u->p->catalog, "capabilityId")),
                            &old, err) < 0)
        return -1;
    int rc = old ? check_version(u, old, err) : 0;
    json_decref(old);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    return amp_sequence_next(u->d->store, amp_span_str(v->node), n, v->name, &u->first, err);
}

static int commit(struct update *u, enum amp_store_outcome *how, struct amp_error *err)
{
    size_t n = json_array_size(u->others) + 1;
    int rc = -1;
    u->emits = calloc(n, sizeof *u->emits);
    u->ids = calloc(n, sizeof *u->ids);
    amp_buf_init(&u->json, LINE_MAX);
    amp_buf_init(&u->lines, LINE_MAX);
    if (!u->emits || !u->ids)
        amp_fail_memory(err);
    else
        rc = amp_store_update(u->d->store, KIND,
                              amp_span_str(amp_json_str(u->p->catalog, "capabilityId")), NULL,
                              change, u, how, err);
    amp_buf_release(&u->json);
    amp_buf_release(&u->lines);
    free(u->emits);
    free(u->ids);
    return rc;
}

int amp_capability_publish(struct amp_directory *d, const struct amp_publication *p, int64_t now_ms,
                           bool *changed, struct amp_error *err)
{
    struct update u = {.d = d, .p = p, .now_ms = now_ms, .others = json_array()};
    enum amp_store_outcome how = AMP_STORE_UNCHANGED;
    int rc = -1;
    /* One turn, so that the numbers leave with what bears them. */
    if (check_owner(&u, err) == 0 && check_skill(&u, err) == 0 &&
        amp_directory_each(d->store, other, &u, err) == 0 && amp_store_begin(d->store, err) == 0) {
        rc = take_numbers(&u, err);
        if (rc == 0)
            rc = commit(&u, &how, err);
        amp_store_end(d->store);
    }
    json_decref(u.others);
    if (rc == 0 && changed)
        *changed = how == AMP_STORE_COMMITTED;
    return rc;
}

struct each {
    amp_capability_fn fn;
    void *ctx;
    struct amp_error *err;
    int rc;
};

static int each_one(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct each *e = ctx;
    json_t *j = amp_json_record(rec->json, "a capability's record", e->err);
    e->rc = j ? 0 : -1;
    int rc = j ? e->fn(e->ctx, id, j) : 1;
    json_decref(j);
    return rc;
}

int amp_capability_each(struct amp_store *s, amp_capability_fn fn, void *ctx, struct amp_error *err)
{
    struct each e = {fn, ctx, err, 0};
    return amp_store_each(s, KIND, NULL, each_one, &e, err) < 0 ? -1 : e.rc;
}

int amp_capability_find(struct amp_store *s, struct amp_span id, json_t **rec,
                        struct amp_error *err)
{
    struct amp_store_rec r;
    if (amp_store_get(s, KIND, id, &r, err) < 0)
        return -1;
    json_t *j = r.found ? amp_json_record(r.json, "a capability's record", err) : NULL;
    if (r.found && !j)
        return -1;
    *rec = j;
    return 0;
}

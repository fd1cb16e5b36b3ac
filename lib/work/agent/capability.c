/* Publishes a capability: the checks that need the directory, the index record, and the tasks that
 * distribute the delegation skill to the other agents. */
#include "work/agent/capability.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "message/delivery/record/sequence.h"
#include "work/agent/skill.h"
#include "json/record.h"

#define KIND "capability"

struct stored {
    struct amp_span catalog, index;
    int64_t published; /* number of times */
};
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(RAW, struct stored, "catalog", catalog),
    AMP_REC_EVER(RAW, struct stored, "index", index),
    AMP_REC_EVER(INT, struct stored, "published", published),
};
AMP_REC_TABLE(stored_rec, "a capability's record", struct stored, fields);

struct update {
    struct amp_directory *d;
    const struct amp_publication *p;
    int64_t now_ms;
    json_t *others; /* active agents except the owner */
    int64_t first;  /* number of the first event; 0: none is reserved */

    struct amp_buf *mem, *catalog, *json;
    struct amp_voice_lines lines;
};

static struct amp_key key_of(const struct update *u)
{
    return AMP_KEY(KIND, amp_span_str(amp_json_str(u->p->catalog, "capabilityId")));
}

/* ---- checks */

static int check_owner(const struct update *u, struct amp_error *err)
{
    const char *owner = amp_json_str(u->p->catalog, "ownerAgentId");
    struct amp_agent_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_agent_find(u->d->store, amp_span_str(owner), &mem, &rec, err) < 0)
        return -1;
    uint8_t state = rec.reach.state;
    if (amp_reach_active(state) || strcmp(amp_json_str(u->p->catalog, "status"), "disabled") == 0)
        return 0;
    return amp_fail(err, AMP_NO, owner_unavailable, "ownerAgentId: %.200s is %s", owner,
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
    return amp_fail(err, AMP_NO, install_failed, "executorSkillRef: %.200s is not in %.100s",
                    *path ? path : name, u->p->skills);
}

/* ---- the commit */

static json_t *index_record(const struct update *u, int64_t published)
{
    char at[AMP_TIME_MAX], policy[64];
    time_t seconds = (time_t)(u->now_ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    amp_time_format(u->now_ms, at);
    snprintf(policy, sizeof policy, "cpv_%04d_%02d_%02d_%lld", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, (long long)published);
    json_t *eligible = json_array();
    if (strcmp(amp_json_str(u->p->catalog, "status"), "disabled") != 0)
        json_array_append(eligible, json_object_get(u->p->catalog, "ownerAgentId"));
    return json_pack("{s:O, s:o, s:s, s:s}", "capabilityId",
                     json_object_get(u->p->catalog, "capabilityId"), "eligibleAgentIds", eligible,
                     "policyVersion", policy, "updatedAt", at);
}

/* Adds the task of one agent to install the skill. */
static int task_add(struct update *u, const json_t *index, const char *corr, const char *agent,
                    struct amp_error *err)
{
    const json_t *c = u->p->catalog, *skill = json_object_get(c, "delegationSkillRef");
    char id[AMP_RTP_ID_MAX], name[48], by[AMP_TIME_MAX], title[201];
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
                            .routing = u->p->routing,
                            .policy = amp_json_str(index, "policyVersion"),
                            .now_ms = u->now_ms};
    size_t from = u->lines.text.len;
    if (amp_voice_rtp(&u->d->voice, &s, p, &u->lines.text, id, err) < 0)
        return -1;
    amp_voice_lines_add(&u->lines, from, id);
    return 0;
}

/* Adds the index record, and the tasks of an active capability. */
static int lines_compose(struct update *u, const json_t *index, int64_t published,
                         struct amp_error *err)
{
    char uuid[AMP_UUID_MAX], corr[48], id[192];
    size_t i;
    json_t *agent;
    if (amp_json_dump(index, &u->lines.text, err) < 0)
        return -1;
    snprintf(id, sizeof id, "%.160s.%lld", amp_json_str(index, "capabilityId"),
             (long long)published);
    amp_voice_lines_add(&u->lines, 0, id);
    if (strcmp(amp_json_str(u->p->catalog, "status"), "active") != 0)
        return 0;
    amp_uuid4(uuid);
    snprintf(corr, sizeof corr, "corr_%s", uuid);
    json_array_foreach (u->others, i, agent) {
        if (task_add(u, index, corr, json_string_value(agent), err) < 0)
            return -1;
    }
    return 0;
}

enum version { VERSION_NEWER, VERSION_SAME };

/* Compares the catalog entry with the published one. -1: NO version_incompatible. */
static int version_check(const struct update *u, struct amp_span published, enum version *out,
                         struct amp_error *err)
{
    json_auto_t *old = amp_json_load(published, err);
    if (!old)
        return -1;
    char was[65];
    snprintf(was, sizeof was, "%s", amp_json_str(old, "version"));
    const char *version = amp_json_str(u->p->catalog, "version");
    int c = amp_semver_compare(amp_span_str(version), amp_span_str(amp_json_str(old, "version")));
    *out = c <= 0 && json_equal(old, u->p->catalog) ? VERSION_SAME : VERSION_NEWER;
    /* These members may change without a new version. */
    json_auto_t *now = json_copy(u->p->catalog);
    static const char *const free_to_change[] = {"status", "publishedAt", "publishedByAgentId"};
    for (size_t i = 0; i < 3; i++) {
        json_object_del(old, free_to_change[i]);
        json_object_del(now, free_to_change[i]);
    }
    if (c > 0 || *out == VERSION_SAME || (c == 0 && json_equal(old, now)))
        return 0;
    return amp_fail(err, AMP_NO, version_incompatible,
                    "version: %.64s is already published%s, not %.64s", was,
                    c == 0 ? " with other contents" : "", version);
}

/* Reads the record and compares it with the catalog entry. */
static int stored_check(const struct update *u, const struct amp_store_rec *now, struct stored *out,
                        enum version *version, struct amp_error *err)
{
    *version = VERSION_NEWER;
    if (amp_rec_parse(&stored_rec, now->found ? now->json : AMP_SPAN("{}"), u->mem, out, err) < 0)
        return -1;
    return now->found ? version_check(u, out->catalog, version, err) : 0;
}

static int catalog_change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                          struct amp_error *err)
{
    struct update *u = ctx;
    struct stored r;
    enum version version;
    if (stored_check(u, now, &r, &version, err) < 0)
        return -1;
    if (version == VERSION_SAME)
        return 1;
    u->d->voice.event = u->first;
    amp_buf_reset(u->json);
    amp_buf_reset(u->catalog);
    amp_voice_lines_reset(&u->lines);
    json_auto_t *index = index_record(u, ++r.published);
    if (!index)
        return amp_fail_memory(err);
    if (lines_compose(u, index, r.published, err) < 0 ||
        amp_json_dump(u->p->catalog, u->catalog, err) < 0)
        return -1;
    amp_voice_lines_commit(&u->lines, c);
    r.catalog = amp_buf_span(u->catalog);
    r.index = u->lines.emits[0].line;
    if (amp_rec_write(&stored_rec, &r, u->json, err) < 0)
        return -1;
    c->actor = u->d->voice.name;
    c->event = "publish";
    c->to = amp_json_str(u->p->catalog, "status");
    c->json = amp_buf_span(u->json);
    return 0;
}

static int other_add(void *ctx, struct amp_span agent, const struct amp_agent_rec *rec,
                     struct amp_error *err)
{
    struct update *u = ctx;
    if (!amp_reach_active(rec->reach.state) ||
        amp_span_is(agent, amp_json_str(u->p->catalog, "ownerAgentId")))
        return 0;
    return json_array_append_new(u->others, json_stringn(agent.p, agent.n)) < 0
               ? amp_fail_memory(err)
               : 0;
}

/* Reserves consecutive numbers of the node's outbox for the events. A record that is refused or
 * unchanged gets none, because readers of the outbox wait for each number. */
static int numbers_take(struct update *u, struct amp_error *err)
{
    struct amp_voice *v = &u->d->voice;
    uint32_t n = (uint32_t)json_array_size(u->others);
    struct amp_store_rec now;
    struct stored r;
    enum version version;
    if (n == 0 || strcmp(amp_json_str(u->p->catalog, "status"), "active") != 0)
        return 0;
    if (amp_store_get(u->d->store, key_of(u), &now, err) < 0 ||
        stored_check(u, &now, &r, &version, err) < 0)
        return -1;
    if (version == VERSION_SAME)
        return 0;
    return amp_sequence_next(u->d->store, amp_span_str(v->node), n, v->name, &u->first, err);
}

/* Records what each of the tasks asks for. Line 0 is the index record. */
static int skills_want(struct update *u, struct amp_error *err)
{
    const json_t *skill = json_object_get(u->p->catalog, "delegationSkillRef");
    for (uint32_t i = 1; i < u->lines.n; i++) {
        const struct amp_skill_change c = {
            .capability = amp_span_str(amp_json_str(u->p->catalog, "capabilityId")),
            .agent = amp_span_str(json_string_value(json_array_get(u->others, i - 1))),
            .version = amp_json_str(skill, "version"),
            .task = u->lines.ids[i],
            .due_ms = u->now_ms + u->p->required_ms,
            .actor = u->d->voice.name,
            .now_ms = u->now_ms};
        if (amp_skill_want(u->d->store, &c, err) < 0)
            return -1;
    }
    return 0;
}

/* Reserves the numbers and commits their lines in one turn. */
static int update_commit(struct update *u, enum amp_store_outcome *how, struct amp_error *err)
{
    int rc = amp_voice_lines_init(&u->lines, json_array_size(u->others) + 1, err);
    if (rc == 0 && (rc = amp_store_begin(u->d->store, err)) == 0) {
        rc = numbers_take(u, err);
        if (rc == 0)
            rc = amp_store_update(u->d->store, key_of(u), NULL, catalog_change, u, how, err);
        if (rc == 0 && *how == AMP_STORE_COMMITTED)
            rc = skills_want(u, err);
        amp_store_end(u->d->store);
    }
    amp_voice_lines_release(&u->lines);
    return rc;
}

int amp_capability_publish(struct amp_directory *d, const struct amp_publication *p, int64_t now_ms,
                           bool *changed, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0}, catalog = {0}, json = {0};
    json_auto_t *others = json_array();
    struct update u = {.d = d,
                       .p = p,
                       .now_ms = now_ms,
                       .others = others,
                       .mem = &mem,
                       .catalog = &catalog,
                       .json = &json};
    enum amp_store_outcome how = AMP_STORE_UNCHANGED;
    amp_buf_init(&mem, AMP_REC_MAX);
    amp_buf_init(&catalog, (size_t)64 << 20);
    amp_buf_init(&json, (size_t)64 << 20);
    if (check_owner(&u, err) < 0 || check_skill(&u, err) < 0 ||
        amp_agent_records(d->store, other_add, &u, err) < 0 || update_commit(&u, &how, err) < 0)
        return -1;
    if (changed)
        *changed = how == AMP_STORE_COMMITTED;
    return 0;
}

static int capability_read(struct amp_span json, struct amp_buf *mem, struct amp_capability *out,
                           struct amp_error *err)
{
    struct stored r;
    *out = (struct amp_capability){0};
    if (amp_rec_parse(&stored_rec, json, mem, &r, err) < 0)
        return -1;
    if ((out->catalog = amp_json_load(r.catalog, err)) &&
        (out->index = amp_json_load(r.index, err)))
        return 0;
    amp_capability_release(out);
    return -1;
}

void amp_capability_release(struct amp_capability *c)
{
    json_decref(c->catalog);
    json_decref(c->index);
    *c = (struct amp_capability){0};
}

struct each {
    amp_capability_fn fn;
    void *ctx;
    struct amp_buf *mem;
};

static int on_capability(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                         struct amp_error *err)
{
    struct each *e = ctx;
    struct amp_capability c;
    if (capability_read(rec->json, e->mem, &c, err) < 0)
        return -1;
    int rc = e->fn(e->ctx, id, &c, err);
    amp_capability_release(&c);
    return rc;
}

int amp_capability_each(struct amp_store *s, amp_capability_fn fn, void *ctx, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    return amp_store_each(s, KIND, NULL, on_capability, &(struct each){fn, ctx, &mem}, err);
}

int amp_capability_find(struct amp_store *s, struct amp_span id, struct amp_capability *out,
                        struct amp_error *err)
{
    struct amp_store_rec r;
    AMP_BUF struct amp_buf mem = {0};
    *out = (struct amp_capability){0};
    if (amp_store_get(s, AMP_KEY(KIND, id), &r, err) < 0)
        return -1;
    amp_buf_init(&mem, AMP_REC_MAX);
    return r.found ? capability_read(r.json, &mem, out, err) : 0;
}

/* ---- precedence of semantic versions; numbers of any length are compared by their digits */

/* Removes and returns the part before the first `sep`. */
static struct amp_span part_take(struct amp_span *s, char sep)
{
    const char *end = s->n > 0 ? memchr(s->p, sep, s->n) : NULL;
    size_t n = end ? (size_t)(end - s->p) : s->n;
    struct amp_span out = {s->p, n};
    size_t skip = n + (end ? 1 : 0);
    s->p += skip;
    s->n -= skip;
    return out;
}

static bool is_number(struct amp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

static int bytes_compare(struct amp_span a, struct amp_span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n > 0 ? memcmp(a.p, b.p, n) : 0;
    return c != 0 ? c : (a.n > b.n) - (a.n < b.n);
}

static int number_compare(struct amp_span a, struct amp_span b)
{
    while (a.n > 1 && *a.p == '0')
        a.p++, a.n--;
    while (b.n > 1 && *b.p == '0')
        b.p++, b.n--;
    return a.n != b.n ? (a.n > b.n) - (a.n < b.n) : bytes_compare(a, b);
}

/* The identifiers of a pre-release: numbers precede words, fewer precede more. */
static int pre_release_compare(struct amp_span a, struct amp_span b)
{
    while (a.n > 0 && b.n > 0) {
        struct amp_span x = part_take(&a, '.'), y = part_take(&b, '.');
        bool nx = is_number(x), ny = is_number(y);
        int c = nx && ny ? number_compare(x, y) : nx != ny ? (nx ? -1 : 1) : bytes_compare(x, y);
        if (c != 0)
            return c;
    }
    return (a.n > 0) - (b.n > 0);
}

int amp_semver_compare(struct amp_span a, struct amp_span b)
{
    struct amp_span ra = part_take(&a, '+'), rb = part_take(&b, '+');
    struct amp_span ca = part_take(&ra, '-'), cb = part_take(&rb, '-');
    for (int i = 0; i < 3; i++) {
        int c = number_compare(part_take(&ca, '.'), part_take(&cb, '.'));
        if (c != 0)
            return c;
    }
    if (ra.n == 0 || rb.n == 0) /* a release follows its pre-releases */
        return (ra.n == 0) - (rb.n == 0);
    return pre_release_compare(ra, rb);
}

/* A task's record between JSON and struct, by one table for each of the two structs. */
#include "task/record.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "protocol/compose/compose.h"

enum as { AS_TEXT, AS_INT, AS_TIME, AS_LIST, AS_OBJECT, AS_QA_STATE, AS_RISK };

struct field {
    const char *key;
    enum as as;
    size_t at;
};

#define F(type, key, as, member)                                                                   \
    {                                                                                              \
        key, as, offsetof(struct type, member)                                                     \
    }
static const struct field task_fields[] = {
    F(amp_task, "id", AS_TEXT, id),
    F(amp_task, "description", AS_TEXT, description),
    F(amp_task, "repo", AS_TEXT, repo),
    F(amp_task, "branch", AS_TEXT, branch),
    F(amp_task, "base", AS_TEXT, base),
    F(amp_task, "risk_level", AS_RISK, risk),
    F(amp_task, "acceptance_criteria", AS_LIST, criteria),
    F(amp_task, "forbidden_actions", AS_LIST, forbidden),
    F(amp_task, "tech_constraints", AS_OBJECT, constraints),
    F(amp_task, "source_ref", AS_TEXT, source_ref),
    F(amp_task, "original_dispatch_ref", AS_TEXT, first_dispatch),
    F(amp_task, "last_successful_msg_id", AS_TEXT, last_ref),
    F(amp_task, "reject_count", AS_INT, reject_count),
    F(amp_task, "ci", AS_OBJECT, ci),
    F(amp_task, "escalations", AS_LIST, open),
    F(amp_task, "decided", AS_LIST, decided),
    F(amp_task, "issues", AS_LIST, issues),
    F(amp_task, "blockers", AS_LIST, blockers),
    F(amp_task, "notes", AS_LIST, notes),
    F(amp_task, "agents", AS_LIST, agents),
    F(amp_task, "created", AS_TIME, created_ms),
    F(amp_task, "updated", AS_TIME, updated_ms),
};
static const struct field part_fields[] = {
    F(amp_task_part, "subtask_id", AS_TEXT, id),
    F(amp_task_part, "description", AS_TEXT, description),
    F(amp_task_part, "estimated_lines", AS_INT, estimated_lines),
    F(amp_task_part, "state", AS_QA_STATE, state),
    F(amp_task_part, "attempts", AS_INT, attempts),
    F(amp_task_part, "ci_reds", AS_INT, ci_reds),
    F(amp_task_part, "dispatch_ref", AS_TEXT, dispatch_ref),
    F(amp_task_part, "result_ref", AS_TEXT, result_ref),
    F(amp_task_part, "request_ref", AS_TEXT, request_ref),
    F(amp_task_part, "verdict_ref", AS_TEXT, verdict_ref),
    F(amp_task_part, "verdict", AS_TEXT, verdict),
    F(amp_task_part, "verdict_for", AS_TEXT, verdict_for),
    F(amp_task_part, "verdict_request", AS_TEXT, verdict_request),
    F(amp_task_part, "completion_status", AS_TEXT, completion),
    F(amp_task_part, "commit", AS_TEXT, commit),
    F(amp_task_part, "reviewed_commit", AS_TEXT, reviewed_commit),
    F(amp_task_part, "rejected_commit", AS_TEXT, rejected_commit),
    F(amp_task_part, "held", AS_TEXT, held),
};
#define N(a) (sizeof(a) / sizeof(a)[0])

static int bad_record(struct amp_error *err, const char *key)
{
    return amp_fail(err, AMP_DATAERR, "bad_record", "a task's record has no usable %s", key);
}

int amp_task_set(char **place, struct amp_span value, struct amp_error *err)
{
    char *copy = amp_span_dup(value);
    if (!copy)
        return amp_fail_memory(err);
    free(*place);
    *place = copy;
    return 0;
}

static void *place_of(void *s, const struct field *f)
{
    return (char *)s + f->at;
}

static int fresh(void *s, const struct field *f, size_t n, struct amp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        void *p = place_of(s, &f[i]);
        if (f[i].as == AS_TEXT && !(*(char **)p = strdup("")))
            return amp_fail_memory(err);
        if (f[i].as == AS_LIST && !(*(json_t **)p = json_array()))
            return amp_fail_memory(err);
        if (f[i].as == AS_OBJECT && !(*(json_t **)p = json_object()))
            return amp_fail_memory(err);
    }
    return 0;
}

static void drop(void *s, const struct field *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *p = place_of(s, &f[i]);
        if (f[i].as == AS_TEXT)
            free(*(char **)p);
        if (f[i].as == AS_LIST || f[i].as == AS_OBJECT)
            json_decref(*(json_t **)p);
    }
}

static int read_one(void *p, const struct field *f, json_t *v, struct amp_error *err)
{
    struct amp_span text = {json_string_value(v), json_string_length(v)};
    int state;
    switch (f->as) {
    case AS_TEXT:
        return json_is_string(v) ? amp_task_set(p, text, err) : bad_record(err, f->key);
    case AS_INT:
        if (!json_is_integer(v))
            return bad_record(err, f->key);
        *(int64_t *)p = json_integer_value(v);
        return 0;
    case AS_TIME:
        if (!json_is_string(v) || !amp_time_parse(text, p))
            return bad_record(err, f->key);
        return 0;
    case AS_LIST:
    case AS_OBJECT:
        if (f->as == AS_LIST ? !json_is_array(v) : !json_is_object(v))
            return bad_record(err, f->key);
        json_decref(*(json_t **)p);
        *(json_t **)p = json_incref(v);
        return 0;
    case AS_QA_STATE:
        if (!json_is_string(v) || (state = amp_fsm_state(&amp_qa_fsm, text)) < 0)
            return bad_record(err, f->key);
        *(uint8_t *)p = (uint8_t)state;
        return 0;
    case AS_RISK:
        for (int i = AMP_RISK_NONE; i <= AMP_RISK_HIGH; i++)
            if (amp_span_is(text, amp_risk_name((enum amp_risk)i))) {
                *(enum amp_risk *)p = (enum amp_risk)i;
                return 0;
            }
        return bad_record(err, f->key);
    }
    return bad_record(err, f->key);
}

static json_t *write_one(const void *p, const struct field *f)
{
    char time[AMP_TIME_MAX];
    switch (f->as) {
    case AS_TEXT:
        return json_string(*(char *const *)p);
    case AS_INT:
        return json_integer(*(const int64_t *)p);
    case AS_TIME:
        amp_time_format(*(const int64_t *)p, time);
        return json_string(time);
    case AS_LIST:
    case AS_OBJECT:
        return json_incref(*(json_t *const *)p);
    case AS_QA_STATE:
        return json_string(amp_qa_fsm.states[*(const uint8_t *)p].name);
    case AS_RISK:
        return json_string(amp_risk_name(*(const enum amp_risk *)p));
    }
    return NULL;
}

static int read_all(void *s, const struct field *f, size_t n, const json_t *o,
                    struct amp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        json_t *v = json_object_get(o, f[i].key);
        if (v && read_one(place_of(s, &f[i]), &f[i], v, err) < 0)
            return -1;
    }
    return 0;
}

static int write_all(const void *s, const struct field *f, size_t n, json_t *o)
{
    for (size_t i = 0; i < n; i++)
        if (json_object_set_new(o, f[i].key, write_one((const char *)s + f[i].at, &f[i])) < 0)
            return -1;
    return 0;
}

int amp_task_init(struct amp_task *t, struct amp_span id, struct amp_error *err)
{
    memset(t, 0, sizeof *t);
    t->state = AMP_TASK_NEW;
    if (fresh(t, task_fields, N(task_fields), err) < 0 || amp_task_set(&t->id, id, err) < 0 ||
        amp_task_set(&t->suspended_ref, AMP_SPAN(""), err) < 0 ||
        amp_task_set(&t->suspended_type, AMP_SPAN(""), err) < 0) {
        amp_task_release(t);
        return -1;
    }
    return 0;
}

static void drop_parts(struct amp_task *t)
{
    for (size_t i = 0; i < t->n_parts; i++)
        drop(&t->parts[i], part_fields, N(part_fields));
    free(t->parts);
    t->parts = NULL;
    t->n_parts = 0;
}

void amp_task_release(struct amp_task *t)
{
    drop_parts(t);
    drop(t, task_fields, N(task_fields));
    free(t->suspended_ref);
    free(t->suspended_type);
    memset(t, 0, sizeof *t);
}

int amp_task_add_part(struct amp_task *t, struct amp_span id, struct amp_span description,
                      int64_t lines, struct amp_error *err)
{
    struct amp_task_part *v = realloc(t->parts, (t->n_parts + 1) * sizeof *v);
    if (!v)
        return amp_fail_memory(err);
    t->parts = v;
    struct amp_task_part *p = &v[t->n_parts];
    memset(p, 0, sizeof *p);
    t->n_parts++;
    if (fresh(p, part_fields, N(part_fields), err) < 0 || amp_task_set(&p->id, id, err) < 0 ||
        amp_task_set(&p->description, description, err) < 0)
        return -1;
    p->estimated_lines = lines;
    return 0;
}

void amp_task_swap_parts(struct amp_task *a, struct amp_task *b)
{
    struct amp_task_part *v = a->parts;
    size_t n = a->n_parts;
    a->parts = b->parts;
    a->n_parts = b->n_parts;
    b->parts = v;
    b->n_parts = n;
}

static int read_suspension(struct amp_task *t, json_t *s, struct amp_error *err)
{
    if (!json_is_object(s))
        return 0;
    static const struct field fields[] = {
        F(amp_task, "ref", AS_TEXT, suspended_ref),
        F(amp_task, "type", AS_TEXT, suspended_type),
        F(amp_task, "since", AS_TIME, suspended_ms),
    };
    return read_all(t, fields, N(fields), s, err);
}

static int read_doc(struct amp_task *t, const json_t *o, struct amp_error *err)
{
    if (read_all(t, task_fields, N(task_fields), o, err) < 0 ||
        read_suspension(t, json_object_get(o, "suspended"), err) < 0)
        return -1;
    const json_t *parts = json_object_get(o, "subtasks");
    for (size_t i = 0; i < json_array_size(parts); i++)
        if (amp_task_add_part(t, AMP_SPAN(""), AMP_SPAN(""), 0, err) < 0 ||
            read_all(&t->parts[i], part_fields, N(part_fields), json_array_get(parts, i), err) < 0)
            return -1;
    return 0;
}

int amp_task_read(struct amp_task *t, const struct amp_store_rec *rec, struct amp_span id,
                  struct amp_error *err)
{
    struct amp_task n;
    if (amp_task_init(&n, id, err) < 0)
        return -1;
    if (rec->found) {
        int state = amp_fsm_state(&amp_task_fsm, rec->state);
        json_t *o = state < 0 ? NULL : amp_json_load(rec->json, err);
        int rc = state < 0 ? bad_record(err, "state") : o ? read_doc(&n, o, err) : -1;
        json_decref(o);
        if (rc < 0) {
            amp_task_release(&n);
            return -1;
        }
        n.state = (uint8_t)state;
    }
    *t = n;
    return 0;
}

static json_t *suspension_json(const struct amp_task *t)
{
    if (!amp_task_is_suspended(t))
        return json_null();
    char time[AMP_TIME_MAX];
    amp_time_format(t->suspended_ms, time);
    return json_pack("{s:s, s:s, s:s}", "ref", t->suspended_ref, "type", t->suspended_type, "since",
                     time);
}

static json_t *parts_json(const struct amp_task *t)
{
    json_t *a = json_array();
    for (size_t i = 0; a && i < t->n_parts; i++) {
        json_t *o = json_object();
        if (!o || write_all(&t->parts[i], part_fields, N(part_fields), o) < 0 ||
            json_array_append(a, o) < 0) {
            json_decref(a);
            a = NULL;
        }
        json_decref(o);
    }
    return a;
}

int amp_task_write(const struct amp_task *t, struct amp_buf *out, struct amp_error *err)
{
    json_t *o = json_object();
    int rc = -1;
    if (!o || write_all(t, task_fields, N(task_fields), o) < 0 ||
        json_object_set_new(o, "state", json_string(amp_task_fsm.states[t->state].name)) < 0 ||
        json_object_set_new(o, "suspended", suspension_json(t)) < 0 ||
        json_object_set_new(o, "subtasks", parts_json(t)) < 0)
        amp_fail_memory(err);
    else
        rc = amp_json_dump(o, out, err);
    json_decref(o);
    return rc;
}

struct amp_task_part *amp_task_part(const struct amp_task *t, struct amp_span id)
{
    for (size_t i = 0; i < t->n_parts; i++)
        if (amp_span_is(id, t->parts[i].id))
            return &t->parts[i];
    return NULL;
}

struct amp_task_part *amp_task_turn(const struct amp_task *t)
{
    for (size_t i = 0; i < t->n_parts; i++)
        if (t->parts[i].state != AMP_QA_APPROVED && t->parts[i].state != AMP_QA_ABANDONED)
            return &t->parts[i];
    return NULL;
}

bool amp_task_lists(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (s && strcmp(s, text) == 0)
            return true;
    }
    return false;
}

bool amp_task_is_suspended(const struct amp_task *t)
{
    return *t->suspended_ref != 0;
}

static const char *member(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

bool amp_task_waits_for(const struct amp_task *t, const char *ref)
{
    for (size_t i = 0; i < json_array_size(t->open); i++)
        if (strcmp(member(json_array_get(t->open, i), "ref"), ref) == 0)
            return true;
    return false;
}

int amp_task_open_escalation(struct amp_task *t, const char *ref, const char *type,
                             const char *severity, int64_t now_ms, struct amp_error *err)
{
    if (amp_task_waits_for(t, ref))
        return 0;
    if (json_array_append_new(t->open, json_pack("{s:s, s:s, s:s}", "ref", ref, "type", type,
                                                 "severity", severity)) < 0)
        return amp_fail_memory(err);
    if (strcmp(severity, "critical") != 0 || amp_task_is_suspended(t))
        return 0;
    t->suspended_ms = now_ms;
    return amp_task_set(&t->suspended_ref, amp_span_str(ref), err) < 0 ||
                   amp_task_set(&t->suspended_type, amp_span_str(type), err) < 0
               ? -1
               : 0;
}

bool amp_task_close_escalation(struct amp_task *t, const char *ref)
{
    bool known = false;
    const json_t *critical = NULL;
    for (size_t i = 0; i < json_array_size(t->open);) {
        const json_t *e = json_array_get(t->open, i);
        if (!*ref || strcmp(member(e, "ref"), ref) == 0) {
            known = true;
            json_array_remove(t->open, i);
            continue;
        }
        if (!critical && strcmp(member(e, "severity"), "critical") == 0)
            critical = e;
        i++;
    }
    amp_task_set(&t->suspended_ref, amp_span_str(critical ? member(critical, "ref") : ""), NULL);
    amp_task_set(&t->suspended_type, amp_span_str(critical ? member(critical, "type") : ""), NULL);
    return known;
}

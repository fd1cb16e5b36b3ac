/* A task's record. */
#include "work/task/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/protocol/amp/compose.h"
#include "json/record.h"

AMP_WORDS(risks, AMP_RISK_LIST);
const struct amp_rec_words amp_task_qa_words = {.machine = &amp_qa_fsm},
                           amp_task_risk_words = {.list = risks};

/* Fields that are JSON documents: lists and objects. */
static int list_init(void *field, struct amp_error *err)
{
    json_t **j = field;
    return (*j = json_array()) ? 0 : amp_fail_memory(err);
}

static int object_init(void *field, struct amp_error *err)
{
    json_t **j = field;
    return (*j = json_object()) ? 0 : amp_fail_memory(err);
}

static void json_free(void *field)
{
    json_t **j = field;
    json_decref(*j);
}

/* 1: its type differs from the field's. */
static int json_read(void *field, const struct amp_tape *t, uint32_t tok, struct amp_error *err)
{
    json_t **now = field, *j = amp_json_of(t, tok, err);
    if (!j)
        return -1;
    if (json_typeof(j) != json_typeof(*now)) {
        json_decref(j);
        return 1;
    }
    json_decref(*now);
    *now = j;
    return 0;
}

static int json_write(const void *field, struct amp_jw *w, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, AMP_REC_MAX);
    if (amp_json_dump(*(json_t *const *)field, &text, err) < 0)
        return -1;
    amp_jw_raw(w, amp_buf_span(&text));
    return 0;
}

static const struct amp_rec_ops list_ops = {list_init, json_free, json_read, json_write};
static const struct amp_rec_ops object_ops = {object_init, json_free, json_read, json_write};

#define PART(as, key, member) AMP_REC_EVER(as, struct amp_task_part, key, member)
#define SIGNED(key, member)   AMP_REC(STRING, struct amp_task_part, key, member)
static const struct amp_rec_field part_fields[] = {
    PART(STRING, "subtask_id", id),
    PART(STRING, "description", description),
    PART(INT, "estimated_lines", estimated_lines),
    AMP_REC_ENUM(struct amp_task_part, "state", state, &amp_task_qa_words),
    PART(INT, "attempts", attempts),
    PART(INT, "ci_reds", ci_reds),
    PART(STRING, "dispatch_ref", dispatch_ref),
    PART(STRING, "result_ref", result_ref),
    PART(STRING, "request_ref", request_ref),
    PART(STRING, "verdict_ref", verdict_ref),
    PART(STRING, "verdict", verdict),
    PART(STRING, "verdict_for", verdict_for),
    PART(STRING, "verdict_request", verdict_request),
    PART(STRING, "completion_status", completion),
    PART(STRING, "commit", commit),
    PART(STRING, "reviewed_commit", reviewed_commit),
    PART(STRING, "rejected_commit", rejected_commit),
    PART(STRING, "held", held),
    SIGNED("asked", asked),
    SIGNED("executor_key", executor),
    SIGNED("executor", executor_name),
    SIGNED("result_sig", result_sig),
    SIGNED("verdict_sig", verdict_sig),
    SIGNED("decision", decision),
};
AMP_REC_TABLE(part_rec, "a subtask's record", struct amp_task_part, part_fields);

int amp_task_set(char **place, struct amp_span value, struct amp_error *err)
{
    char *copy = amp_span_dup(value);
    if (!copy)
        return amp_fail_memory(err);
    free(*place);
    *place = copy;
    return 0;
}

int amp_task_add_part(struct amp_task *t, struct amp_span id, struct amp_span description,
                      int64_t lines, struct amp_error *err)
{
    struct amp_task_part *v = realloc(t->parts, (t->n_parts + 1) * sizeof *v);
    if (!v)
        return amp_fail_memory(err);
    t->parts = v;
    struct amp_task_part *p = &v[t->n_parts];
    if (amp_rec_init(&part_rec, p, err) < 0)
        return -1;
    t->n_parts++;
    if (amp_task_set(&p->id, id, err) < 0 || amp_task_set(&p->description, description, err) < 0)
        return -1;
    p->estimated_lines = lines;
    return 0;
}

static void parts_free(void *task)
{
    struct amp_task *t = task;
    for (size_t i = 0; i < t->n_parts; i++)
        amp_rec_free(&part_rec, &t->parts[i]);
    free(t->parts);
}

static int parts_read(void *task, const struct amp_tape *t, uint32_t tok, struct amp_error *err)
{
    struct amp_task *of = task;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    if (t->tok[tok].type != AMP_JSON_ARRAY)
        return 1;
    for (uint32_t e = tok + 1; e < t->tok[tok].next; e = t->tok[e].next)
        if (amp_task_add_part(of, AMP_SPAN(""), AMP_SPAN(""), 0, err) < 0 ||
            amp_rec_read(&part_rec, t, e, &mem, &of->parts[of->n_parts - 1], err) < 0)
            return -1;
    return 0;
}

static int parts_write(const void *task, struct amp_jw *w, struct amp_error *err)
{
    const struct amp_task *t = task;
    (void)err;
    amp_rec_list(&part_rec, t->parts, (uint32_t)t->n_parts, w);
    return 0;
}

/* The state is written for readers of the task file. It is read from the store's frame instead. */
static int state_read(void *task, const struct amp_tape *t, uint32_t tok, struct amp_error *err)
{
    (void)task, (void)t, (void)tok, (void)err;
    return 0;
}

static int state_write(const void *task, struct amp_jw *w, struct amp_error *err)
{
    (void)err;
    amp_jw_str(w, amp_span_str(amp_task_fsm.states[((const struct amp_task *)task)->state].name));
    return 0;
}

static const struct amp_rec_ops parts_ops = {NULL, parts_free, parts_read, parts_write};
static const struct amp_rec_ops state_ops = {NULL, NULL, state_read, state_write};

/* The suspension; null if there is none. */
static const struct amp_rec_field suspension_fields[] = {
    AMP_REC(STRING, struct amp_task_suspended, "ref", ref),
    AMP_REC(STRING, struct amp_task_suspended, "type", type),
    AMP_REC(TIME, struct amp_task_suspended, "since", since_ms),
};
AMP_REC_TABLE(suspension_rec, "a task's suspension", struct amp_task_suspended, suspension_fields);

#define TASK(as, key, member)      AMP_REC_EVER(as, struct amp_task, key, member)
#define DOCUMENT(key, member, ops) AMP_REC_BY(struct amp_task, key, member, ops)
static const struct amp_rec_field task_fields[] = {
    TASK(STRING, "id", id),
    TASK(STRING, "description", description),
    TASK(STRING, "repo", repo),
    TASK(STRING, "branch", branch),
    TASK(STRING, "base", base),
    AMP_REC_ENUM(struct amp_task, "risk_level", risk, &amp_task_risk_words),
    DOCUMENT("acceptance_criteria", criteria, &list_ops),
    DOCUMENT("commands", commands, &list_ops),
    DOCUMENT("forbidden_actions", forbidden, &list_ops),
    DOCUMENT("tech_constraints", constraints, &object_ops),
    TASK(STRING, "source_ref", source_ref),
    AMP_REC(STRING, struct amp_task, "text", text),
    TASK(STRING, "original_dispatch_ref", first_dispatch),
    TASK(STRING, "last_successful_msg_id", last_ref),
    TASK(INT, "reject_count", reject_count),
    AMP_REC(INT, struct amp_task, "unlanded", unlanded),
    AMP_REC(STRING, struct amp_task, "merge_asked", merge_asked),
    DOCUMENT("ci", ci, &object_ops),
    DOCUMENT("escalations", open, &list_ops),
    DOCUMENT("decided", decided, &list_ops),
    DOCUMENT("withdrawn", withdrawn, &list_ops),
    DOCUMENT("issues", issues, &list_ops),
    DOCUMENT("blockers", blockers, &list_ops),
    DOCUMENT("notes", notes, &list_ops),
    DOCUMENT("agents", agents, &list_ops),
    TASK(TIME, "created", created_ms),
    TASK(TIME, "updated", updated_ms),
    AMP_REC(STRING, struct amp_task, "cancelled", cancelled),
    AMP_REC_WHOLE("state", &state_ops),
    AMP_REC_IN(struct amp_task, "suspended", suspended, &suspension_rec, true),
    AMP_REC_WHOLE("subtasks", &parts_ops),
};
AMP_REC_TABLE(task_rec, "a task's record", struct amp_task, task_fields);

int amp_task_init(struct amp_task *t, struct amp_span id, struct amp_error *err)
{
    if (amp_rec_init(&task_rec, t, err) < 0)
        return -1;
    t->state = AMP_TASK_NEW;
    if (amp_task_set(&t->id, id, err) == 0)
        return 0;
    amp_task_release(t);
    return -1;
}

void amp_task_release(struct amp_task *t)
{
    amp_rec_free(&task_rec, t);
}

void amp_task_swap_parts(struct amp_task *a, struct amp_task *b)
{
    const struct amp_task was = *a;
    a->parts = b->parts;
    a->n_parts = b->n_parts;
    b->parts = was.parts;
    b->n_parts = was.n_parts;
}

int amp_task_read(struct amp_task *t, const struct amp_store_rec *rec, struct amp_span id,
                  struct amp_error *err)
{
    struct amp_task n;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    if (!rec->found)
        return amp_task_init(t, id, err);
    int state = amp_fsm_state(&amp_task_fsm, rec->state);
    if (state < 0)
        return amp_fail(err, AMP_DATAERR, bad_record, "a task's record has no usable state");
    if (amp_rec_parse(&task_rec, rec->json, &mem, &n, err) < 0)
        return -1;
    n.state = (uint8_t)state;
    *t = n;
    return *t->id ? 0 : amp_task_set(&t->id, id, err);
}

int amp_task_load(struct amp_store *s, struct amp_span id, struct amp_task *t, bool *found,
                  struct amp_error *err)
{
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_KEY(AMP_TASK_KIND, id), &rec, err) < 0)
        return -1;
    if (found)
        *found = rec.found;
    return amp_task_read(t, &rec, id, err);
}

int amp_task_write(const struct amp_task *t, struct amp_buf *out, struct amp_error *err)
{
    return amp_rec_write(&task_rec, t, out, err);
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
    return *t->suspended.ref != 0;
}

bool amp_task_waits_for(const struct amp_task *t, const char *ref)
{
    for (size_t i = 0; i < json_array_size(t->open); i++)
        if (strcmp(amp_json_str(json_array_get(t->open, i), "ref"), ref) == 0)
            return true;
    return false;
}

const json_t *amp_task_find_escalation(const struct amp_task *t, const char *ref)
{
    for (size_t i = 0; *ref && i < json_array_size(t->open); i++) {
        const json_t *e = json_array_get(t->open, i);
        if (strcmp(amp_json_str(e, "ref"), ref) == 0 || strcmp(amp_json_str(e, "of"), ref) == 0)
            return e;
    }
    return NULL;
}

int amp_task_own_escalation(struct amp_task *t, const char *ref, const char *of, const char *from,
                            const char *by, const char *key, struct amp_error *err)
{
    for (size_t i = 0; i < json_array_size(t->open); i++) {
        json_t *e = json_array_get(t->open, i);
        if (strcmp(amp_json_str(e, "ref"), ref) != 0)
            continue;
        if (json_object_set_new(e, "from", json_string(from)) < 0 ||
            (*by && json_object_set_new(e, "by", json_string(by)) < 0) ||
            (*key && json_object_set_new(e, "key", json_string(key)) < 0) ||
            (strcmp(of, ref) != 0 && json_object_set_new(e, "of", json_string(of)) < 0))
            return amp_fail_memory(err);
    }
    return 0;
}

int amp_task_open_escalation(struct amp_task *t, const struct amp_task_asked *asked, int64_t now_ms,
                             struct amp_error *err)
{
    if (amp_task_waits_for(t, asked->ref))
        return 0;
    if (json_array_append_new(t->open, json_pack("{s:s, s:s, s:s, s:s*}", "ref", asked->ref, "type",
                                                 asked->type, "severity", asked->severity, "why",
                                                 asked->why)) < 0)
        return amp_fail_memory(err);
    if (strcmp(asked->severity, "critical") != 0 || amp_task_is_suspended(t))
        return 0;
    t->suspended.since_ms = now_ms;
    return amp_task_set(&t->suspended.ref, amp_span_str(asked->ref), err) < 0 ||
                   amp_task_set(&t->suspended.type, amp_span_str(asked->type), err) < 0
               ? -1
               : 0;
}

bool amp_task_close_escalation(struct amp_task *t, const char *ref)
{
    const json_t *critical = NULL; /* the first critical one that is left */
    size_t left = 0, before = json_array_size(t->open);
    while (left < json_array_size(t->open)) {
        const json_t *e = json_array_get(t->open, left);
        if (!*ref || strcmp(amp_json_str(e, "ref"), ref) == 0) {
            json_array_remove(t->open, left);
            continue;
        }
        if (!critical && strcmp(amp_json_str(e, "severity"), "critical") == 0)
            critical = e;
        left++;
    }
    if (!critical)
        t->suspended.since_ms = 0;
    amp_task_set(&t->suspended.ref, amp_span_str(amp_json_str(critical, "ref")), NULL);
    amp_task_set(&t->suspended.type, amp_span_str(amp_json_str(critical, "type")), NULL);
    return left < before;
}

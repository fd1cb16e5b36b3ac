/* Checks a payload that a person edited. */
#include "people/answer/payload.h"

#include <string.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"

static const char *editable_of(const struct amp_question *q)
{
    return amp_question_terms(q)->editable;
}

/* The message whose payload is edited; the caller owns it. */
static json_t *message_of(const struct amp_question *q, const struct amp_evidence *ev,
                          struct amp_error *err)
{
    json_t *message = NULL;

    if (!editable_of(q))
        message = json_incref(q->message);
    else if (q->about.kind == AMP_ABOUT_TASK && ev->dispatch)
        message = amp_json_load(amp_span_str(ev->dispatch), err);
    if (message && json_is_object(json_object_get(message, "payload")))
        return message;
    json_decref(message);
    amp_fail(err, AMP_NO, no_payload, "the state directory has no payload to edit");
    return NULL;
}

bool amp_payload_is_there(const struct amp_question *q, const struct amp_evidence *ev)
{
    struct amp_error err;
    json_auto_t *message = message_of(q, ev, &err);

    return message != NULL;
}

int amp_payload_text(const struct amp_question *q, const struct amp_evidence *ev,
                     struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *message = message_of(q, ev, err);

    if (!message)
        return -1;
    return amp_json_dump_as(json_object_get(message, "payload"), JSON_INDENT(2), out, err) < 0 ||
                   amp_buf_str(out, "\n", err) < 0
               ? -1
               : 0;
}

struct faults {
    struct amp_buf *why;
    struct amp_error *err;
};

static void fault_add(void *ctx, const struct amp_finding *f)
{
    struct faults *faults = ctx;

    if (f->severity != AMP_SEV_ERROR)
        return;
    amp_buf_fmt(faults->why, faults->err, "%s%s%s: ", f->field, *f->field ? ": " : "", f->code);
    amp_finding_sentence(f, true, faults->why, faults->err);
    amp_buf_str(faults->why, "\n", faults->err);
}

static int message_check(const json_t *message, struct amp_buf *why, struct amp_error *err)
{
    static const struct amp_check_options any = {.most = 8};
    AMP_BUF struct amp_buf line = {0};
    struct faults faults = {why, err};
    struct amp_view v;
    struct amp_reader *r = NULL;
    int rc = -1;

    amp_buf_init(&line, 4 * AMP_PAYLOAD_MAX);
    if (amp_json_dump(message, &line, err) == 0 && (r = amp_reader_new(NULL, err)))
        rc = amp_reader_line(r, amp_buf_span(&line), &any, &v, fault_add, &faults, err);
    amp_reader_free(r);
    return rc;
}

/* Appends the members that must not differ but do. */
static int members_compare(json_t *before, json_t *after, const char *editable, struct amp_buf *why,
                           struct amp_error *err)
{
    json_auto_t *all = json_object();
    const char *key;
    json_t *v;

    if (!all || json_object_update(all, before) < 0 || json_object_update(all, after) < 0)
        return amp_fail_memory(err);
    json_object_foreach (all, key, v) {
        if (strcmp(key, editable) != 0 &&
            !json_equal(json_object_get(before, key), json_object_get(after, key)) &&
            amp_buf_fmt(why, err, "%s: only %s can be changed\n", key, editable) < 0)
            return -1;
    }
    return 0;
}

/* An envelope with the length of its payload gets the new one. */
static int length_adjust(json_t *message, const json_t *payload, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};

    if (!json_object_get(message, "content_length"))
        return 0;
    amp_buf_init(&text, 4 * AMP_PAYLOAD_MAX);
    if (amp_json_dump(payload, &text, err) < 0)
        return -1;
    return json_object_set_new(message, "content_length", json_integer((json_int_t)text.len)) < 0
               ? amp_fail_memory(err)
               : 0;
}

int amp_payload_check(const struct amp_question *q, const struct amp_evidence *ev,
                      struct amp_span text, struct amp_buf *out, bool *changed, struct amp_buf *why,
                      struct amp_error *err)
{
    json_auto_t *message = message_of(q, ev, err);
    struct amp_error e;
    json_auto_t *payload = amp_json_load(text, &e);
    json_auto_t *edited = NULL;

    if (!message)
        return -1;
    if (!json_is_object(payload))
        return amp_buf_fmt(why, err, "not a JSON object%s%s\n", payload ? "" : ": ",
                           payload ? "" : e.what) < 0
                   ? -1
                   : 0;
    if (editable_of(q) &&
        members_compare(json_object_get(message, "payload"), payload, editable_of(q), why, err) < 0)
        return -1;
    if (why->len)
        return 0;
    *changed = !json_equal(payload, json_object_get(message, "payload"));
    if (!(edited = json_copy(message)) || json_object_set(edited, "payload", payload) < 0)
        return amp_fail_memory(err);
    if (length_adjust(edited, payload, err) < 0)
        return -1;
    int rc = message_check(edited, why, err);
    return rc <= 0 ? rc : amp_json_dump(payload, out, err) < 0 ? -1 : 1;
}

/* Answers requests of HTTP. */
#include "people/answer/text/receive.h"

#include <string.h>
#include <strings.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "net/request.h"
#include "people/answer/text/evidence_facts.h"
#include "people/answer/text/signed.h"

#define HEAD_MAX 16384
#define PAGE_MAX (1u << 20)

void amp_receive_release(struct amp_receive_response *r)
{
    amp_buf_release(&r->body);
}

static const char *status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {{200, "OK"},
                 {400, "Bad Request"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {410, "Gone"},
                 {413, "Content Too Large"},
                 {415, "Unsupported Media Type"},
                 {422, "Unprocessable Content"},
                 {503, "Service Unavailable"},
                 {0, ""}};
    int i = 0;

    while (texts[i].status && texts[i].status != status)
        i++;
    return texts[i].text;
}

/* ---- responses ---- */

static int plain_say(struct amp_receive_response *out, int status, const char *text,
                     struct amp_error *err)
{
    out->status = status;
    out->html = false;
    amp_buf_reset(&out->body);
    return amp_buf_fmt(&out->body, err, "%s\n", text);
}

/* Returns the status for a refusal. Only holders of the token learn about the question. */
static int refusal_say(struct amp_receive_response *out, const struct amp_error *why,
                       struct amp_error *err)
{
    static const struct {
        const char *code;
        int status;
        const char *text;
    } rows[] = {
        {AMP_CODE(token_malformed), 404, "There is nothing here."},
        {AMP_CODE(token_unknown), 404, "There is nothing here."},
        {AMP_CODE(not_proven), 404, "There is nothing here."},
        {AMP_CODE(token_mismatch), 404, "There is nothing here."},
        {AMP_CODE(token_replayed), 410, "This link was used."},
        {AMP_CODE(answer_replayed), 410, "This answer was used."},
        {AMP_CODE(token_expired), 410, "This link has expired."},
        {AMP_CODE(answer_expired), 410, "This answer has expired."},
        {AMP_CODE(token_not_allowed), 403,
         "This answer is not allowed here. Answer at the terminal, or sign the answer."},
        {AMP_CODE(already_decided), 409, "The question is decided already."},
        {AMP_CODE(ended), 409, "The question has ended."},
        {AMP_CODE(withdrawn), 409, "The question was withdrawn."},
        {AMP_CODE(unknown_question), 409, "The question is closed."},
        {AMP_CODE(digest_mismatch), 409, "The question has changed."},
        {AMP_CODE(bad_answer), 422, "This is not an answer to the question."},
        {AMP_CODE(bad_form), 400, "The form is malformed."},
        {NULL, 0, NULL},
    };
    int i = 0;

    while (rows[i].code && strcmp(rows[i].code, why->code) != 0)
        i++;
    if (rows[i].code)
        return plain_say(out, rows[i].status, rows[i].text, err);
    /* A signature that does not count, a person who may not, a commit that does not exist. */
    if (why->status == AMP_NO || why->status == AMP_NOPERM)
        return plain_say(out, 403, "The answer is refused.", err);
    return plain_say(out, 422, why->what, err);
}

static int failure_say(struct amp_receive_response *out, struct amp_error *err)
{
    return plain_say(out, 503, "The answer cannot be taken now. Try again later.", err);
}

/* ---- the page ---- */

static int html_add(struct amp_buf *out, const char *before, const char *text, const char *after,
                    struct amp_error *err)
{
    return amp_buf_str(out, before, err) < 0 || amp_escape_html(amp_span_str(text), out, err) < 0
               ? -1
               : amp_buf_str(out, after, err);
}

static int button_add(struct amp_buf *out, const char *action, struct amp_error *err)
{
    return html_add(out, "<button name=\"answer\" value=\"", action, "\">", err) < 0
               ? -1
               : html_add(out, "", action, "</button>\n", err);
}

/* The actions that the token allows. */
static int buttons_add(const struct amp_receive *r, const struct amp_question *q,
                       struct amp_buf *out, struct amp_error *err)
{
    bool rollback = false;

    for (const struct amp_action *a = amp_question_actions(q); a->name; a++) {
        if (a->does == AMP_ACTION_ROLLBACK && q->about.kind != AMP_ABOUT_TASK)
            continue;
        if (!amp_token_answers_allow(r->tokens, a))
            continue;
        rollback |= a->does == AMP_ACTION_ROLLBACK;
        if (button_add(out, a->name, err) < 0)
            return -1;
    }
    return rollback ? amp_buf_str(out,
                                  "<p><label>Commit, for rollback: <input name=\"commit\" "
                                  "maxlength=\"200\"></label></p>\n",
                                  err)
                    : 0;
}

static int page_begin(const struct amp_facts *f, const char *token, struct amp_buf *out,
                      struct amp_error *err)
{
    return amp_buf_str(out,
                       "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width\">\n"
                       "<meta name=\"robots\" content=\"noindex\">\n",
                       err) < 0 ||
                   html_add(out, "<title>", amp_facts_get(f, AMP_FACT_title), "</title></head>\n",
                            err) < 0 ||
                   html_add(out, "<body><h1>", amp_facts_get(f, AMP_FACT_title), "</h1>\n", err) <
                       0 ||
                   html_add(out, "<pre>", amp_facts_get(f, AMP_FACT_text), "", err) < 0 ||
                   html_add(out, "", amp_facts_get(f, AMP_FACT_evidence), "</pre>\n", err) < 0 ||
                   html_add(out,
                            "<form method=\"post\"><input type=\"hidden\" name=\"token\" value=\"",
                            token, "\">\n", err) < 0
               ? -1
               : 0;
}

/* Writes what a page says about the question, as the bodies of channels do. */
static int page_facts(const struct amp_receive *r, const struct amp_question *q,
                      struct amp_facts *f, struct amp_error *err)
{
    struct amp_evidence_texts t = {0};
    int rc = amp_facts_of(f, q, err) < 0 || amp_evidence_texts(r->decider, q, &t, err) < 0
                 ? -1
                 : amp_facts_evidence(f, &t, err);
    amp_evidence_texts_release(&t);
    return rc;
}

static int page_write(const struct amp_receive *r, const struct amp_question *q, const char *token,
                      struct amp_receive_response *out, struct amp_error *err)
{
    AMP_FACTS_AUTO struct amp_facts f = {0};
    struct amp_buf *b = &out->body;

    amp_facts_init(&f);
    out->status = 200;
    out->html = true;
    return page_facts(r, q, &f, err) < 0 || page_begin(&f, token, b, err) < 0 ||
                   amp_buf_str(b,
                               "<p><label>Note: <input name=\"note\" maxlength=\"4000\" "
                               "size=\"60\"></label></p>\n",
                               err) < 0 ||
                   buttons_add(r, q, b, err) < 0
               ? -1
               : amp_buf_str(b, "</form></body></html>\n", err);
}

/* Asks for confirmation of an answer that cannot be taken back. */
static int confirm_write(const struct amp_receive *r, const struct amp_question *q,
                         const json_t *answer, struct amp_receive_response *out,
                         struct amp_error *err)
{
    static const char *const kept[] = {"note", "commit", "answer"};
    AMP_FACTS_AUTO struct amp_facts f = {0};
    struct amp_buf *b = &out->body;

    amp_facts_init(&f);
    out->status = 200;
    out->html = true;
    if (page_facts(r, q, &f, err) < 0 || page_begin(&f, amp_json_str(answer, "token"), b, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (amp_buf_fmt(b, err, "<input type=\"hidden\" name=\"%s\"", kept[i]) < 0 ||
            html_add(b, " value=\"", amp_json_str(answer, kept[i]), "\">\n", err) < 0)
            return -1;
    return html_add(b, "<p>This cannot be taken back.</p>\n<button name=\"confirm\" value=\"yes\">",
                    amp_json_str(answer, "answer"), ": confirm</button>\n</form></body></html>\n",
                    err);
}

static int64_t now_of(const struct amp_receive *r)
{
    return r->now_ms ? r->now_ms : amp_now_ms();
}

/* Finds the token's question; refusals are recorded. 1: found; 0: the response is made. */
static int question_of(const struct amp_receive *r, const char *token, struct amp_question *q,
                       struct amp_receive_response *out, struct amp_error *err)
{
    struct amp_answer_token t;
    struct amp_error why = {0};
    const struct amp_answer_from from = {.channel = AMP_CHANNEL_WEBHOOK, .where = r->where};
    struct amp_answer_about about = {0};

    if (amp_answer_token_find(r->decider->w.store, amp_span_str(token), now_of(r), &t, &why) == 0 &&
        amp_offer_find(r->decider, t.question, q, &why) == 0)
        return 1;
    if (why.status != AMP_NO)
        return failure_say(out, err) < 0 ? -1 : 0;
    amp_answer_refused(r->decider, &from, &about, &why);
    return refusal_say(out, &why, err) < 0 ? -1 : 0;
}

static int page_answer(const struct amp_receive *r, struct amp_span query,
                       struct amp_receive_response *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf token = {0};
    struct amp_question q = {0};

    amp_buf_init(&token, HEAD_MAX);
    if (amp_net_form_get(query, "t", &token, NULL) <= 0)
        return plain_say(out, 404, "There is nothing here.", err);
    int rc = question_of(r, token.data, &q, out, err);
    if (rc > 0)
        rc = page_write(r, &q, token.data, out, err);
    amp_question_release(&q);
    return rc < 0 ? -1 : 0;
}

/* ---- answers ---- */

/* Makes the JSON of a form. NULL: malformed, *why is set. */
static json_t *form_json(struct amp_span body, struct amp_error *why)
{
    static const char *const names[] = {"token",  "question", "answer", "note",
                                        "commit", "confirm",  "digest", "until"};
    json_auto_t *j = json_object();

    if (!j) {
        amp_fail_memory(why);
        return NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AMP_BUF struct amp_buf value = {0};
        amp_buf_init(&value, AMP_RECEIVE_BODY_MAX);
        int rc = amp_net_form_get(body, names[i], &value, why);
        if (rc < 0)
            return NULL;
        if (rc == 0 || !*value.data)
            continue;
        if (json_object_set_new(j, names[i], json_string(value.data)) < 0) {
            amp_fail(why, AMP_DATAERR, bad_form, "a value is not UTF-8");
            return NULL;
        }
    }
    return json_incref(j);
}

/* Whether a person should confirm the answer. */
static bool is_grave(const struct amp_question *q, const char *answer)
{
    const struct amp_action *a = amp_answer_action(q, answer);

    return a && a->is & AMP_ACTION_GRAVE;
}

static int answer_offer(const struct amp_receive *r, struct amp_span text,
                        struct amp_receive_response *out, struct amp_error *err)
{
    const struct amp_answer_from from = {.channel = AMP_CHANNEL_WEBHOOK,
                                         .where = r->where,
                                         .tokens = r->tokens,
                                         .now_ms = r->now_ms};
    struct amp_answer_about about;
    struct amp_error why;

    switch (amp_answer_take(r->decider, text, &from, &about, &why)) {
    case AMP_OFFERED_DECIDED:
        return plain_say(out, 200, "Decided.", err);
    case AMP_OFFERED_COUNTED:
        return plain_say(out, 200, "Counted. More approvals are needed.", err);
    case AMP_OFFERED_DEFERRED:
        return plain_say(out, 200, "Deferred.", err);
    case AMP_OFFERED_REFUSED:
        return refusal_say(out, &why, err);
    case AMP_OFFERED_FAILED:
        break;
    }
    r->decider->opt.note("an answer from %s could not be taken: %s", r->where, why.what);
    return failure_say(out, err);
}

static int form_answer(const struct amp_receive *r, struct amp_span body,
                       struct amp_receive_response *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_error why = {0};
    struct amp_question q = {0};
    json_auto_t *j = form_json(body, &why);
    int rc = 1;

    if (!j)
        return why.status == AMP_TEMPFAIL ? failure_say(out, err) : refusal_say(out, &why, err);
    bool confirmed = strcmp(amp_json_str(j, "confirm"), "yes") == 0;
    json_object_del(j, "confirm");
    const char *action = amp_json_str(j, "answer");
    if (!confirmed && *action && *amp_json_str(j, "token")) {
        rc = question_of(r, amp_json_str(j, "token"), &q, out, err);
        if (rc > 0 && is_grave(&q, action) &&
            amp_token_answers_allow(r->tokens, amp_answer_action(&q, action))) {
            rc = confirm_write(r, &q, j, out, err);
            amp_question_release(&q);
            return rc;
        }
        amp_question_release(&q);
        if (rc <= 0)
            return rc;
    }
    amp_buf_init(&text, 8 * AMP_RECEIVE_BODY_MAX);
    if (amp_json_dump(j, &text, err) < 0)
        return -1;
    return answer_offer(r, amp_buf_span(&text), out, err);
}

static bool type_is(struct amp_span type, const char *name)
{
    size_t n = strlen(name);

    return type.n >= n && strncasecmp(type.p, name, n) == 0 &&
           (type.n == n || type.p[n] == ';' || type.p[n] == ' ');
}

static int post_answer(const struct amp_receive *r, const struct amp_receive_request *in,
                       struct amp_receive_response *out, struct amp_error *err)
{
    if (in->body.n > AMP_RECEIVE_BODY_MAX)
        return plain_say(out, 413, "The body is too long.", err);
    if (type_is(in->type, "application/x-www-form-urlencoded"))
        return form_answer(r, in->body, out, err);
    if (type_is(in->type, "application/json") || type_is(in->type, "text/plain"))
        return answer_offer(r, in->body, out, err);
    return plain_say(out, 415, "Send a form, JSON, or a signed answer as text.", err);
}

int amp_receive_answer(const struct amp_receive *r, const struct amp_receive_request *in,
                       struct amp_receive_response *out, struct amp_error *err)
{
    *out = (struct amp_receive_response){.head = amp_span_is(in->method, "HEAD")};
    amp_buf_init(&out->body, PAGE_MAX);
    if (out->head || amp_span_is(in->method, "GET"))
        return page_answer(r, in->query, out, err);
    if (amp_span_is(in->method, "POST"))
        return post_answer(r, in, out, err);
    return plain_say(out, 405, "Use GET or POST.", err);
}

int amp_receive_refuse(struct amp_receive_response *out, int status, struct amp_error *err)
{
    *out = (struct amp_receive_response){0};
    amp_buf_init(&out->body, PAGE_MAX);
    return plain_say(out, status,
                     status == 413   ? "The body is too long."
                     : status == 408 ? "The request took too long."
                                     : "The request is malformed.",
                     err);
}

int amp_receive_length(struct amp_span bytes, size_t *n)
{
    struct amp_net_served head;
    struct amp_span first = {bytes.p, bytes.n < HEAD_MAX ? bytes.n : HEAD_MAX};
    int rc = amp_net_served_read(first, &head, NULL);

    if (rc == 0)
        return bytes.n >= HEAD_MAX ? -1 : 0;
    if (rc < 0 || head.body > AMP_RECEIVE_BODY_MAX)
        return -1;
    *n = head.head + (size_t)head.body;
    return 1;
}

int amp_receive_bytes(const struct amp_receive *r, struct amp_span bytes,
                      struct amp_receive_response *out, struct amp_error *err)
{
    struct amp_net_served head;
    struct amp_span first = {bytes.p, bytes.n < HEAD_MAX ? bytes.n : HEAD_MAX};

    if (amp_net_served_read(first, &head, NULL) <= 0)
        return amp_receive_refuse(out, 400, err);
    if (head.body > AMP_RECEIVE_BODY_MAX)
        return amp_receive_refuse(out, 413, err);
    if (bytes.n < head.head + head.body)
        return amp_receive_refuse(out, 400, err);
    const struct amp_receive_request in = {.method = head.method,
                                           .query = head.query,
                                           .type = head.type,
                                           .body = {bytes.p + head.head, (size_t)head.body}};
    return amp_receive_answer(r, &in, out, err);
}

int amp_receive_write(const struct amp_receive_response *r, bool cgi, struct amp_buf *out,
                      struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "%s %d %s\r\n", cgi ? "Status:" : "HTTP/1.1", r->status,
                    status_text(r->status)) < 0 ||
        amp_buf_fmt(out, err,
                    "Content-Type: text/%s; charset=utf-8\r\nContent-Length: %zu\r\n"
                    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
                    "X-Content-Type-Options: nosniff\r\n"
                    "Content-Security-Policy: default-src 'none'; form-action 'self'; "
                    "frame-ancestors 'none'; base-uri 'none'\r\n%s%s\r\n",
                    r->html ? "html" : "plain", r->body.len,
                    r->status == 405 ? "Allow: GET, HEAD, POST\r\n" : "",
                    cgi ? "" : "Connection: close\r\n") < 0)
        return -1;
    return r->head ? 0 : amp_buf_add(out, r->body.data, r->body.len, err);
}

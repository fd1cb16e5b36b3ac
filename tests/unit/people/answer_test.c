/* Answers from outside: tokens, requests of HTTP, forms, and 100,000 fuzzed answers. */
#include <stdlib.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/protocol/protocol.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/record/forget.h"
#include "message/delivery/sender/identity.h"
#include "message/identity/state.h"
#include "net/request.h"
#include "people/answer/text/facts.h"
#include "people/answer/text/receive.h"
#include "people/answer/text/signed.h"
#include "people/answer/text/told.h"
#include "people/channel/channels.h"
#include "people/facts.h"
#include "people/question/operators/token.h"

#define FUZZED 100000

static struct amp_error err;
static struct amp_store *store;
static struct amp_decider decider;
static unsigned noted;

static void note(const char *fmt, ...)
{
    noted++;
}

static void say(void *ctx, const struct amp_finding *f, const struct amp_line_place *at)
{
}

/* ---- requests ---- */

static void served_cases(void)
{
    static const struct {
        const char *text;
        int want;
        const char *path, *query;
    } cases[] = {
        {"GET /a?t=1 HTTP/1.1\r\nHost: x\r\n\r\n", 1, "/a", "t=1"},
        {"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", 1, "/", ""},
        {"GET / HTTP/1.1\r\n", 0, "", ""},
        {"", 0, "", ""},
        {"GET / HTTP/1.1\n\n", -1, "", ""},
        {"GET http://x/ HTTP/1.1\r\n\r\n", -1, "", ""},
        {"GET /#a HTTP/1.1\r\n\r\n", -1, "", ""},
        {"GET / HTTP/2.0\r\n\r\n", -1, "", ""},
        {"GET  / HTTP/1.1\r\n\r\n", -1, "", ""},
        {"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", -1, "", ""},
        {"POST / HTTP/1.1\r\nContent-Length: -3\r\n\r\n", -1, "", ""},
        {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", -1, "", ""},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", -1, "", ""},
        {"GET / HTTP/1.1\r\n Host: x\r\n\r\n", -1, "", ""},
        {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", -1, "", ""},
        {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", -1, "", ""},
        {"GET / HTTP/1.1\r\nX: a\x01\r\n\r\n", -1, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_net_served r = {0};
        int rc = amp_net_served_read(amp_span_str(cases[i].text), &r, &err);
        TAP_INT(rc, cases[i].want, cases[i].text);
        if (rc == 1) {
            TAP_SPAN(r.path, cases[i].path, "its path");
            TAP_SPAN(r.query, cases[i].query, "its query");
        }
    }
}

static void form_cases(void)
{
    static const struct {
        const char *form, *name;
        int want;
        const char *value;
    } cases[] = {{"a=1&b=2", "b", 1, "2"},    {"a=x+y%21", "a", 1, "x y!"},
                 {"a", "a", 1, ""},           {"", "a", 0, ""},
                 {"b=1", "a", 0, ""},         {"a=1&a=2", "a", -1, ""},
                 {"a=%", "a", -1, ""},        {"a=%4", "a", -1, ""},
                 {"a=%zz", "a", -1, ""},      {"a=%00", "a", -1, ""},
                 {"%61=1", "a", 1, "1"},      {"a=1&%61=2", "a", -1, ""},
                 {"x=1&a=b=c", "a", 1, "b=c"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AMP_BUF struct amp_buf out = {0};
        amp_buf_init(&out, 1000);
        TAP_INT(amp_net_form_get(amp_span_str(cases[i].form), cases[i].name, &out, &err),
                cases[i].want, cases[i].form);
        if (cases[i].want > 0)
            TAP_STR(out.data, cases[i].value, "its value");
        else
            TAP_INT((int64_t)out.len, 0, "nothing is written");
    }
}

static void escape_cases(void)
{
    AMP_BUF struct amp_buf out = {0};

    amp_buf_init(&out, 1000);
    TAP_INT(amp_escape_html(AMP_SPAN("<a> & \"b\" 'c'\n"), &out, &err), 0, "a text on the page");
    TAP_SPAN(amp_buf_span(&out), "&lt;a&gt; &amp; &quot;b&quot; &#39;c&#39;\n", "its markup");
}

/* ---- tokens ---- */

static struct amp_answer_token token_of(const char *question, const char *recipient,
                                        int64_t expires_ms)
{
    struct amp_answer_token t = {.expires_ms = expires_ms, .person = "ann"};
    snprintf(t.question, sizeof t.question, "%s", question);
    snprintf(t.recipient, sizeof t.recipient, "%s", recipient);
    return t;
}

static void token_cases(void)
{
    char a[AMP_ANSWER_TOKEN_MAX], b[AMP_ANSWER_TOKEN_MAX];
    struct amp_answer_token t = token_of("q1", "phone", 2000), got;
    TAP_INT(amp_answer_token_make(store, &t, "test", a, &err), 0, "a token");
    TAP_INT(amp_answer_token_make(store, &t, "test", b, &err), 0, "another");
    TAP_INT((int64_t)strlen(a), 43, "has 43 letters");
    TAP_OK(strcmp(a, b) != 0, "they differ");
    TAP_INT(amp_answer_token_find(store, amp_span_str(a), 1000, &got, &err), 0, "it is found");
    TAP_STR(got.question, "q1", "its question");
    TAP_STR(got.person, "ann", "its holder");
    TAP_INT(amp_answer_token_find(store, amp_span_str(a), 2000, &got, &err), -1, "it expires");
    TAP_STR(err.code, "token_expired", "its code");
    TAP_INT(amp_answer_token_use(store, amp_span_str(a), 1000, "test", &got, &err), 0, "a use");
    TAP_INT(amp_answer_token_use(store, amp_span_str(a), 1000, "test", &got, &err), -1, "a second");
    TAP_STR(err.code, "token_replayed", "is refused");
    TAP_INT(amp_answer_token_return(store, amp_span_str(a), "test", &err), 0, "it is given back");
    TAP_INT(amp_answer_token_use(store, amp_span_str(a), 1000, "test", &got, &err), 0, "and used");
    a[42] = a[42] == 'A' ? 'B' : 'A';
    TAP_INT(amp_answer_token_find(store, amp_span_str(a), 1000, &got, &err), -1, "another letter");
    TAP_OK(strcmp(err.code, "token_unknown") == 0 || strcmp(err.code, "token_malformed") == 0,
           "is not a token");
    TAP_INT(amp_answer_token_find(store, AMP_SPAN(""), 1000, &got, &err), -1, "no text");
    TAP_STR(err.code, "token_malformed", "its code");
    b[42] ^= 1; /* the unused bits */
    TAP_INT(amp_answer_token_find(store, amp_span_str(b), 1000, &got, &err), -1,
            "another spelling");

    /* The secret is nowhere in the files. */
    b[42] ^= 1;
    char command[200];
    snprintf(command, sizeof command, "%s/log/000001.ndjson", amp_store_dir(store));
    FILE *f = fopen(command, "r");
    char line[65536];
    bool seen = false;
    while (f && fgets(line, sizeof line, f))
        seen |= strstr(line, b) != NULL;
    if (f)
        fclose(f);
    TAP_OK(f && !seen, "the log has no token");

    const struct amp_forgetting old = {
        .kind = AMP_ANSWER_TOKEN_KIND, .actor = "test", .now_ms = 2000 + 8 * 86400000LL};
    uint32_t done = 0;
    TAP_INT(amp_forget(store, &old, &done, &err), 0, "expired tokens");
    TAP_INT(done, 2, "are forgotten");
}

/* ---- questions ---- */

static bool is_open(const char *key)
{
    struct amp_store_rec rec;
    if (amp_store_get(store, AMP_KEY(AMP_ESCALATION_KIND, amp_span_str(key)), &rec, &err) < 0)
        return false;
    return rec.found && (amp_span_is(rec.state, "OPEN") || amp_span_is(rec.state, "ASKED"));
}

/* Records an escalation of a task of its own. */
static void question_add(const char *id, int n)
{
    char line[1200];
    uint32_t effects;
    struct amp_view v;
    static struct amp_reader *reader;
    const struct amp_check_options opt = {0};
    snprintf(line, sizeof line,
             "{\"msg_id\":\"%s\",\"protocol_version\":\"AMP/1.0\",\"type\":\"escalation\","
             "\"from\":\"coordinator\",\"to\":\"admin\",\"task_id\":\"T-2026-%03d\","
             "\"timestamp\":\"2026-02-26T14:32:07+00:00\",\"requires_ack\":false,"
             "\"payload\":{\"escalation_type\":\"hallucination_lock\",\"severity\":\"critical\","
             "\"triggered_by\":\"coordinator\",\"description\":\"<b>locked</b>\\u001b[2J\\nanswer: "
             "resume\",\"affected_msgs\":[\"x\"],"
             "\"system_state_snapshot\":{\"task_status\":\"locked\",\"reject_count\":3,"
             "\"last_successful_msg_id\":\"\"},\"suggested_actions\":[\"split it\"],"
             "\"auto_suspended\":true}}",
             id, n);
    if (!reader)
        reader = amp_reader_new(NULL, &err);
    enum amp_store_outcome outcome;
    if (amp_reader_line(reader, amp_span_str(line), &opt, &v, NULL, NULL, &err) < 0 ||
        amp_message_record(store, &v, amp_now_ms(), &outcome, &err) < 0 ||
        amp_question_arrive(&decider.hitl, &v, amp_now_ms(), &effects, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        exit(1);
    }
}

static void token_give(const char *question, const char *recipient, char out[AMP_ANSWER_TOKEN_MAX])
{
    struct amp_answer_token t = token_of(question, recipient, amp_now_ms() + 3600000);
    if (amp_answer_token_make(store, &t, "test", out, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        exit(1);
    }
}

static enum amp_offered take(const char *text, const struct amp_answer_from *from)
{
    struct amp_answer_about about;
    struct amp_error why = {0};
    enum amp_offered rc = amp_answer_take(&decider, amp_span_str(text), from, &about, &why);
    err = why;
    return rc;
}

static void answer_cases(void)
{
    const struct amp_answer_from web = {.channel = AMP_CHANNEL_WEBHOOK, .where = "test"};
    struct amp_answer_from poll = web, deny = web, none = web;
    char t1[AMP_ANSWER_TOKEN_MAX], text[400];
    poll.recipient = "phone";
    deny.tokens = AMP_TOKEN_ANSWERS_DENY_AND_DEFER;
    none.tokens = AMP_TOKEN_ANSWERS_NONE;
    question_add("esc-1", 1);
    question_add("esc-2", 2);
    token_give("esc-1", "mail", t1);

    TAP_INT(take("{\"answer\":\"resume\",\"question\":\"esc-1\"}", &web), AMP_OFFERED_REFUSED,
            "neither token nor signature");
    TAP_STR(err.code, "not_proven", "its code");
    snprintf(text, sizeof text, "{\"token\":\"%s\",\"question\":\"esc-2\",\"answer\":\"resume\"}",
             t1);
    TAP_INT(take(text, &web), AMP_OFFERED_REFUSED, "a token of another question");
    TAP_STR(err.code, "token_mismatch", "its code");
    snprintf(text, sizeof text, "{\"token\":\"%s\",\"answer\":\"resume\"}", t1);
    TAP_INT(take(text, &poll), AMP_OFFERED_REFUSED, "a token of another recipient");
    TAP_STR(err.code, "token_mismatch", "its code");
    TAP_INT(take(text, &none), AMP_OFFERED_REFUSED, "with token_answers none");
    TAP_STR(err.code, "token_not_allowed", "its code");
    TAP_INT(take(text, &deny), AMP_OFFERED_REFUSED, "resume with deny_and_defer");
    TAP_STR(err.code, "token_not_allowed", "its code");
    snprintf(text, sizeof text, "{\"token\":\"%s\",\"answer\":\"explode\"}", t1);
    TAP_INT(take(text, &web), AMP_OFFERED_REFUSED, "an unknown action");
    TAP_STR(err.code, "bad_answer", "its code");
    TAP_OK(is_open("esc-1"), "after all that the question is open");
    snprintf(text, sizeof text, "{\"token\":\"%s\",\"answer\":\"terminate\"}", t1);
    TAP_INT(take(text, &deny), AMP_OFFERED_DECIDED, "and the token still counts, to deny");
    TAP_INT(take(text, &web), AMP_OFFERED_REFUSED, "a second time");
    TAP_STR(err.code, "token_replayed", "it is a replay");

    static const char *const forms[] = {"question: esc-2\nanswer: resume\nanswer: deny\n",
                                        "question: esc-2\nanswer:\n",
                                        "question: esc-2\nanswer: resume\nbogus: 1\n",
                                        "question: esc-2\n| answer: resume\n",
                                        "answer: resume\n",
                                        "[]",
                                        "{\"answer\":\"resume\",\"answer\":\"deny\"}",
                                        "{\"question\":\"esc-2\",\"answer\":\"resume\",\"x\":1}",
                                        "\xff\xfe"};
    struct amp_answer_from folder = {
        .channel = AMP_CHANNEL_FOLDER, .where = "test", .login = "ann"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        TAP_INT(take(forms[i], &folder), AMP_OFFERED_REFUSED, "a malformed answer");
        TAP_STR(err.code, "bad_answer", "its code");
    }
    TAP_INT(take("question: esc-2\ndigest: 00\nanswer: resume\n", &folder), AMP_OFFERED_REFUSED,
            "another content of the question");
    TAP_STR(err.code, "digest_mismatch", "its code");
    TAP_INT(take("# note\nquestion: esc-2\nanswer: resume\nnote: fine\n# end\n", &folder),
            AMP_OFFERED_DECIDED, "a form");
}

/* ---- HTTP ---- */

static int http(const char *text, struct amp_receive_response *r)
{
    const struct amp_receive in = {.decider = &decider, .where = "test"};
    amp_receive_release(r);
    amp_receive_bytes(&in, amp_span_str(text), r, &err);
    return r->status;
}

static bool body_has(const struct amp_receive_response *r, const char *text)
{
    return r->body.len && memmem(r->body.data, r->body.len, text, strlen(text));
}

static void http_cases(void)
{
    struct amp_receive_response r = {0};
    char token[AMP_ANSWER_TOKEN_MAX], text[2000], body[500];
    question_add("esc-3", 3);
    token_give("esc-3", "phone", token);
    TAP_INT(http("GET / HTTP/1.1\r\n\r\n", &r), 404, "no token");
    TAP_INT(http("GET /?t=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA HTTP/1.1\r\n\r\n", &r), 404,
            "a forged token");
    TAP_OK(!body_has(&r, "esc-3") && !body_has(&r, "T-2026"), "says nothing of the state");
    TAP_INT(http("DELETE / HTTP/1.1\r\n\r\n", &r), 405, "another method");
    TAP_INT(http("garbage\r\n\r\n", &r), 400, "garbage");
    TAP_INT(http("POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n", &r), 413, "a long body");
    TAP_INT(http("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab", &r), 400, "a cut body");
    TAP_INT(http("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab", &r), 415, "no type");
    snprintf(text, sizeof text, "GET /?t=%s HTTP/1.1\r\n\r\n", token);
    for (int i = 0; i < 3; i++)
        TAP_INT(http(text, &r), 200, "GET shows the page");
    TAP_OK(body_has(&r, "&lt;b&gt;locked&lt;/b&gt;?[2J"), "what an agent wrote is text");
    TAP_OK(body_has(&r, "\n| answer: resume"), "and has its mark");
    TAP_OK(body_has(&r, "value=\"resume\"") && body_has(&r, token), "it has the form");
    TAP_OK(is_open("esc-3"), "and decides nothing");
    snprintf(body, sizeof body, "token=%s&answer=terminate&note=no+more", token);
    snprintf(text, sizeof text,
             "POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    TAP_INT(http(text, &r), 200, "terminate");
    TAP_OK(body_has(&r, "confirm") && is_open("esc-3"), "asks for confirmation");
    snprintf(body, sizeof body, "token=%s&answer=resume&answer=terminate", token);
    snprintf(text, sizeof text,
             "POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    TAP_INT(http(text, &r), 400, "two answers");
    snprintf(body, sizeof body, "token=%s&answer=terminate&confirm=yes", token);
    snprintf(text, sizeof text,
             "POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    TAP_INT(http(text, &r), 200, "confirmed");
    TAP_OK(!is_open("esc-3"), "it is decided");
    TAP_INT(http(text, &r), 410, "again: the token was used");
    snprintf(text, sizeof text, "GET /?t=%s HTTP/1.1\r\n\r\n", token);
    TAP_INT(http(text, &r), 410, "also for GET");
    amp_receive_release(&r);
}

/* ---- fuzzing ---- */

static uint64_t seed = 20261123;

static uint32_t random_next(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}

/* Changes, cuts, repeats or swaps bytes of the text. */
static size_t mutate(char *text, size_t n, size_t size)
{
    for (uint32_t k = 1 + random_next(3); k > 0 && n > 1; k--) {
        size_t at = random_next((uint32_t)n), len = 1 + random_next(8);
        switch (random_next(5)) {
        case 0:
            text[at] = (char)random_next(256);
            break;
        case 1:
            text[at] ^= (char)(1 << random_next(8));
            break;
        case 2:
            if (at + len < n) {
                memmove(text + at, text + at + len, n - at - len);
                n -= len;
            }
            break;
        case 3:
            if (n + len < size && at + len < n) {
                memmove(text + at + len, text + at, n - at);
                n += len;
            }
            break;
        case 4:
            n = at + 1;
        }
    }
    return n;
}

/* Answers that were forged, changed, swapped between questions, or used before: none may decide. */
static void fuzz(struct amp_signer *signer)
{
    enum { BASES = 6 };
    static char base[BASES][6000], text[8000];
    char used[AMP_ANSWER_TOKEN_MAX], live[AMP_ANSWER_TOKEN_MAX], late[AMP_ANSWER_TOKEN_MAX];
    struct amp_answer_token old = token_of("esc-4", "phone", amp_now_ms() - 1);
    AMP_BUF struct amp_buf block = {0};
    question_add("esc-4", 4);
    question_add("esc-5", 5);
    token_give("esc-5", "phone", used);
    token_give("esc-4", "phone", live);
    amp_answer_token_make(store, &old, "test", late, &err);
    const struct amp_answer_from web = {.channel = AMP_CHANNEL_WEBHOOK, .where = "test"};
    snprintf(text, sizeof text, "{\"token\":\"%s\",\"answer\":\"resume\"}", used);
    TAP_INT(take(text, &web), AMP_OFFERED_DECIDED, "a token is used");
    amp_buf_init(&block, 100000);
    const struct amp_signed_answer other = {
        .question = "esc-4",
        .digest = "0000000000000000000000000000000000000000000000000000000000000000",
        .action = "resume",
        .now_ms = amp_now_ms(),
        .expires_ms = amp_now_ms() + 3600000};
    TAP_INT(amp_signed_answer_write(signer, &other, &block, &err), 0, "signed for another content");

    snprintf(base[0], sizeof base[0], "{\"token\":\"%s\",\"answer\":\"resume\"}", used);
    snprintf(base[1], sizeof base[1],
             "{\"token\":\"%s\",\"question\":\"other/one\",\"answer\":\"resume\"}", live);
    snprintf(base[2], sizeof base[2], "{\"token\":\"%s\",\"answer\":\"resume\"}", late);
    snprintf(base[3], sizeof base[3], "%s", block.data);
    snprintf(base[4], sizeof base[4],
             "GET /?t=%s HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n", live);
    snprintf(base[5], sizeof base[5],
             "POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
             "Content-Length: 66\r\n\r\ntoken=%s&answer=terminate",
             late);
    unsigned decided = 0, failed = 0, codes = 0;
    int64_t began = amp_mono_ms();
    for (unsigned i = 0; i < FUZZED; i++) {
        unsigned which = i % BASES;
        struct amp_answer_about about;
        struct amp_error why = {0};
        size_t n = strlen(base[which]);
        memcpy(text, base[which], n + 1);
        /* The exact ones too, now and then. */
        if (i % 101 >= BASES)
            n = mutate(text, n, sizeof text);
        if (which >= 4) {
            struct amp_receive_response r = {0};
            const struct amp_receive in = {.decider = &decider, .where = "fuzz"};
            if (amp_receive_bytes(&in, (struct amp_span){text, n}, &r, &why) < 0)
                failed++;
            codes += r.status >= 400;
            amp_receive_release(&r);
            continue;
        }
        switch (amp_answer_take(&decider, (struct amp_span){text, n}, &web, &about, &why)) {
        case AMP_OFFERED_REFUSED:
            codes += why.code[0] != '\0';
            break;
        case AMP_OFFERED_FAILED:
            failed++;
            break;
        default:
            decided++;
        }
    }
    printf("# %d answers in %lld ms, %u refused\n", FUZZED, (long long)(amp_mono_ms() - began),
           codes);
    TAP_INT(decided, 0, "no fuzzed answer decides");
    TAP_INT(failed, 0, "none breaks anything");
    TAP_OK(codes > FUZZED / 2, "they are refused with codes");
    TAP_OK(is_open("esc-4"), "the question is open");
    snprintf(text, sizeof text, "{\"token\":\"%s\",\"answer\":\"resume\"}", live);
    TAP_INT(take(text, &web), AMP_OFFERED_DECIDED, "and its token still counts");
    TAP_OK(noted > FUZZED / 2, "each refusal was reported");
}

/* A signed answer counts once, and only for its question. */
static void signed_cases(struct amp_signer *signer)
{
    const struct amp_answer_from web = {.channel = AMP_CHANNEL_WEBHOOK, .where = "test"};
    AMP_BUF struct amp_buf block = {0};
    char digest[AMP_QUESTION_DIGEST_MAX], text[6000];
    struct amp_question q = {0};
    question_add("esc-6", 6);
    if (amp_offer_find(&decider, "esc-6", &q, &err) < 0 ||
        amp_question_digest(&q, digest, &err) < 0) {
        TAP_OK(false, "a question");
        return;
    }
    amp_question_release(&q);
    struct amp_signed_answer a = {.question = "esc-6",
                                  .digest = digest,
                                  .action = "resume well done",
                                  .now_ms = amp_now_ms(),
                                  .expires_ms = amp_now_ms() - 1};
    amp_buf_init(&block, 100000);
    TAP_INT(amp_signed_answer_write(signer, &a, &block, &err), 0, "a signed answer");
    snprintf(text, sizeof text, "%s", block.data);
    TAP_INT(take(text, &web), AMP_OFFERED_REFUSED, "is refused after its expiry");
    TAP_STR(err.code, "answer_expired", "its code");
    a.expires_ms = amp_now_ms() + 60000;
    amp_buf_reset(&block);
    amp_signed_answer_write(signer, &a, &block, &err);
    snprintf(text, sizeof text, "Dear tool,\n\n%s\nregards\n", block.data);
    struct amp_answer_from limited = web;
    limited.tokens = AMP_TOKEN_ANSWERS_NONE;
    TAP_INT(take(text, &limited), AMP_OFFERED_DECIDED, "counts, also within other text");
    TAP_INT(take(text, &web), AMP_OFFERED_REFUSED, "not twice");
    TAP_STR(err.code, "answer_replayed", "its code");
}

/* ---- what channels were told ---- */

static int told_fn(void *ctx, const void *rec, struct amp_error *e)
{
    const struct amp_told *t = rec;
    (void)e;
    snprintf((char *)ctx + strlen(ctx), 200 - strlen(ctx), "%.*s ", (int)t->channel.n,
             t->channel.p);
    return 0;
}

static void told_cases(struct amp_decider *d)
{
    const int64_t day = 86400000, now = amp_now_ms();
    const struct {
        const char *question, *channel;
        int64_t at_ms;
    } rows[] = {{"gone", "webhook:old", now - 8 * day}, {"gone", "webhook:young", now - 6 * day}};
    const struct amp_channels_options opt = {.decider = d, .note = note};
    char left[200] = "", shown[AMP_SHOWN_MAX];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct amp_told t = {.question = amp_span_str(rows[i].question),
                                   .channel = amp_span_str(rows[i].channel),
                                   .title = AMP_SPAN("t"),
                                   .shown = AMP_SPAN("abc"),
                                   .at_ms = rows[i].at_ms};
        TAP_INT(amp_told_write(store, &t, true, "test", &err), 0, rows[i].channel);
    }
    TAP_INT(amp_told_shown(store, "gone", "webhook:young", shown, &err), 0, "what it was shown");
    TAP_STR(shown, "abc", "is recorded");
    struct amp_channels *c = NULL;
    TAP_INT(amp_channels_open(&opt, &c, &err), 0, "a process without these channels opens");
    amp_channels_close(c);
    TAP_INT(amp_subject_each(&amp_told_subject, store, NULL, told_fn, left, &err), 0,
            "what is left");
    TAP_STR(left, "webhook:young ", "the record of a removed channel goes after a week");
}

int main(void)
{
    char state[128];
    bool trusted = true;
    struct amp_signer *signer = NULL;
    snprintf(state, sizeof state, "%s/state", scratch());
    served_cases();
    form_cases();
    escape_cases();
    const struct amp_store_options opt = {.facts = &amp_facts_all, .actor = "test"};
    const struct amp_identities_options ids = {
        .state = state, .principal = "operator/ann", .warn = note};
    struct amp_worker_options worker = {
        .tool = "test", .consumer = "test", .trusted = trusted, .note = note, .say = say};
    if (amp_store_open(state, &opt, &store, &err) < 0 ||
        amp_identities_open(&ids, &worker.ids, &err) < 0 ||
        amp_decider_open_bare(&decider, store, &worker, &err) < 0 ||
        amp_state_signer(state, "operator/ann", &signer, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    decider.people.login = "ann";
    token_cases();
    told_cases(&decider);
    answer_cases();
    http_cases();
    signed_cases(signer);
    fuzz(signer);
    amp_signer_free(signer);
    amp_decider_close(&decider);
    amp_identities_close(worker.ids);
    amp_store_close(store);
    return tap_done();
}

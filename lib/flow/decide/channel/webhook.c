/*
 * Webhooks: a question is a POST with a JSON body, made by port-http. The formats have a body of
 * their own: the program's ("json"), ntfy's, Slack's, Telegram's; a template may replace it.
 * Answers come by polling a URL, or to hitl-prompt receive.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/backoff.h"
#include "flow/decide/channel/private.h"
#include "port/helper.h"
#include "port/port.h"
#include "protocol/compose/json.h"

#define BODY_MAX  (512u << 10)
#define SEEN_MAX  256
#define SUM_BYTES 16
#define SHORT_MAX 3400 /* bytes of a question for ntfy and Telegram, without the answers */
#define BUTTONS   2    /* of ntfy, beside the link; it allows three */
#define SINCE_MAX 128
#define HELPER_MS 5000
#define POLL_MOST 900000

enum format { FORMAT_JSON, FORMAT_NTFY, FORMAT_SLACK, FORMAT_TELEGRAM };

struct poll {
    struct amp_helper *helper;
    char *env; /* its URL */
    char limit[24];
    int64_t every_ms, due_ms, pause_ms;
    bool ntfy, asked;
    char since[SINCE_MAX]; /* ntfy: the last message that was read */
    unsigned char seen[SEEN_MAX][SUM_BYTES];
    unsigned n_seen;
};

struct webhook {
    enum format format;
    const char *topic, *chat;
    const json_t *asked, *settled; /* templates; NULL: the format's own */
    struct amp_port *port;
    struct poll poll;
    char header[4400];
    const char *headers[2];
};

/* ---- bodies ---- */

static json_t *text_body(const char *template, const struct amp_facts *f, enum amp_escape how,
                         struct amp_error *err)
{
    json_auto_t *t = json_string(template);

    return amp_template_json(t, f, how, err);
}

/* The text for services that take about 4,000 bytes: what does not fit is cut, the answers are not.
 */
static json_t *short_body(const char *head, const struct amp_facts *f, struct amp_error *err)
{
    static const char cut[] = "\n[cut]\n";
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, BODY_MAX);
    if (amp_template_text(head, f, AMP_ESCAPE_NONE, &text, err) < 0 ||
        amp_template_text("{text}{evidence}", f, AMP_ESCAPE_NONE, &text, err) < 0)
        return NULL;
    if (text.len > SHORT_MAX) {
        text.len = SHORT_MAX;
        while (text.len && text.data[text.len] != '\n')
            text.len--;
        if (amp_buf_str(&text, cut, err) < 0)
            return NULL;
    }
    if (amp_template_text("\nAnswers: {answers}", f, AMP_ESCAPE_NONE, &text, err) < 0)
        return NULL;
    json_t *s = json_stringn(text.data, text.len);
    if (!s)
        amp_fail(err, AMP_DATAERR, "bad_template", "a text is not UTF-8");
    return s;
}

/* A button of ntfy that answers by a POST of its own. */
static json_t *ntfy_button(const struct channel *c, const struct amp_facts *f, const char *action)
{
    AMP_BUF struct amp_buf body = {0};
    struct amp_jw w;

    amp_buf_init(&body, 4096);
    amp_jw_init(&w, &body);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "token", amp_facts_get(f, AMP_FACT_token));
    amp_jw_member_text(&w, "answer", action);
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, NULL) < 0)
        return NULL;
    return json_pack("{s:s,s:s,s:s,s:s,s:s%,s:{s:s},s:b}", "action", "http", "label", action, "url",
                     c->link, "method", "POST", "body", body.data, body.len, "headers",
                     "Content-Type", "application/json", "clear", 1);
}

/* Buttons for answers that need no commit and no confirmation; and the link. */
static json_t *ntfy_buttons(const struct channel *c, const struct delivery *d)
{
    const char *link = amp_facts_get(d->facts, AMP_FACT_link);
    json_t *list = json_array();
    unsigned n = 0;

    if (!list || !*link)
        return list;
    json_array_append_new(
        list, json_pack("{s:s,s:s,s:s}", "action", "view", "label", "Open", "url", link));
    for (const struct amp_action *a = amp_question_actions(&d->asked->q); a->name; a++)
        if (!(a->is & (AMP_ACTION_GRAVE | AMP_ACTION_EDITS)) && n < BUTTONS &&
            amp_token_answers_allow(c->all->tokens, a)) {
            json_array_append_new(list, ntfy_button(c, d->facts, a->name));
            n++;
        }
    return list;
}

static json_t *ntfy_body(const struct channel *c, const struct delivery *d, bool asks,
                         struct amp_error *err)
{
    const struct webhook *h = c->own;
    json_auto_t *title =
        text_body(asks ? "{title}" : "Settled: {title}", d->facts, AMP_ESCAPE_NONE, err);
    json_auto_t *text = asks ? short_body("", d->facts, err)
                             : text_body("{decision} by {operator}, through {channel}", d->facts,
                                         AMP_ESCAPE_NONE, err);
    json_t *body = title && text ? json_pack("{s:s,s:O,s:O}", "topic", h->topic, "title", title,
                                             "message", text)
                                 : NULL;

    if (body && asks) {
        json_object_set_new(body, "priority", json_integer(4));
        json_object_set_new(body, "actions", ntfy_buttons(c, d));
    }
    return body;
}

/* The link is of our own words and a URL; mrkdwn would end at its "|" or ">", which URLs encode. */
static json_t *slack_body(const struct delivery *d, bool asks, struct amp_error *err)
{
    json_auto_t *text =
        text_body(!asks ? "Settled: {title}\n{decision} by {operator}, through {channel}"
                        : "*{title}*\n{text}\n{evidence}\nAnswers: {answers}\n{link}",
                  d->facts, AMP_ESCAPE_MRKDWN, err);

    return text ? json_pack("{s:O,s:b}", "text", text, "unfurl_links", 0) : NULL;
}

static json_t *telegram_body(const struct channel *c, const struct delivery *d, bool asks,
                             struct amp_error *err)
{
    const struct webhook *h = c->own;
    const char *link = amp_facts_get(d->facts, AMP_FACT_link);
    json_auto_t *text =
        asks ? short_body("{title}\n", d->facts, err)
             : text_body("Settled: {title}\n{decision} by {operator}, through {channel}", d->facts,
                         AMP_ESCAPE_NONE, err);
    json_t *body = text ? json_pack("{s:s,s:O,s:b}", "chat_id", h->chat, "text", text,
                                    "disable_web_page_preview", 1)
                        : NULL;

    if (body && asks && *link)
        json_object_set_new(
            body, "reply_markup",
            json_pack("{s:[[{s:s,s:s}]]}", "inline_keyboard", "text", "Answer", "url", link));
    return body;
}

static json_t *plain_body(const struct delivery *d)
{
    json_t *body = json_object();

    for (int i = 0; body && i < AMP_FACT_COUNT; i++)
        amp_json_put(body, amp_fact_names[i], amp_facts_get(d->facts, (enum amp_fact)i));
    return body;
}

static json_t *body_make(const struct channel *c, const struct delivery *d, struct amp_error *err)
{
    const struct webhook *h = c->own;
    bool asks = d->at == DELIVERY_SENDING;
    const json_t *template = asks ? h->asked : h->settled;

    if (template)
        return amp_template_json(template, d->facts,
                                 h->format == FORMAT_SLACK ? AMP_ESCAPE_MRKDWN : AMP_ESCAPE_NONE,
                                 err);
    switch (h->format) {
    case FORMAT_NTFY:
        return ntfy_body(c, d, asks, err);
    case FORMAT_SLACK:
        return slack_body(d, asks, err);
    case FORMAT_TELEGRAM:
        return telegram_body(c, d, asks, err);
    case FORMAT_JSON:
        break;
    }
    return plain_body(d);
}

static void webhook_tell(struct channel *c, struct delivery *d)
{
    struct webhook *h = c->own;
    struct amp_error err = {0};
    AMP_BUF struct amp_buf text = {0}, id = {0};

    amp_fail(&err, AMP_DATAERR, "bad_template", "the body cannot be made");
    json_auto_t *body = body_make(c, d, &err);
    amp_buf_init(&text, BODY_MAX);
    amp_buf_init(&id, 2048);
    if (!body || amp_json_dump(body, &text, &err) < 0) {
        delivery_ended(d, &err);
        return;
    }
    delivery_shows(d, amp_buf_span(&text));
    if (amp_buf_fmt(&id, &err, "%s/%s/%s", amp_facts_get(d->facts, AMP_FACT_event), c->name,
                    d->asked->q.key) < 0 ||
        amp_port_offer(h->port, amp_buf_span(&id), amp_buf_span(&text), (uint64_t)(uintptr_t)d,
                       amp_mono_ms(), &err) < 0)
        delivery_ended(d, &err);
}

/* The port's error begins with the URL, which may be a secret. */
static void port_done(void *ctx, uint64_t tag, const struct amp_error *why)
{
    struct delivery *d = (struct delivery *)(uintptr_t)tag;
    struct amp_error said;

    if (why) {
        const char *text = strncmp(why->what, "http", 4) == 0 ? strstr(why->what, ": ") : NULL;
        amp_fail(&said, why->status, why->code, "%s", text ? text + 2 : why->what);
    }
    delivery_ended(d, why ? &said : NULL);
}

/* ---- polling ---- */

/* Whether this answer was read before; notes it. */
static bool answer_seen(struct poll *p, struct amp_span text)
{
    unsigned char sum[SUM_BYTES];

    crypto_generichash(sum, sizeof sum, (const unsigned char *)text.p, text.n, NULL, 0);
    for (unsigned i = 0; i < p->n_seen && i < SEEN_MAX; i++)
        if (memcmp(p->seen[i], sum, sizeof sum) == 0)
            return true;
    memcpy(p->seen[p->n_seen++ % SEEN_MAX], sum, sizeof sum);
    if (p->n_seen == 2 * SEEN_MAX)
        p->n_seen = SEEN_MAX;
    return false;
}

static void answer_polled(struct channel *c, struct amp_span text)
{
    struct webhook *h = c->own;
    struct amp_error err;
    const struct amp_answer_from from = {.channel = AMP_CHANNEL_WEBHOOK,
                                         .where = c->name,
                                         .recipient = c->name,
                                         .tokens = c->all->tokens};

    /* A server lists an answer again and again. */
    if (!answer_seen(&h->poll, text))
        channel_answer(c, text, &from, &err);
}

/* One entry: an answer, or for ntfy a message in which the answer is a text. */
static void entry_take(struct channel *c, const struct amp_tape *t, uint32_t tok)
{
    struct webhook *h = c->own;
    AMP_BUF struct amp_buf text = {0};
    struct amp_span message;

    if (!h->poll.ntfy) {
        answer_polled(c, amp_tok_source(t, tok));
        return;
    }
    uint32_t event = amp_tape_get(t, tok, AMP_SPAN("event"));
    uint32_t id = amp_tape_get(t, tok, AMP_SPAN("id"));
    uint32_t body = amp_tape_get(t, tok, AMP_SPAN("message"));
    amp_buf_init(&text, BODY_MAX);
    if (id != AMP_TOK_NONE && t->tok[id].type == AMP_JSON_STRING)
        amp_span_copy(amp_tok_raw(t, id), h->poll.since, sizeof h->poll.since);
    if (event != AMP_TOK_NONE && amp_tok_is(t, event, AMP_SPAN("message")) &&
        body != AMP_TOK_NONE && t->tok[body].type == AMP_JSON_STRING &&
        amp_tok_text(t, body, &text, &message, NULL) == 0)
        answer_polled(c, message);
}

/* Takes the entries of a JSON array, or of NDJSON. false: it is neither. */
static bool entries_take(struct channel *c, struct amp_span text)
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    bool good = true;

    amp_tape_init(&t, NULL);
    while (text.n && strchr(" \t\r\n", text.p[0]))
        text = (struct amp_span){text.p + 1, text.n - 1};
    if (text.n && text.p[0] == '[') {
        if (amp_tape_scan(&t, text.p, text.n, &fault) < 0)
            return false;
        for (uint32_t e = 1; e < t.tok[0].next; e = t.tok[e].next)
            if (t.tok[e].type == AMP_JSON_OBJECT)
                entry_take(c, &t, e);
            else
                good = false;
        return good;
    }
    while (text.n) {
        const char *lf = memchr(text.p, '\n', text.n);
        size_t n = lf ? (size_t)(lf - text.p) : text.n;
        struct amp_span line = {text.p, n};
        text = (struct amp_span){text.p + n + (lf != NULL), text.n - n - (lf != NULL)};
        while (line.n && strchr(" \t\r", line.p[line.n - 1]))
            line.n--;
        if (line.n == 0)
            continue;
        if (amp_tape_scan(&t, line.p, line.n, &fault) == 0 && t.tok[0].type == AMP_JSON_OBJECT)
            entry_take(c, &t, 0);
        else
            good = false;
    }
    return good;
}

/* Reads the helper's reply. 1: the server's answer is in *answer; 0: *why has the failure. */
static int reply_read(struct amp_span reply, struct amp_buf *mem, struct amp_span *answer,
                      struct amp_error *why)
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    struct amp_span said = AMP_SPAN("no reply");

    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, reply.p, reply.n, &fault) == 0) {
        uint32_t what = amp_tape_get(&t, 0, AMP_SPAN("class"));
        uint32_t text = amp_tape_get(&t, 0, AMP_SPAN("answer"));
        uint32_t reason = amp_tape_get(&t, 0, AMP_SPAN("why"));
        if (what != AMP_TOK_NONE && amp_tok_is(&t, what, AMP_SPAN("done")) &&
            text != AMP_TOK_NONE && amp_tok_text(&t, text, mem, answer, NULL) == 0)
            return 1;
        if (reason != AMP_TOK_NONE)
            said = amp_tok_raw(&t, reason);
    }
    amp_fail(why, AMP_UNAVAILABLE, "poll_failed", "polling: %.*s", AMP_CLIP(said, 200));
    return 0;
}

static void poll_reply(void *ctx, uint64_t tag, struct amp_span reply, const struct amp_error *gone)
{
    static const struct amp_backoff terms = {.first_ms = 1000, .most_ms = POLL_MOST};
    struct channel *c = ctx;
    struct poll *p = &((struct webhook *)c->own)->poll;
    struct amp_span answer = AMP_SPAN("");
    struct amp_error why = {0};
    AMP_BUF struct amp_buf mem = {0};

    amp_buf_init(&mem, BODY_MAX);
    bool good = !gone && reply_read(reply, &mem, &answer, &why) > 0;
    if (gone)
        why = *gone;
    if (good && !entries_take(c, answer)) {
        good = false;
        amp_fail(&why, AMP_DATAERR, "poll_failed",
                 "polling: the server's answer is neither NDJSON nor an array of objects");
    }
    p->asked = false;
    p->pause_ms = good ? 0 : amp_backoff_next(&terms, p->pause_ms);
    p->due_ms = amp_mono_ms() + (p->pause_ms > p->every_ms ? p->pause_ms : p->every_ms);
    if (good)
        channel_works(c);
    else
        channel_failed(c, &why);
}

static int poll_ask(struct poll *p, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    char query[SINCE_MAX + 32] = "";
    struct amp_jw w;

    if (p->ntfy)
        snprintf(query, sizeof query, "poll=1&since=%s", *p->since ? p->since : "all");
    if (p->ntfy && *p->since)
        for (char *at = p->since; *at; at++)
            if (!strchr("._-", *at) && !(*at >= '0' && *at <= '9') && !(*at >= 'a' && *at <= 'z') &&
                !(*at >= 'A' && *at <= 'Z'))
                snprintf(query, sizeof query, "poll=1&since=all");
    amp_buf_init(&b, 4096);
    amp_jw_init(&w, &b);
    amp_jw_member_text(&w, "key", "");
    amp_jw_member_text(&w, "body", query);
    if (amp_jw_end(&w, err) < 0)
        return -1;
    p->asked = amp_helper_ask(p->helper, 0, amp_buf_span(&b), err) == 0;
    return p->asked ? 0 : -1;
}

static int poll_step(struct channel *c, struct poll *p, struct amp_error *err)
{
    struct amp_error why;

    if (!p->helper)
        return 0;
    if (!p->asked && amp_mono_ms() >= p->due_ms && poll_ask(p, err) < 0)
        return -1;
    if (amp_helper_step(p->helper, poll_reply, c, &why) < 0) {
        channel_failed(c, &why);
        p->asked = false;
        p->due_ms = amp_mono_ms() + POLL_MOST;
    }
    return 0;
}

/* ---- the channel ---- */

static void webhook_watch(struct channel *c, struct channel_wait *w)
{
    struct webhook *h = c->own;
    struct pollfd fds[AMP_PORT_FDS];
    int wait = -1;

    amp_port_watch(h->port, fds, &wait);
    for (int i = 0; i < AMP_PORT_FDS; i++)
        channel_wait_fd(w, fds[i].fd, fds[i].events);
    if (h->poll.helper) {
        amp_helper_watch(h->poll.helper, fds, &wait);
        channel_wait_fd(w, fds[0].fd, fds[0].events);
        channel_wait_fd(w, fds[1].fd, fds[1].events);
        if (!h->poll.asked) {
            int64_t left = h->poll.due_ms - amp_mono_ms();
            channel_wait_within(w, left > 0 ? left : 0);
        }
    }
    channel_wait_within(w, wait);
}

static int webhook_step(struct channel *c, struct amp_error *err)
{
    struct webhook *h = c->own;

    amp_port_step(h->port, port_done, c);
    return poll_step(c, &h->poll, err);
}

static void webhook_close(struct channel *c)
{
    struct webhook *h = c->own;

    if (!h)
        return;
    amp_port_free(h->port);
    amp_helper_free(h->poll.helper);
    free(h->poll.env);
    free(h);
}

static const struct channel_ops webhook_ops = {webhook_tell, webhook_watch, webhook_step,
                                               webhook_close};

static int config_fail(const struct channel *c, struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_CONFIG, "bad_config", "hitl.channels: %s: %s", c->name, what);
}

static int format_read(const struct channel *c, const json_t *config, struct webhook *h,
                       struct amp_error *err)
{
    static const char *const words[] = {"json", "ntfy", "slack", "telegram"};
    const char *word = amp_json_str(config, "format");
    int i = 0;

    while (*word && i < 4 && strcmp(words[i], word) != 0)
        i++;
    if (i == 4)
        return config_fail(c, err, "format is not json, ntfy, slack or telegram");
    h->format = *word ? (enum format)i : FORMAT_JSON;
    h->topic = amp_json_str(config, "topic");
    h->chat = amp_json_str(config, "chat");
    if (h->format == FORMAT_NTFY && !*h->topic)
        return config_fail(c, err, "the format ntfy needs a topic");
    if (h->format == FORMAT_TELEGRAM && !*h->chat)
        return config_fail(c, err, "the format telegram needs a chat");
    return 0;
}

/* A template is tried before there is a question. */
static int template_read(const json_t *config, const char *key, const json_t **out,
                         struct amp_error *err)
{
    struct amp_facts f;
    const json_t *t = json_object_get(config, key);

    if (!json_is_object(t))
        return 0;
    amp_facts_init(&f);
    json_auto_t *tried = amp_template_json(t, &f, AMP_ESCAPE_NONE, err);
    amp_facts_release(&f);
    *out = t;
    return tried ? 0 : -1;
}

static int poll_open(struct channel *c, struct webhook *h, const json_t *config, int64_t timeout_ms,
                     struct amp_error *err)
{
    struct poll *p = &h->poll;
    const char *url = amp_json_str(config, "url"), *headers = amp_json_str(config, "headers");
    const char *args[10] = {"--get", "yes", "--timeout", p->limit},
               *ca = amp_json_str(config, "ca");
    int n = 4;

    if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
        return config_fail(c, err, "poll needs a url");
    p->every_ms = 10000;
    p->ntfy = strcmp(amp_json_str(config, "format"), "ntfy") == 0;
    if (channel_time(config, "every", 100, &p->every_ms, err) < 0)
        return -1;
    snprintf(p->limit, sizeof p->limit, "%lld", (long long)timeout_ms);
    if (*headers) {
        args[n++] = "--headers";
        args[n++] = headers;
    }
    if (*ca) {
        args[n++] = "--ca";
        args[n++] = ca;
    }
    args[n] = "-";
    if (asprintf(&p->env, "AMP_HTTP_URL=%s", url) < 0) {
        p->env = NULL;
        return amp_fail_memory(err);
    }
    const struct amp_helper_options opt = {.name = "port-http",
                                           .args = args,
                                           .env = p->env,
                                           .limit_ms = timeout_ms + HELPER_MS,
                                           .stop = c->all->opt.decider->opt.stop};
    return amp_helper_new(&opt, &p->helper, err) < 0 ? -1 : amp_helper_probe(p->helper, err);
}

/* The authority of a URL, for the port's table of header files. */
static void headers_set(struct webhook *h, const char *url, const char *file)
{
    const char *at = strstr(url, "//");
    size_t n = at ? strcspn(at + 2, "/?#") : 0;

    snprintf(h->header, sizeof h->header, "%.*s=%s", (int)(n < 300 ? n : 300), at ? at + 2 : "",
             file);
    h->headers[0] = h->header;
}

static int webhook_open(struct channel *c, const json_t *config, struct amp_error *err)
{
    struct webhook *h = c->own;
    const char *url = amp_json_str(config, "url"), *headers = amp_json_str(config, "headers");
    const char *ca = amp_json_str(config, "ca");
    const json_t *poll = json_object_get(config, "poll");
    int64_t timeout_ms = 10000;

    c->person = json_string_value(json_object_get(config, "operator"));
    c->link = json_string_value(json_object_get(config, "link"));
    c->mute = json_is_false(json_object_get(config, "settled"));
    if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
        return config_fail(c, err, "url is not http(s)://…");
    if (format_read(c, config, h, err) < 0 || template_read(config, "body", &h->asked, err) < 0 ||
        template_read(config, "settled", &h->settled, err) < 0 ||
        channel_time(config, "timeout", 10, &timeout_ms, err) < 0)
        return -1;
    headers_set(h, url, headers);
    const struct amp_port_options opt = {.consumer = c->all->opt.decider->opt.consumer,
                                         .max_pending = BODY_MAX * 4,
                                         .open_timeout_ms = -1,
                                         .attempts = 1,
                                         .attempt_timeout_ms = timeout_ms,
                                         .http_headers = h->headers,
                                         .n_http_headers = *headers ? 1 : 0,
                                         .http_ca = *ca ? ca : NULL,
                                         .stop = c->all->opt.decider->opt.stop};
    if (amp_port_new(url, &opt, &h->port, err) < 0)
        return -1;
    return poll ? poll_open(c, h, poll, timeout_ms, err) : 0;
}

int webhooks_add(struct amp_channels *all, const json_t *config, struct amp_error *err)
{
    size_t i;
    json_t *v;

    json_array_foreach (config, i, v) {
        struct channel *c;
        if (channel_add(all, AMP_CHANNEL_WEBHOOK, "webhook", amp_json_str(v, "name"), &webhook_ops,
                        &c, err) < 0)
            return -1;
        if (!(c->own = calloc(1, sizeof(struct webhook))))
            return amp_fail_memory(err);
        if (webhook_open(c, v, err) < 0)
            return -1;
    }
    return 0;
}

/* Sends questions and their ends to the channels, and repeats what failed. */
#include "people/channel/channels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "base/backoff.h"
#include "base/codes.h"
#include "base/grow.h"
#include "base/loop.h"
#include "message/protocol/compose/json.h"
#include "people/channel/private.h"

#define DAY_MS       86400000LL
#define RETRY_MOST   300000
#define FOREIGN_LIFE (7 * DAY_MS)
#define RECORD_MAX   (64u << 10)

static const struct amp_backoff retry_terms = {.first_ms = 1000, .most_ms = RETRY_MOST};

/* ---- the record that a channel has a question ---- */

static int told_forget(struct amp_channels *all, const struct amp_told *t, struct amp_error *err)
{
    return amp_told_write(all->opt.decider->w.store, t, false, all->opt.decider->opt.consumer, err);
}

static int told_write(struct delivery *d, bool told, struct amp_error *err)
{
    struct amp_decider *decider = d->channel->all->opt.decider;
    const struct amp_told t = {.question = amp_span_str(d->asked->q.key),
                               .channel = amp_span_str(d->channel->name),
                               .title = amp_span_str(d->asked->title),
                               .shown = amp_span_str(d->shown),
                               .at_ms = amp_now_ms()};

    return amp_told_write(decider->w.store, &t, told, decider->opt.consumer, err);
}

/* ---- questions ---- */

static void facts_drop(struct delivery *d)
{
    if (d->facts)
        amp_facts_release(d->facts);
    free(d->facts);
    d->facts = NULL;
}

static void asked_free(struct amp_channels *all, struct channel_question *a)
{
    for (unsigned i = 0; i < all->n; i++)
        facts_drop(&a->deliveries[i]);
    amp_evidence_texts_release(&a->evidence);
    amp_question_release(&a->q);
    free(a);
}

static struct channel_question *asked_find(const struct amp_channels *all, const char *key,
                                           size_t from)
{
    for (size_t i = 0; i < all->n_asked; i++) {
        struct channel_question *a = all->asked[(from + i) % all->n_asked];
        if (strcmp(a->q.key, key) == 0)
            return a;
    }
    return NULL;
}

static struct channel_question *asked_add(struct amp_channels *all, const char *key,
                                          struct amp_error *err)
{
    struct channel_question *a = calloc(1, sizeof *a + all->n * sizeof a->deliveries[0]);

    if (!a || amp_grow(&all->asked, &all->cap_asked, all->n_asked, sizeof *all->asked, err) < 0) {
        free(a);
        amp_fail_memory(err);
        return NULL;
    }
    amp_span_copy(amp_span_str(key), a->q.key, sizeof a->q.key);
    for (unsigned i = 0; i < all->n; i++)
        a->deliveries[i] = (struct delivery){.channel = &all->v[i], .asked = a};
    all->asked[all->n_asked++] = a;
    return a;
}

struct scan {
    struct amp_channels *all;
    size_t at; /* where the next one probably is */
    struct amp_error *err;
};

/* An open question: it is new, known, or asked again after it was deferred. */
static int scan_open(void *ctx, const struct amp_question *q)
{
    struct scan *s = ctx;
    struct amp_channels *all = s->all;
    struct channel_question *a = all->n_asked ? asked_find(all, q->key, s->at) : NULL;

    if (!a && !(a = asked_add(all, q->key, s->err)))
        return -1;
    s->at++;
    a->seen = true;
    if (a->open)
        return 0;
    bool loaded = !a->q.message; /* sent by an earlier process */
    a->open = true;
    amp_question_release(&a->q);
    a->q = *q;
    json_incref(a->q.message);
    a->until_ms = amp_now_ms() + all->token_life_ms;
    if (q->deadline_ms && q->deadline_ms < a->until_ms)
        a->until_ms = q->deadline_ms;
    for (unsigned i = 0; i < all->n; i++) {
        struct delivery *d = &a->deliveries[i];
        if (d->at == DELIVERY_SETTLE_DUE && loaded)
            d->at = DELIVERY_TOLD;
        else if (d->at == DELIVERY_SETTLE_DUE || d->at == DELIVERY_DONE)
            *d = (struct delivery){.channel = d->channel, .asked = a};
    }
    return 0;
}

/* A question that is not open any more. */
static void asked_settle(struct amp_channels *all, struct channel_question *a)
{
    a->open = false;
    amp_evidence_texts_release(&a->evidence);
    for (unsigned i = 0; i < all->n; i++) {
        struct delivery *d = &a->deliveries[i];
        if (d->at == DELIVERY_DUE)
            d->at = DELIVERY_DONE;
        if (d->at == DELIVERY_TOLD) {
            facts_drop(d);
            d->at = DELIVERY_SETTLE_DUE;
            d->due_ms = d->pause_ms = 0;
        }
    }
}

static bool asked_is_done(const struct amp_channels *all, const struct channel_question *a)
{
    for (unsigned i = 0; i < all->n; i++)
        if (a->deliveries[i].at != DELIVERY_DONE)
            return false;
    return !a->open;
}

static int questions_scan(struct amp_channels *all, struct amp_error *err)
{
    struct scan s = {.all = all, .err = err};

    for (size_t i = 0; i < all->n_asked; i++)
        all->asked[i]->seen = false;
    if (amp_question_each(&all->opt.decider->hitl, scan_open, &s, err) < 0)
        return -1;
    for (size_t i = 0; i < all->n_asked; i++)
        if (!all->asked[i]->seen && all->asked[i]->open)
            asked_settle(all, all->asked[i]);
    return 0;
}

static void questions_forget(struct amp_channels *all)
{
    size_t to = 0;

    for (size_t i = 0; i < all->n_asked; i++)
        if (asked_is_done(all, all->asked[i]))
            asked_free(all, all->asked[i]);
        else
            all->asked[to++] = all->asked[i];
    all->n_asked = to;
}

static bool has_channel(const struct amp_channels *all, struct amp_span name)
{
    for (unsigned i = 0; i < all->n; i++)
        if (amp_span_is(name, all->v[i].name))
            return true;
    return false;
}

/* A delivery of a channel that this process does not configure. Another process may own it, so the
 * record is kept until a week after the question was settled. */
static int told_foreign(struct amp_channels *all, const struct amp_told *t, struct amp_error *err)
{
    struct amp_question_rec q;
    AMP_BUF struct amp_buf mem = {0};
    int64_t since = amp_now_ms() - FOREIGN_LIFE;

    if (t->at_ms > since)
        return 0;
    amp_buf_init(&mem, AMP_REC_MAX);
    int found = amp_question_find(all->opt.decider->w.store, t->question, &mem, &q, err);
    if (found < 0)
        return -1;
    int64_t settled = q.decided_ms > q.ended_ms ? q.decided_ms : q.ended_ms;
    return found && (!settled || settled > since) ? 0 : told_forget(all, t, err);
}

/* Loads the deliveries of earlier processes. */
static int told_load(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_told *t = rec;
    struct amp_channels *all = ctx;

    if (!has_channel(all, t->channel))
        return told_foreign(all, t, err);
    struct channel_question *a =
        all->n_asked ? asked_find(all, t->question.p, all->n_asked - 1) : NULL;
    if (!a && !(a = asked_add(all, t->question.p, err)))
        return -1;
    amp_span_copy(t->title, a->title, sizeof a->title);
    for (unsigned i = 0; i < all->n; i++)
        if (amp_span_is(t->channel, all->v[i].name))
            a->deliveries[i].at = DELIVERY_SETTLE_DUE;
        else if (a->deliveries[i].at == DELIVERY_DUE)
            a->deliveries[i].at = DELIVERY_DONE;
    return 0;
}

/* ---- telling ---- */

/* A token and a link for a channel of a person. */
static int token_add(struct delivery *d, struct amp_error *err)
{
    struct channel *c = d->channel;
    struct amp_answer_token t = {.expires_ms = d->asked->until_ms};
    char token[AMP_ANSWER_TOKEN_MAX];
    AMP_BUF struct amp_buf link = {0};

    if (!c->person || c->all->tokens == AMP_TOKEN_ANSWERS_NONE)
        return 0;
    snprintf(t.question, sizeof t.question, "%s", d->asked->q.key);
    snprintf(t.recipient, sizeof t.recipient, "%s", c->name);
    snprintf(t.person, sizeof t.person, "%s", c->person);
    struct amp_decider *decider = c->all->opt.decider;
    if (amp_answer_token_make(decider->w.store, &t, decider->opt.consumer, token, err) < 0 ||
        amp_store_sync(decider->w.store, err) < 0 ||
        amp_facts_set(d->facts, AMP_FACT_token, amp_span_str(token), err) < 0)
        return -1;
    if (!c->link)
        return 0;
    amp_buf_init(&link, 8192);
    return amp_buf_fmt(&link, err, "%s%ct=%s", c->link, strchr(c->link, '?') ? '&' : '?', token) < 0
               ? -1
               : amp_facts_set(d->facts, AMP_FACT_link, amp_buf_span(&link), err);
}

/* Adds who settled the question, and how. */
static int settled_facts(struct delivery *d, struct amp_error *err)
{
    struct amp_question_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    const struct channel_question *a = d->asked;
    const char *decision = "closed";

    amp_buf_init(&mem, AMP_REC_MAX);
    int found = amp_question_find(d->channel->all->opt.decider->w.store, amp_span_str(a->q.key),
                                  &mem, &rec, err);
    if (found < 0)
        return -1;
    struct amp_span word = found ? rec.decision : AMP_SPAN("");
    if (word.n == 0)
        word = amp_span_str(found && rec.withdrawn.n ? AMP_HITL_WITHDRAWN
                            : found && rec.ended_ms  ? "ended"
                                                     : decision);
    return amp_facts_set(d->facts, AMP_FACT_event, AMP_SPAN("settled"), err) < 0 ||
                   amp_facts_set(d->facts, AMP_FACT_question, amp_span_str(a->q.key), err) < 0 ||
                   amp_facts_set(d->facts, AMP_FACT_title, amp_span_str(a->title), err) < 0 ||
                   amp_facts_set(d->facts, AMP_FACT_decision, word, err) < 0 ||
                   (found && amp_facts_set(d->facts, AMP_FACT_operator, rec.operator, err) < 0) ||
                   (found && amp_facts_set(d->facts, AMP_FACT_channel, rec.channel, err) < 0)
               ? -1
               : 0;
}

static int facts_make(struct delivery *d, struct amp_error *err)
{
    struct channel_question *a = d->asked;

    if (!(d->facts = malloc(sizeof *d->facts)))
        return amp_fail_memory(err);
    amp_facts_init(d->facts);
    if (amp_facts_set(d->facts, AMP_FACT_recipient, amp_span_str(d->channel->name), err) < 0)
        return -1;
    if (a->q.message && amp_facts_of(d->facts, &a->q, err) < 0)
        return -1;
    if (d->at == DELIVERY_SETTLE_DUE)
        return settled_facts(d, err);
    if (amp_evidence_texts(d->channel->all->opt.decider, &a->q, &a->evidence, err) < 0 ||
        amp_facts_evidence(d->facts, &a->evidence, err) < 0)
        return -1;
    amp_span_copy(amp_span_str(amp_facts_get(d->facts, AMP_FACT_title)), a->title, sizeof a->title);
    return token_add(d, err);
}

static int delivery_start(struct delivery *d, struct amp_error *err)
{
    if (!d->facts && facts_make(d, err) < 0) {
        facts_drop(d);
        return -1;
    }
    d->at = d->at == DELIVERY_DUE ? DELIVERY_SENDING : DELIVERY_SETTLING;
    d->channel->running++;
    d->channel->ops->tell(d->channel, d);
    return 0;
}

void channel_failed(struct channel *c, const struct amp_error *why)
{
    const struct amp_answer_from from = {.channel = c->kind, .where = c->name};
    AMP_BUF struct amp_buf record = {0};
    struct amp_decider *d = c->all->opt.decider;
    const struct amp_line_place at = {
        .tool = d->opt.tool, .file = from.where, .line = 1, .now_ms = amp_now_ms()};
    const struct amp_finding f = {.severity = AMP_SEV_WARNING,
                                  .type = AMP_SPAN("channel"),
                                  .id = AMP_SPAN(""),
                                  .code = AMP_CODE(channel_failed),
                                  .field = "",
                                  .pointer = "",
                                  .rule = amp_channel_name(c->kind),
                                  .message = why->what,
                                  .found = "",
                                  .expected = ""};

    if (c->failing)
        return;
    c->failing = true;
    amp_buf_init(&record, RECORD_MAX);
    if (amp_finding_record(&f, &at, &record, NULL) == 0)
        amp_store_error_log(d->w.store, amp_buf_span(&record), NULL);
    c->all->opt.note("the channel %s fails: %s: %s; trying again", c->name, why->code, why->what);
}

void channel_works(struct channel *c)
{
    if (c->failing)
        c->all->opt.note("the channel %s works again", c->name);
    c->failing = false;
}

void delivery_ended(struct delivery *d, const struct amp_error *why)
{
    struct amp_channels *all = d->channel->all;
    struct amp_error err;
    bool asks = d->at == DELIVERY_SENDING;

    d->channel->running--;
    if (why) {
        channel_failed(d->channel, why);
        d->failures++;
        d->pause_ms = d->pause_ms ? amp_backoff_next(&retry_terms, d->pause_ms) : all->retry_ms;
        d->due_ms = amp_mono_ms() + d->pause_ms;
        d->at = asks ? DELIVERY_DUE : DELIVERY_SETTLE_DUE;
        if (asks && !d->asked->open)
            d->at = DELIVERY_DONE;
    } else {
        channel_works(d->channel);
        facts_drop(d);
        d->failures = 0;
        d->at = asks ? DELIVERY_TOLD : DELIVERY_DONE;
        if (told_write(d, asks, &err) < 0)
            all->opt.note("%s: a delivery is not recorded: %s", d->channel->name, err.what);
        if (asks && !d->asked->open)
            d->at = DELIVERY_SETTLE_DUE;
    }
}

/* Starts what is due. */
static int deliveries_start(struct amp_channels *all, struct amp_error *err)
{
    int64_t now = amp_mono_ms();

    for (size_t i = 0; i < all->n_asked; i++)
        for (unsigned k = 0; k < all->n; k++) {
            struct delivery *d = &all->asked[i]->deliveries[k];
            if (d->at == DELIVERY_SETTLE_DUE && d->channel->mute && !d->asked->open) {
                d->at = DELIVERY_DONE;
                if (told_write(d, false, err) < 0)
                    return -1;
            }
            bool due = d->at == DELIVERY_DUE || d->at == DELIVERY_SETTLE_DUE;
            if (due && d->due_ms <= now && d->channel->running < d->channel->jobs &&
                delivery_start(d, err) < 0)
                return -1;
        }
    return 0;
}

enum amp_offered channel_answer(struct channel *c, struct amp_span text,
                                const struct amp_answer_from *from, struct amp_error *err)
{
    struct amp_answer_about about;
    enum amp_offered rc = amp_answer_take(c->all->opt.decider, text, from, &about, err);

    if (rc == AMP_OFFERED_DECIDED || rc == AMP_OFFERED_DEFERRED || rc == AMP_OFFERED_COUNTED)
        c->all->opt.note("%s: %s by %s, through %s", about.question, about.action, about.op,
                         c->name);
    if (rc == AMP_OFFERED_FAILED)
        c->all->opt.note("an answer from %s could not be taken: %s", c->name, err->what);
    c->all->again = true;
    return rc;
}

void delivery_shows(struct delivery *d, struct amp_span body)
{
    if (d->at == DELIVERY_SENDING)
        amp_shown_digest(body, d->shown);
}

/* ---- the loop ---- */

struct pollfd *channel_wait_fd(struct channel_wait *w, int fd, short events)
{
    static struct pollfd none;

    if (fd < 0)
        return &none;
    if (w->n == w->most) /* the step comes without being woken */
        channel_wait_within(w, 100);
    struct pollfd *p = w->n < w->most ? &w->fds[w->n++] : &none;
    *p = (struct pollfd){.fd = fd, .events = events};
    return p;
}

void channel_wait_within(struct channel_wait *w, int64_t ms)
{
    if (ms >= 0 && (w->wait_ms < 0 || ms < w->wait_ms))
        w->wait_ms = ms;
}

unsigned amp_channels_watch(struct amp_channels *c, struct pollfd fds[AMP_CHANNELS_FDS],
                            int64_t *wait_ms)
{
    struct channel_wait w = {.fds = fds, .most = AMP_CHANNELS_FDS, .wait_ms = *wait_ms};
    int64_t now = amp_mono_ms();

    if (!c || !c->n)
        return 0;
    if (c->again || !c->scanned)
        channel_wait_within(&w, 0);
    for (unsigned i = 0; i < c->n; i++)
        if (c->v[i].ops->watch)
            c->v[i].ops->watch(&c->v[i], &w);
    for (size_t i = 0; i < c->n_asked; i++)
        for (unsigned k = 0; k < c->n; k++) {
            const struct delivery *d = &c->asked[i]->deliveries[k];
            if ((d->at == DELIVERY_DUE || d->at == DELIVERY_SETTLE_DUE) &&
                d->channel->running < d->channel->jobs)
                channel_wait_within(&w, d->due_ms > now ? d->due_ms - now : 0);
        }
    *wait_ms = w.wait_ms;
    return w.n;
}

int amp_channels_step(struct amp_channels *c, bool changed, struct amp_error *err)
{
    if (!c || !c->n)
        return 0;
    for (unsigned i = 0; i < c->n; i++)
        if (c->v[i].ops->step && c->v[i].ops->step(&c->v[i], err) < 0)
            return -1;
    if (changed || c->again || !c->scanned) {
        c->again = false;
        c->scanned = true;
        if (questions_scan(c, err) < 0)
            return -1;
    }
    if (deliveries_start(c, err) < 0)
        return -1;
    questions_forget(c);
    return 0;
}

/* Whether a channel does not know yet that a question is settled. */
static bool is_settling(const struct amp_channels *c)
{
    for (size_t i = 0; i < c->n_asked; i++)
        for (unsigned k = 0; k < c->n; k++) {
            const struct delivery *d = &c->asked[i]->deliveries[k];
            if (!c->asked[i]->open && d->at != DELIVERY_DONE && d->failures == 0)
                return true;
        }
    return false;
}

int amp_channels_finish(struct amp_channels *c, int64_t wait_ms, struct amp_error *err)
{
    int64_t until = amp_mono_ms() + wait_ms, now;

    if (!c || !c->n)
        return 0;
    if (amp_channels_step(c, true, err) < 0)
        return -1;
    while (is_settling(c) && (now = amp_mono_ms()) < until) {
        struct pollfd fds[AMP_CHANNELS_FDS];
        struct amp_loop turn = amp_loop_turn(fds, AMP_CHANNELS_FDS, NULL, NULL);
        int64_t wait = until - now;
        turn.n = amp_channels_watch(c, fds, &wait);
        amp_loop_within(&turn, wait);
        if (amp_loop_wait(&turn, err) < 0 || amp_channels_step(c, false, err) < 0)
            return -1;
    }
    return 0;
}

enum amp_reach amp_channels_reach(const struct amp_channels *c, const char *question_key)
{
    enum amp_reach best = AMP_REACH_NOBODY;
    const struct channel_question *a = c && c->n_asked ? asked_find(c, question_key, 0) : NULL;

    if (c && c->n && !a) /* not seen yet */
        return AMP_REACH_PENDING;
    for (unsigned i = 0; a && i < c->n; i++) {
        const struct delivery *d = &a->deliveries[i];
        if (d->at == DELIVERY_TOLD)
            return AMP_REACH_TOLD;
        if (d->failures == 0 && (d->at == DELIVERY_DUE || d->at == DELIVERY_SENDING))
            best = AMP_REACH_PENDING;
    }
    return best;
}

/* ---- opening ---- */

static bool name_is_good(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n > 0 && !name[n] && n < 32;
}

int channel_add(struct amp_channels *all, enum amp_channel kind, const char *word, const char *name,
                const struct channel_ops *ops, struct channel **out, struct amp_error *err)
{
    struct channel c = {.ops = ops, .kind = kind, .jobs = 4, .all = all};

    if (all->n == CHANNELS_MAX)
        return amp_fail(err, AMP_CONFIG, bad_config, "hitl.channels: more than %d", CHANNELS_MAX);
    if (name && !name_is_good(name))
        return amp_fail(err, AMP_CONFIG, bad_config,
                        "hitl.channels: a name has 1 to 31 letters, digits, \".\", \"_\" or \"-\", "
                        "not \"%.100s\"",
                        name);
    snprintf(c.name, sizeof c.name, "%s%s%s", word ? word : "", word && name ? ":" : "",
             name ? name : "");
    for (unsigned i = 0; i < all->n; i++)
        if (strcmp(all->v[i].name, c.name) == 0)
            return amp_fail(err, AMP_CONFIG, bad_config, "hitl.channels: %s is there twice",
                            c.name);
    all->v[all->n] = c;
    *out = &all->v[all->n++];
    return 0;
}

int channel_time(const json_t *config, const char *key, int64_t least_ms, int64_t *ms,
                 struct amp_error *err)
{
    const json_t *v = json_object_get(config, key);

    if (!v)
        return 0;
    if (json_is_integer(v)) {
        *ms = json_integer_value(v) * 1000;
        return *ms >= least_ms
                   ? 0
                   : amp_fail(err, AMP_CONFIG, bad_config, "hitl: %s is too short", key);
    }
    return amp_num_duration(amp_span_str(amp_json_str(config, key)), least_ms, 365 * DAY_MS, ms,
                            err);
}

static int channels_configure(struct amp_channels *c, struct amp_error *err)
{
    const json_t *hitl = c->opt.config, *v = json_object_get(hitl, "channels");
    const json_t *limit = json_object_get(hitl, "token_answers");

    if (json_is_string(limit)) {
        int found = amp_token_answers_find(json_string_value(limit));
        if (found < 0)
            return amp_fail(err, AMP_CONFIG, bad_config,
                            "hitl.token_answers is not all, deny_and_defer or none");
        c->tokens = (enum amp_token_answers)found;
    }
    if (channel_time(hitl, "token_life", 1000, &c->token_life_ms, err) < 0 ||
        channel_time(v, "retry", 10, &c->retry_ms, err) < 0 ||
        folder_add(c, json_object_get(v, "folder"), err) < 0)
        return -1;
    return scripts_add(c, json_object_get(v, "scripts"), err);
}

int amp_channels_open(const struct amp_channels_options *opt, struct amp_channels **out,
                      struct amp_error *err)
{
    struct amp_channels *c = calloc(1, sizeof *c);

    if (!c)
        return amp_fail_memory(err);
    c->opt = *opt;
    c->token_life_ms = 7 * DAY_MS;
    c->retry_ms = retry_terms.first_ms;
    if (channels_configure(c, err) < 0 ||
        amp_subject_each(&amp_told_subject, opt->decider->w.store, NULL, told_load, c, err) < 0) {
        amp_channels_close(c);
        return -1;
    }
    *out = c;
    return 0;
}

bool amp_channels_any(const struct amp_channels *c)
{
    return c && c->n;
}

void amp_channels_close(struct amp_channels *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < c->n; i++)
        c->v[i].ops->close(&c->v[i]);
    for (size_t i = 0; i < c->n_asked; i++)
        asked_free(c, c->asked[i]);
    free(c->asked);
    free(c);
}

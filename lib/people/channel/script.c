/*
 * Channels that are scripts: a run reads an event as JSON on standard input and prints what became
 * of it (amp-channels(7)). No shell is used, and each run has a time limit.
 */
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "base/backoff.h"
#include "base/codes.h"
#include "base/process/runner.h"
#include "message/port/port.h"
#include "message/protocol/compose/json.h"
#include "people/channel/private.h"

#define RUNS       4
#define ARGS_MAX   64
#define INPUT_MAX  (2u << 20)
#define OUTPUT_MAX (512u << 10)
#define GRACE_MS   1000
#define CHECK_MS   10000
#define SEEN_MAX   256
#define SUM_BYTES  16
#define SINCE_MAX  128
#define POLL_MOST  900000

/* A run of the script. */
struct script_run {
    bool on;
    struct amp_runner run;
    struct delivery *delivery; /* NULL: it is asked for answers */
    int from;                  /* its standard output */
    struct amp_buf output;
};

struct script {
    const char *argv[ARGS_MAX + 1];
    char ours[PATH_MAX]; /* argv[0], if it is installed with this program; else "" */
    char **split;        /* owns the words, if they come from an option; else NULL */
    const json_t *settings;
    int64_t timeout_ms;
    int64_t every_ms; /* between two looks for answers; 0: it is never asked for them */
    int64_t due_ms, pause_ms;
    char since[SINCE_MAX]; /* where the next look begins, in the script's words */
    unsigned char seen[SEEN_MAX][SUM_BYTES];
    unsigned n_seen;
    struct script_run runs[RUNS + 1]; /* the last one looks for answers */
};

/* ---- the input ---- */

/* The answers that need neither a commit nor a confirmation, and that a token may give. */
static json_t *buttons_make(const struct channel *c, const struct delivery *d)
{
    json_t *list = json_array();

    for (const struct amp_action *a = amp_question_actions(&d->asked->q); list && a->name; a++)
        if (!(a->is & (AMP_ACTION_GRAVE | AMP_ACTION_EDITS)) &&
            amp_token_answers_allow(c->all->tokens, a))
            json_array_append_new(list, json_string(a->name));
    return list;
}

/* Appends an event as a line. d: what it tells, or NULL. The digest of what was shown is that of
 * the facts alone, which are what a person may see. */
static int input_make(const struct channel *c, const char *event, struct delivery *d,
                      struct amp_buf *out, struct amp_error *err)
{
    const struct script *s = c->own;
    json_auto_t *j = json_object();

    if (!j)
        return amp_fail_memory(err);
    if (d) {
        for (int i = 0; i < AMP_FACT_COUNT; i++)
            amp_json_put(j, amp_fact_names[i], amp_facts_get(d->facts, (enum amp_fact)i));
        if (amp_json_dump(j, out, err) < 0)
            return -1;
        delivery_shows(d, amp_buf_span(out));
        amp_buf_reset(out);
    } else {
        amp_json_put(j, "event", event);
        amp_json_put(j, "recipient", c->name);
        amp_json_put(j, "since", s->since);
    }
    if (s->settings)
        json_object_set(j, "settings", (json_t *)(uintptr_t)s->settings);
    if (d && d->at == DELIVERY_SENDING) {
        json_object_set_new(j, "buttons", buttons_make(c, d));
        json_object_set(j, "message", d->asked->q.message);
    }
    return amp_json_line(j, out, err);
}

static int run_start(const struct channel *c, struct script_run *run, const char *event,
                     struct delivery *d, struct amp_error *err)
{
    const struct script *s = c->own;
    AMP_BUF struct amp_buf input = {0};
    int ends[2];

    amp_buf_init(&input, INPUT_MAX);
    if (input_make(c, event, d, &input, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a pipe for %s", c->name);
    AMP_CLOSE int to = ends[1];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const struct amp_child_spec spec = {
        .argv = s->argv, .fd_out = to, .fd_err = STDERR_FILENO, .dies_with_us = true};
    if (amp_runner_start(&run->run, &spec, amp_buf_span(&input), s->timeout_ms, GRACE_MS, err) <
        0) {
        close(ends[0]);
        return -1;
    }
    run->on = true;
    run->delivery = d;
    run->from = ends[0];
    amp_buf_init(&run->output, OUTPUT_MAX);
    return 0;
}

static void run_release(struct script_run *run)
{
    close(run->from);
    amp_buf_release(&run->output);
    run->on = false;
    run->delivery = NULL;
}

/* ---- the output ---- */

/* Tells whether this answer came before, and notes it. A server lists an answer again and again. */
static bool answer_is_old(struct script *s, struct amp_span text)
{
    unsigned char sum[SUM_BYTES];

    crypto_generichash(sum, sizeof sum, (const unsigned char *)text.p, text.n, NULL, 0);
    for (unsigned i = 0; i < s->n_seen && i < SEEN_MAX; i++)
        if (memcmp(s->seen[i], sum, sizeof sum) == 0)
            return true;
    memcpy(s->seen[s->n_seen++ % SEEN_MAX], sum, sizeof sum);
    if (s->n_seen == 2 * SEEN_MAX)
        s->n_seen = SEEN_MAX;
    return false;
}

/* Takes an object that the script printed: {"since":…}, {"text":ANSWER}, or an answer. */
static void object_take(struct channel *c, const struct amp_tape *t, struct amp_span line)
{
    struct script *s = c->own;
    struct amp_error err;
    const struct amp_answer_from from = {.channel = AMP_CHANNEL_SCRIPT,
                                         .where = c->name,
                                         .recipient = c->name,
                                         .tokens = c->all->tokens};
    uint32_t since = amp_tape_get(t, 0, AMP_SPAN("since"));
    uint32_t text = amp_tape_get(t, 0, AMP_SPAN("text"));
    AMP_BUF struct amp_buf mem = {0};

    amp_buf_init(&mem, OUTPUT_MAX);
    if (since != AMP_TOK_NONE) {
        if (amp_tok_text(t, since, &mem, &line, NULL) == 0)
            amp_span_copy(line, s->since, sizeof s->since);
        return;
    }
    if (text != AMP_TOK_NONE && amp_tok_text(t, text, &mem, &line, NULL) < 0)
        return;
    if (!answer_is_old(s, line))
        channel_answer(c, line, &from, &err);
}

/* Takes the objects of the output. said: the last other line, the script's own words. */
static void output_take(struct channel *c, struct amp_span text, char said[200])
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;

    amp_tape_init(&t, NULL);
    *said = '\0';
    while (text.n) {
        const char *lf = memchr(text.p, '\n', text.n);
        struct amp_span line = {text.p, lf ? (size_t)(lf - text.p) : text.n};
        text = (struct amp_span){line.p + line.n + (lf != NULL), text.n - line.n - (lf != NULL)};
        if (line.n == 0)
            continue;
        if (amp_tape_scan(&t, line.p, line.n, &fault) == 0 && t.tok[0].type == AMP_JSON_OBJECT)
            object_take(c, &t, line);
        else
            snprintf(said, 200, "%.*s", AMP_CLIP(line, 199));
    }
}

/* Words of a script go to terminals and logs. */
static void failure_say(struct amp_error *why, const char *said)
{
    AMP_BUF struct amp_buf safe = {0};

    amp_buf_init(&safe, 4096);
    if (*said && amp_fact_mark("", said, &safe, NULL) == 0)
        amp_fail_text(why, why->status, why->code, "%.*s", (int)safe.len - 1, safe.data);
}

/* ---- telling and asking ---- */

static void script_tell(struct channel *c, struct delivery *d)
{
    struct script *s = c->own;
    struct amp_error err;
    struct script_run *run = s->runs;

    while (run->on) /* the channel has as many runs */
        run++;
    if (run_start(c, run, NULL, d, &err) < 0)
        delivery_ended(d, &err);
}

static void poll_ended(struct channel *c, const struct amp_error *why)
{
    static const struct amp_backoff terms = {.first_ms = 1000, .most_ms = POLL_MOST};
    struct script *s = c->own;
    struct amp_error err;

    s->pause_ms = why ? amp_backoff_next(&terms, s->pause_ms) : 0;
    s->due_ms = amp_mono_ms() + (s->pause_ms > s->every_ms ? s->pause_ms : s->every_ms);
    if (!why) {
        channel_works(c);
        return;
    }
    amp_fail(&err, why->status, poll_failed, "polling: %s", why->what);
    channel_failed(c, &err);
}

static void run_end(struct channel *c, struct script_run *run, const struct amp_child_end *end)
{
    const struct script *s = c->own;
    struct delivery *d = run->delivery;
    struct amp_error why;
    char said[200];
    bool done = amp_runner_verdict(&run->run, end, s->argv[0], &why) == AMP_RUN_DONE;

    output_take(c, amp_buf_span(&run->output), said);
    if (!done && !end->timed_out)
        failure_say(&why, said);
    run_release(run);
    if (d)
        delivery_ended(d, done ? NULL : &why);
    else
        poll_ended(c, done ? NULL : &why);
}

/* A script that prints too much is ended, and its output up to there counts. */
static void output_read(struct script_run *run)
{
    enum amp_read rc;

    do
        rc = amp_read_more(run->from, &run->output, 65536, "a channel", NULL);
    while (rc == AMP_READ_BYTES);
    if (rc == AMP_READ_FAILED)
        amp_runner_stop(&run->run);
}

static int script_step(struct channel *c, struct amp_error *err)
{
    struct script *s = c->own;
    struct script_run *look = &s->runs[RUNS];
    struct amp_error why;

    for (struct script_run *run = s->runs; run <= look; run++) {
        struct amp_child_end end;
        if (!run->on)
            continue;
        int rc = amp_runner_look(&run->run, &end, err);
        output_read(run);
        if (rc < 0)
            return -1;
        if (rc > 0)
            run_end(c, run, &end);
    }
    if (s->every_ms && !look->on && amp_mono_ms() >= s->due_ms &&
        run_start(c, look, "poll", NULL, &why) < 0)
        poll_ended(c, &why);
    return 0;
}

static void script_watch(struct channel *c, struct channel_wait *w)
{
    struct script *s = c->own;

    for (int i = 0; i <= RUNS; i++)
        if (s->runs[i].on) {
            channel_wait_fd(w, s->runs[i].run.child.pidfd, POLLIN);
            channel_wait_fd(w, s->runs[i].from, POLLIN);
            channel_wait_within(w, amp_runner_wait(&s->runs[i].run));
        }
    if (s->every_ms && !s->runs[RUNS].on) {
        int64_t left = s->due_ms - amp_mono_ms();
        channel_wait_within(w, left > 0 ? left : 0);
    }
}

static void script_close(struct channel *c)
{
    struct script *s = c->own;

    for (int i = 0; s && i <= RUNS; i++)
        if (s->runs[i].on) {
            struct amp_child_end end;
            amp_runner_stop(&s->runs[i].run);
            amp_runner_finish(&s->runs[i].run, NULL, &end, NULL);
            run_release(&s->runs[i]);
        }
    if (s)
        amp_argv_free(s->split);
    free(s);
}

static const struct channel_ops script_ops = {script_tell, script_watch, script_step, script_close};

/* ---- configuration ---- */

/* Adds a channel; its words follow. NULL: failure. */
static struct script *script_add(struct amp_channels *all, const char *word, const char *name,
                                 struct channel **c, struct amp_error *err)
{
    struct script *s;

    if (channel_add(all, AMP_CHANNEL_SCRIPT, word, name, &script_ops, c, err) < 0)
        return NULL;
    if (!(s = calloc(1, sizeof *s))) {
        amp_fail_memory(err);
        return NULL;
    }
    s->timeout_ms = 10000;
    (*c)->own = s;
    (*c)->jobs = RUNS;
    return s;
}

/* A word without a slash is one of our scripts, or else a command in PATH. */
static void script_find(struct script *s)
{
    char relative[64 + NAME_MAX];

    if (strchr(s->argv[0], '/') || strlen(s->argv[0]) > NAME_MAX)
        return;
    snprintf(relative, sizeof relative, "../../share/amp/channels/%s", s->argv[0]);
    if (amp_helper_path(relative, s->ours, sizeof s->ours, NULL) == 0)
        s->argv[0] = s->ours;
}

/* Lets a script that has settings look at them before there is a question. */
static int settings_check(struct channel *c, struct amp_error *err)
{
    struct script *s = c->own;
    struct script_run *run = s->runs;
    struct amp_child_end end;
    struct amp_error why;
    char said[200] = "";

    if (!s->settings && !*s->ours)
        return 0;
    int64_t timeout_ms = s->timeout_ms;
    s->timeout_ms = CHECK_MS;
    int rc = run_start(c, run, "check", NULL, &why);
    s->timeout_ms = timeout_ms;
    if (rc < 0) {
        channel_failed(c, &why);
        return 0;
    }
    rc = amp_runner_finish(&run->run, c->all->opt.decider->opt.stop, &end, err);
    output_read(run);
    output_take(c, amp_buf_span(&run->output), said);
    if (rc == 0 && amp_runner_verdict(&run->run, &end, s->argv[0], &why) != AMP_RUN_DONE) {
        failure_say(&why, said);
        if (end.exited && end.exit_code == AMP_CONFIG)
            rc = amp_fail(err, AMP_CONFIG, bad_config, "hitl.channels: %s: %s", c->name, why.what);
        else
            channel_failed(c, &why);
    }
    run_release(run);
    return rc;
}

static int words_read(struct script *s, const json_t *words, struct amp_error *err)
{
    size_t i;
    json_t *v;

    if (json_array_size(words) > ARGS_MAX)
        return amp_fail(err, AMP_CONFIG, bad_config, "hitl.channels: a command has 1 to %d words",
                        ARGS_MAX);
    json_array_foreach (words, i, v)
        if (!(s->argv[i] = json_string_value(v)))
            return amp_fail(err, AMP_CONFIG, bad_config, "hitl.channels: a command is malformed");
    return 0;
}

static int configured_add(struct amp_channels *all, const json_t *v, struct amp_error *err)
{
    struct channel *c;
    const char *name = amp_json_str(v, "name");
    const json_t *words = json_object_get(v, "command");
    struct script *s = script_add(all, NULL, name, &c, err);

    if (!s || channel_time(v, "timeout", 10, &s->timeout_ms, err) < 0 ||
        channel_time(v, "every", 100, &s->every_ms, err) < 0 || words_read(s, words, err) < 0)
        return -1;
    if (!s->argv[0])
        s->argv[0] = c->name;
    s->settings = json_object_get(v, "settings");
    c->person = json_string_value(json_object_get(v, "operator"));
    c->link = json_string_value(json_object_get(v, "link"));
    c->mute = json_is_false(json_object_get(v, "settled"));
    script_find(s);
    return settings_check(c, err);
}

/* --notify COMMAND: split into words, without a shell. */
static int option_add(struct amp_channels *all, int number, const char *command,
                      struct amp_error *err)
{
    char name[24];
    struct channel *c;
    int n = 0;

    snprintf(name, sizeof name, "%d", number);
    struct script *s = script_add(all, "notify", name, &c, err);
    if (!s || amp_argv_split(command, &s->split, err) < 0)
        return -1;
    for (; s->split[n] && n < ARGS_MAX; n++)
        s->argv[n] = s->split[n];
    if (n == 0 || s->split[n])
        return amp_fail(err, AMP_USAGE, bad_command, "--notify: a command has 1 to %d words",
                        ARGS_MAX);
    script_find(s);
    return settings_check(c, err);
}

int scripts_add(struct amp_channels *all, const json_t *config, struct amp_error *err)
{
    const char *const *options = all->opt.notify;
    size_t i;
    json_t *v;

    json_array_foreach (config, i, v)
        if (configured_add(all, v, err) < 0)
            return -1;
    for (int n = 0; options && options[n]; n++)
        if (option_add(all, n + 1, options[n], err) < 0)
            return -1;
    return 0;
}

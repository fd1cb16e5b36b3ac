/*
 * Channels that are commands: mail through `sendmail -t`, desktop notifications, and any command
 * with the question as JSON on its standard input and in AMP_QUESTION_… variables. No shell is
 * used, and each run has a time limit.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/process/runner.h"
#include "flow/decide/channel/private.h"
#include "port/port.h"
#include "protocol/compose/json.h"

#define JOBS      4
#define ARGS_MAX  64
#define BODY_MAX  (512u << 10)
#define GRACE_MS  1000
#define VALUE_MAX 16384 /* bytes of a fact in the environment */

struct mail {
    const char *from, *reply_to, *subject, *body;
    const json_t *to;
};

struct command {
    const char *argv[ARGS_MAX + 1]; /* templates */
    char **split;                   /* owns them, if they come from an option */
    bool mail;
    struct mail letter;
    enum amp_escape escape; /* of values in the arguments */
    int64_t timeout_ms;
    struct job {
        struct amp_runner run;
        struct delivery *delivery; /* NULL: it is free */
    } jobs[JOBS];
};

/* ---- what the command gets ---- */

/* Mail has one name in an address header for each recipient; a line end would begin a header. */
static int address_add(struct amp_buf *out, const char *name, const char *value,
                       struct amp_error *err)
{
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return amp_fail(err, AMP_CONFIG, "bad_config",
                            "hitl.channels.mail: an address has a control character");
    return amp_buf_fmt(out, err, "%s: %s\n", name, value);
}

static int addresses_add(struct amp_buf *out, const json_t *to, struct amp_error *err)
{
    size_t i;
    json_t *v;

    if (json_is_string(to))
        return address_add(out, "To", json_string_value(to), err);
    json_array_foreach (to, i, v)
        if (!json_is_string(v) || address_add(out, "To", json_string_value(v), err) < 0)
            return amp_fail(err, AMP_CONFIG, "bad_config", "hitl.channels.mail: to is malformed");
    return 0;
}

static int header_add(struct amp_buf *out, const char *name, const char *template,
                      const struct amp_facts *f, struct amp_error *err)
{
    AMP_BUF struct amp_buf value = {0}, safe = {0};

    amp_buf_init(&value, BODY_MAX);
    amp_buf_init(&safe, BODY_MAX);
    /* The complete value is encoded, so that encoded words have only blanks between them. */
    if (amp_template_text(template, f, AMP_ESCAPE_NONE, &value, err) < 0)
        return -1;
    if (value.len > 400) {
        value.len = 400;
        while (value.len && ((unsigned char)value.data[value.len] & 0xC0) == 0x80)
            value.len--;
    }
    if (amp_escape(amp_buf_span(&value), AMP_ESCAPE_HEADER, &safe, err) < 0)
        return -1;
    size_t to = 0; /* folded with LF, as sendmail reads it */
    for (size_t i = 0; i < safe.len; i++)
        if (safe.data[i] != '\r')
            safe.data[to++] = safe.data[i];
    return amp_buf_fmt(out, err, "%s: %.*s\n", name, (int)to, to ? safe.data : "");
}

static int mail_make(const struct command *c, const struct delivery *d, struct amp_buf *out,
                     struct amp_error *err)
{
    const struct mail *m = &c->letter;
    const struct amp_facts *f = d->facts;
    bool asks = d->at == DELIVERY_SENDING;
    const char *link = amp_facts_get(f, AMP_FACT_link);
    const char *body = asks ? m->body : "{title}\n\n{decision} by {operator}, through {channel}.\n";

    if (addresses_add(out, m->to, err) < 0 ||
        (*m->from && address_add(out, "From", m->from, err) < 0) ||
        (*m->reply_to && address_add(out, "Reply-To", m->reply_to, err) < 0) ||
        header_add(out, "Subject", asks ? m->subject : "Settled: {title}", f, err) < 0 ||
        header_add(out, "X-Amp-Question", "{question}", f, err) < 0 ||
        amp_buf_str(out,
                    "Auto-Submitted: auto-generated\nMIME-Version: 1.0\n"
                    "Content-Type: text/plain; charset=utf-8\n"
                    "Content-Transfer-Encoding: 8bit\n\n",
                    err) < 0 ||
        amp_template_text(body, f, AMP_ESCAPE_NONE, out, err) < 0)
        return -1;
    return asks && *link ? amp_buf_fmt(out, err, "\nTo answer: %s\n", link) : 0;
}

static int json_make(const struct delivery *d, struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *j = json_object();

    for (int i = 0; j && i < AMP_FACT_COUNT; i++)
        amp_json_put(j, amp_fact_names[i], amp_facts_get(d->facts, (enum amp_fact)i));
    if (j && d->at == DELIVERY_SENDING)
        json_object_set(j, "message", d->asked->q.message);
    return !j                               ? amp_fail_memory(err)
           : amp_json_dump(j, out, err) < 0 ? -1
                                            : amp_buf_str(out, "\n", err);
}

/* ---- running ---- */

/* The arguments and the environment of one run; released by texts_free. */
struct texts {
    char *argv[ARGS_MAX + 1];
    char **env;
    size_t n_env;
};

static void texts_free(struct texts *t)
{
    for (char **a = t->argv; *a; a++)
        free(*a);
    for (size_t i = 0; t->env && i < AMP_FACT_COUNT; i++)
        free(t->env[i]);
    free(t->env);
}

static char *argument_make(const struct command *c, const char *template, const struct amp_facts *f,
                           struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};

    amp_buf_init(&b, BODY_MAX);
    if (amp_template_text(template, f, c->escape, &b, err) < 0)
        return NULL;
    char *copy = amp_span_dup(amp_buf_span(&b));
    if (!copy)
        amp_fail_memory(err);
    return copy;
}

/* The caller's environment behind the variables of the question. */
static int environment_make(struct texts *t, const struct amp_facts *f, struct amp_error *err)
{
    size_t n = 0;

    while (environ[n])
        n++;
    if (!(t->env = calloc(AMP_FACT_COUNT + n + 1, sizeof *t->env)))
        return amp_fail_memory(err);
    for (int i = 0; i < AMP_FACT_COUNT; i++) {
        char name[64];
        const char *value = amp_facts_get(f, (enum amp_fact)i);
        snprintf(name, sizeof name, "AMP_QUESTION_%s", amp_fact_names[i]);
        for (char *p = name + 13; *p; p++)
            *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
        if (asprintf(&t->env[i], "%s=%.*s", name, VALUE_MAX, value) < 0) {
            t->env[i] = NULL;
            return amp_fail_memory(err);
        }
    }
    for (size_t i = 0; i < n; i++)
        t->env[AMP_FACT_COUNT + i] = environ[i];
    return 0;
}

static int command_start(struct command *c, struct job *j, struct delivery *d,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf input = {0};
    struct texts t = {0};
    int rc = 0;

    amp_buf_init(&input, 4 * BODY_MAX);
    for (int i = 0; rc == 0 && c->argv[i]; i++)
        rc = (t.argv[i] = argument_make(c, c->argv[i], d->facts, err)) ? 0 : -1;
    if (rc == 0)
        rc = environment_make(&t, d->facts, err);
    if (rc == 0)
        rc = c->mail ? mail_make(c, d, &input, err) : json_make(d, &input, err);
    if (rc == 0)
        delivery_shows(d, amp_buf_span(&input));
    const struct amp_child_spec spec = {.argv = (const char *const *)t.argv,
                                        .envp = (const char *const *)t.env,
                                        .fd_out = -1,
                                        .fd_err = STDERR_FILENO,
                                        .owns_tree = false,
                                        .dies_with_us = true};
    if (rc == 0)
        rc = amp_runner_start(&j->run, &spec, amp_buf_span(&input), c->timeout_ms, GRACE_MS, err);
    texts_free(&t);
    return rc;
}

static void command_tell(struct channel *ch, struct delivery *d)
{
    struct command *c = ch->own;
    struct amp_error err;
    struct job *j = c->jobs;

    while (j->delivery) /* the channel has as many jobs */
        j++;
    if (command_start(c, j, d, &err) < 0)
        delivery_ended(d, &err);
    else
        j->delivery = d;
}

static void command_watch(struct channel *ch, struct channel_wait *w)
{
    struct command *c = ch->own;

    for (int i = 0; i < JOBS; i++)
        if (c->jobs[i].delivery) {
            channel_wait_fd(w, c->jobs[i].run.child.pidfd, POLLIN);
            channel_wait_within(w, amp_runner_wait(&c->jobs[i].run));
        }
}

static int command_step(struct channel *ch, struct amp_error *err)
{
    struct command *c = ch->own;

    for (int i = 0; i < JOBS; i++) {
        struct job *j = &c->jobs[i];
        struct amp_child_end end;
        struct amp_error why;
        if (!j->delivery)
            continue;
        int rc = amp_runner_look(&j->run, &end, err);
        if (rc < 0)
            return -1;
        if (rc == 0)
            continue;
        struct delivery *d = j->delivery;
        bool done = amp_runner_verdict(&j->run, &end, c->argv[0], &why) == AMP_RUN_DONE;
        j->delivery = NULL;
        delivery_ended(d, done ? NULL : &why);
    }
    return 0;
}

static void command_close(struct channel *ch)
{
    struct command *c = ch->own;

    for (int i = 0; c && i < JOBS; i++)
        if (c->jobs[i].delivery) {
            struct amp_child_end end;
            amp_runner_stop(&c->jobs[i].run);
            amp_runner_finish(&c->jobs[i].run, NULL, &end, NULL);
        }
    if (c)
        amp_argv_free(c->split);
    free(c);
}

static const struct channel_ops command_ops = {command_tell, command_watch, command_step,
                                               command_close};

/* ---- the bell ---- */

/* A byte that a terminal does not print, so it does not disturb the line that is typed there. */
static void bell_tell(struct channel *c, struct delivery *d)
{
    struct amp_error err;
    AMP_CLOSE int fd = open("/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0 && (d->at != DELIVERY_SENDING || write(fd, "\a", 1) == 1)) {
        delivery_ended(d, NULL);
        return;
    }
    amp_fail(&err, AMP_UNAVAILABLE, "no_terminal", "there is no terminal for the bell");
    delivery_ended(d, &err);
}

static void bell_close(struct channel *c)
{
}

static const struct channel_ops bell_ops = {bell_tell, NULL, NULL, bell_close};

/* ---- configuration ---- */

/* NULL: failure. */
static struct command *command_new(struct channel *ch, int64_t timeout_ms, struct amp_error *err)
{
    struct command *c = calloc(1, sizeof *c);

    if (!c) {
        amp_fail_memory(err);
        return NULL;
    }
    c->timeout_ms = timeout_ms;
    ch->own = c;
    ch->jobs = JOBS;
    return c;
}

static int argv_read(struct command *c, const json_t *argv, struct amp_error *err)
{
    size_t i;
    json_t *v;

    if (!json_array_size(argv) || json_array_size(argv) > ARGS_MAX)
        return amp_fail(err, AMP_CONFIG, "bad_config",
                        "hitl.channels: a command has 1 to %d arguments", ARGS_MAX);
    json_array_foreach (argv, i, v)
        if (!(c->argv[i] = json_string_value(v)) ||
            (!c->mail && amp_template_text(c->argv[i], NULL, AMP_ESCAPE_NONE, NULL, err) < 0))
            return amp_fail(err, AMP_CONFIG, "bad_config", "hitl.channels: a command is malformed");
    return 0;
}

/* sendmail is not in the PATH of ordinary users everywhere. */
static const char *sendmail_find(void)
{
    static const char *const places[] = {"/usr/sbin/sendmail", "/usr/lib/sendmail"};
    char path[4096];

    if (amp_child_find("sendmail", environ, path, sizeof path, NULL) < 0)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            if (access(places[i], X_OK) == 0)
                return places[i];
    return "sendmail";
}

static int mail_add(struct amp_channels *all, const json_t *config, struct amp_error *err)
{
    static const char subject[] = "{title}";
    static const char body[] = "{title}\n\n{text}\n{evidence}\nPossible answers: {answers}\n"
                               "Question: {question}\nDigest: {digest}\n";
    struct channel *ch;
    struct command *c;
    int64_t timeout_ms = 30000;
    const char *name = json_string_value(json_object_get(config, "name"));
    const json_t *argv = json_object_get(config, "sendmail");

    if (channel_add(all, AMP_CHANNEL_MAIL, "mail", name, &command_ops, &ch, err) < 0 ||
        channel_time(config, "timeout", 10, &timeout_ms, err) < 0 ||
        !(c = command_new(ch, timeout_ms, err)))
        return -1;
    ch->person = json_string_value(json_object_get(config, "operator"));
    ch->link = json_string_value(json_object_get(config, "link"));
    ch->mute = json_is_false(json_object_get(config, "settled"));
    c->mail = true;
    c->letter = (struct mail){.from = amp_json_str(config, "from"),
                              .reply_to = amp_json_str(config, "reply_to"),
                              .to = json_object_get(config, "to"),
                              .subject = amp_json_str(config, "subject"),
                              .body = amp_json_str(config, "body")};
    if (!*c->letter.subject)
        c->letter.subject = subject;
    if (!*c->letter.body)
        c->letter.body = body;
    if (!json_is_string(c->letter.to) && !json_array_size(c->letter.to))
        return amp_fail(err, AMP_CONFIG, "bad_config", "hitl.channels.mail: to is missing");
    if (amp_template_text(c->letter.subject, NULL, AMP_ESCAPE_NONE, NULL, err) < 0 ||
        amp_template_text(c->letter.body, NULL, AMP_ESCAPE_NONE, NULL, err) < 0)
        return -1;
    if (argv)
        return argv_read(c, argv, err);
    c->argv[0] = sendmail_find();
    c->argv[1] = "-t";
    c->argv[2] = "-i";
    return 0;
}

int mails_add(struct amp_channels *all, const json_t *config, struct amp_error *err)
{
    size_t i;
    json_t *v;

    if (json_is_object(config))
        return mail_add(all, config, err);
    json_array_foreach (config, i, v)
        if (mail_add(all, v, err) < 0)
            return -1;
    return 0;
}

static int desktop_add(struct amp_channels *all, struct amp_error *err)
{
    static const char *const argv[] = {"notify-send", "--app-name=hitl-prompt", "--urgency=normal",
                                       "--",          "{event}: {title}",       "{text}{decision}"};
    struct channel *ch;
    struct command *c;

    if (channel_add(all, AMP_CHANNEL_COMMAND, "desktop", NULL, &command_ops, &ch, err) < 0 ||
        !(c = command_new(ch, 5000, err)))
        return -1;
    memcpy(c->argv, argv, sizeof argv);
    c->escape = AMP_ESCAPE_HTML; /* the body of a notification may be markup */
    return 0;
}

static int commands_add(struct amp_channels *all, const json_t *config, struct amp_error *err)
{
    size_t i;
    json_t *v;

    json_array_foreach (config, i, v) {
        struct channel *ch;
        struct command *c;
        int64_t timeout_ms = 10000;
        if (channel_add(all, AMP_CHANNEL_COMMAND, "command", amp_json_str(v, "name"), &command_ops,
                        &ch, err) < 0 ||
            channel_time(v, "timeout", 10, &timeout_ms, err) < 0 ||
            !(c = command_new(ch, timeout_ms, err)) ||
            argv_read(c, json_object_get(v, "argv"), err) < 0)
            return -1;
        ch->person = json_string_value(json_object_get(v, "operator"));
        ch->link = json_string_value(json_object_get(v, "link"));
        ch->mute = json_is_false(json_object_get(v, "settled"));
    }
    return 0;
}

/* --notify COMMAND: split into words, without a shell. */
static int options_add(struct amp_channels *all, struct amp_error *err)
{
    char name[24];

    for (int i = 0; all->opt.notify && all->opt.notify[i]; i++) {
        struct channel *ch;
        struct command *c;
        snprintf(name, sizeof name, "%d", i + 1);
        if (channel_add(all, AMP_CHANNEL_COMMAND, "notify", name, &command_ops, &ch, err) < 0 ||
            !(c = command_new(ch, 10000, err)) ||
            amp_argv_split(all->opt.notify[i], &c->split, err) < 0)
            return -1;
        int n = 0;
        while (c->split[n] && n < ARGS_MAX) {
            if (amp_template_text(c->split[n], NULL, AMP_ESCAPE_NONE, NULL, err) < 0)
                return -1;
            c->argv[n] = c->split[n];
            n++;
        }
        if (n == 0 || c->split[n])
            return amp_fail(err, AMP_USAGE, "bad_command", "--notify: a command has 1 to %d words",
                            ARGS_MAX);
    }
    return 0;
}

int notify_add(struct amp_channels *all, const json_t *config, struct amp_error *err)
{
    struct channel *bell;

    if (json_is_true(json_object_get(config, "desktop")) && desktop_add(all, err) < 0)
        return -1;
    if (json_is_true(json_object_get(config, "bell"))) {
        if (channel_add(all, AMP_CHANNEL_COMMAND, "bell", NULL, &bell_ops, &bell, err) < 0)
            return -1;
        bell->mute = true;
    }
    return commands_add(all, json_object_get(config, "commands"), err) < 0 ? -1
                                                                           : options_add(all, err);
}

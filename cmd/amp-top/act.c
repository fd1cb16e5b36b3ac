/*
 * Carries out what a person does. It answers in this process, through the function that all answers
 * take; it suspends and resumes with hitl-prompt, which also ends the processes of the agents.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>

#include "base/codes.h"
#include "cli/config.h"
#include "message/store/key.h"
#include "people/answer/offer.h"
#include "people/answer/person.h"
#include "top.h"

/* The outbox of this name has the decisions; the hitl-prompt that runs as it sends them. */
#define DECIDER  "hitl-prompt"
#define PAUSE_MS 15000

static struct amp_operators *operators;
static struct amp_decider_people people;

static int others_set(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    (void)err;
    people.others = strcmp(text, "true") == 0;
    return 0;
}

static int people_read(struct amp_error *err)
{
    if (operators)
        return 0;
    struct amp_operators *o = amp_operators_new(err);
    people.login = amp_cli_login("operator");
    if (!o ||
        amp_config_values(top_config, top_state, "hitl.operators", amp_operators_add, o, err) < 0 ||
        amp_config_values(top_config, top_state, "hitl.approvals", amp_approvals_add, o, err) < 0 ||
        amp_config_values(top_config, top_state, "hitl.allow_operator", others_set, NULL, err) <
            0) {
        amp_operators_free(o);
        return -1;
    }
    people.operators = operators = o;
    return 0;
}

int top_act_allowed(const char *act, struct amp_error *err)
{
    return amp_person_only_recorded(top_state, amp_cli_name(), environ, act, err);
}

/* ---- answers ---- */

/* Notes of the decider are part of the result. */
static char *said_to;
static size_t said_size;

static void said_add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void said_add(const char *fmt, ...)
{
    va_list ap;
    if (!said_to || *said_to)
        return;
    va_start(ap, fmt);
    vsnprintf(said_to, said_size, fmt, ap);
    va_end(ap);
}

/* The digest of what the person saw, for the record of the decision; "": it could not be made. */
static void shown_digest(const struct top_text *seen, char out[AMP_KEY_NAME_MAX])
{
    struct amp_error err;
    struct amp_span *parts = calloc(seen->n + 1, sizeof *parts);
    *out = '\0';
    if (!parts)
        return;
    for (size_t i = 0; i < seen->n; i++)
        parts[i] = amp_span_str(seen->v[i].text);
    if (amp_key_digest(parts, (uint32_t)seen->n, out, &err) < 0)
        *out = '\0';
    free(parts);
}

static int answer_offer(struct amp_decider *d, const char *question, const char *line,
                        const struct top_text *seen, char *said, size_t size, struct amp_error *err)
{
    char digest[AMP_KEY_NAME_MAX];
    uint32_t left = 0;
    shown_digest(seen, digest);
    const char *hex = strrchr(digest, ':');
    const struct amp_offer offer = {
        .name = question,
        .answer = {.action = line, .op = people.login},
        .how = AMP_KNOWN_BY_LOGIN,
        .channel = AMP_CHANNEL_TERMINAL,
        .shown = !*digest ? NULL
                 : hex    ? hex + 1
                          : digest,
        .left = &left,
    };
    d->people = people;
    switch (amp_offer_make(d, &offer, err)) {
    case AMP_OFFERED_DECIDED:
        snprintf(said, size, "%.40s: decided by %s", line, people.login);
        return 0;
    case AMP_OFFERED_COUNTED:
        snprintf(said, size, "%.40s is counted; %u more must agree", line, left);
        return amp_store_sync(d->hitl.store, err);
    case AMP_OFFERED_DEFERRED:
        snprintf(said, size, "deferred; the question is asked again");
        return 0;
    default:
        return -1;
    }
}

int top_act_answer(struct amp_store *s, const char *question, const char *line,
                   const struct top_text *seen, char *said, size_t size, struct amp_error *err)
{
    char principal[AMP_PRINCIPAL_MAX];
    struct amp_worker_options opt = {
        .tool = amp_cli_name(), .consumer = DECIDER, .stop = &amp_stop, .note = said_add};
    struct amp_decider d = {0};

    if (top_act_allowed("answer escalations", err) < 0 || people_read(err) < 0)
        return -1;
    snprintf(principal, sizeof principal, AMP_OPERATOR_ROLE "/%.100s", people.login);
    const struct amp_identity_tool who = {
        .state = top_state, .config = top_config, .principal = principal, .quiet = true};
    *said = '\0';
    said_to = said;
    said_size = size;
    opt.operator_name = people.login;
    int rc = amp_identity_cli_open(&top_identity, &who, &opt.ids, err);
    if (rc == 0)
        rc = amp_decider_open_bare(&d, s, &opt, err);
    if (rc == 0)
        rc = answer_offer(&d, question, line, seen, said, size, err);
    amp_decider_close(&d);
    amp_identities_close(opt.ids);
    said_to = NULL;
    return rc;
}

/* ---- suspensions ---- */

/* hitl-prompt, beside this program. */
static int hitl_prompt_path(char out[PATH_MAX], struct amp_error *err)
{
    static const char name[] = "/hitl-prompt";
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - sizeof name);
    if (n <= 0)
        return amp_fail_errno(err, AMP_IOERR, "/proc/self/exe");
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    snprintf(slash, (size_t)(out + PATH_MAX - slash), "%s", name);
    return 0;
}

/* The last line of its diagnostics, without the name of the program. */
static void said_read(int fd, char *said, size_t size)
{
    char text[4096];
    size_t n = 0;
    ssize_t got;
    while (n < sizeof text - 1 && (got = read(fd, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n] = '\0';
    const char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    for (int i = 0; i < 2 && strstr(line, ": "); i++)
        line = strstr(line, ": ") + 2;
    snprintf(said, size, "%s", line);
}

int top_act_pause(bool resume, bool task, const char *name, const char *reason, char *said,
                  size_t size, struct amp_error *err)
{
    char path[PATH_MAX];
    const char *argv[16] = {0};
    int n = 0, pipe_fd[2];
    struct amp_child child;
    struct amp_child_end end;

    if (top_act_allowed("suspend and resume work", err) < 0 || hitl_prompt_path(path, err) < 0)
        return -1;
    argv[n++] = path;
    argv[n++] = resume ? "resume" : "suspend";
    argv[n++] = "--color=never";
    argv[n++] = "--state";
    argv[n++] = top_state;
    if (top_config) {
        argv[n++] = "--config";
        argv[n++] = top_config;
    }
    argv[n++] = !name ? "--all" : task ? "--task" : "--agent";
    if (reason && *reason) {
        argv[n++] = "--reason";
        argv[n++] = reason;
    }
    if (name) {
        argv[n++] = "--";
        argv[n++] = name;
    }
    if (pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK) < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "a pipe");
    const struct amp_child_spec spec = {
        .argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = pipe_fd[1], .dies_with_us = false};
    int rc = amp_child_start(&spec, &child, err);
    close(pipe_fd[1]);
    if (rc == 0)
        rc = amp_child_wait(&child, PAUSE_MS, 500, &amp_stop, &end, err);
    if (rc == 0) {
        said_read(pipe_fd[0], said, size);
        if (!end.exited || end.exit_code != 0)
            rc = amp_fail(err, end.exited && end.exit_code ? end.exit_code : AMP_TEMPFAIL,
                          hitl_prompt, "%.300s", *said ? said : "hitl-prompt did not carry it out");
    }
    close(pipe_fd[0]);
    return rc;
}

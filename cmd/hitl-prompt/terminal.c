/* The question on the terminal and the line that answers it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "hitl.h"
#include "task/record.h"

#define TEXT_MAX  (256u << 10)
#define FIELD_MAX 4000 /* bytes of one field that are shown */

void terminal_init(struct terminal *t)
{
    *t = (struct terminal){.fd = -1};
    amp_buf_init(&t->line, 65536);
}

void terminal_release(struct terminal *t)
{
    if (t->fd >= 0)
        close(t->fd);
    amp_buf_release(&t->line);
    t->fd = -1;
}

int terminal_open(struct terminal *t, struct amp_error *err)
{
    if (t->fd >= 0)
        return 0;
    t->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (t->fd < 0)
        return amp_fail(err, AMP_UNAVAILABLE, "no_terminal",
                        "there is no terminal to ask on: use --answer");
    return 0;
}

bool terminal_ours(const struct terminal *t)
{
    return tcgetpgrp(t->fd) == getpgrp();
}

static int width_of(int fd)
{
    struct winsize w;
    return !ioctl(fd, TIOCGWINSZ, &w) && w.ws_col >= 20 ? (w.ws_col > 100 ? 100 : w.ws_col) : 80;
}

/* Words up to the width; columns are counted as code points. */
static int wrap(struct amp_span text, int indent, int width, struct amp_buf *out,
                struct amp_error *err)
{
    int column = 0;

    for (size_t i = 0; i < text.n;) {
        size_t n = 0;
        int points = 0;
        while (i < text.n && text.p[i] == ' ')
            i++;
        while (i + n < text.n && text.p[i + n] != ' ') {
            points += ((unsigned char)text.p[i + n] & 0xC0) != 0x80;
            n++;
        }
        if (!n)
            break;
        if (column && column + 1 + points > width - indent) {
            if (amp_buf_str(out, "\n", err))
                return -1;
            column = 0;
        }
        if (amp_buf_fmt(out, err, "%*s%.*s", column ? 1 : indent, "", (int)n, text.p + i))
            return -1;
        column += points + (column != 0);
        i += n;
    }
    return amp_buf_str(out, "\n", err);
}

/* A label and a text; the text's own line ends begin new lines. */
static int field(const char *label, const char *value, int width, struct amp_buf *out,
                 struct amp_error *err)
{
    size_t left = strlen(value);
    bool cut = left > FIELD_MAX;

    if (cut)
        left = FIELD_MAX;
    do {
        AMP_BUF struct amp_buf safe = {0};
        size_t n = strcspn(value, "\n");
        struct amp_span line = {value, n < left ? n : left};
        bool last = line.n == left;

        amp_buf_init(&safe, TEXT_MAX);
        if (amp_buf_str(&safe, label, err) || amp_text_safe(line, 0, &safe, err) ||
            (last && cut && amp_buf_str(&safe, " …", err)) ||
            wrap(amp_buf_span(&safe), 2, width, out, err))
            return -1;
        label = "";
        value += line.n + !last;
        left -= line.n + !last;
    } while (left);
    return 0;
}

static int list(const char *label, const json_t *values, int width, struct amp_buf *out,
                struct amp_error *err)
{
    size_t i;
    json_t *v;

    json_array_foreach(values, i, v)
    {
        if (i == 8)
            return field("", "…", width, out, err);
        if (json_is_string(v) && field(label, json_string_value(v), width, out, err))
            return -1;
    }
    return 0;
}

static const char *text(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));
    return s ? s : "";
}

/* What a person needs to decide: the task, how far it came, what stood in its way, as far as the
 * description does not say it already. */
static int about_task(const struct amp_task *t, const char *said, int width, struct amp_buf *out,
                      struct amp_error *err)
{
    char line[FIELD_MAX];
    size_t i;
    json_t *issue;

    snprintf(line, sizeof line, "%s (branch %s, risk %s)", t->description, t->branch,
             amp_risk_name(t->risk));
    if (field("task: ", line, width, out, err))
        return -1;
    for (i = 0; i < t->n_parts && i < 8; i++) {
        snprintf(line, sizeof line, "%s: %s, %lld attempts%s%.12s", t->parts[i].id,
                 amp_qa_fsm.states[t->parts[i].state].name, (long long)t->parts[i].attempts,
                 *t->parts[i].commit ? ", last commit " : "", t->parts[i].commit);
        if (field("subtask: ", line, width, out, err))
            return -1;
    }
    json_array_foreach(t->issues, i, issue)
    {
        if (i == 4)
            break;
        if (strstr(said, text(issue, "description")))
            continue;
        snprintf(line, sizeof line, "%s, %s:%lld: %s", text(issue, "severity"), text(issue, "file"),
                 (long long)json_integer_value(json_object_get(issue, "line")),
                 text(issue, "description"));
        if (field("rejected for: ", line, width, out, err))
            return -1;
    }
    return list("blocked by: ", t->blockers, width, out, err);
}

int escalation_text(const json_t *message, const struct amp_task *task, int width,
                    struct amp_buf *out, struct amp_error *err)
{
    const json_t *p = json_object_get(message, "payload");
    const json_t *state = json_object_get(p, "system_state_snapshot");
    AMP_BUF struct amp_buf head = {0};

    amp_buf_init(&head, TEXT_MAX);
    if (amp_buf_fmt(&head, err, "%s: %s, task %s%s, triggered by the %s, %lld rejections",
                    text(p, "severity"), text(p, "escalation_type"), text(message, "task_id"),
                    task && amp_task_is_suspended(task) ? " (suspended)" : "",
                    text(p, "triggered_by"),
                    (long long)json_integer_value(json_object_get(state, "reject_count"))) ||
        amp_buf_str(out, "\n", err) || field("== ", head.data, width, out, err) ||
        field("", text(p, "description"), width, out, err) ||
        (task && *task->description && about_task(task, text(p, "description"), width, out, err)) ||
        list("concerns: ", json_object_get(p, "affected_msgs"), width, out, err) ||
        list("advice: ", json_object_get(p, "suggested_actions"), width, out, err))
        return -1;
    return 0;
}

void terminal_say(struct terminal *t, const char *words)
{
    struct amp_error err;
    amp_write_all(t->fd, amp_span_str(words), &err);
}

int terminal_ask(struct terminal *t, const struct amp_question *q, const struct amp_task *task,
                 struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    int width = width_of(t->fd);

    amp_buf_init(&out, TEXT_MAX);
    if (escalation_text(q->message, task, width, &out, err) ||
        (*q->refused && field("The last answer was refused: ", q->refused, width, &out, err)) ||
        amp_buf_str(&out,
                    "  Answer: resume [NOTE] | redispatch [NOTE] | rollback COMMIT [NOTE] | "
                    "terminate [NOTE]\n  An empty line leaves it undecided.\n> ",
                    err))
        return -1;
    /* What was typed before the question was seen is no answer to it. */
    tcflush(t->fd, TCIFLUSH);
    amp_buf_reset(&t->line);
    return amp_write_all(t->fd, amp_buf_span(&out), err);
}

int terminal_line(struct terminal *t)
{
    char b[4096];
    ssize_t n = read(t->fd, b, sizeof b);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -1;
    if (n == 0)
        return -1;
    if (amp_buf_add(&t->line, b, (size_t)n, NULL)) {
        amp_buf_reset(&t->line);
        return 0;
    }
    char *nl = memchr(t->line.data, '\n', t->line.len);
    if (!nl)
        return 0;
    *nl = 0;
    t->line.len = (size_t)(nl - t->line.data);
    return 1;
}

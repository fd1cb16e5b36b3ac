/* Writes the lines of AMP_TRACE. */
#include "base/trace.h"
#include "base/words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line fits what a pipe takes at once (PIPE_BUF). */
enum { LINE_MAX_BYTES = 4096, TEXT_MAX = 200 };

unsigned amp_trace_topics = ~0u;

static int target = STDERR_FILENO;
static int64_t lost; /* lines since the last that was written */

static const char *const topics[] = {"fsm", "store", "port", "child", NULL};

struct line {
    char text[LINE_MAX_BYTES];
    size_t n;
};

static void line_put(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line_put(struct line *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(l->text + l->n, sizeof l->text - l->n, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < sizeof l->text - l->n)
        l->n += (size_t)n;
}

struct amp_span amp_trace_text(const char *s)
{
    return amp_span_str(s ? s : "");
}

static void text_put(struct line *l, const char *key, struct amp_span s)
{
    line_put(l, ",\"%s\":\"", key);
    for (size_t i = 0; i < s.n && i < TEXT_MAX; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c > 0x7e)
            line_put(l, "\\u%04x", c);
        else
            line_put(l, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    line_put(l, s.n > TEXT_MAX ? "...\"" : "\"");
}

static void number_put(struct line *l, const char *key, int64_t n)
{
    line_put(l, ",\"%s\":%" PRId64, key, n);
}

static void line_open(struct line *l, const char *topic)
{
    l->n = 0;
    line_put(l, "{\"trace\":\"%s\",\"pid\":%d", topic, (int)getpid());
}

/* Does not wait for a reader. */
static void line_write(struct line *l)
{
    struct pollfd fd = {.fd = target, .events = POLLOUT};

    if (lost)
        number_put(l, "lost", lost);
    line_put(l, "}\n");
    if (poll(&fd, 1, 0) == 1 && fd.revents == POLLOUT &&
        write(target, l->text, l->n) == (ssize_t)l->n)
        lost = 0;
    else
        lost++;
}

/* Reports a value that cannot be used. */
static void value_refuse(const char *name, struct amp_span value, const char *why)
{
    struct line l;

    line_open(&l, "trace");
    text_put(&l, name, value);
    text_put(&l, "error", amp_span_str(why));
    line_write(&l);
}

static void target_open(const char *to)
{
    int fd = -1;
    char *end;
    long n = strtol(to, &end, 10);

    if (*end == '\0' && n >= 0 && n < 1024) {
        fd = fcntl((int)n, F_DUPFD_CLOEXEC, 10);
        /* Children have other files under this number. */
        unsetenv("AMP_TRACE");
    } else if (*to == '/') {
        fd = open(to, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    } else {
        errno = EINVAL;
    }
    if (fd < 0) {
        value_refuse("AMP_TRACE_TO", amp_span_str(to), strerror(errno));
        amp_trace_topics = 0;
        return;
    }
    target = fd;
}

static unsigned topic_find(struct amp_span word)
{
    int found = amp_word_find(topics, word);
    if (found >= 0)
        return 1u << found;
    value_refuse("AMP_TRACE", word, "no such topic");
    return 0;
}

static void topics_read(void)
{
    const char *list = secure_getenv("AMP_TRACE"), *to = secure_getenv("AMP_TRACE_TO");
    unsigned found = 0;

    amp_trace_topics = list && *list;
    if (amp_trace_topics && to && *to)
        target_open(to);
    if (!amp_trace_topics)
        return;
    for (size_t n; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n > 0)
            found |= topic_find((struct amp_span){list, n});
    }
    amp_trace_topics = found;
}

void amp_trace_line(enum amp_trace_topic topic, const struct amp_trace_member *m)
{
    int kept = errno;
    struct line l;

    if (amp_trace_topics == ~0u)
        topics_read();
    if (amp_trace_topics & topic) {
        line_open(&l, topics[__builtin_ctz(topic)]);
        for (; m->key; m++) {
            if (!m->text.p)
                number_put(&l, m->key, m->number);
            else if (m->text.n)
                text_put(&l, m->key, m->text);
        }
        line_write(&l);
    }
    errno = kept;
}

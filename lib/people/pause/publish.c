/* The files of suspended agents in the repositories of a state directory. */
#include "people/pause/publish.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/file/repository.h"
#include "base/grow.h"
#include "work/agent/work.h"
#include "work/git/binding.h"
#include "work/git/repository/git.h"
#include "work/git/stopped.h"

#define LOCK_MS 2000
#define WHY_MAX 600

struct places {
    struct amp_store *s;
    const struct amp_pauses *now;
    char (*repo)[PATH_MAX]; /* each once */
    size_t n, cap;
    struct amp_buf lines; /* "REPO\0AGENT WHY\n" of the suspended agents, one after another */
};

/* One line without control characters. */
static int line_add(struct amp_buf *out, const char *agent, const struct amp_pause *p,
                    struct amp_error *err)
{
    char why[WHY_MAX];
    int n = snprintf(why, sizeof why, "%.*s%s%.*s", AMP_CLIP(p->person, 200),
                     p->reason.n ? ": " : "", AMP_CLIP(p->reason, 300));

    for (int i = 0; i < n && why[i]; i++)
        if ((unsigned char)why[i] < ' ' || why[i] == 0x7f)
            why[i] = '?';
    return amp_buf_fmt(out, err, "%s %s\n", agent, why);
}

static int on_binding(void *ctx, const struct amp_binding *b, struct amp_error *err)
{
    struct places *p = ctx;
    struct amp_agent_status st;
    size_t i = 0;

    if (!*b->repo)
        return 0;
    while (i < p->n && strcmp(p->repo[i], b->repo) != 0)
        i++;
    if (i == p->n) {
        if (amp_grow(&p->repo, &p->cap, p->n, sizeof *p->repo, err) < 0)
            return -1;
        snprintf(p->repo[p->n++], PATH_MAX, "%s", b->repo);
    }
    if (amp_agent_status(p->s, b->agent, &st, err) < 0)
        return -1;
    const struct amp_pause *v = amp_pauses_find(
        p->now, amp_span_str(*st.task ? st.task : st.last_task), amp_span_str(b->agent));
    if (!v || v->scope == AMP_PAUSE_ALL)
        return 0;
    return amp_buf_add(&p->lines, b->repo, strlen(b->repo) + 1, err) < 0
               ? -1
               : line_add(&p->lines, b->agent, v, err);
}

static int file_write(const struct places *p, const char *repo, const char *common,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_CLOSE int fd = -1, lock = -1;
    const struct amp_pause *all = amp_pauses_find(p->now, AMP_SPAN(""), AMP_SPAN(""));

    if (amp_repository_lock(common, AMP_STOPPED_FILE ".lock", LOCK_MS, &fd, &lock, err) < 0)
        return -1;
    amp_buf_init(&text, AMP_STOPPED_MAX);
    if (amp_buf_str(&text, AMP_STOPPED_HEAD, err) < 0)
        return -1;
    size_t head = text.len;
    if (all && line_add(&text, "*", all, err) < 0)
        return -1;
    for (size_t at = 0; at < p->lines.len;) {
        const char *of = p->lines.data + at, *line = of + strlen(of) + 1;
        size_t n = strcspn(line, "\n") + 1;
        if (strcmp(of, repo) == 0 && amp_buf_add(&text, line, n, err) < 0)
            return -1;
        at = (size_t)(line - p->lines.data) + n;
    }
    if (text.len > head)
        return amp_file_write_atomic(fd, AMP_STOPPED_FILE, 0644, amp_buf_span(&text), err);
    unlinkat(fd, AMP_STOPPED_FILE, 0);
    return 0;
}

int amp_pause_publish(struct amp_store *s, const struct amp_pauses *now,
                      void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2))),
                      struct amp_error *err)
{
    struct places p = {.s = s, .now = now};
    const struct amp_git_options opt = {0};
    struct amp_git *git = NULL;
    struct amp_git_info info;
    struct amp_error e;

    amp_buf_init(&p.lines, AMP_STOPPED_MAX);
    int rc = amp_binding_each(s, on_binding, &p, err);
    if (rc == 0 && p.n > 0)
        rc = amp_git_open(&opt, &git, err);
    for (size_t i = 0; rc == 0 && i < p.n; i++)
        if (amp_git_info(git, p.repo[i], &info, &e) < 0 ||
            file_write(&p, p.repo[i], info.common, &e) < 0)
            warn("%s: its hooks do not know what is suspended: %s", p.repo[i], e.what);
    amp_git_close(git);
    amp_buf_release(&p.lines);
    free(p.repo);
    return rc;
}

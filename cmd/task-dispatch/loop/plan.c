/* The command lines of the filters. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/process/quote.h"
#include "loop.h"

const char *const loop_unit_names[LOOP_UNITS] = {"the coordinator", "the executor", "the reviewer",
                                                 "the prompt", "the lander"};
/* The inputs of the coordinator that come from roles. */
static const char *const roles[] = {"executor", "reviewer", "admin", "system", NULL};
const char *const loop_fifos[] = {"executor",       "reviewer",    "admin",        "from-executor",
                                  "from-reviewer",  "from-admin",  "from-system",  "shown-executor",
                                  "shown-reviewer", "shown-admin", "shown-system", NULL};

#define ARG_MAX_BYTES ((size_t)128 << 10) /* the kernel's limit */

/* The filter under construction; after a failure nothing more is added. */
struct maker {
    const struct loop_settings *s;
    struct loop_plan *p;
    struct amp_error *err;
    bool failed;
};

static void arg_add(struct maker *m, const char *text)
{
    struct loop_filter *f = &m->p->filters[m->p->n - 1];
    if (m->failed)
        return;
    if (f->n + 1 >= f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 32;
        const char **v = realloc(f->argv, cap * sizeof *v);
        if (!v) {
            m->failed = true;
            amp_fail_memory(m->err);
            return;
        }
        f->argv = v;
        f->cap = cap;
    }
    char *copy = strdup(text);
    if (!copy) {
        m->failed = true;
        amp_fail_memory(m->err);
        return;
    }
    f->argv[f->n++] = copy;
    f->argv[f->n] = NULL;
}

static void args_add(struct maker *m, const char *first, ...)
{
    va_list ap;
    va_start(ap, first);
    for (const char *a = first; a; a = va_arg(ap, const char *))
        arg_add(m, a);
    va_end(ap);
}

/* before + the FIFO's path; between: "" or "from-". */
static void fifo_add(struct maker *m, const char *before, const char *between, const char *name)
{
    char text[PATH_MAX + 128];
    int n = snprintf(text, sizeof text, "%s%s/%s%s", before, m->p->dir, between, name);
    if (n > 0 && (size_t)n < sizeof text) {
        arg_add(m, text);
    } else if (!m->failed) {
        m->failed = true;
        amp_fail(m->err, AMP_USAGE, bad_path, "%s: too long", m->p->dir);
    }
}

static void option_add(struct maker *m, const char *name, const char *value)
{
    if (value)
        args_add(m, name, value, NULL);
}

static void list_add(struct maker *m, const char *name, const struct amp_list *l)
{
    for (int i = 0; i < l->n; i++)
        args_add(m, name, l->v[i], NULL);
}

static struct loop_filter *filter_begin(struct maker *m, enum loop_unit unit, const char *tool,
                                        const char *verb)
{
    struct loop_filter *f = &m->p->filters[m->p->n++];
    *f = (struct loop_filter){.unit = unit};
    arg_add(m, tool);
    option_add(m, m->s->color ? "--color" : NULL, m->s->color ? "always" : NULL);
    if (verb)
        arg_add(m, verb);
    list_add(m, "--redact", &m->s->redact);
    return f;
}

static void identity_add(struct maker *m)
{
    option_add(m, "--allowed-signers", m->s->allowed_signers);
}

/* Prints each message of a role on its way to the coordinator. */
static void show_make(struct maker *m, enum loop_unit unit, const char *role)
{
    filter_begin(m, unit, "amp-ack", "show");
    args_add(m, "--quiet", "--words", "--in", NULL);
    fifo_add(m, "", "from-", role);
    arg_add(m, "--out");
    fifo_add(m, "", "shown-", role);
}

static void spine_make(struct maker *m)
{
    struct loop_filter *f = filter_begin(m, LOOP_SPINE, "task-dispatch", "coordinate");
    f->reads = f->writes = true;
    identity_add(m);
    args_add(m, "--until-done", "--in", "-", NULL);
    if (m->s->supervised)
        arg_add(m, "--hold"); /* a unit may start again */
    for (size_t i = 0; roles[i]; i++) {
        char before[64];
        snprintf(before, sizeof before, "%s=", roles[i]);
        arg_add(m, "--in");
        fifo_add(m, before, "shown-", roles[i]);
    }
    f = filter_begin(m, LOOP_SPINE, "amp-ack", "show");
    f->reads = f->writes = true;
    args_add(m, "--quiet", "--words", NULL);
    f = filter_begin(m, LOOP_SPINE, "amp-ack", "track");
    f->reads = f->writes = true;
    identity_add(m);
    f = filter_begin(m, LOOP_SPINE, "amp-route", NULL);
    f->reads = true;
    arg_add(m, "--out");
    fifo_add(m, "", "from-", "system");
    for (size_t i = 0; i < 3; i++) {
        char before[64];
        snprintf(before, sizeof before, "to=%s => fifo:", roles[i]);
        arg_add(m, "-r");
        fifo_add(m, before, "", roles[i]);
    }
    show_make(m, LOOP_SPINE, "system");
}

static void walls_add(struct maker *m, const char *policy)
{
    const struct amp_confine_cli *w = &m->s->walls;
    if (w->require)
        arg_add(m, "--require");
    if (w->best_effort)
        arg_add(m, "--best-effort");
    if (w->unconfined)
        arg_add(m, "--unconfined");
    option_add(m, "--policy", policy ? policy : w->policy);
    option_add(m, "--network", w->network);
    list_add(m, "--read", &w->read);
    list_add(m, "--write", &w->write);
}

/* Adds --command TYPE=COMMAND; the words of the command are quoted. */
static void command_add(struct maker *m, const char *value)
{
    AMP_BUF struct amp_buf text = {0};
    char **words = NULL;
    size_t n = strcspn(value, "=") + 1;
    amp_buf_init(&text, ARG_MAX_BYTES);
    if (m->failed)
        return;
    m->failed = loop_command("--command", value + n, &words, m->err) < 0 ||
                amp_buf_add(&text, value, n, m->err) < 0;
    for (size_t i = 0; !m->failed && words[i]; i++)
        m->failed = (i && amp_buf_str(&text, " ", m->err) < 0) ||
                    amp_shell_quote(amp_span_str(words[i]), &text, m->err) < 0;
    m->failed = m->failed || amp_buf_add(&text, "", 1, m->err) < 0;
    option_add(m, "--command", text.data);
    loop_words_free(words);
}

static void worker_make(struct maker *m, enum loop_unit unit, const char *command)
{
    bool executor = unit == LOOP_EXECUTOR;
    const char *role = executor ? "executor" : "reviewer";
    char **words = NULL;
    filter_begin(m, unit, "task-dispatch", executor ? "run" : "review");
    identity_add(m);
    walls_add(m, executor ? m->s->executor_policy : m->s->reviewer_policy);
    if (executor)
        option_add(m, "--base", m->s->base);
    else if (m->s->by_exit)
        arg_add(m, "--verdict-by-exit");
    char jobs[32];
    int64_t n = executor ? m->s->executors : m->s->reviewers;
    snprintf(jobs, sizeof jobs, "%lld", (long long)n);
    option_add(m, "--jobs", n > 1 ? jobs : NULL);
    if (executor)
        list_add(m, "--type", &m->s->types);
    for (int i = 0; executor && i < m->s->commands.n; i++)
        command_add(m, m->s->commands.v[i]);
    option_add(m, "--timeout", m->s->timeout);
    option_add(m, "--retries", m->s->retries);
    args_add(m, "--progress", "never", "--in", NULL);
    fifo_add(m, "", "", role);
    arg_add(m, "--out");
    fifo_add(m, "", "from-", role);
    if (!m->failed && loop_command(executor ? "--exec" : "--reviewer", command, &words, m->err) < 0)
        m->failed = true;
    if (!m->failed) {
        arg_add(m, "--exec");
        for (size_t i = 0; words[i]; i++)
            arg_add(m, words[i]);
    }
    loop_words_free(words);
    show_make(m, unit, role);
}

static void prompt_make(struct maker *m)
{
    struct loop_filter *f = filter_begin(m, LOOP_ADMIN, "hitl-prompt", NULL);
    f->asks = true;
    identity_add(m);
    option_add(m, "--answer", m->s->answer);
    arg_add(m, "--in");
    fifo_add(m, "", "", "admin");
    arg_add(m, "--out");
    fifo_add(m, "", "from-", "admin");
    show_make(m, LOOP_ADMIN, "admin");
}

/* The last argument is left out for what is to land at the end. */
static void lander_make(struct maker *m)
{
    if (!m->s->land)
        return;
    filter_begin(m, LOOP_LANDER, "task-dispatch", "land");
    identity_add(m);
    walls_add(m, m->s->executor_policy);
    args_add(m, "--all", "--follow", NULL);
}

int loop_plan_make(const struct loop_settings *s, const char *dir, struct loop_plan *out,
                   struct amp_error *err)
{
    *out = (struct loop_plan){.dir = dir};
    struct maker m = {s, out, err, false};
    spine_make(&m);
    worker_make(&m, LOOP_EXECUTOR, s->executor);
    worker_make(&m, LOOP_REVIEWER, s->reviewer);
    prompt_make(&m);
    lander_make(&m);
    if (!m.failed)
        return 0;
    loop_plan_free(out);
    return -1;
}

void loop_plan_free(struct loop_plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < p->filters[i].n; k++) {
            void *text;
            memcpy(&text, &p->filters[i].argv[k], sizeof text);
            free(text);
        }
        free(p->filters[i].argv);
    }
    *p = (struct loop_plan){0};
}

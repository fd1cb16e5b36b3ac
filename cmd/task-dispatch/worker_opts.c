/* What run and review do alike before they begin. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/id.h>

#include "cli/finding.h"
#include "verbs.h"
#include "worker_opts.h"

const char *const worker_progress[] = {"auto", "always", "never", NULL};

static void quiet(const char *fmt, ...)
{
}

/* The command is found from where we were started, not from the worktree it will run in. */
static int find_command(const char **word, struct amp_error *err)
{
    char found[PATH_MAX];
    struct amp_error why;
    char *path;

    if (amp_child_find(*word, environ, found, sizeof found, &why))
        return amp_fail(err, AMP_USAGE, why.code, "--exec: %s", why.what);
    if (!strchr(*word, '/') || **word == '/')
        return 0;
    if (!(path = realpath(*word, NULL)))
        return amp_fail_errno(err, AMP_USAGE, "%s", *word);
    *word = path;
    return 0;
}

static int patterns(const json_t *list, const char *key, const char *const **out,
                    struct amp_error *err)
{
    size_t n = json_array_size(list), i;
    const char **v;
    json_t *p;

    if (!list)
        return 0;
    if (!json_is_array(list))
        return amp_fail(err, AMP_CONFIG, "bad_value", "%s in the configuration: expected a list",
                        key);
    if (!(v = calloc(n + 1, sizeof *v)))
        return amp_fail_memory(err);
    json_array_foreach (list, i, p) {
        if (!(v[i] = json_string_value(p)))
            return amp_fail(err, AMP_CONFIG, "bad_value",
                            "%s in the configuration: expected a list of patterns", key);
    }
    *out = v;
    return 0;
}

int worker_patterns(const json_t *config, const char *section, const char *key, const char *inner,
                    const char *const **out, struct amp_error *err)
{
    json_t *o = json_object_get(json_object_get(config, section), key);
    return patterns(inner ? json_object_get(o, inner) : o, key, out, err);
}

void worker_patterns_free(const char *const *v)
{
    void *p;

    memcpy(&p, &v, sizeof p);
    free(p);
}

int worker_open(struct worker_opts *o, const char *role, const char *verb,
                struct amp_worker_options *w, struct amp_store **store, json_t **config,
                struct amp_error *err)
{
    static char consumer[256];

    const bool shown =
        strcmp(o->progress, "auto") ? !strcmp(o->progress, "always") : isatty(STDERR_FILENO);

    if (!o->exec.n)
        amp_die_usage("the agent's command is needed: --exec COMMAND…");
    if (!o->agent)
        o->agent = role;
    if (!amp_id_is_safe(amp_span_str(o->agent)))
        amp_die_usage("--agent: invalid name \"%s\" (letters, digits, '.', '-', '_')", o->agent);
    snprintf(consumer, sizeof consumer, "task-dispatch.%s.%s", verb, o->agent);
    if (find_command(&o->exec.v[0], err) || amp_config_load(task_config, task_state, config, err))
        return -1;
    *w = (struct amp_worker_options){
        .tool = amp_cli_name(),
        .role = role,
        .agent = o->agent,
        .consumer = o->as ? o->as : consumer,
        .in = o->in,
        .out = o->out,
        .argv = o->exec.v,
        .envp = environ,
        .timeout_ms = o->timeout_ms,
        .grace_ms = o->grace_ms,
        .retries = o->retries,
        .pause_ms = o->pause_ms,
        .open_timeout_ms = o->open_timeout_ms,
        .output_bytes = o->output_bytes,
        .stop = &amp_stop,
        .note = amp_note,
        .progress = shown ? amp_note : quiet,
        .say = amp_finding_print,
    };
    if (worker_patterns(*config, "branches", "protected", NULL, &w->protected_, err))
        return -1;
    amp_note_terminal(o->in);
    amp_signals_install();
    return task_open(store, err);
}

/* task-dispatch new: tasks from options and files, as task_dispatch messages to the coordinator. */
#include "flow/new.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "verbs.h"
#include "worker_opts.h"
#include "worktree/person.h"

#define FILE_MAX ((size_t)8 << 20)

static const char *id, *description, *repo, *branch, *base, *risk;
static struct amp_list subtasks, criteria, forbidden, constraints, protected_;
static int64_t ack_timeout;
static const char *const risks[] = {"low", "medium", "high", NULL};

const struct amp_opt task_new_opts[] = {
    {.letter = 'd',
     .name = "description",
     .kind = AMP_OPT_STRING,
     .dest = &description,
     .arg = "TEXT",
     .doc = "what is to be done"},
    {.letter = 'r',
     .name = "repo",
     .kind = AMP_OPT_DIR,
     .dest = &repo,
     .arg = "DIR",
     .doc = "the repository (default: the current directory)"},
    {.letter = 'b',
     .name = "branch",
     .kind = AMP_OPT_STRING,
     .dest = &branch,
     .arg = "NAME",
     .doc = "the branch to work on; never a protected one"},
    {.name = "base",
     .kind = AMP_OPT_STRING,
     .dest = &base,
     .arg = "REV",
     .doc = "where a new branch starts (default: HEAD of the repository)"},
    {.name = "subtask",
     .kind = AMP_OPT_LIST,
     .dest = &subtasks,
     .arg = "TEXT",
     .doc = "a part of the task; may be repeated (default: the description is the only one)"},
    {.letter = 'c',
     .name = "criterion",
     .kind = AMP_OPT_LIST,
     .dest = &criteria,
     .arg = "TEXT",
     .doc = "an acceptance criterion; may be repeated, one is needed"},
    {.name = "risk",
     .kind = AMP_OPT_CHOICE,
     .dest = &risk,
     .arg = "LEVEL",
     .doc = "chooses the approval path (default medium)",
     .choices = risks},
    {.name = "forbid",
     .kind = AMP_OPT_LIST,
     .dest = &forbidden,
     .arg = "TEXT",
     .doc = "an action that the executor must not take; may be repeated"},
    {.name = "constraint",
     .kind = AMP_OPT_LIST,
     .dest = &constraints,
     .arg = "NAME=VALUE",
     .doc = "a technical constraint; may be repeated"},
    {.name = "id",
     .kind = AMP_OPT_STRING,
     .dest = &id,
     .arg = "T-YYYY-NNN",
     .doc = "the task's id (default: the next free one of the state directory)"},
    {.name = "protect",
     .kind = AMP_OPT_LIST,
     .dest = &protected_,
     .arg = "PATTERN",
     .doc = "a protected branch beside main and master; may be repeated"},
    {.name = "ack-timeout",
     .kind = AMP_OPT_DURATION,
     .dest = &ack_timeout,
     .arg = "TIME",
     .doc = "deadline for the coordinator's acknowledgement (default: the protocol's)",
     .min = 1000,
     .max = 31536000000},
    AMP_OPT_END,
};

static void set_text(json_t *task, const char *key, const char *value)
{
    if (value && json_object_set_new(task, key, json_string(value)) < 0)
        amp_die_usage("the %s is not UTF-8", key);
}

static void add_texts(json_t *task, const char *key, const struct amp_list *list)
{
    json_t *a = json_object_get(task, key);
    if (list->n && !json_is_array(a)) {
        a = json_array();
        json_object_set_new(task, key, a);
    }
    for (int i = 0; i < list->n; i++)
        if (json_array_append_new(a, json_string(list->v[i])) < 0)
            amp_die_usage("%s: text that is not UTF-8", key);
}

static void add_constraints(json_t *task)
{
    json_t *o = json_object_get(task, "tech_constraints");
    if (constraints.n && !json_is_object(o)) {
        o = json_object();
        json_object_set_new(task, "tech_constraints", o);
    }
    for (int i = 0; i < constraints.n; i++) {
        const char *text = constraints.v[i], *eq = strchr(text, '=');
        char key[128];
        if (!eq || eq == text ||
            !amp_span_copy((struct amp_span){text, (size_t)(eq - text)}, key, sizeof key))
            amp_die_usage("--constraint %s: expected NAME=VALUE", text);
        if (json_object_set_new(o, key, json_string(eq + 1)) < 0)
            amp_die_usage("--constraint %s: not UTF-8", key);
    }
}

/* Options stand before what a file says; lists are added to it. */
static void apply_options(json_t *task)
{
    set_text(task, "task_id", id);
    set_text(task, "description", description);
    set_text(task, "repo", repo);
    set_text(task, "branch", branch);
    set_text(task, "base", base);
    set_text(task, "risk_level", risk);
    add_texts(task, "subtasks", &subtasks);
    add_texts(task, "acceptance_criteria", &criteria);
    add_texts(task, "forbidden_actions", &forbidden);
    add_constraints(task);
}

/* --protect and what the configuration says. */
static const char *const *protected_patterns(struct amp_error *err)
{
    struct json_t *config = NULL;
    static const char *const *more; /* kept for the run */
    static const char *all[256];
    size_t n = 0;
    if (amp_config_load(task_config, task_state, &config, err) < 0 ||
        (!more && worker_patterns(config, "branches", "protected", NULL, &more, err) < 0))
        return NULL;
    for (int i = 0; i < protected_.n && n < 255; i++)
        all[n++] = protected_.v[i];
    for (size_t i = 0; more && more[i] && n < 255; i++)
        all[n++] = more[i];
    all[n] = NULL;
    return all;
}

static int emit(struct amp_store *store, json_t *task, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    const struct amp_new_options opt = {.protected_ = protected_patterns(err),
                                        .ack_timeout_sec = ack_timeout / 1000,
                                        .now_ms = amp_now_ms()};
    amp_buf_init(&line, 2 * FILE_MAX);
    if (!opt.protected_)
        return -1;
    if (amp_new_compose(store, task, &opt, &line, NULL, err) < 0)
        return -1;
    return amp_out(amp_buf_span(&line), err);
}

static int emit_file(struct amp_store *store, const char *path, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, FILE_MAX);
    if (amp_file_read_any(path, FILE_MAX, &text, err) < 0)
        return -1;
    json_t *task = amp_new_read(amp_buf_span(&text), err);
    if (!task)
        return -1;
    apply_options(task);
    int rc = emit(store, task, err);
    json_decref(task);
    return rc;
}

int task_new(int argc, char **argv)
{
    struct amp_error err = {0};
    struct amp_store *store = NULL;
    int status = AMP_OK;
    if (argc > 1 && id)
        amp_die_usage("--id with more than one file");
    if (amp_person_only(environ, "create tasks", &err))
        return amp_complain(&err);
    if ((task_state && *task_state) || !id)
        if (task_open(&store, &err) < 0)
            return amp_complain(&err);
    for (int i = 0; i < argc; i++)
        if (emit_file(store, argv[i], &err) < 0) {
            amp_note("%s:", argv[i]);
            status =
                (int)amp_status_worse((enum amp_status)status, (enum amp_status)amp_complain(&err));
        }
    if (argc == 0) {
        json_t *task = json_object();
        apply_options(task);
        if (emit(store, task, &err) < 0)
            status = amp_complain(&err);
        json_decref(task);
    }
    amp_store_close(store);
    return status;
}

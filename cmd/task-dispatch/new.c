/* task-dispatch new: creates tasks from options and files, or prints their messages to the
 * coordinator. */
#include "work/task/new.h"
#include "cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "cli/rows.h"
#include "message/protocol/compose/json.h"
#include "shared/work/person.h"
#include "verbs.h"
#include "work/git/repository/git.h"
#include "work/git/rule.h"
#include "work/loop/coordinate/coordinate.h"
#include "work/task/task.h"

#define FILE_MAX     ((size_t)8 << 20)
#define PATTERNS_MAX 256

static const char *id, *description, *repo, *branch, *base, *risk, *type;
static struct amp_list subtasks, criteria, forbidden, constraints, protected_;
static int64_t ack_timeout;
static const char *operator_key;
static bool sign, print;
static struct amp_identities *ids;
static const char *const risks[] = {"low", "medium", "high", NULL};

static const struct amp_opt task_new_opts[] = {
    {'d', "description", AMP_OPT_STRING, &description, "TEXT", .doc = "description of the task"},
    AMP_OPT_REPO(repo),
    {'b', "branch", AMP_OPT_STRING, &branch, "NAME",
     .doc = "branch to work on, not a protected one (default: task/ID)"},
    {0, "base", AMP_OPT_STRING, &base, "REV", .doc = "start of a new branch (default: HEAD)"},
    {0, "subtask", AMP_OPT_LIST, &subtasks, "TEXT",
     .doc = "subtask; may be repeated (default: the description)"},
    {0, "criterion", AMP_OPT_LIST, &criteria, "TEXT",
     .doc = "acceptance criterion; may be repeated (default: the reviewer approves)"},
    {0, "risk", AMP_OPT_CHOICE, &risk, "LEVEL",
     .doc = "risk level, selects the approval path (default: medium)", .choices = risks},
    {0, "type", AMP_OPT_STRING, &type, "TYPE",
     .doc = "type of the agents that work on it (task-dispatch loop --type)"},
    {0, "forbid", AMP_OPT_LIST, &forbidden, "TEXT",
     .doc = "action that the executor must not take; may be repeated"},
    {0, "constraint", AMP_OPT_LIST, &constraints, "NAME=VALUE",
     .doc = "technical constraint; may be repeated"},
    {0, "id", AMP_OPT_STRING, &id, "T-YYYY-NNN", .doc = "task id (default: the next free one)"},
    {0, "protect", AMP_OPT_LIST, &protected_, "PATTERN",
     .doc = "protected branch, in addition to main and master; may be repeated"},
    {0, "ack-timeout", AMP_OPT_DURATION, &ack_timeout, "TIME",
     .doc = "deadline for the coordinator's acknowledgement (default: the protocol's)", .min = 1000,
     .max = 31536000000},
    {0, "sign", AMP_OPT_FLAG, &sign, NULL,
     .doc = "sign the task with the operator's key; always with --identity all"},
    {0, "key", AMP_OPT_PATH, &operator_key, "FILE",
     .doc = "SSH key that signs: a private key, or the .pub of a key in ssh-agent",
     .config = "identity.operator_key"},
    {0, "print", AMP_OPT_FLAG, &print, NULL,
     .doc = "write the message for a coordinator to standard output, and create nothing"},
    AMP_OPT_END,
};

/* The option of each member: a value, or a list whose values are added to the file's. */
static const struct {
    const char *member, *option;
    const char **value;
    const struct amp_list *list;
} sources[] = {
    {"task_id", "--id", &id, NULL},
    {"description", "--description", &description, NULL},
    {"repo", "--repo", &repo, NULL},
    {"branch", "--branch", &branch, NULL},
    {"base", "--base", &base, NULL},
    {"risk_level", "--risk", &risk, NULL},
    {"agent_type", "--type", &type, NULL},
    {"subtasks", "--subtask", NULL, &subtasks},
    {"acceptance_criteria", "--criterion", NULL, &criteria},
    {"forbidden_actions", "--forbid", NULL, &forbidden},
    {"tech_constraints", "--constraint", NULL, &constraints},
};
enum { SOURCES = sizeof sources / sizeof *sources };

/* A task and its source. */
struct draft {
    json_t *task;
    const char *path;     /* NULL: from options only */
    struct amp_span text; /* of the file */
    struct amp_span kept; /* the text that says what the task is, for its record; or empty */
    size_t own[SOURCES];  /* number of the elements of a list that the file has */
};

/* For a value of which jansson makes no string: it is not UTF-8, or memory is exhausted. */
static void refuse_value(const char *option)
{
    struct amp_error err;
    if (errno == ENOMEM) {
        amp_fail_memory(&err);
        exit(amp_complain(&err));
    }
    amp_die_usage("%s: the value is not UTF-8", option);
}

static void add_texts(struct draft *d, size_t i)
{
    json_t *a = json_object_get(d->task, sources[i].member);
    const struct amp_list *list = sources[i].list;
    d->own[i] = json_array_size(a);
    if (list->n && !a && json_object_set_new(d->task, sources[i].member, a = json_array()) < 0)
        refuse_value(sources[i].option);
    /* A member that is not a list is refused later. */
    for (int k = 0; json_is_array(a) && k < list->n; k++)
        if (json_array_append_new(a, json_string(list->v[k])) < 0)
            refuse_value(sources[i].option);
}

static void add_constraints(json_t *task)
{
    json_t *o = json_object_get(task, "tech_constraints");
    if (constraints.n && !o && json_object_set_new(task, "tech_constraints", o = json_object()) < 0)
        refuse_value("--constraint");
    for (int i = 0; i < constraints.n; i++) {
        const char *text = constraints.v[i], *eq = strchr(text, '=');
        char key[128];
        if (!eq || eq == text ||
            !amp_span_copy((struct amp_span){text, (size_t)(eq - text)}, key, sizeof key))
            amp_die_usage("--constraint %s: expected NAME=VALUE, a name of at most %zu bytes", text,
                          sizeof key - 1);
        if (json_is_object(o) && json_object_set_new(o, key, json_string(eq + 1)) < 0)
            refuse_value("--constraint");
    }
}

/* Sets the members from options: values replace the file's, lists are added. */
static void apply_options(struct draft *d)
{
    errno = 0;
    for (size_t i = 0; i < SOURCES; i++) {
        const char *value = sources[i].value ? *sources[i].value : NULL;
        if (value && json_object_set_new(d->task, sources[i].member, json_string(value)) < 0)
            refuse_value(sources[i].option);
        if (sources[i].list && sources[i].list != &constraints)
            add_texts(d, i);
    }
    add_constraints(d->task);
}

/* True if an option replaces or adds to what the file has, so that the file is not the task. */
static bool is_changed_by_options(const json_t *read)
{
    for (size_t i = 0; i < SOURCES; i++)
        if (sources[i].list ? sources[i].list->n > 0
                            : *sources[i].value && json_object_get(read, sources[i].member))
            return true;
    return false;
}

static bool constraint_given(struct amp_span name)
{
    for (int i = 0; i < constraints.n; i++)
        if (strncmp(constraints.v[i], name.p, name.n) == 0 && constraints.v[i][name.n] == '=')
            return true;
    return false;
}

/* Whether the invalid member is from an option. The first elements of a list are the file's, and so
 * is a list that is invalid as such. */
static bool by_option(const struct draft *d, size_t i, struct amp_span element)
{
    int64_t k;
    if (sources[i].value)
        return *sources[i].value != NULL;
    if (sources[i].list == &constraints)
        return constraint_given(element);
    return amp_num_parse(element, 0, INT64_MAX, &k, NULL) == 0 && (uint64_t)k >= d->own[i];
}

/* Puts the option, or the file and line, before the text of err. */
static int name_place(const struct draft *d, const struct amp_new_fault *at, struct amp_error *err)
{
    struct amp_error why = *err;
    unsigned line = at->line;
    const char *member = at->pointer + (*at->pointer == '/');
    size_t n = strcspn(member, "/"), i = 0;
    const char *rest = member + n + (member[n] == '/');
    while (i < SOURCES && !amp_span_is((struct amp_span){member, n}, sources[i].member))
        i++;
    if (*member && i < SOURCES &&
        (!d->path || by_option(d, i, (struct amp_span){rest, strcspn(rest, "/")})))
        return amp_fail_text(err, why.status, why.code, "%s: %s", sources[i].option, why.what);
    if (!d->path)
        return -1;
    if (!line && *member)
        line = amp_new_line(d->text, at->pointer);
    if (line)
        return amp_fail_text(err, why.status, why.code, "%s:%u: %.*s%s%s", d->path, line, (int)n,
                             member, n ? ": " : "", why.what);
    return amp_fail_text(err, why.status, why.code, "%s: %s%s%s", d->path, why.what,
                         *member && i < SOURCES ? ": missing there, and not given as " : "",
                         *member && i < SOURCES ? sources[i].option : "");
}

/* Loads what the guard of the task's repository protects. */
static int guard_load(const json_t *task, struct amp_rule *out, struct amp_error *err)
{
    struct amp_repository found;
    char dir[PATH_MAX];
    const char *given = json_string_value(json_object_get(task, "repo"));
    if (!realpath(given ? given : ".", dir) || amp_repository_find(dir, &found, NULL) < 0 ||
        !found.found) {
        amp_rule_default(out); /* amp_new_compose says what is wrong */
        return 0;
    }
    AMP_CLOSE int common = open(found.common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return common < 0 ? amp_fail_errno(err, AMP_IOERR, "%s", found.common)
                      : amp_rule_load(out, common, err);
}

/* The patterns of --protect, of the configuration, and of the repository's guard. */
static const char *const *protected_patterns(const json_t *task, struct amp_error *err)
{
    static struct amp_rule guard;
    struct json_t *config = NULL;
    static const char *const *more; /* kept for the run */
    static const char *all[PATTERNS_MAX + AMP_RULE_PATTERNS_MAX + 1];
    size_t n = 0;
    if (amp_config_load(amp_tool_config, amp_tool_state, &config, err) < 0 ||
        (!more && amp_tool_patterns(config, "branches", "protected", NULL, &more, err) < 0))
        return NULL;
    size_t configured = 0, guarded = 0;
    while (more && more[configured])
        configured++;
    if ((size_t)protected_.n + configured > PATTERNS_MAX) {
        amp_fail(err, AMP_USAGE, bad_value,
                 "--protect and branches.protected have %zu patterns: expected at most %d",
                 (size_t)protected_.n + configured, PATTERNS_MAX);
        return NULL;
    }
    if (guard_load(task, &guard, err) < 0)
        return NULL;
    for (int i = 0; i < protected_.n; i++)
        all[n++] = protected_.v[i];
    for (size_t i = 0; i < configured; i++)
        all[n++] = more[i];
    while (guard.patterns[guarded])
        all[n++] = guard.patterns[guarded++];
    all[n] = NULL;
    return all;
}

/* ctx: the git worker, which is started for the first task with a base. */
static int find_commit(void *ctx, const char *repository, const char *rev, struct amp_error *err)
{
    struct amp_git **git = ctx;
    char oid[AMP_OID_MAX];
    return *git || amp_git_open(NULL, git, err) == 0
               ? amp_git_resolve(*git, repository, rev, oid, err)
               : -1;
}

static struct amp_git *git;

/* The next free id for a message that is printed, unless the task has one. The state is only read.
 */
static int id_give(struct amp_store *store, json_t *task, struct amp_error *err)
{
    static int64_t last;
    char next[AMP_TASK_ID_MAX];
    if (json_object_get(task, "task_id") || !amp_tool_state || !*amp_tool_state)
        return 0;
    if (amp_task_next_id(store, amp_now_ms(), &last, next, err) < 0)
        return -1;
    return json_object_set_new(task, "task_id", json_string(next)) < 0 ? amp_fail_memory(err) : 0;
}

/* Creates the task of a message, without its LF. 1: it was refused, and a warning said why. */
static int task_create(struct amp_store *store, const struct draft *d, struct amp_span line,
                       const char *const *patterns, struct amp_error *err)
{
    const char *name = amp_json_str(d->task, "task_id");
    struct amp_task_status before;
    struct amp_coordinate_options opt = {.consumer = AMP_CREATE_CONSUMER,
                                         .ids = ids,
                                         .protected_ = patterns,
                                         .text = d->kept,
                                         .warn = amp_warn};
    AMP_BUF struct amp_buf said = {.max = 256};
    if (task_policy(&opt.policy, err) < 0 ||
        amp_task_status(store, amp_span_str(name), &before, err) < 0)
        return -1;
    int rc = amp_coordinate_task(store, &opt, line, err);
    if (rc != 0)
        return rc;
    return amp_buf_fmt(&said, err, "%s %s\n", name, before.found ? "sent again" : "created") < 0
               ? -1
               : amp_out(amp_buf_span(&said), err);
}

/* Signs the line where the identities are open. */
static int line_sign(struct amp_buf *line, struct amp_buf *out, struct amp_error *err)
{
    line->len--; /* its LF */
    return amp_identities_sign(ids, amp_buf_span(line), out, err);
}

/* 1: the task was refused. */
static int task_write(struct amp_store *store, struct draft *d, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_new_fault at;
    struct amp_new_options opt = {.ack_timeout_sec = ack_timeout / 1000,
                                  .now_ms = amp_now_ms(),
                                  .find_commit = find_commit,
                                  .ctx = &git};
    amp_buf_init(&line, 2 * FILE_MAX);
    apply_options(d);
    if (!(opt.protected_ = protected_patterns(d->task, err)))
        return -1;
    if (print && id_give(store, d->task, err) < 0)
        return -1;
    if (amp_new_compose(print ? NULL : store, d->task, &opt, &line, &at, err) < 0)
        return *at.pointer ? name_place(d, &at, err) : -1;
    AMP_BUF struct amp_buf whole = {0};
    amp_buf_init(&whole, 3 * FILE_MAX);
    if (line_sign(&line, &whole, err) < 0)
        return -1;
    if (!print)
        return task_create(store, d, amp_buf_span(&whole), opt.protected_, err);
    return amp_buf_str(&whole, "\n", err) < 0 ? -1 : amp_out(amp_buf_span(&whole), err);
}

/* path "-": standard input. */
static int file_write(struct amp_store *store, const char *path, struct amp_error *err)
{
    bool input = strcmp(path, "-") == 0;
    AMP_BUF struct amp_buf text = {0};
    struct amp_new_fault at = {0};
    amp_buf_init(&text, FILE_MAX);
    if (input)
        amp_note_terminal(NULL);
    if (amp_file_read_any(path, FILE_MAX, &text, err) < 0) {
        if (!input && access(path, F_OK) != 0 && strchr(path, ' '))
            amp_note("a task is described in a file (see task-dispatch-new(1)), or with - on "
                     "standard input");
        return -1;
    }
    json_auto_t *task = amp_new_read(amp_buf_span(&text), &at, err);
    struct draft d = {
        .task = task, .path = input ? "standard input" : path, .text = amp_buf_span(&text)};
    if (task && !is_changed_by_options(task))
        d.kept = d.text;
    return task ? task_write(store, &d, err) : name_place(&d, &at, err);
}

/* The task is unsigned by default, because standard input of the coordinator is trusted. */
static int identity_open(struct amp_error *err)
{
    static char principal[AMP_PRINCIPAL_MAX];
    const struct amp_identity_tool who = {.state = amp_tool_state,
                                          .config = amp_tool_config,
                                          .principal = principal,
                                          .key = operator_key,
                                          .quiet = true};
    if (!sign && strcmp(amp_tool_identity.require, "all") != 0)
        return 0;
    if (!amp_tool_state || !*amp_tool_state)
        amp_die_usage("--sign needs a state directory: give --state DIR or set AMP_STATE");
    snprintf(principal, sizeof principal, AMP_OPERATOR_ROLE "/%.100s",
             amp_cli_login(AMP_OPERATOR_ROLE));
    return amp_identity_cli_open(&amp_tool_identity, &who, &ids, err);
}

int task_send(struct amp_store *store, json_t *task, struct amp_span text, struct amp_error *err)
{
    struct draft d = {.task = task, .kept = text};
    int rc = identity_open(err) < 0 ? -1 : task_write(store, &d, err);

    amp_git_close(git);
    amp_identities_close(ids);
    return rc;
}

static enum amp_status status_of(int rc, struct amp_error *err)
{
    return rc < 0 ? (enum amp_status)amp_complain(err) : rc > 0 ? AMP_NO : AMP_OK;
}

static int state_choose(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (c->argc > 1 && id)
        amp_die_usage("--id with more than one file");
    if (print)
        c->opens = AMP_OPENS_NOTHING;
    return 0;
}

/* A message that is printed needs the state for a free id only. There may be none, or one that
 * another process is making. */
static int print_open(struct amp_command *c, struct amp_error *err)
{
    c->opens = AMP_OPENS_READ;
    return id || !c->state || !*c->state || amp_state_open(c, err) == 0 ||
                   amp_code_is(err->code, state_missing)
               ? 0
               : -1;
}

static int task_new(struct amp_command *c, struct amp_error *err)
{
    enum amp_status status = AMP_OK;
    if ((print && print_open(c, err) < 0) || identity_open(err) < 0)
        return -1;
    for (int i = 0; i < c->argc; i++)
        status = amp_status_worse(status, status_of(file_write(c->store, c->argv[i], err), err));
    if (c->argc == 0) {
        json_auto_t *task = json_object();
        struct draft d = {.task = task};
        status = status_of(task ? task_write(c->store, &d, err) : amp_fail_memory(err), err);
    }
    amp_git_close(git);
    amp_identities_close(ids);
    return (int)status;
}

const struct amp_verb new_verbs[] = {
    {"new", "[FILE…]", "create a task", task_new_opts, task_new, .check = state_choose,
     .opens = AMP_OPENS_MADE, .act = "create tasks", .finds_state = true, .group = "Tasks",
     .who = AMP_WHO_PERSON},
    {0},
};

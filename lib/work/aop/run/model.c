/*
 * The command of a provider and model: providers.NAME of amp.json, or the worker's. {model} and
 * {profile} in an argument are replaced as text; no shell reads it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "work/aop/run/private.h"

#define MODEL   "{model}"
#define PROFILE "{profile}"

void amp_tasking_model_release(struct amp_tasking_model *m)
{
    free(m->argv);
    json_decref(m->mem);
    *m = (struct amp_tasking_model){0};
}

/* An argument with its places filled; NULL: out of memory. */
static json_t *argument_make(const char *text, const char *model, const char *profile)
{
    AMP_BUF struct amp_buf out = {.max = 1 << 20};
    while (*text) {
        size_t n = strcspn(text, "{");
        if (amp_buf_add(&out, text, n, NULL) < 0)
            return NULL;
        text += n;
        const char *by = strncmp(text, MODEL, strlen(MODEL)) == 0       ? model
                         : strncmp(text, PROFILE, strlen(PROFILE)) == 0 ? profile
                                                                        : NULL;
        if (by ? amp_buf_str(&out, by, NULL) < 0 : *text && amp_buf_add(&out, text, 1, NULL) < 0)
            return NULL;
        text += by ? strcspn(text, "}") + 1 : *text != '\0';
    }
    return json_stringn(out.data ? out.data : "", out.len);
}

static bool is_listed(const json_t *models, const char *name)
{
    const json_t *one;
    size_t i;
    json_array_foreach (models, i, one)
        if (strcmp(json_string_value(one) ? json_string_value(one) : "", name) == 0)
            return true;
    return !json_is_array(models);
}

static int argv_make(const json_t *command, const char *model, const char *profile,
                     struct amp_tasking_model *out, struct amp_error *err)
{
    size_t n = json_array_size(command), i;
    const json_t *one;
    const char **argv = calloc(n + 1, sizeof *argv);
    out->argv = argv;
    out->mem = json_array();
    if (!argv || !out->mem)
        return amp_fail_memory(err);
    json_array_foreach (command, i, one) {
        const char *text = json_string_value(one);
        json_t *arg = argument_make(text ? text : "", model, profile);
        if (!arg || json_array_append_new(out->mem, arg) < 0)
            return amp_fail_memory(err);
        argv[i] = json_string_value(arg);
        /* The author of the TASK gives no options. */
        if (*argv[i] == '-' && *text != '-')
            return amp_fail(err, AMP_NO, E_MODEL_UNAVAILABLE,
                            "the command of the provider would read \"%.100s\" as an option",
                            argv[i]);
    }
    return 0;
}

const char *amp_tasking_profile(const struct amp_tasking *t)
{
    const char *own = amp_json_str(json_object_get(t->task, "target"), "execution_profile");
    return *own ? own : "balanced";
}

int amp_tasking_model_find(const struct amp_tasking *t, const char *provider, const char *model,
                           struct amp_tasking_model *out, struct amp_error *err)
{
    const json_t *set = json_object_get(json_object_get(t->opt->config, "providers"), provider);
    const json_t *command = json_object_get(set, "command");
    *out = (struct amp_tasking_model){.provider = provider, .name = model};
    if (!is_listed(json_object_get(set, "models"), model))
        return amp_fail(err, AMP_NO, E_MODEL_UNAVAILABLE,
                        "providers.%s.models does not list the model \"%.100s\"", provider, model);
    if (json_array_size(command) > 0)
        return argv_make(command, model, amp_tasking_profile(t), out, err);
    if (t->opt->worker.argv)
        return 0;
    return amp_fail(err, AMP_NO, E_MODEL_UNAVAILABLE,
                    "no command for the provider %s: set providers.%s.command in amp.json, or give "
                    "--exec",
                    provider, provider);
}

/* The command line as a whole: verb, options in any order, operands, environment, amp.json. */
#include "cli/private.h"

#include <stdlib.h>
#include <string.h>

bool cli_opt_takes_arg(const struct amp_opt *o)
{
    return o->kind != AMP_OPT_FLAG && !o->optional_arg;
}

/* The first value replaces the tool's default list. */
static void start_list(const struct amp_opt *o)
{
    if (o->kind == AMP_OPT_LIST || o->kind == AMP_OPT_REST)
        *(struct amp_list *)o->dest = (struct amp_list){0};
}

static int take(struct cli_parse *p, int i, const char *text, const char *as, struct amp_error *err)
{
    const struct amp_opt *o = cli_opt_at(p, i);
    if (p->seen[i] && o->kind != AMP_OPT_LIST && o->kind != AMP_OPT_FLAG)
        return amp_fail(err, AMP_USAGE, "repeated_option", "%s is given twice", as);
    if (!p->seen[i])
        start_list(o);
    p->seen[i] = true;
    return cli_opt_set(o, text, CLI_FROM_FLAG, err);
}

/* The rest of the arguments belongs to a command of the user's: not one of them is ours. */
static int take_rest(struct cli_parse *p, int i, const char *first, char ***args, const char *as,
                     struct amp_error *err)
{
    const struct amp_opt *o = cli_opt_at(p, i);
    if (first && take(p, i, first, as, err))
        return -1;
    for (; (*args)[1]; (*args)++) {
        if (p->seen[i] ? cli_list_add(o->dest, (*args)[1], err) : take(p, i, (*args)[1], as, err))
            return -1;
    }
    if (!p->seen[i])
        return amp_fail(err, AMP_USAGE, "missing_argument", "%s needs a command", as);
    return 0;
}

static int take_long(struct cli_parse *p, char ***args, struct amp_error *err)
{
    const char *text = **args + 2;
    size_t n = strcspn(text, "=");
    const char *value = text[n] ? text + n + 1 : NULL;
    char as[80];
    snprintf(as, sizeof as, "--%.*s", n > 64 ? 64 : (int)n, text);
    int i = cli_opt_find(p, 0, (struct amp_span){text, n});
    if (i < 0)
        return cli_unknown_option(p->tool, p, (struct amp_span){text, n}, err);
    const struct amp_opt *o = cli_opt_at(p, i);
    if (o->kind == AMP_OPT_REST)
        return take_rest(p, i, value, args, as, err);
    if (o->kind == AMP_OPT_FLAG && value)
        return amp_fail(err, AMP_USAGE, "unexpected_argument", "%s takes no argument", as);
    if (cli_opt_takes_arg(o) && !value) {
        if (!(*args)[1])
            return amp_fail(err, AMP_USAGE, "missing_argument", "%s needs an argument", as);
        value = *++*args;
    }
    return take(p, i, value, as, err);
}

static int take_short(struct cli_parse *p, char ***args, struct amp_error *err)
{
    for (const char *c = **args + 1; *c; c++) {
        char as[3] = {'-', *c, '\0'};
        int i = cli_opt_find(p, *c, (struct amp_span){"", 0});
        if (i < 0)
            return amp_fail(err, AMP_USAGE, "unknown_option", "unknown option %s", as);
        const struct amp_opt *o = cli_opt_at(p, i);
        if (o->kind == AMP_OPT_REST)
            return take_rest(p, i, c[1] ? c + 1 : NULL, args, as, err);
        if (!cli_opt_takes_arg(o)) {
            if (take(p, i, NULL, as, err))
                return -1;
            continue;
        }
        const char *value = c[1] ? c + 1 : (*args)[1];
        if (!value)
            return amp_fail(err, AMP_USAGE, "missing_argument", "%s needs an argument", as);
        if (!c[1])
            ++*args;
        return take(p, i, value, as, err);
    }
    return 0;
}

int cli_parse_args(struct cli_parse *p, char **args, int verb_words, struct amp_error *err)
{
    bool options = true;
    for (; *args; args++) {
        const char *a = *args;
        int rc = 0;
        if (options && strcmp(a, "--") == 0)
            options = false;
        else if (options && strncmp(a, "--", 2) == 0)
            rc = take_long(p, &args, err);
        else if (options && a[0] == '-' && a[1])
            rc = take_short(p, &args, err);
        else if (verb_words > 0)
            verb_words--;
        else
            rc = cli_list_add(&p->operands, a, err);
        if (rc)
            return -1;
    }
    return 0;
}

struct config_arg {
    struct cli_parse *p;
    int i;
};

static int set_from_config(void *arg, const char *text, struct amp_error *err)
{
    struct config_arg *a = arg;
    const struct amp_opt *o = cli_opt_at(a->p, a->i);
    if (!a->p->seen[a->i])
        start_list(o);
    a->p->seen[a->i] = true;
    return cli_opt_set(o, text, CLI_FROM_CONFIG, err);
}

static const char *text_of(const struct cli_parse *p, const char *name)
{
    int i = cli_opt_find(p, 0, amp_span_str(name));
    return i < 0 ? NULL : *(const char **)cli_opt_at(p, i)->dest;
}

int cli_settings(const struct cli_parse *p, const struct amp_tool *tool, struct amp_error *err)
{
    struct amp_error why;
    for (const struct amp_setting *s = tool->settings; s && s->key; s++)
        if (tool->config(text_of(p, "config"), text_of(p, "state"), s->key, s->set, NULL, &why))
            return why.status == AMP_USAGE
                       ? amp_fail(err, AMP_CONFIG, why.code, "%s in amp.json: %s", s->key, why.what)
                       : amp_fail(err, why.status, why.code, "%s", why.what);
    return 0;
}

int cli_parse_rest(struct cli_parse *p, amp_config_fn *config, struct amp_error *err)
{
    const struct amp_opt *o;
    for (int i = 0; (o = cli_opt_at(p, i)); i++) {
        const char *text = o->env && !p->seen[i] ? getenv(o->env) : NULL;
        if (!text || (!*text && o->kind != AMP_OPT_STRING))
            continue;
        start_list(o);
        p->seen[i] = true;
        if (cli_opt_set(o, text, CLI_FROM_ENV, err))
            return -1;
    }
    for (int i = 0; config && (o = cli_opt_at(p, i)); i++) {
        struct config_arg arg = {p, i};
        if (o->config && !p->seen[i] &&
            config(text_of(p, "config"), text_of(p, "state"), o->config, set_from_config, &arg,
                   err))
            return -1;
    }
    return 0;
}

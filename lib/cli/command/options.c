/* Options and operands: finding an option in the tables, and setting its value from the command
 * line, the environment or amp.json. */
#include "cli/config.h"
#include "cli/private.h"
#include "cli/rows.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/num.h>

#include "base/codes.h"

const char *const amp_opt_networks[] = {"DENY_ALL", "EGRESS_RESTRICTED", "EGRESS_UNRESTRICTED",
                                        "FULL_ACCESS", NULL};

static const char *const color_choices[] = {"auto", "always", "never", NULL};
static const char *const machine_choices[] = {"table", "dot", "ndjson", NULL};

/* The source of a value. */
enum source { FROM_FLAG, FROM_ENV, FROM_CONFIG };

struct cli_standard cli_standard = {.color = "auto", .progress = "auto"};

const struct amp_opt cli_standard_opts[] = {
    {'h', "help", AMP_OPT_FLAG, &cli_standard.help, NULL, .doc = "print this help"},
    {0, "version", AMP_OPT_FLAG, &cli_standard.version, NULL, .doc = "print the version"},
    {0, "options", AMP_OPT_FLAG, &cli_standard.options, NULL,
     .doc = "print the option table, tab separated"},
    {0, "color", AMP_OPT_CHOICE, &cli_standard.color, "WHEN", .choices = color_choices,
     .doc = "colour diagnostics: auto, always or never"},
    {'q', "quiet", AMP_OPT_FLAG, &amp_quiet, NULL, .doc = "print warnings and errors only"},
    {'v', "verbose", AMP_OPT_FLAG, &amp_verbose, NULL,
     .doc = "print details, and a summary at the end"},
    {0, "progress", AMP_OPT_CHOICE, &cli_standard.progress, "WHEN", .choices = color_choices,
     .doc = "show the progress of long work: auto, always or never"},
    AMP_OPT_END,
};

const struct amp_opt cli_machine_opts[] = {
    {0, "machine", AMP_OPT_CHOICE, &cli_standard.machine, "FORMAT", .choices = machine_choices,
     .optional_arg = true, .doc = "print the state machines: table, dot or ndjson"},
    AMP_OPT_END,
};

const struct amp_opt cli_redact_opts[] = {
    {0, "redact", AMP_OPT_LIST, &cli_standard.redact, "REGEX",
     .doc = "also redact text that matches REGEX; may be repeated", .config = "redact.patterns"},
    AMP_OPT_END,
};

const struct amp_opt cli_values_opts[] = {
    {0, "values", AMP_OPT_STRING, &cli_standard.values, "KIND",
     .doc = "print the values that complete an operand or option"},
    AMP_OPT_END,
};

const struct amp_opt *cli_opt_at(const struct cli_parse *p, int n)
{
    for (size_t t = 0; t < sizeof p->tables / sizeof p->tables[0]; t++)
        for (const struct amp_opt *o = p->tables[t]; o && (o->name || o->letter); o++)
            if (n-- == 0)
                return o;
    return NULL;
}

int cli_opt_find(const struct cli_parse *p, char letter, struct amp_span name)
{
    int found = -1, i = 0;
    /* The last one counts, so that a tool can replace a letter of a standard option. */
    for (size_t t = 0; t < sizeof p->tables / sizeof p->tables[0]; t++)
        for (const struct amp_opt *o = p->tables[t]; o && (o->name || o->letter); o++, i++)
            if (letter ? o->letter == letter : o->name && amp_span_is(name, o->name))
                found = i;
    return found;
}

/* "--name" or "-x", or the other source of the value, for diagnostics. */
static const char *option_name(const struct amp_opt *o, enum source from, char *buf, size_t size)
{
    if (from == FROM_ENV)
        snprintf(buf, size, "%s", o->env);
    else if (from == FROM_CONFIG)
        snprintf(buf, size, "%s in amp.json", o->config);
    else if (o->name)
        snprintf(buf, size, "--%s", o->name);
    else
        snprintf(buf, size, "-%c", o->letter);
    return buf;
}

int cli_list_add(struct amp_list *l, const char *text, struct amp_error *err)
{
    /* The room doubles at each power of two. A list starts empty, not with the tool's default. */
    size_t n = (size_t)l->n;
    if ((n & (n - 1)) == 0) {
        const char **v = realloc(l->v, (2 * n + 2) * sizeof *v);
        if (!v)
            return amp_fail_memory(err);
        l->v = v;
    }
    l->v[n] = text;
    l->v[n + 1] = NULL;
    l->n++;
    return 0;
}

static int set_choice(const struct amp_opt *o, const char *text, struct amp_error *err)
{
    const char **dest = o->dest;
    char all[200] = "";
    for (int i = 0; o->choices[i]; i++) {
        if (strcmp(o->choices[i], text) == 0) {
            *dest = o->choices[i];
            return 0;
        }
        size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", o->choices[i]);
    }
    return amp_fail(err, AMP_USAGE, bad_choice, "'%.64s' is not one of %s", text, all);
}

static int set_flag(const struct amp_opt *o, const char *text, struct amp_error *err)
{
    static const char *const words[] = {"1", "true", "yes", "on", "0", "false", "no", "off", ""};
    size_t i = 0, n = sizeof words / sizeof *words;
    while (text && i < n && strcmp(text, words[i]) != 0)
        i++;
    if (i == n)
        return amp_fail(err, AMP_USAGE, bad_flag, "'%.64s' is neither 1 nor 0", text);
    *(bool *)o->dest = i < 4;
    return 0;
}

static int set_number(const struct amp_opt *o, const char *text, struct amp_error *err)
{
    struct amp_span s = amp_span_str(text);
    bool open = o->min == 0 && o->max == 0;
    int64_t max = open ? INT64_MAX : o->max;
    switch (o->kind) {
    case AMP_OPT_INT:
        return amp_num_parse(s, o->min, max, o->dest, err);
    case AMP_OPT_DURATION:
        return amp_num_duration(s, o->min, max, o->dest, err);
    case AMP_OPT_SIZE:
        return amp_num_size(s, o->min, max, o->dest, err);
    default:
        return amp_num_real(s, open ? -1e308 : (double)o->min, open ? 1e308 : (double)o->max,
                            o->dest, err);
    }
}

static int set_value(const struct amp_opt *o, const char *text, struct amp_error *err)
{
    switch (o->kind) {
    case AMP_OPT_FLAG:
        return set_flag(o, text, err);
    case AMP_OPT_STRING:
        *(const char **)o->dest = text;
        return 0;
    case AMP_OPT_PATH:
    case AMP_OPT_DIR:
        if (!*text)
            return amp_fail(err, AMP_USAGE, bad_path, "an empty path");
        *(const char **)o->dest = text;
        return 0;
    case AMP_OPT_CHOICE:
        return set_choice(o, text, err);
    case AMP_OPT_LIST:
    case AMP_OPT_REST:
        return cli_list_add(o->dest, text, err);
    default:
        return set_number(o, text, err);
    }
}

/* Sets dest from text; NULL for a flag and for an optional argument that is absent. */
static int opt_set(const struct amp_opt *o, const char *text, enum source from,
                   struct amp_error *err)
{
    char name[96];
    if (!text && o->optional_arg) {
        *(const char **)o->dest = o->choices[0];
        return 0;
    }
    struct amp_error why;
    if (!set_value(o, text, &why))
        return 0;
    return amp_fail_text(err,
                         from == FROM_FLAG || why.status != AMP_USAGE ? why.status : AMP_CONFIG,
                         why.code, "%s: %s", option_name(o, from, name, sizeof name), why.what);
}

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

static int option_take(struct cli_parse *p, int i, const char *text, const char *as,
                       struct amp_error *err)
{
    const struct amp_opt *o = cli_opt_at(p, i);
    if (p->seen[i] && o->kind != AMP_OPT_LIST && o->kind != AMP_OPT_FLAG)
        return amp_fail(err, AMP_USAGE, repeated_option, "%s is given twice", as);
    if (!p->seen[i])
        start_list(o);
    p->seen[i] = true;
    return opt_set(o, text, FROM_FLAG, err);
}

/* The other arguments are a command of the user; they have no options of the tool. */
static int take_rest(struct cli_parse *p, int i, const char *first, char ***args, const char *as,
                     struct amp_error *err)
{
    const struct amp_opt *o = cli_opt_at(p, i);
    if (first && option_take(p, i, first, as, err))
        return -1;
    for (; (*args)[1]; (*args)++) {
        if (p->seen[i] ? cli_list_add(o->dest, (*args)[1], err)
                       : option_take(p, i, (*args)[1], as, err))
            return -1;
    }
    if (!p->seen[i])
        return amp_fail(err, AMP_USAGE, missing_argument, "%s needs a command", as);
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
    const struct amp_opt *o = cli_opt_at(p, i);
    if (!o)
        return cli_unknown_option(p, (struct amp_span){text, n}, err);
    if (o->kind == AMP_OPT_REST)
        return take_rest(p, i, value, args, as, err);
    if (o->kind == AMP_OPT_FLAG && value)
        return amp_fail(err, AMP_USAGE, unexpected_argument, "%s takes no argument", as);
    if (cli_opt_takes_arg(o) && !value) {
        if (!(*args)[1])
            return amp_fail(err, AMP_USAGE, missing_argument, "%s needs an argument", as);
        value = *++*args;
    }
    return option_take(p, i, value, as, err);
}

static int take_short(struct cli_parse *p, char ***args, struct amp_error *err)
{
    for (const char *c = **args + 1; *c; c++) {
        char as[3] = {'-', *c, '\0'};
        int i = cli_opt_find(p, *c, (struct amp_span){"", 0});
        const struct amp_opt *o = cli_opt_at(p, i);
        if (!o)
            return amp_fail(err, AMP_USAGE, unknown_option, "unknown option %s", as);
        if (o->kind == AMP_OPT_REST)
            return take_rest(p, i, c[1] ? c + 1 : NULL, args, as, err);
        if (!cli_opt_takes_arg(o)) {
            if (option_take(p, i, NULL, as, err))
                return -1;
            continue;
        }
        const char *value = c[1] ? c + 1 : (*args)[1];
        if (!value)
            return amp_fail(err, AMP_USAGE, missing_argument, "%s needs an argument", as);
        if (!c[1])
            ++*args;
        return option_take(p, i, value, as, err);
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
    return opt_set(o, text, FROM_CONFIG, err);
}

const char *cli_text_of(const struct cli_parse *p, const char *name)
{
    const struct amp_opt *o = cli_opt_at(p, cli_opt_find(p, 0, amp_span_str(name)));
    return o ? *(const char **)o->dest : NULL;
}

int cli_settings(const struct cli_parse *p, struct amp_error *err)
{
    const char *config = cli_text_of(p, "config"), *state = cli_text_of(p, "state");
    struct amp_error why;
    for (const struct amp_setting *s = cli_tool->settings; s && s->key; s++)
        if (amp_config_values(config, state, s->key, s->set, NULL, &why))
            return why.status == AMP_USAGE
                       ? amp_fail_text(err, AMP_CONFIG, why.code, "%s in amp.json: %s", s->key,
                                       why.what)
                       : amp_fail_text(err, why.status, why.code, "%s", why.what);
    return 0;
}

/* The repository's state directory, if the verb looks for it and none was given. */
static int state_find(struct cli_parse *p, struct amp_error *err)
{
    static char dir[PATH_MAX];
    int i = cli_opt_find(p, 0, AMP_SPAN("state"));
    if (i < 0 || p->seen[i] || amp_cli_repository(dir, sizeof dir) != AMP_REPOSITORY_FOUND)
        return 0;
    p->seen[i] = true;
    return opt_set(cli_opt_at(p, i), dir, FROM_ENV, err);
}

int cli_parse_rest(struct cli_parse *p, bool finds_state, struct amp_error *err)
{
    const struct amp_opt *o;
    for (int i = 0; (o = cli_opt_at(p, i)); i++) {
        const char *text = o->env && !p->seen[i] ? getenv(o->env) : NULL;
        if (!text || (!*text && o->kind != AMP_OPT_STRING))
            continue;
        start_list(o);
        p->seen[i] = true;
        if (opt_set(o, text, FROM_ENV, err))
            return -1;
    }
    if (finds_state && state_find(p, err))
        return -1;
    const char *config = cli_text_of(p, "config"), *state = cli_text_of(p, "state");
    for (int i = 0; (o = cli_opt_at(p, i)); i++) {
        struct config_arg arg = {p, i};
        if (o->config && !p->seen[i] &&
            amp_config_values(config, state, o->config, set_from_config, &arg, err))
            return -1;
    }
    return 0;
}

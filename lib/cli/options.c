/* One option: finding it in the tables and setting its value. */
#include "cli/private.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/num.h>

static const char *const color_choices[] = {"auto", "always", "never", NULL};
static const char *const machine_choices[] = {"table", "dot", "ndjson", NULL};

struct cli_standard cli_standard = {.color = "auto"};

const struct amp_opt cli_standard_opts[] = {
    {.letter = 'h',
     .name = "help",
     .kind = AMP_OPT_FLAG,
     .dest = &cli_standard.help,
     .doc = "print this help"},
    {.name = "version",
     .kind = AMP_OPT_FLAG,
     .dest = &cli_standard.version,
     .doc = "print the version"},
    {.name = "options",
     .kind = AMP_OPT_FLAG,
     .dest = &cli_standard.options,
     .doc = "print the option table, tab separated"},
    {.name = "color",
     .kind = AMP_OPT_CHOICE,
     .dest = &cli_standard.color,
     .arg = "WHEN",
     .choices = color_choices,
     .doc = "colour diagnostics: auto, always or never"},
    AMP_OPT_END,
};

const struct amp_opt cli_machine_opts[] = {
    {.name = "machine",
     .kind = AMP_OPT_CHOICE,
     .dest = &cli_standard.machine,
     .arg = "FORMAT",
     .choices = machine_choices,
     .optional_arg = true,
     .doc = "print the state machines: table, dot or ndjson"},
    AMP_OPT_END,
};

const struct amp_opt cli_redact_opts[] = {
    {.name = "redact",
     .kind = AMP_OPT_LIST,
     .dest = &cli_standard.redact,
     .arg = "REGEX",
     .doc = "what counts as a secret beside the known shapes",
     .config = "redact.patterns"},
    AMP_OPT_END,
};

const char *const cli_kind_names[] = {
    [AMP_OPT_FLAG] = "flag", [AMP_OPT_STRING] = "string", [AMP_OPT_PATH] = "path",
    [AMP_OPT_DIR] = "dir",   [AMP_OPT_INT] = "int",       [AMP_OPT_DURATION] = "duration",
    [AMP_OPT_SIZE] = "size", [AMP_OPT_REAL] = "real",     [AMP_OPT_CHOICE] = "choice",
    [AMP_OPT_LIST] = "list", [AMP_OPT_REST] = "rest",
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
    const struct amp_opt *o;
    int found = -1;
    /* The last one counts, so that a tool can have a letter that a standard option also has. */
    for (int i = 0; i < CLI_MAX_OPTS && (o = cli_opt_at(p, i)); i++)
        if (letter ? o->letter == letter : o->name && amp_span_is(name, o->name))
            found = i;
    return found;
}

/* "--name" or "-x" or what stood in for it, for messages. */
static const char *called(const struct amp_opt *o, enum cli_source from, char *buf, size_t size)
{
    if (from == CLI_FROM_ENV)
        snprintf(buf, size, "%s", o->env);
    else if (from == CLI_FROM_CONFIG)
        snprintf(buf, size, "%s in amp.json", o->config);
    else if (o->name)
        snprintf(buf, size, "--%s", o->name);
    else
        snprintf(buf, size, "-%c", o->letter);
    return buf;
}

int cli_list_add(struct amp_list *l, const char *text, struct amp_error *err)
{
    /* Room doubles at each power of two; a list starts empty, never with the tool's default. */
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
    return amp_fail(err, AMP_USAGE, "bad_choice", "'%.64s' is none of %s", text, all);
}

static int set_flag(const struct amp_opt *o, const char *text, struct amp_error *err)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off", ""};
    bool *dest = o->dest;
    if (!text) {
        *dest = true;
        return 0;
    }
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        if (strcmp(text, yes[i]) == 0) {
            *dest = true;
            return 0;
        }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        if (strcmp(text, no[i]) == 0) {
            *dest = false;
            return 0;
        }
    return amp_fail(err, AMP_USAGE, "bad_flag", "'%.64s' is neither 1 nor 0", text);
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
            return amp_fail(err, AMP_USAGE, "bad_path", "an empty path");
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

int cli_opt_set(const struct amp_opt *o, const char *text, enum cli_source from,
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
    return amp_fail(err, from == CLI_FROM_FLAG || why.status != AMP_USAGE ? why.status : AMP_CONFIG,
                    why.code, "%s: %s", called(o, from, name, sizeof name), why.what);
}

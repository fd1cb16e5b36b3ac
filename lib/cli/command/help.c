/* --help, --options and --machine: they print the tables. */
#include "cli/private.h"

#include <string.h>

#include <amp/fsm/fsm.h>

#include "json/view.h"

#define COLUMN   28 /* where descriptions start */
#define WIDTH    80
#define TEXT_MAX (1 << 20)

static const char *const kind_names[] = {
    [AMP_OPT_FLAG] = "flag", [AMP_OPT_STRING] = "string", [AMP_OPT_PATH] = "path",
    [AMP_OPT_DIR] = "dir",   [AMP_OPT_INT] = "int",       [AMP_OPT_DURATION] = "duration",
    [AMP_OPT_SIZE] = "size", [AMP_OPT_REAL] = "real",     [AMP_OPT_CHOICE] = "choice",
    [AMP_OPT_LIST] = "list", [AMP_OPT_REST] = "rest",
};

static int usage_line(struct amp_buf *b, const struct amp_verb *v, bool first,
                      struct amp_error *err)
{
    return amp_buf_fmt(b, err, "%s %s%s%s [OPTION...]%s%s\n", first ? "usage:" : "      ",
                       cli_tool->name, v->name ? " " : "", v->name ? v->name : "",
                       v->args && *v->args ? " " : "", v->args ? v->args : "");
}

/* Appends left and, from COLUMN on, text, within WIDTH columns; and a newline. */
static int entry_line(struct amp_buf *b, const char *left, const char *text, struct amp_error *err)
{
    int at = COLUMN;
    size_t columns = 0;
    for (const char *p = left; *p; p++)
        columns += (*p & 0xc0) != 0x80;
    if (columns > COLUMN - 2 ? amp_buf_fmt(b, err, "%s\n%*s", left, COLUMN, "") < 0
                             : amp_buf_fmt(b, err, "%s%*s", left, COLUMN - (int)columns, "") < 0)
        return -1;
    for (const char *word = text; *word; word += strspn(word, " ")) {
        size_t n = strcspn(word, " ");
        int wide = 0;
        for (size_t i = 0; i < n; i++)
            wide += (word[i] & 0xc0) != 0x80;
        bool first = word == text, next_line = !first && at + 1 + wide > WIDTH;
        if (next_line ? amp_buf_fmt(b, err, "\n%*s", COLUMN, "") < 0
                      : !first && amp_buf_str(b, " ", err) < 0)
            return -1;
        at = (next_line || first ? COLUMN : at + 1) + wide;
        if (amp_buf_add(b, word, n, err) < 0)
            return -1;
        word += n;
    }
    return amp_buf_str(b, "\n", err);
}

static int option_line(struct amp_buf *b, const struct amp_opt *o, bool finds_state,
                       struct amp_error *err)
{
    char left[120], letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, o->name ? "-%c, " : "-%c", o->letter);
    const char *arg = o->arg ? o->arg : "";
    snprintf(left, sizeof left, "  %s%s%s%s%s%s", letter, o->name ? "--" : "",
             o->name ? o->name : "",
             o->optional_arg ? "[="
             : *arg          ? " "
                             : "",
             arg, o->optional_arg ? "]" : "");
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, TEXT_MAX);
    if (amp_buf_str(&text, o->doc ? o->doc : "", err) < 0)
        return -1;
    if (finds_state && o->name && strcmp(o->name, "state") == 0 &&
        amp_buf_str(&text, " (default: the repository's)", err) < 0)
        return -1;
    if (o->env && amp_buf_fmt(&text, err, " [%s]", o->env) < 0)
        return -1;
    return amp_buf_add(&text, "", 1, err) < 0 ? -1 : entry_line(b, left, text.data, err);
}

/* Whether a later table has an option of this name, which replaces this one. */
static bool is_shadowed(const struct cli_parse *p, int i)
{
    const struct amp_opt *o = cli_opt_at(p, i);
    return o->name && cli_opt_find(p, 0, amp_span_str(o->name)) != i;
}

static int statuses_print(struct amp_buf *b, const int *status, struct amp_error *err)
{
    if (amp_buf_str(b, "\nExit status, see amp-exit(7):\n", err) < 0)
        return -1;
    for (int i = 0; i == 0 || (status && status[i]); i++) {
        int s = status ? status[i] : 0;
        if (amp_buf_fmt(b, err, "  %3d  %s\n", s, amp_status_meaning(s)) < 0)
            return -1;
    }
    return 0;
}

static bool has_groups(void)
{
    CLI_EACH_VERB (v, at)
        if (v->group)
            return true;
    return false;
}

/* The help of a tool with `first`: the verbs up to the end of that group, the other headings. */
static int short_help(struct amp_buf *b, struct amp_error *err)
{
    const char *name = cli_tool->name, *group = "", *before = "\nMore: ";
    bool more = false;
    if (amp_buf_fmt(b, err, "usage: %s VERB [OPTION...] [OPERAND...]\n\n%s\n", name,
                    cli_tool->doc) < 0)
        return -1;
    CLI_EACH_VERB (v, at) {
        char left[160];
        if (v->group) {
            more = more || strcmp(group, cli_tool->first) == 0;
            group = v->group;
            if (amp_buf_fmt(b, err, more ? "%s%s" : "%s%s:\n", more ? before : "\n", group) < 0)
                return -1;
            before = more ? ", " : before;
        }
        if (more || !v->name)
            continue;
        snprintf(left, sizeof left, "  %s%s%s", v->name, *v->args ? " " : "", v->args);
        if (entry_line(b, left, v->doc ? v->doc : "", err) < 0)
            return -1;
    }
    if (amp_buf_str(b, "\n\nOptions of every verb:\n", err) < 0)
        return -1;
    for (const struct amp_opt *o = cli_tool->opts; o->name; o++)
        if (option_line(b, o, true, err) < 0)
            return -1;
    return amp_buf_fmt(b, err,
                       "\nThe options of a verb: %s VERB --help\n"
                       "All verbs: %s --help all\n\nSee %s(1).\n",
                       name, name, name);
}

/* The verbs under their headings, with their operands, which the usage does not show then; or under
 * "Verbs". */
static int verbs_print(struct amp_buf *b, const char *group, struct amp_error *err)
{
    bool any = false, grouped = !group && has_groups();
    CLI_EACH_VERB (v, at) {
        char left[160];
        if (!cli_verb_listed(v, group))
            continue;
        const char *heading = grouped ? v->group : any ? NULL : "Verbs";
        if (heading && amp_buf_fmt(b, err, "\n%s:\n", heading) < 0)
            return -1;
        any = true;
        snprintf(left, sizeof left, "  %s%s%s", v->name, grouped && *v->args ? " " : "",
                 grouped ? v->args : "");
        if (entry_line(b, left, v->doc ? v->doc : "", err) < 0)
            return -1;
    }
    return 0;
}

int cli_help(const struct amp_verb *verb, const char *group, const struct cli_parse *p,
             struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, TEXT_MAX);
    bool one = verb && verb->name;
    if (!one && !group && cli_tool->first && !cli_standard.all)
        return short_help(&b, err) < 0 ? -1 : amp_out(amp_buf_span(&b), err);
    if (one) {
        if (usage_line(&b, verb, true, err))
            return -1;
    } else if (!group && has_groups()) {
        const char *name = cli_tool->name;
        bool verbless = !cli_verbs[0]->name;
        if ((verbless && usage_line(&b, cli_verbs[0], true, err)) ||
            amp_buf_fmt(&b, err, "%s %s VERB [OPTION...] [OPERAND...]\n",
                        verbless ? "      " : "usage:", name) < 0)
            return -1;
    } else {
        bool first = true;
        CLI_EACH_VERB (v, at) {
            if (group && !cli_verb_listed(v, group))
                continue;
            if (usage_line(&b, v, first, err))
                return -1;
            first = false;
        }
    }
    const char *doc = one ? verb->doc : cli_tool->doc;
    if (amp_buf_fmt(&b, err, "\n%s\n", doc ? doc : "") < 0 ||
        (!one && verbs_print(&b, group, err)) || amp_buf_str(&b, "\nOptions:\n", err) < 0)
        return -1;
    const struct amp_opt *o;
    for (int i = 0; (o = cli_opt_at(p, i)); i++)
        if (!is_shadowed(p, i) && option_line(&b, o, one && verb->finds_state, err))
            return -1;
    /* The manual page of a verb has the first word of the verb in its name. */
    const char *word = one ? verb->name : group;
    if (statuses_print(&b, cli_tool->statuses, err) ||
        amp_buf_fmt(&b, err, "\nSee %s%s%.*s(1).\n", cli_tool->name, word ? "-" : "",
                    word ? (int)strcspn(word, " ") : 0, word ? word : ""))
        return -1;
    return amp_out(amp_buf_span(&b), err);
}

static const char *or_dash(const char *s)
{
    return s && *s ? s : "-";
}

/* The value of the option's variable before the arguments are read; "-": none. */
static int option_default(struct amp_buf *b, const struct amp_opt *o, struct amp_error *err)
{
    switch (o->kind) {
    case AMP_OPT_FLAG:
        return amp_buf_str(b, *(const bool *)o->dest ? "yes" : "-", err);
    case AMP_OPT_INT:
    case AMP_OPT_SIZE:
        return amp_buf_fmt(b, err, "%lld", (long long)*(const int64_t *)o->dest);
    case AMP_OPT_DURATION:
        return amp_buf_fmt(b, err, "%lldms", (long long)*(const int64_t *)o->dest);
    case AMP_OPT_REAL:
        return amp_buf_fmt(b, err, "%g", *(const double *)o->dest);
    case AMP_OPT_LIST:
    case AMP_OPT_REST:
        return amp_buf_str(b, "-", err);
    default:
        return amp_buf_str(b, or_dash(*(const char *const *)o->dest), err);
    }
}

static int option_row(struct amp_buf *b, const struct amp_opt *o, bool given, struct amp_error *err)
{
    if (amp_buf_fmt(b, err, "option\t%c\t%s\t%s%s\t%s\t", o->letter ? o->letter : '-',
                    or_dash(o->name), kind_names[o->kind], o->optional_arg ? "?" : "",
                    or_dash(o->arg)) < 0)
        return -1;
    for (int i = 0; o->choices && o->choices[i]; i++)
        if (amp_buf_fmt(b, err, "%s%s", i ? "," : "", o->choices[i]) < 0)
            return -1;
    if (amp_buf_fmt(b, err, "%s\t%s\t%s\t", o->choices ? "" : "-", or_dash(o->doc),
                    or_dash(o->env)) < 0 ||
        (given ? amp_buf_str(b, "-", err) : option_default(b, o, err)))
        return -1;
    return amp_buf_fmt(b, err, "\t%s\n", or_dash(o->values));
}

/* prefix: the keys of the rows around these, each with a dot. */
static int members_list(const struct amp_column *c, const char *prefix, struct amp_buf *b,
                        struct amp_error *err)
{
    static const char *const forms[] = {
        [AMP_FORM_WORD] = "word",     [AMP_FORM_STATE] = "word",   [AMP_FORM_INT] = "integer",
        [AMP_FORM_COUNT] = "integer", [AMP_FORM_FLAG] = "boolean", [AMP_FORM_AGE] = "time",
        [AMP_FORM_LEFT] = "time",     [AMP_FORM_TIME] = "time",    [AMP_FORM_COST] = "integer",
        [AMP_FORM_ROWS] = "rows",     [AMP_FORM_RAW] = "other",    [AMP_FORM_PUT] = "other"};
    char inner[128];

    for (; c->key || c->head; c++) {
        if (!c->key)
            continue;
        snprintf(inner, sizeof inner, "%s%s.", prefix, c->key);
        if (amp_buf_fmt(b, err, "member\t%s%s\t%s\t%s\n", prefix, c->key,
                        forms[c->form] ? forms[c->form] : "text", c->ever ? "ever" : "-") < 0 ||
            (c->form == AMP_FORM_ROWS && members_list(c->of, inner, b, err) < 0))
            return -1;
    }
    return 0;
}

int cli_list_options(const struct amp_verb *verb, const struct cli_parse *p, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, TEXT_MAX);
    const char *group = NULL;
    CLI_EACH_VERB (v, at) {
        if (verb && verb->name)
            break;
        group = v->group ? v->group : group;
        if ((v->name
                 ? amp_buf_fmt(&b, err, "verb\t%s\t%s\t%s\t%s\t%s\t%s\n", v->name, or_dash(v->args),
                               or_dash(v->doc), or_dash(v->values), or_dash(group), or_dash(v->who))
                 : amp_buf_fmt(&b, err, "verbless\t%s\n", or_dash(v->who))) < 0)
            return -1;
    }
    const struct amp_opt *o;
    for (int i = 0; (o = cli_opt_at(p, i)); i++)
        if (!is_shadowed(p, i) && option_row(&b, o, p->seen[i], err))
            return -1;
    if (verb && verb->name && amp_buf_fmt(&b, err, "operands\t%s\n", or_dash(verb->values)) < 0)
        return -1;
    if (verb && verb->lists && members_list(verb->lists, "", &b, err) < 0)
        return -1;
    return amp_out(amp_buf_span(&b), err);
}

int cli_machines(const char *format, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, TEXT_MAX);
    for (int i = 0; cli_tool->machines[i]; i++) {
        if (i && strcmp(format, "ndjson") != 0 && amp_buf_str(&b, "\n", err))
            return -1;
        if (amp_fsm_print(cli_tool->machines[i], format, &b, err))
            return -1;
    }
    return amp_out(amp_buf_span(&b), err);
}

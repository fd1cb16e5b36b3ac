/* amp-validate: lines in, the valid ones out byte for byte, the others reported. */
#include <string.h>

#include <amp/base/clock.h>

#include "cli/cli.h"
#include "cli/rows.h"
#include "flow/config.h"
#include "validate.h"

static struct validate_options opt = {
    .max_line = 32 * 1024 * 1024,
    .max_depth = 128,
    .jobs = 1,
};
static struct amp_list protect, resolve, fill;
static const char *to;
static struct user_schema_options own;
static const char *output, *config;
static bool check, annotate, nack, effective;

static const char *const protocols[] = {
#define X(id, name, title) #name,
    AMP_PROTOCOL_LIST(X)
#undef X
        NULL};

static const char *const drafts[] = {"2020-12", "7", NULL};
static const char *const outputs[] = {
#define X(id, name) name,
    AMP_OUTPUT_LIST(X)
#undef X
        NULL};
static const char *const stats_formats[] = {"text", "json", NULL};

static const struct amp_opt opts[] = {
    {.letter = 'p',
     .name = "protocol",
     .kind = AMP_OPT_CHOICE,
     .dest = &opt.protocol,
     .arg = "PROTOCOL",
     .doc = "take every line as this protocol's, detect nothing",
     .choices = protocols},
    {.letter = 'e',
     .name = "errors",
     .kind = AMP_OPT_PATH,
     .dest = &opt.errors,
     .arg = "FILE",
     .doc = "append rejections and warnings as records (- is stderr)"},
    {.name = "strict",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.strict,
     .doc = "reject what is only worth a warning"},
    {.name = "fail-fast",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.fail_fast,
     .doc = "stop at the first line that is refused"},
    {.name = "check-repo",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.check_repo,
     .doc = "refuse a dispatch whose repo is no git repository"},
    {.name = "protect",
     .kind = AMP_OPT_LIST,
     .dest = &protect,
     .arg = "PATTERN",
     .doc = "a branch protected beside main and master (* and ? match)"},
    {.name = "now",
     .kind = AMP_OPT_STRING,
     .dest = &opt.now,
     .arg = "TIME",
     .doc = "rtp: what is over at this time is refused (RFC 3339, or now)"},
    AMP_OPT_CONFIG(config),
    {.letter = 's',
     .name = "state",
     .kind = AMP_OPT_DIR,
     .dest = &opt.state,
     .arg = "DIR",
     .doc = "check history against this state directory"},
    {.name = "hlc",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.hlc,
     .doc = "SW4RM: every message bears hlc_timestamp"},
    {.name = "max-payload",
     .kind = AMP_OPT_SIZE,
     .dest = &opt.max_payload,
     .arg = "SIZE",
     .doc = "SW4RM: the largest payload, whatever the type",
     .min = 1,
     .max = 64 * 1024 * 1024},
    {.name = "max-line",
     .kind = AMP_OPT_SIZE,
     .dest = &opt.max_line,
     .arg = "SIZE",
     .doc = "the longest line that is read",
     .min = 64,
     .max = 64 * 1024 * 1024},
    {.name = "max-depth",
     .kind = AMP_OPT_INT,
     .dest = &opt.max_depth,
     .arg = "N",
     .doc = "the deepest nesting that is read",
     .min = 1,
     .max = 1024},
    {.name = "effective",
     .kind = AMP_OPT_FLAG,
     .dest = &effective,
     .doc = "write the effective policy of each valid AOP task"},
    {.name = "check", .kind = AMP_OPT_FLAG, .dest = &check, .doc = "write a verdict for each line"},
    {.name = "annotate",
     .kind = AMP_OPT_FLAG,
     .dest = &annotate,
     .doc = "write each line wrapped with its verdict and findings"},
    {.name = "nack",
     .kind = AMP_OPT_FLAG,
     .dest = &nack,
     .doc = "answer what is refused, in its sender's protocol, on stdout"},
    {.name = "stats",
     .kind = AMP_OPT_CHOICE,
     .dest = &opt.stats,
     .arg = "FORMAT",
     .doc = "count by protocol, type and code, on stderr",
     .choices = stats_formats,
     .optional_arg = true},
    {.name = "sample",
     .kind = AMP_OPT_INT,
     .dest = &opt.sample,
     .arg = "N",
     .doc = "check every Nth line, pass the others unchecked",
     .min = 1,
     .max = INT64_C(1000000000)},
    {.letter = 'j',
     .name = "jobs",
     .kind = AMP_OPT_INT,
     .dest = &opt.jobs,
     .arg = "N",
     .doc = "check in N threads; the order of lines stays",
     .min = 1,
     .max = 64},
    {.letter = 'S',
     .name = "schema",
     .kind = AMP_OPT_PATH,
     .dest = &own.file,
     .arg = "FILE",
     .doc = "check against this JSON Schema, or built-in (--list), not the protocols"},
    {.name = "document",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.document,
     .doc = "take each input as one text, not as lines"},
    {.name = "resolve",
     .kind = AMP_OPT_LIST,
     .dest = &resolve,
     .arg = "URI-PREFIX=DIR",
     .doc = "where the schemas of these URIs are; nothing is fetched"},
    {.name = "draft",
     .kind = AMP_OPT_CHOICE,
     .dest = &own.draft,
     .arg = "DRAFT",
     .doc = "the draft of a schema that does not say which",
     .choices = drafts},
    {.name = "formats",
     .kind = AMP_OPT_FLAG,
     .dest = &own.formats,
     .doc = "refuse what is not of its format"},
    {.name = "output",
     .kind = AMP_OPT_CHOICE,
     .dest = &output,
     .arg = "FORM",
     .doc = "add the standard output of JSON Schema to records",
     .choices = outputs},
    {.name = "extract",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.extract,
     .doc = "find messages in any text, each becomes a line"},
    {.name = "to",
     .kind = AMP_OPT_CHOICE,
     .dest = &to,
     .arg = "PROTOCOL",
     .doc = "say valid messages in this protocol",
     .choices = protocols},
    {.name = "fill",
     .kind = AMP_OPT_LIST,
     .dest = &fill,
     .arg = "NAME=VALUE",
     .doc = "with --to: what a message may not say, such as repo=PATH"},
    {.name = "list",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.list,
     .doc = "print the schemas that are compiled in"},
    {.name = "print-schema",
     .kind = AMP_OPT_STRING,
     .dest = &opt.schema,
     .arg = "PROTO[/TYPE]",
     .doc = "print a schema that needs no other file, or all of a protocol"},
    {.name = "explain",
     .kind = AMP_OPT_STRING,
     .dest = &opt.explain,
     .arg = "CODE",
     .doc = "say what a code means"},
    AMP_OPT_END,
};

/* The protocols' options say nothing about a user's schema, and the other way round. */
static void check_combination(int n_files, char **files)
{
    if (!own.file && (resolve.n || own.draft || own.formats))
        amp_die_usage("--resolve, --draft and --formats go with --schema");
    if (own.file &&
        (opt.protocol || opt.state || opt.check_repo || protect.n || opt.hlc || opt.now))
        amp_die_usage("--schema goes with no option of the protocols "
                      "(-p, --state, --check-repo, --protect, --hlc, --now)");
    bool lines = n_files == 0; /* from standard input */
    for (int i = 0; i < n_files; i++)
        lines = lines || user_schema_is_stdin(files[i]);
    if (own.file && lines && user_schema_is_stdin(own.file))
        amp_die_usage("the schema and the lines cannot both come from standard input");
    if (own.file && opt.mode == MODE_NACK)
        amp_die_usage("--nack answers in the sender's protocol: --schema knows none");
}

/* --extract, --to and --fill. */
static void check_conversion(void)
{
    struct amp_error err;
    if (own.file && (opt.extract || to))
        amp_die_usage("--extract and --to are about the protocols, --schema knows none");
    if (opt.extract && opt.document)
        amp_die_usage("--extract takes every input as text: leave --document out");
    if (to && effective)
        amp_die_usage("--effective writes policies, --to messages: give one of them");
    if (fill.n && !to)
        amp_die_usage("--fill goes with --to");
    if (to)
        opt.to = amp_protocol_find(amp_span_str(to));
    opt.fill = fill.v;
    for (int i = 0; i < (int)fill.n; i++)
        if (amp_convert_fill_check(fill.v[i], &err) < 0)
            amp_die_usage("--fill: %s", err.what);
}

/* With the user's schema. */
static int run_own(int argc, char **argv)
{
    struct amp_error err;
    own.resolve = resolve.v;
    own.strict = opt.strict;
    struct user_schema *user = user_schema_new(&own, &err);
    if (!user)
        return amp_complain(&err);
    opt.user = user;
    int status = session_run(&opt, argv, argc);
    user_schema_free(user);
    return status;
}

static void read_now(void)
{
    if (!opt.now)
        return;
    if (strcmp(opt.now, "now") == 0)
        opt.now_ms = amp_now_ms();
    else if (!amp_time_parse(amp_span_str(opt.now), &opt.now_ms) || opt.now_ms <= 0)
        amp_die_usage("--now: %s is no time such as 2026-02-26T14:32:07Z", opt.now);
}

/* The one mode that was asked for. */
static enum mode choose_mode(void)
{
    const struct {
        bool on;
        enum mode mode;
        const char *name;
    } asked[] = {{check, MODE_CHECK, "--check"},
                 {annotate, MODE_ANNOTATE, "--annotate"},
                 {nack, MODE_NACK, "--nack"},
                 {effective, MODE_EFFECTIVE, "--effective"}};
    enum mode mode = MODE_PASS;
    const char *first = NULL;
    for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
        if (asked[i].on && first)
            amp_die_usage("%s and %s ask for different output: give one of them", first,
                          asked[i].name);
        if (asked[i].on) {
            mode = asked[i].mode;
            first = asked[i].name;
        }
    }
    return mode;
}

static void refuse_contradictions(int n_files)
{
    int about = opt.list + !!opt.schema + !!opt.explain;
    if (about > 1)
        amp_die_usage("--list, --print-schema and --explain are questions: ask one at a time");
    if (about && n_files)
        amp_die_usage("--list, --print-schema and --explain read no lines: leave the files out");
    const struct {
        bool on;
        const char *name;
    } whole[] = {{opt.mode == MODE_ANNOTATE, "--annotate"},
                 {opt.mode == MODE_EFFECTIVE, "--effective"},
                 {opt.state != NULL, "--state"},
                 {opt.document, "--document"},
                 {opt.extract, "--extract"},
                 {to != NULL, "--to"}};
    for (unsigned i = 0; i < sizeof whole / sizeof *whole; i++)
        if (opt.sample > 1 && whole[i].on)
            amp_die_usage("%s has to look at every line: leave --sample out", whole[i].name);
}

static enum amp_output choose_output(void)
{
    int form = 0;
    while (output && outputs[form] && strcmp(outputs[form], output) != 0)
        form++;
    return (enum amp_output)form;
}

static int run(int argc, char **argv)
{
    opt.mode = choose_mode();
    opt.output = choose_output();
    refuse_contradictions(argc);
    opt.name_files = argc > 0;
    opt.protect = protect.v;
    read_now();
    if (opt.list)
        return info_list();
    if (opt.schema)
        return info_schema(opt.schema);
    if (opt.explain)
        return info_explain(opt.explain);
    opt.color = amp_color(stderr);
    check_combination(argc, argv);
    check_conversion();
    if (own.file)
        return run_own(argc, argv);
    return session_run(&opt, argv, argc);
}

static const struct amp_verb verbs[] = {
    {.name = NULL, .args = "[FILE...]", .doc = "check messages, pass the valid ones", .run = run},
    {0},
};
static const int statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 78, 130, 0};

int main(int argc, char **argv)
{
    static const struct amp_tool tool = {
        .name = "amp-validate",
        .doc = "check agent messages line by line",
        .opts = opts,
        .verbs = verbs,
        .statuses = statuses,
        AMP_CONFIG_OF_TOOL,
    };
    return amp_cli_main(&tool, argc, argv);
}

/* amp-validate: lines in, the valid ones out byte for byte, the others reported. */
#include <string.h>

#include <amp/base/clock.h>

#include "base/words.h"
#include "cli/cli.h"
#include "cli/rows.h"
#include "example/example.h"
#include "said/said.h"
#include "shared/config_schema.h"
#include "validate.h"

static struct validate_options opt = {
    .max_line = 32 * 1024 * 1024,
    .max_depth = 128,
    .jobs = 1,
    .from = -1,
};
static struct amp_list protect, resolve, fill;
static const char *to, *from;
static struct user_schema_options own;
static const char *output, *config;
static bool check, annotate, nack, effective, example;

static const char *const protocols[] = {
#define X(id, name, title) #name,
    AMP_PROTOCOL_LIST(X)
#undef X
        NULL};

static const char *const drafts[] = {"2020-12", "7", NULL};
AMP_WORDS(outputs, AMP_OUTPUT_LIST);
AMP_WORDS(agents, SAID_LIST);
static const char *const stats_formats[] = {"text", "json", NULL};

static const struct amp_opt opts[] = {
    {'p', "protocol", AMP_OPT_CHOICE, &opt.protocol, "PROTOCOL",
     .doc = "treat every line as a message of this protocol", .choices = protocols},
    {'e', "errors", AMP_OPT_PATH, &opt.errors, "FILE",
     .doc = "append records of errors and warnings to FILE (- is stderr)"},
    {0, "strict", AMP_OPT_FLAG, &opt.strict, NULL, .doc = "refuse lines with warnings"},
    {0, "fail-fast", AMP_OPT_FLAG, &opt.fail_fast, NULL, .doc = "stop at the first refused line"},
    {0, "check-repo", AMP_OPT_FLAG, &opt.check_repo, NULL,
     .doc = "refuse a dispatch whose repo is not a git repository"},
    {0, "protect", AMP_OPT_LIST, &protect, "PATTERN",
     .doc = "protected branch, in addition to main and master (* and ? match)"},
    {0, "now", AMP_OPT_STRING, &opt.now, "TIME",
     .doc = "refuse messages that have expired at TIME (RFC 3339, or now)"},
    AMP_OPT_CONFIG(config),
    {'s', "state", AMP_OPT_DIR, &opt.state, "DIR",
     .doc = "also compare lines with this state directory"},
    {0, "hlc", AMP_OPT_FLAG, &opt.hlc, NULL, .doc = "refuse SW4RM messages without hlc_timestamp"},
    {0, "max-payload", AMP_OPT_SIZE, &opt.max_payload, "SIZE",
     .doc = "largest payload of a SW4RM message", .min = 1, .max = 64 * 1024 * 1024},
    {0, "max-line", AMP_OPT_SIZE, &opt.max_line, "SIZE", .doc = "longest line", .min = 64,
     .max = 64 * 1024 * 1024},
    {0, "max-depth", AMP_OPT_INT, &opt.max_depth, "N", .doc = "deepest nesting", .min = 1,
     .max = 1024},
    {0, "effective", AMP_OPT_FLAG, &effective, NULL,
     .doc = "write the effective policy of each valid AOP task"},
    {0, "check", AMP_OPT_FLAG, &check, NULL, .doc = "write a verdict for each line"},
    {0, "annotate", AMP_OPT_FLAG, &annotate, NULL,
     .doc = "write each line in an object with its verdict and findings"},
    {0, "nack", AMP_OPT_FLAG, &nack, NULL, .doc = "also write refusals of invalid lines to stdout"},
    {0, "stats", AMP_OPT_CHOICE, &opt.stats, "FORMAT",
     .doc = "print counts by protocol, type and code on stderr", .choices = stats_formats,
     .optional_arg = true},
    {0, "sample", AMP_OPT_INT, &opt.sample, "N", .doc = "check only every Nth line", .min = 1,
     .max = INT64_C(1000000000)},
    {'j', "jobs", AMP_OPT_INT, &opt.jobs, "N",
     .doc = "check in N threads; the order of lines is kept", .min = 1, .max = 64},
    {'S', "schema", AMP_OPT_PATH, &own.file, "FILE",
     .doc = "check against this JSON Schema instead of the protocols"},
    {0, "document", AMP_OPT_FLAG, &opt.document, NULL, .doc = "each input is one text, not lines"},
    {0, "resolve", AMP_OPT_LIST, &resolve, "URI-PREFIX=DIR",
     .doc = "directory of the schemas with these URIs"},
    {0, "draft", AMP_OPT_CHOICE, &own.draft, "DRAFT", .doc = "draft of a schema without $schema",
     .choices = drafts},
    {0, "formats", AMP_OPT_FLAG, &own.formats, NULL,
     .doc = "refuse values that do not match their format"},
    {0, "output", AMP_OPT_CHOICE, &output, "FORM",
     .doc = "add the standard output of JSON Schema to records", .choices = outputs},
    {0, "extract", AMP_OPT_FLAG, &opt.extract, NULL, .doc = "find messages in any text"},
    {0, "from", AMP_OPT_CHOICE, &from, "AGENT",
     .doc = "with --extract: only the assistant's texts in this agent's output", .choices = agents},
    {0, "to", AMP_OPT_CHOICE, &to, "PROTOCOL", .doc = "convert valid messages to this protocol",
     .choices = protocols},
    {0, "fill", AMP_OPT_LIST, &fill, "NAME=VALUE",
     .doc = "with --to: value of a missing field, such as repo=PATH"},
    {0, "list", AMP_OPT_FLAG, &opt.list, NULL, .doc = "print the names of the built-in schemas"},
    {0, "print-schema", AMP_OPT_STRING, &opt.schema, "PROTO[/TYPE]",
     .doc = "print a schema, or all schemas of a protocol", .values = "schema"},
    {0, "explain", AMP_OPT_STRING, &opt.explain, "CODE", .doc = "explain a code", .values = "code"},
    {0, "example", AMP_OPT_FLAG, &example, NULL,
     .doc = "print a valid message of each TYPE that follows, or list the types"},
    {0, "json", AMP_OPT_FLAG, &opt.json, NULL,
     .doc = "print --list, --explain, --example and --stats as JSON"},
    AMP_OPT_END,
};

/* The protocols' options do not apply to a user's schema, and its options not to the protocols. */
static void check_combination(int n_files, char **files)
{
    if (!own.file && (resolve.n || own.draft || own.formats))
        amp_die_usage("--resolve, --draft and --formats need --schema");
    if (own.file &&
        (opt.protocol || opt.state || opt.check_repo || protect.n || opt.hlc || opt.now))
        amp_die_usage("--schema excludes the options of the protocols (-p, --state, --check-repo, "
                      "--protect, --hlc, --now)");
    bool lines = n_files == 0; /* from standard input */
    for (int i = 0; i < n_files; i++)
        lines = lines || user_schema_is_stdin(files[i]);
    if (own.file && lines && user_schema_is_stdin(own.file))
        amp_die_usage("the schema and the lines cannot both come from standard input");
    if (own.file && opt.mode == MODE_NACK)
        amp_die_usage("--nack and --schema exclude each other: a schema has no protocol");
}

/* --extract, --from, --to and --fill. */
static void check_conversion(void)
{
    struct amp_error err;
    if (own.file && (opt.extract || to))
        amp_die_usage("--extract and --to need a protocol; --schema excludes them");
    if (opt.extract && opt.document)
        amp_die_usage("--extract and --document exclude each other");
    if (from && !opt.extract)
        amp_die_usage("--from needs --extract");
    opt.from = amp_word_find(agents, amp_span_str(from));
    if (to && effective)
        amp_die_usage("--effective and --to exclude each other");
    if (fill.n && !to)
        amp_die_usage("--fill needs --to");
    if (to)
        opt.to = amp_protocol_find(amp_span_str(to));
    opt.fill = fill.v;
    for (int i = 0; i < (int)fill.n; i++)
        if (amp_convert_fill_check(fill.v[i], &err) < 0)
            amp_die_usage("--fill: %s", err.what);
}

/* Checks with the user's schema. */
static int run_schema(struct amp_command *c, struct amp_error *err)
{
    own.resolve = resolve.v;
    own.strict = opt.strict;
    struct amp_schema *user = user_schema_new(&own, err);
    if (!user)
        return -1;
    opt.user = user;
    int rc = validation_run(&opt, c->argv, c->argc, err);
    amp_schema_free(user);
    return rc;
}

static void read_now(void)
{
    if (!opt.now)
        return;
    if (strcmp(opt.now, "now") == 0)
        opt.now_ms = amp_now_ms();
    else if (!amp_time_parse(amp_span_str(opt.now), &opt.now_ms) || opt.now_ms <= 0)
        amp_die_usage("--now: %s is not a time such as 2026-02-26T14:32:07Z", opt.now);
}

/* The mode; refuses more than one. */
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
            amp_die_usage("%s and %s exclude each other", first, asked[i].name);
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
    if (about + example > 1)
        amp_die_usage("--list, --print-schema, --explain and --example exclude each other");
    if (about && n_files)
        amp_die_usage("--list, --print-schema and --explain take no files");
    if (opt.json && !about && !example && !opt.stats)
        amp_die_usage("--json needs --list, --explain, --example or --stats; --check prints a "
                      "verdict for each line as JSON, -e FILE the findings");
    if (opt.json && opt.schema)
        amp_die_usage("--print-schema prints JSON in any case; leave out --json");
    if (opt.json && opt.stats)
        opt.stats = "json";
    const struct {
        bool on;
        const char *name;
    } exhaustive[] = {{opt.mode == MODE_ANNOTATE, "--annotate"},
                      {opt.mode == MODE_EFFECTIVE, "--effective"},
                      {opt.state != NULL, "--state"},
                      {opt.document, "--document"},
                      {opt.extract, "--extract"},
                      {to != NULL, "--to"}};
    for (unsigned i = 0; i < sizeof exhaustive / sizeof *exhaustive; i++)
        if (opt.sample > 1 && exhaustive[i].on)
            amp_die_usage("%s checks every line; --sample excludes it", exhaustive[i].name);
}

static int run_files(struct amp_command *c, struct amp_error *err)
{
    opt.mode = choose_mode();
    if (output)
        opt.output = (enum amp_output)amp_word_find(outputs, amp_span_str(output));
    refuse_contradictions(c->argc);
    opt.name_files = c->argc > 0;
    opt.protect = protect.v;
    read_now();
    if (example)
        return example_print(c->argv, c->argc, opt.json, err);
    if (opt.list)
        return info_list(opt.json, err);
    if (opt.schema)
        return info_schema(opt.schema, err);
    if (opt.explain)
        return info_explain(opt.explain, opt.json, err);
    opt.color = amp_color(stderr);
    check_combination(c->argc, c->argv);
    check_conversion();
    return own.file ? run_schema(c, err) : validation_run(&opt, c->argv, c->argc, err);
}

static const struct amp_verb verbs[] = {
    {NULL, "[FILE... | TYPE...]", "check messages, pass the valid ones", NULL, run_files},
    {0},
};
static const struct amp_verb *const tables[] = {verbs, NULL};
static const int statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 78, 130, 0};

int main(int argc, char **argv)
{
    static const struct amp_tool tool = {
        .name = "amp-validate",
        .doc = "check agent messages line by line",
        .opts = opts,
        .verbs = tables,
        .statuses = statuses,
        AMP_CONFIG_OF_TOOL,
        .values = info_values,
        .summary = validation_summary,
    };
    return amp_cli_main(&tool, argc, argv);
}

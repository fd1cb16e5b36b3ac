/* Shared by the files of this folder. */
#ifndef AMP_CLI_PRIVATE_H
#define AMP_CLI_PRIVATE_H

#include "cli/cli.h"

#define CLI_MAX_OPTS 96

/* The running tool, and its verbs, without the tables' ends; NULL before amp_cli_main. */
extern const struct amp_tool *cli_tool;
#define CLI_MAX_VERBS 64
extern const struct amp_verb *cli_verbs[CLI_MAX_VERBS + 1];
#define CLI_EACH_VERB(v, at) for (const struct amp_verb *v, *const *at = cli_verbs; (v = *at); at++)

/* The arguments, parsed with these tables: standard, machine, redact, values, the tool's, the
 * verb's. */
struct cli_parse {
    const struct amp_opt *tables[6];
    bool seen[CLI_MAX_OPTS];
    struct amp_list operands;
};

/* The values of the standard options. */
struct cli_standard {
    bool help, version, options;
    bool all; /* --help all */
    const char *color, *machine, *values, *progress;
    struct amp_list redact;
};
extern struct cli_standard cli_standard;
extern const struct amp_opt cli_standard_opts[];
extern const struct amp_opt cli_machine_opts[];
extern const struct amp_opt cli_redact_opts[];
extern const struct amp_opt cli_values_opts[];

/* The nth option over all tables, or NULL for -1 and past the last. */
const struct amp_opt *cli_opt_at(const struct cli_parse *p, int n);
/* Finds by letter (name NULL) or by name; the index, or -1. */
int cli_opt_find(const struct cli_parse *p, char letter, struct amp_span name);
int cli_list_add(struct amp_list *l, const char *text, struct amp_error *err);

/* Reads options and operands from args; skips the first verb_words operands. */
int cli_parse_args(struct cli_parse *p, char **args, int verb_words, struct amp_error *err);
/* The text of an option; NULL: there is no such option, or it has no value. */
const char *cli_text_of(const struct cli_parse *p, const char *name);
/* Sets the options that no flag has set, from the environment, then from amp.json. finds_state: as
 * in struct amp_verb. */
int cli_parse_rest(struct cli_parse *p, bool finds_state, struct amp_error *err);
/* Applies the tool's settings of amp.json. */
int cli_settings(const struct cli_parse *p, struct amp_error *err);
bool cli_opt_takes_arg(const struct amp_opt *o);

/* The verb that the arguments name. */
struct cli_command {
    const struct amp_verb *verb; /* or the verbless form, or NULL */
    int words;                   /* of the verb's name */
    char **at;                   /* the first operand, where a verb is expected; or NULL */
};
struct cli_command cli_find_verb(char **args);
/* USAGE if a verb is unknown or missing, with the nearest verb, or all. */
int cli_check_verb(const struct cli_command *c, struct amp_error *err);
/* USAGE if there are operands and the verb takes none. */
int cli_check_operands(const struct amp_verb *verb, const struct amp_list *operands,
                       struct amp_error *err);
/* "dead" if the arguments have this first word of verbs, but none of these verbs; or NULL. */
const char *cli_verb_group(const struct cli_command *c);
/* Whether the verb has a name and is in the group; NULL: all verbs. */
bool cli_verb_listed(const struct amp_verb *v, const char *group);
/* Fails with USAGE and names the nearest option, or the verb that has this one. */
int cli_unknown_option(const struct cli_parse *p, struct amp_span name, struct amp_error *err);

/* The help of one verb, or of the tool with all verbs or one group; a tool with
 * `first` has less without --help all. */
int cli_help(const struct amp_verb *verb, const char *group, const struct cli_parse *p,
             struct amp_error *err);
int cli_list_options(const struct amp_verb *verb, const struct cli_parse *p, struct amp_error *err);
/* Prints the values of the kinds in --values that begin with the first operand. */
int cli_values(const struct cli_parse *p, struct amp_error *err);
int cli_machines(const char *format, struct amp_error *err);

/* Reads the state directory's amp.json, for tools that find this directory after parsing. */
int cli_config_local(const char *state_dir, struct amp_error *err);
/* The bytes of the user's amp.json, empty if there is none; read once. */
int cli_config_text(const char *explicit_path, const char *state_dir, struct amp_span *text,
                    struct amp_error *err);

/* Call it before anything else goes to stderr. */
void cli_progress_clear(void);
void cli_summary_start(void);
/* With --verbose: the tool's counts, the refusals and the time, on one line. */
void cli_summary_print(void);

int cli_noted_status(void);
/* Prints the counts of amp_refused. */
void cli_print_refused(void);
/* Whether amp_complain printed this error last: a failed output fails again at the end. */
bool cli_complained(const struct amp_error *err);

#endif

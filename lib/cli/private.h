/* What the files of this room share with each other. */
#ifndef CLI_PRIVATE_H
#define CLI_PRIVATE_H

#include "cli/cli.h"

#define CLI_MAX_OPTS 96

/* The tables that hold at once: standard, machine, redact, the tool's, the verb's. */
struct cli_parse {
    const struct amp_tool *tool;
    const struct amp_opt *tables[5];
    bool seen[CLI_MAX_OPTS];
    struct amp_list operands;
};

/* What the standard options were set to. */
struct cli_standard {
    bool help, version, options;
    const char *color, *machine;
    struct amp_list redact;
};
extern struct cli_standard cli_standard;
extern const struct amp_opt cli_standard_opts[];
extern const struct amp_opt cli_machine_opts[];
extern const struct amp_opt cli_redact_opts[];

/* The nth option over all tables, or NULL for -1 and past the last. */
const struct amp_opt *cli_opt_at(const struct cli_parse *p, int n);
/* Finds by letter (name NULL) or by name; the index, or -1. */
int cli_opt_find(const struct cli_parse *p, char letter, struct amp_span name);
int cli_list_add(struct amp_list *l, const char *text, struct amp_error *err);

/* Takes options and operands from args; verb_words of its first operands are skipped. */
int cli_parse_args(struct cli_parse *p, char **args, int verb_words, struct amp_error *err);
/* Fills what no flag set from the environment, then from amp.json. */
int cli_parse_rest(struct cli_parse *p, amp_config_fn *config, struct amp_error *err);
/* What amp.json sets beside the options. */
int cli_settings(const struct cli_parse *p, const struct amp_tool *tool, struct amp_error *err);
bool cli_opt_takes_arg(const struct amp_opt *o);

/* What the arguments name. */
struct cli_command {
    const struct amp_verb *verb; /* or the verbless form, or NULL */
    int words;                   /* of the verb's name */
    char **at;                   /* where a verb could stand: the first operand; or NULL */
};
struct cli_command cli_find_verb(const struct amp_tool *tool, char **args);
/* USAGE where a verb is unknown or missing: it names the nearest, or the verbs that there are. */
int cli_check_verb(const struct amp_tool *tool, const struct cli_command *c, struct amp_error *err);
/* USAGE where the verb takes no operands. */
int cli_check_operands(const struct amp_tool *tool, const struct amp_verb *verb,
                       const struct amp_list *operands, struct amp_error *err);
/* The first word of verbs of two words ("dead") where the arguments name none of them, or NULL. */
const char *cli_verb_group(const struct amp_tool *tool, const struct cli_command *c);
/* Whether a list of the group's verbs, or with NULL of all, has this one. */
bool cli_verb_listed(const struct amp_verb *v, const char *group);
/* Fails with USAGE, and names the option that was probably meant, or the verb that has this one. */
int cli_unknown_option(const struct amp_tool *tool, const struct cli_parse *p, struct amp_span name,
                       struct amp_error *err);

/* Of one verb; or of the tool, all of it or one group of verbs. */
int cli_help(const struct amp_tool *tool, const struct amp_verb *verb, const char *group,
             const struct cli_parse *p, struct amp_error *err);
int cli_list_options(const struct amp_tool *tool, const struct amp_verb *verb,
                     const struct cli_parse *p, struct amp_error *err);
int cli_machines(const struct amp_tool *tool, const char *format, struct amp_error *err);

/* The running tool's check of amp.json, or NULL. */
extern int (*cli_check_config)(struct amp_span text, struct amp_error *err);

/* Whether a state directory's amp.json may hold a setting, as the running tool says; or NULL. */
extern bool (*cli_state_may_set)(struct amp_span key);

/* Reads the state directory's amp.json, for tools that find this directory late. */
int cli_config_local(const char *state_dir, struct amp_error *err);
/* The bytes of the user's amp.json, empty where there is none; read once. */
int cli_config_text(const char *explicit_path, const char *state_dir, struct amp_span *text,
                    struct amp_error *err);

void cli_set_name(const char *name);
int cli_noted_status(void);
/* Prints what amp_refused counted. */
void cli_tell_refused(void);
/* Whether the last complaint was this one: an output that failed says so again at the end. */
bool cli_complained(const struct amp_error *err);

#endif

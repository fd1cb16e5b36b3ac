/*
 * The command line. One option table per tool drives the parser, --help, the completions and the
 * test of the manual. Also diagnostics and stdout: this is the only room that prints.
 */
#ifndef AMP_CLI_CLI_H
#define AMP_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <amp/base/buf.h>

enum amp_opt_kind {
    AMP_OPT_FLAG,     /* bool */
    AMP_OPT_STRING,   /* const char * */
    AMP_OPT_PATH,     /* const char *, completed as a file */
    AMP_OPT_DIR,      /* const char *, completed as a directory */
    AMP_OPT_INT,      /* int64_t within [min, max] */
    AMP_OPT_DURATION, /* int64_t milliseconds within [min, max] */
    AMP_OPT_SIZE,     /* int64_t bytes within [min, max] */
    AMP_OPT_REAL,     /* double within [min, max] */
    AMP_OPT_CHOICE,   /* const char *, one of choices */
    AMP_OPT_LIST,     /* struct amp_list, repeatable */
    AMP_OPT_REST,     /* struct amp_list, all following arguments (--exec COMMAND…) */
};

struct amp_list {
    const char **v; /* NULL-terminated */
    int n;
};

struct amp_opt {
    char letter;      /* 0: long only */
    const char *name; /* without dashes */
    enum amp_opt_kind kind;
    void *dest;                 /* a static variable of the tool; its value is the default */
    const char *arg;            /* "FILE"; NULL for flags */
    const char *doc;            /* one line, no full stop */
    int64_t min, max;           /* both 0: from 0 without limit (real: no limits) */
    const char *const *choices; /* NULL-terminated */
    const char *env;            /* environment variable that is used if the flag is absent */
    bool optional_arg;          /* --machine[=FORMAT]: without =, dest gets choices[0] */
    const char *config;         /* dotted key of amp.json, used if env is not set either */
    const char *values;         /* kinds of values for completion, "task agent"; or NULL */
};
#define AMP_OPT_END                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/* How the state directory (--state) is opened before a verb runs. All but MADE and GIVEN refuse one
 * that does not exist: UNAVAILABLE state_missing. */
enum amp_opens {
    AMP_OPENS_NOTHING,
    AMP_OPENS_READ,    /* for reading only */
    AMP_OPENS_DAMAGED, /* the same, also if its log has failed or is damaged */
    AMP_OPENS_LOOK,    /* for reading; writes what the index lacks, if the directory permits it */
    AMP_OPENS_FOUND,   /* for changes */
    AMP_OPENS_MADE,    /* for changes; created if it is missing */
    AMP_OPENS_GIVEN,   /* the same, but only with --state */
    AMP_OPENS_STATE = 7,
    AMP_OPENS_OWN = 8, /* flags from here on: what else the tool's `open` opens */
};

struct amp_column;
struct amp_listing;

/* A run of a verb. */
struct amp_command {
    const struct amp_verb *verb;
    int argc;
    char **argv;    /* the operands */
    unsigned opens; /* the verb's `opens` and `act`; its `check` may change them */
    const char *act;
    const char *actor;              /* for the log; NULL: the tool's name */
    const char *state;              /* --state, NULL: none */
    int64_t lock_timeout_ms;        /* --lock-timeout */
    struct amp_store *store;        /* NULL: not opened */
    const struct amp_column *lists; /* the verb's, and `none`; its `check` may change them */
    const char *none;
    struct amp_listing *list; /* of `lists` */
    void *own;                /* for the tool's `open` */
};
/* Returns an exit status, or -1 with err, which amp_cli_main prints: its status is the verb's. */
typedef int (*amp_verb_fn)(struct amp_command *c, struct amp_error *err);

/* A tool's verb or its verbless form. */
struct amp_verb {
    const char *name; /* one word or two ("dead list"); NULL: the verbless form */
    const char *args; /* "[FILE…]" for the synopsis, or "" */
    const char *doc;  /* one line */
    const struct amp_opt *opts;
    amp_verb_fn run;
    const char *operand_hint; /* if args is "": what to use instead of operands, or NULL */
    /* The verb needs at least `least` operands and at most `most` (0: no
     * limit), or `usage` is printed. Then `check` refuses wrong combinations of options, and the
     * tool's `open` opens what the verb needs. */
    amp_verb_fn check;
    uint8_t least, most;
    const char *usage;
    unsigned opens;  /* enum amp_opens, and flags of the tool */
    const char *act; /* what callers that `who` excludes may not do: "cancel a task" */
    /* The view of what it prints: c->list is opened before it runs, and ended after it
     * (cli/list.h); `none` is noted if people get no row. */
    const struct amp_column *lists;
    const char *none;
    bool signals; /* INT and TERM set amp_stop */
    /* For people: without --state and AMP_STATE the option "state" gets the state directory of the
     * repository around the current directory, if it has one (amp_cli_repository). */
    bool finds_state;
    const char *values; /* kinds of values that complete operands, "task agent"; or NULL */
    /* Heading ("Tasks") of this verb and those after it, up to the next heading, in --help and the
     * completions; NULL: none of its own. A table with headings has one at its first verb. */
    const char *group;
    /* The callers that may run it, for --options and the table in docs/security.md. Where there is
     * no `act`, the verb itself refuses others (work/git/person.h). */
    const char *who; /* AMP_WHO_*; NULL: any agent, too */
};
/* The tables of verbs of a tool: X(tree) in the list stands for tree_verbs, which is in the file of
 * its verbs and ends with {0}. */
#define AMP_VERBS_EXTERN(name) extern const struct amp_verb name##_verbs[];
#define AMP_VERBS_ROW(name)    name##_verbs,
#define AMP_VERBS(list)                                                                            \
    list(AMP_VERBS_EXTERN) static const struct amp_verb *const verbs[] = {list(AMP_VERBS_ROW) NULL}
#define AMP_WHO_PERSON        "person"
#define AMP_WHO_SELF          "self" /* and the agent that the verb, its options or its messages name */
#define AMP_WHO_WITH(options) "person with " options /* any agent without these options */

/* A setting of amp.json without an option. Before the verb runs, set is called for the value of the
 * key, or for each element of an array. */
struct amp_setting {
    const char *key;
    int (*set)(void *arg, const char *text, struct amp_error *err); /* arg: NULL */
};

struct amp_values_ask;
struct amp_tool {
    const char *name;
    const char *doc; /* one line, as the manual's .Nd */
    /* --help shows the verbs up to the end of the group with this heading, and the other headings;
     * --help all shows everything. NULL: --help does. */
    const char *first;
    const struct amp_opt *opts;            /* for every verb */
    const struct amp_verb *const *verbs;   /* AMP_VERBS; the verbless form is the first */
    const int *statuses;                   /* possible exit statuses: 0, the others, 0 */
    const struct amp_fsm *const *machines; /* NULL-terminated, for --machine; or NULL */
    int (*check_config)(struct amp_span text, struct amp_error *err); /* of amp.json; or NULL */
    /* Whether the amp.json of a state directory may have the setting with this dotted key; others
     * are ignored with a warning. NULL: none. */
    bool (*state_may_set)(struct amp_span key);
    const struct amp_setting *settings; /* ends with {0}; or NULL */
    /* Sets the patterns of --redact or redact.patterns before the verb runs; NULL: no redaction. */
    int (*redact)(const char *const *patterns, struct amp_error *err);
    /* Fails if the caller may not do c->act (cli/state.h): before `check`, and after it if that has
     * changed c->act. */
    int (*refuse)(const struct amp_command *c, struct amp_error *err);
    /* Opens what the verb needs (cli/state.h), and closes it, also after a failure. NULL: the verbs
     * open nothing. */
    int (*open)(struct amp_command *c, struct amp_error *err);
    void (*close)(struct amp_command *c);
    /* Appends what was done, for the summary: "3 messages, 1 rejected"; NULL: nothing. */
    int (*summary)(struct amp_buf *out, struct amp_error *err);
    /* Finds the values of one of the kinds that the tables name; NULL: they name none. */
    int (*values)(const struct amp_values_ask *ask, struct amp_error *err);
};

/* Parses the arguments, runs the verb, flushes stdout and returns the exit status: that of the verb
 * or a worse one of amp_status_note. Adds -h/--help, --version, --color=WHEN, --machine[=FORMAT]
 * (if the tool has machines), --redact REGEX (if it redacts), --values KINDS, --options, -q, -v and
 * --progress WHEN.
 * Options and operands may mix; `--` ends options. No abbreviations; a repeated single-valued
 * option is an error. Tool options may precede the verb. Operands of a verb whose args is "" are
 * refused before run is called. SIGPIPE is ignored.
 *
 * `TOOL [VERB] --options` prints the tables, tab separated, for completions and tests:
 *     verbless  WHO                     (of the verbless form)
 *     verb    NAME  ARGS  DOC  VALUES  GROUP  WHO
 *     option  LETTER  NAME  KIND  ARG  CHOICES  DOC  ENV  DEFAULT  VALUES
 *     member  KEY  FORM  EVER              (of the verb's `lists`, for scripts/schemas.sh)
 * KIND is flag string path dir int duration size real choice list rest, with "?" appended where
 * the argument is optional; CHOICES are separated by commas; durations have the unit ms; absent
 * fields are "-", as is the default of a list or of an option that was given. VALUES are kinds:
 * `TOOL [VERB] --values KINDS [PREFIX]` prints the values, at most AMP_VALUES_MOST of a kind, each
 * with a tab and a description if it has one. */
int amp_cli_main(const struct amp_tool *tool, int argc, char **argv);

/* For tools that find their state directory after parsing: reads its amp.json, takes
 * redact.patterns from there if neither an option nor the user's amp.json has them, and warns about
 * settings that are ignored there. */
int amp_cli_state(const char *state_dir, struct amp_error *err);

/* The state directory of the repository around the current directory, whether it exists or not: amp
 * in the common git directory, as worktree-bind and `task-dispatch init` use it. */
enum amp_repository_state {
    AMP_REPOSITORY_NONE,    /* not in a repository, or in a sandbox, or it cannot be read */
    AMP_REPOSITORY_WITHOUT, /* the repository has no state directory */
    AMP_REPOSITORY_FOREIGN, /* the directory belongs to another user, or is not a directory */
    AMP_REPOSITORY_FOUND
};
/* out gets the path, except with NONE. */
enum amp_repository_state amp_cli_repository(char *out, size_t size);
/* Ends the program with USAGE because no state directory was given; the hint names that of the
 * repository, or the command that makes one. */
void amp_die_no_state(void) __attribute__((noreturn));

/* The name of the running tool, for records and diagnostics. */
const char *amp_cli_name(void);
/* The login of the user who runs the tool; otherwise, if it has none. Call it only where the name
 * is used: the C library's look-up does not survive a lack of memory. */
const char *amp_cli_login(const char *otherwise);

/* Diagnostics on stderr: "tool: severity: what: why". Control characters are neutralised. */
void amp_die_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void amp_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void amp_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Appends the line that amp_complain, amp_warn and amp_note print. May be called from any thread.
 */
enum amp_diagnostic_kind { AMP_DIAG_ERROR, AMP_DIAG_WARNING, AMP_DIAG_NOTE };
int amp_diagnostic(enum amp_diagnostic_kind kind, bool color, struct amp_span what,
                   struct amp_buf *out, struct amp_error *err);
/* Writes text to standard error; waits for its reader, until INT or TERM. */
void amp_err(struct amp_span text);
/* For a program that edits a line on the terminal: take gets the text of every amp_err first, and
 * returns whether it printed or kept it. NULL: none. */
void amp_err_divert(bool (*take)(void *ctx, struct amp_span text), void *ctx);
/* Prints err ("tool: error: what") and returns its status. */
int amp_complain(const struct amp_error *err);
/* Prints a note, once, if path is NULL or "-" and standard input is a terminal, because a program
 * that waits for input seems to hang. */
void amp_note_terminal(const char *path);
/* Records a status for amp_cli_main, which returns the worst, when the program goes on. */
void amp_status_note(int status);

/* -q: amp_note prints nothing. -v: the tool's last line is a summary. Options of a verb with these
 * names may set the same variables. */
extern bool amp_quiet, amp_verbose;

/* --progress: on one line of stderr that is written again, from the first second on, four times a
 * second. auto: if stderr is a terminal. total: 0 if it is unknown. The line is removed before
 * other text is printed. A call costs a reading of the clock. */
void amp_progress(const char *what, uint64_t done, uint64_t total);
/* Whether progress is to be shown, for tools that print lines about it. */
bool amp_progress_wanted(void);

/* Counts a refusal (status 1) that has no diagnostic of its own. At the end amp_cli_main prints the
 * count of each code. */
void amp_refused(const char *code, uint64_t n);

/* Untrusted text for a terminal: control characters (C0, DEL, C1, bidi overrides) become visible
 * escapes, at most width columns (0: no limit), cut with "…". */
int amp_text_safe(struct amp_span text, int width, struct amp_buf *out, struct amp_error *err);
/* Makes the first character printable, and counts its columns. Returns its length. */
#define AMP_TEXT_PIECE 16
size_t amp_text_piece(struct amp_span text, char out[AMP_TEXT_PIECE], int *columns);
bool amp_color(FILE *f);
bool amp_color_of(int fd); /* the same for a descriptor */

/* stdout for complete lines, blocking. They are written at 64 KiB and by the flush, which the
 * caller does before it waits for input. A FIFO is written as in <amp/base/pipe.h>. EPIPE is the
 * code "closed_pipe", which amp_complain does not print. Filters in a cycle use a struct amp_outq
 * on descriptor 1 instead. */
int amp_out(struct amp_span bytes, struct amp_error *err);
int amp_out_flush(struct amp_error *err);

/* INT and TERM: *amp_stop becomes the signal's number; blocking calls return EINTR. */
extern volatile int amp_stop;
void amp_signals_install(void);
/* Restores the default, so that INT and TERM end the process; a signal that arrived earlier ends it
 * now. Use it for a wait without unfinished work. */
void amp_signals_default(void);
/* The end of the terminal (HUP) ends the program as TERM does, unless HUP is ignored (nohup). */
void amp_signals_hangup(void);
/* HUP: amp_hangup becomes 1 and blocking calls return EINTR. The program resets it to 0. */
extern volatile int amp_hangup;
void amp_signals_reload(void);

#endif

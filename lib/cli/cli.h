/*
 * The command line: one option table a tool behind parser, --help, completions and the manual's
 * test; diagnostics; stdout. The only room that prints.
 */
#ifndef AMP_CLI_CLI_H
#define AMP_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <amp/base/buf.h>

#include "cli/config.h"

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
    AMP_OPT_REST,     /* struct amp_list: takes all following arguments (--exec COMMAND…) */
};

struct amp_list {
    const char **v; /* NULL-terminated */
    int n;
};

struct amp_opt {
    char letter;      /* 0: long only */
    const char *name; /* without dashes */
    enum amp_opt_kind kind;
    void *dest;                 /* the tool's static; holds the default beforehand */
    const char *arg;            /* "FILE"; NULL for flags */
    const char *doc;            /* one line, no full stop */
    int64_t min, max;           /* both 0: from 0 without limit (real: no limits) */
    const char *const *choices; /* NULL-terminated */
    const char *env;            /* environment variable that stands in when the flag is absent */
    bool optional_arg;          /* --machine[=FORMAT]: without =, dest gets choices[0] */
    const char *config;         /* dotted key of amp.json that stands in after the environment */
};
#define AMP_OPT_END                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/* A tool's verb or its verbless form. */
struct amp_verb {
    const char *name; /* one word or two ("dead list"); NULL: the verbless form */
    const char *args; /* "[FILE…]" for the synopsis, or "" */
    const char *doc;  /* one line */
    const struct amp_opt *opts;
    int (*run)(int argc, char **argv); /* operands only, argv[0] is the first; returns a status */
    const char *operand_hint; /* where args is "": what is meant instead of operands, or NULL */
};

/* What amp.json sets beside the options, for the whole process: set is called for the value under
 * the key, for each element of an array, before the verb runs. */
struct amp_setting {
    const char *key;
    int (*set)(void *arg, const char *text, struct amp_error *err); /* arg: NULL */
};

struct amp_tool {
    const char *name;
    const char *doc;              /* one line, as the manual's .Nd */
    const struct amp_opt *opts;   /* for every verb */
    const struct amp_verb *verbs; /* ends with .run == NULL; the verbless form first if any */
    const int *statuses;          /* exit statuses it may return, 0-terminated after a leading 0 */
    const struct amp_fsm *const *machines; /* NULL-terminated, for --machine; or NULL */
    amp_config_fn *config; /* amp_config_values where an option has a config key, else NULL */
    int (*check_config)(struct amp_span text, struct amp_error *err); /* of amp.json; or NULL */
    /* Whether the amp.json of a state directory may hold the setting with this dotted key. NULL:
     * none; others that it holds are ignored with a warning. */
    bool (*state_may_set)(struct amp_span key);
    const struct amp_setting *settings; /* ends with {0}; or NULL */
    /* Takes --redact or redact.patterns before the verb runs; NULL: it writes nothing of others. */
    int (*redact)(const char *const *patterns, struct amp_error *err);
};

/* Parses, dispatches, flushes stdout and returns the exit status: run's or a worse noted one. Adds
 * -h/--help, --version, --color=WHEN, --machine[=FORMAT] (where machines exist), --redact REGEX
 * (where the tool redacts) and --options.
 * Options and operands may mix; `--` ends options. No abbreviations; a repeated single-valued
 * option is an error. Tool options may stand before the verb. Operands of a verb whose args is ""
 * are refused before run is called. SIGPIPE is ignored.
 *
 * `TOOL [VERB] --options` prints the tables, tab separated, for completions and tests:
 *     verb    NAME  ARGS  DOC
 *     option  LETTER  NAME  KIND  ARG  CHOICES  DOC  ENV  DEFAULT
 * KIND is flag string path dir int duration size real choice list rest, with "?" appended where
 * the argument is optional; CHOICES are separated by commas; durations have the unit ms; absent
 * fields are "-", as is the default of a list or of an option that was given. */
int amp_cli_main(const struct amp_tool *tool, int argc, char **argv);

/* For tools that find their state directory: takes redact.patterns from its amp.json, where neither
 * an option nor the user's amp.json has them, and warns about what is ignored there. */
int amp_cli_state(const char *state_dir, struct amp_error *err);

/* The running tool's name, for records and diagnostics. */
const char *amp_cli_name(void);

/* Diagnostics on stderr: "tool: severity: what: why". Control characters are neutralised. */
void amp_die_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void amp_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void amp_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The line that amp_complain, amp_warn and amp_note write, appended to out for those who order
 * their own. May be called from any thread. */
enum amp_diagnostic_kind { AMP_DIAG_ERROR, AMP_DIAG_WARNING, AMP_DIAG_NOTE };
int amp_diagnostic(enum amp_diagnostic_kind kind, bool color, struct amp_span what,
                   struct amp_buf *out, struct amp_error *err);
/* Text for standard error; where nobody reads it, it is waited for until INT or TERM. */
void amp_err(struct amp_span text);
/* Prints err ("tool: error: what") and returns its status, to be returned from run. */
int amp_complain(const struct amp_error *err);
/* Notes once that input comes from a terminal, where path is NULL or "-" and it does: a program
 * that only waits looks as if it hung. */
void amp_note_terminal(const char *path);
/* Remembers the worst status of a stream that goes on; amp_cli_main returns it. */
void amp_status_note(int status);
/* Counts a refusal, or whatever else is a "no" (status 1), that no line on stderr tells by itself.
 * At the end amp_cli_main prints how many there were of each code. */
void amp_refused(const char *code, uint64_t n);

/* Untrusted text for a terminal: control characters (C0, DEL, C1, bidi overrides) become visible
 * escapes, at most width columns (0: no limit), cut with "…". */
int amp_text_safe(struct amp_span text, int width, struct amp_buf *out, struct amp_error *err);
bool amp_color(FILE *f);

/* stdout for records, whole lines: written at 64 KiB and by the flush, which belongs before input
 * would block; blocking. When it is a FIFO, under the discipline of <amp/base/pipe.h>. EPIPE gives
 * code "closed_pipe", about which amp_complain is silent. Filters in a cycle use a struct amp_outq
 * on descriptor 1 instead. */
int amp_out(struct amp_span bytes, struct amp_error *err);
int amp_out_flush(struct amp_error *err);

/* INT and TERM: *amp_stop becomes the signal's number; blocking calls return EINTR. */
extern volatile int amp_stop;
void amp_signals_install(void);
/* Until that is called again they end the process, also one that came before: for a wait in which
 * nothing is begun. */
void amp_signals_default(void);
/* HUP: *amp_hangup becomes 1 (whoever acts on it makes it 0); also interrupts. */
extern volatile int amp_hangup;
void amp_signals_reload(void);

#endif

/*
 * The event that a coding agent's command line tool (CLI) gives to its hook before a tool call:
 * which CLI, which tool, which command or files. One row per CLI says how its events are recognised
 * and how a decision is said; hitl-prompt-hook(1) has the same table, with the sources. Nothing of
 * the event is run, and no file of it is opened.
 */
#ifndef AMP_WORK_GIT_CALL_EVENT_EVENT_H
#define AMP_WORK_GIT_CALL_EVENT_EVENT_H

#include <stdbool.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>

#define AMP_CALL_INPUT_MAX (16u << 20) /* bytes of an event */
#define AMP_CALL_COMMANDS  8
#define AMP_CALL_WORDS     4096 /* of a command */
#define AMP_CALL_PATHS     1024

/* X(NAME, name) */
#define AMP_CALL_CLI_LIST(X)                                                                       \
    X(CLAUDE, "claude")                                                                            \
    X(CODEX, "codex")                                                                              \
    X(GEMINI, "gemini")                                                                            \
    X(CURSOR, "cursor")                                                                            \
    X(COPILOT, "copilot")                                                                          \
    X(VSCODE, "vscode")                                                                            \
    X(QWEN, "qwen")                                                                                \
    X(OPENCODE, "opencode")
enum amp_call_cli {
    AMP_CLI_NONE = -1, /* not recognised */
#define X(NAME, name) AMP_CLI_##NAME,
    AMP_CALL_CLI_LIST(X) AMP_CLI_COUNT
#undef X
};
const char *amp_call_cli_name(enum amp_call_cli cli);
/* AMP_CLI_NONE: there is no such name. */
enum amp_call_cli amp_call_cli_find(const char *name);

/* A tool's kind, by its name in the CLIs' documentation. */
enum amp_call_kind {
    AMP_CALL_COMMAND, /* it runs a command */
    AMP_CALL_READ,    /* it reads the files of `paths`, and no other */
    AMP_CALL_WRITE,   /* it writes the files of `paths`, and no other */
    AMP_CALL_SEARCH,  /* it reads files that it finds below `paths` */
    AMP_CALL_OTHER,   /* another tool; `paths` has the members that look like paths */
};
const char *amp_call_kind_name(enum amp_call_kind kind);

struct amp_call_command {
    struct amp_span line; /* a command line of a shell, or empty */
    bool foreign;         /* of another shell than POSIX's: PowerShell */
    char **words;         /* a command as separate words, or NULL */
    size_t n;
};

struct amp_call_event {
    enum amp_call_cli cli;
    enum amp_call_kind kind;
    bool known; /* the kind is that of the tool's name, not only of its input */
    /* Decoded texts; empty if the event has none. cwd: absolute, or as it was given. */
    struct amp_span event, tool, session, call, cwd;
    struct amp_span input; /* the tool's input, JSON */
    struct amp_call_command commands[AMP_CALL_COMMANDS];
    size_t n_commands;
    char **paths; /* as they were given */
    size_t n_paths;
    bool odd_patch; /* a line of a patch might be a header, so `paths` may not be all */
    struct amp_tape tape, inner; /* private, as are all below */
    struct amp_buf mem;
    char *dir;
};

/* Reads an event. expected: the CLI, or AMP_CLI_NONE to recognise it; a CLI that is expected must
 * fit the event. json must outlive the event. DATAERR call_malformed: not JSON, a duplicate member,
 * no tool, a member of the wrong type, too many parts, or an event that is none of the CLI's. The
 * caller releases it also after a failure. */
int amp_call_event_read(struct amp_span json, enum amp_call_cli expected,
                        struct amp_call_event *out, struct amp_error *err);
/* Whether an object of a tape is such an event, of any CLI. */
bool amp_call_event_is(const struct amp_tape *t, uint32_t object);
/* Begins an event that the CLI would give: an object up to the key of the tool's input. The caller
 * writes the input, a JSON object, and closes the object. cwd: "" leaves it out. With AMP_CLI_NONE
 * it is an event of no CLI, with the command and the files only. */
void amp_call_event_begin(enum amp_call_cli cli, const char *tool, const char *cwd,
                          struct amp_jw *w);
/* Appends the event with another input of the tool, a JSON object. INTERNAL: it has none. */
int amp_call_event_change(const struct amp_call_event *e, struct amp_span input,
                          struct amp_buf *out, struct amp_error *err);
void amp_call_event_release(struct amp_call_event *e);
#define AMP_CALL_EVENT AMP_CLEANUP(amp_call_event_release)

/* ---- replies ---- */

enum amp_call_verdict {
    AMP_CALL_ALLOW,
    AMP_CALL_DENY,
    AMP_CALL_ASK, /* let the CLI ask its own user */
};

/* Whether the CLI can ask its own user about this event. */
bool amp_call_can_ask(const struct amp_call_event *e);
/* Whether a reply can change the tool's input. */
bool amp_call_can_modify(const struct amp_call_event *e);
/* Appends the reply to out: a line of JSON, or nothing where silence allows. reason: not empty for
 * DENY and ASK. input: with ALLOW, the changed input, a JSON object; or empty. The exit status is
 * 0. e may be an event that could not be read, with only its cli. A verdict that the CLI cannot
 * express becomes DENY. */
int amp_call_reply(const struct amp_call_event *e, enum amp_call_verdict v, const char *reason,
                   struct amp_span input, struct amp_buf *out, struct amp_error *err);
/* The exit status of a failure: 2, which blocks the call, with the reason on standard error; 0 if
 * the CLI goes on after every other status, so that only a reply blocks. */
int amp_call_failure_status(enum amp_call_cli cli);

#endif

/* --from: the texts of the assistant in the output of a coding agent's command line. */
#ifndef AMP_VALIDATE_SAID_H
#define AMP_VALIDATE_SAID_H

#include <stdbool.h>

#include <amp/json/tape.h>

/* X(id, name). Claude Code and Qwen Code: stream-json, json and the files of their sessions; Codex:
 * exec
 * --json; Gemini CLI: stream-json and json; OpenCode: run --format json. */
#define SAID_LIST(X)                                                                               \
    X(CLAUDE, "claude")                                                                            \
    X(CODEX, "codex")                                                                              \
    X(GEMINI, "gemini")                                                                            \
    X(OPENCODE, "opencode")                                                                        \
    X(QWEN, "qwen")
#define X(id, name) SAID_##id,
enum said_agent { SAID_LIST(X) SAID_COUNT };
#undef X

/* Gets a text, or a piece of it. A return value other than 0 ends the reading with that value. */
typedef int (*said_fn)(void *ctx, struct amp_span text, struct amp_error *err);

/* One input. */
struct said {
    enum said_agent agent;
    said_fn piece, end; /* end: without text, behind the last piece of a text */
    void *ctx;
    struct amp_tape tape;
    struct amp_buf text;     /* decoded */
    struct amp_buf document; /* the lines of a document over several lines */
    bool spoke;              /* the assistant has said something */
    bool open;               /* the end of a text that comes in pieces has not been seen */
};
/* limits: of an event, and of a document. */
void said_init(struct said *s, enum said_agent agent, const struct amp_json_limits *limits);
void said_release(struct said *s);
/* Takes a line; what is no JSON object or list is skipped. 0, -1 with err, or the value of a
 * function. */
int said_line(struct said *s, struct amp_span line, struct amp_error *err);
/* Ends the input. */
int said_end(struct said *s, struct amp_error *err);

#endif

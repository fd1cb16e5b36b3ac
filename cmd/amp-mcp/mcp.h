/*
 * Shared by the files of amp-mcp, an MCP server on standard input and output.
 *
 *   main.c       options, identity, the place where it runs
 *   serve.c      the loop: lines in, lines out, calls that wait
 *   methods.c    the methods of MCP but for tools and resources; revisions
 *   tools.c      the table of tools, their schemas, tools/list and tools/call
 *   schema.c     JSON schemas from the table
 *   resources.c  resources, subscriptions
 *   tool/        the tools: take.c (inbox), say.c (send, reply, progress), person.c (ask_human) and
 *                task.c (my_task) with a state directory; attempt.c inside of an attempt
 */
#ifndef AMP_MCP_H
#define AMP_MCP_H

#include <jansson.h>

#include <amp/base/id.h>
#include <amp/base/pipe.h>
#include <amp/json/lines.h>

#include "cli/cli.h"
#include "message/delivery/inbox/inbox.h"
#include "message/store/store.h"
#include "message/store/wake.h"
#include "shared/identity.h"
#include "work/agent/contract/ask.h"
#include "json/rpc.h"

#define MCP_LINE_MAX    ((size_t)4 << 20)
#define MCP_OUT_MAX     ((size_t)64 << 20)
#define MCP_TEXT_MAX    ((size_t)16 << 20) /* of a result */
#define MCP_CALLS_MAX   16                 /* calls and streams at once */
#define MCP_BATCHES_MAX 4
#define MCP_QUEUE_MAX   (MCP_BATCHES_MAX * AMP_RPC_BATCH_MAX)
#define MCP_RATE        20   /* calls a second, */
#define MCP_BURST       100  /* after this many at once */
#define MCP_URIS_MAX    32   /* subscribed resources */
#define MCP_ASK_SECONDS 540  /* how long ask_human waits */
#define MCP_BEAT_MS     5000 /* between progress notifications of a call that waits */

/* Revisions of MCP, the newest last; batch: a line may be an array; modern: without a handshake,
 * each request has its revision. */
#define MCP_REVISIONS(X)                                                                           \
    X(R2024_11, "2024-11-05", true, false)                                                         \
    X(R2025_03, "2025-03-26", true, false)                                                         \
    X(R2025_06, "2025-06-18", false, false)                                                        \
    X(R2025_11, "2025-11-25", false, false)                                                        \
    X(R2026_07, "2026-07-28", false, true)
enum mcp_revision {
#define X(id, text, batch, modern) MCP_##id,
    MCP_REVISIONS(X)
#undef X
        MCP_REVISION_COUNT
};
#define MCP_LEGACY_LATEST MCP_R2025_11
struct mcp_revision_row {
    const char *text;
    bool batch, modern;
};
extern const struct mcp_revision_row mcp_revisions[MCP_REVISION_COUNT];

/* Severities of RFC 5424, as MCP has them. */
#define MCP_LEVELS(X)                                                                              \
    X(DEBUG, "debug")                                                                              \
    X(INFO, "info")                                                                                \
    X(NOTICE, "notice")                                                                            \
    X(WARNING, "warning")                                                                          \
    X(ERROR, "error")                                                                              \
    X(CRITICAL, "critical")                                                                        \
    X(ALERT, "alert")                                                                              \
    X(EMERGENCY, "emergency")
enum mcp_level {
#define X(id, word) MCP_##id,
    MCP_LEVELS(X)
#undef X
};
extern const char *const mcp_levels[]; /* their words; NULL ends them */

/* The places in which a tool can work. */
enum {
    MCP_EXECUTOR = 1, /* inside of an executor's attempt */
    MCP_REVIEWER = 2, /* inside of a reviewer's attempt */
    MCP_STATE = 4,    /* with a state directory */
    MCP_ATTEMPT = MCP_EXECUTOR | MCP_REVIEWER,
};

/* Whom an answer is for. */
struct mcp_to {
    char id[AMP_RPC_ID_MAX + 1]; /* as the request wrote it */
    bool modern;
    int batch; /* -1: none */
    int level; /* modern: the log level of the request, -1: none */
};

struct mcp;
struct mcp_call;

enum mcp_step { MCP_FAILED = -1, MCP_WAITS, MCP_DONE };

enum mcp_type {
    MCP_TEXT,
    MCP_INTEGER,
    MCP_NUMBER,
    MCP_BOOLEAN,
    MCP_JUDGED,      /* true, false, or null: not judged */
    MCP_TEXTS,       /* a list of texts */
    MCP_JUDGES,      /* a list of MCP_JUDGED */
    MCP_OBJECTS,     /* a list of objects with the fields `of` */
    MCP_OBJECT,      /* any object */
    MCP_OBJECTS_ANY, /* a list of objects */
};
struct mcp_field {
    const char *name; /* NULL: the end of the table */
    enum mcp_type type;
    bool required;
    const char *doc;
    int64_t min, max; /* of a number, of a text's length, of a list; both 0: no limits */
    const char *const *choices;
    const struct mcp_field *of;
};
struct mcp_tool {
    const char *name, *title, *doc;
    unsigned where;
    bool reads;  /* changes nothing */
    bool repeat; /* a second call with the same arguments changes nothing more */
    const struct mcp_field *in, *out;
    /* Fills call->result, or call->own if it waits. FAILED: err is what the agent gets. */
    enum mcp_step (*start)(struct mcp_call *call, struct amp_error *err);
    /* Looks again, after a write to the state or to the attempt, and at until_ms. It may be
     * `start`: messages leave through amp-route, one call at a time, in the calls' order. */
    enum mcp_step (*step)(struct mcp_call *call, struct amp_error *err);
    /* Ends a call that waits, because of a cancellation or the end of the session. */
    void (*stop)(struct mcp_call *call, const char *why);
};

struct mcp_call {
    struct mcp *m;
    const struct mcp_tool *tool; /* NULL: a stream of subscriptions */
    struct mcp_to to;
    json_t *args, *result;
    char text[512];                 /* for people, beside the result; "" is the result's JSON */
    char token[AMP_RPC_ID_MAX + 1]; /* of its progress, as written; "": none is wanted */
    char state[160];                /* what it waits for */
    uint64_t number;                /* in the order of their beginning */
    int64_t began_ms, beat_ms;      /* monotonic */
    int64_t until_ms;               /* when to look again, of the wall clock; 0: no such time */
    int64_t limit_ms;               /* inbox: when it gives up */
    int64_t beats;
    bool hands_over; /* the result has a message of the inbox */
    bool brief;      /* it waits a short time: also after the end of the input */
    void *own;
    /* A stream's notifications. */
    bool list_changed;
    char *uris[MCP_URIS_MAX];
    uint32_t n_uris;
};

struct mcp_batch {
    bool used;
    unsigned waits; /* for so many answers */
    struct amp_buf out;
};

/* A subscribed resource, and what it was when the client was told last. */
struct mcp_watch {
    char *uri;
    char was[AMP_SHA256_MAX];
    unsigned users; /* the handshake's session counts as one */
    bool session;
};

/* The message of the inbox that the client may not have read yet. */
struct mcp_handed {
    bool any;
    char id[256];
    uint64_t at; /* of the bytes of standard output; UINT64_MAX: it is not among them yet */
    int batch;   /* with whose other answers it leaves; -1: alone */
};

struct mcp {
    /* The place. */
    unsigned where; /* MCP_EXECUTOR … */
    const char *state, *config, *agent, *role, *control;
    struct amp_identity_cli *identity;
    const struct amp_list *routes;
    const char *out_path;
    const char *routing; /* routingPolicyVersion of what the agent says; NULL: none */
    int64_t lock_timeout_ms, open_timeout_ms;
    /* The session. */
    struct amp_lines in;
    struct amp_outq out;
    struct amp_tape tape;
    struct amp_buf line; /* what is sent next */
    bool in_ended, broken, stale;
    struct amp_error why;
    enum mcp_revision revision;
    bool initialized;
    int level;
    int64_t tokens, filled_ms;
    struct mcp_call *calls[MCP_CALLS_MAX];
    uint64_t n_calls;
    const struct mcp_call *emitting; /* amp-route runs for it; other calls are answered meanwhile */
    bool flush;                      /* what an earlier session left in the outbox has to leave */
    struct mcp_batch batches[MCP_BATCHES_MAX];
    /* The messages of batches that were not taken yet, a ring. */
    struct mcp_queued {
        char *text;
        int batch;
    } queue[MCP_QUEUE_MAX];
    uint32_t queue_at, n_queue;
    struct mcp_watch watches[MCP_URIS_MAX];
    char list_was[AMP_SHA256_MAX];
    struct mcp_handed handed;
    /* Opened when they are needed. */
    struct amp_store *store;
    struct amp_wake wake;
    bool wakes, asks;
    struct amp_ask_control ask;
    struct mcp_inbox *inbox;
    char box[AMP_INBOX_AGENT_MAX + 16]; /* its outbox */
};

/* ---- serve.c ---- */

/* Serves until the end of the input, a signal, or a failure; returns the status. */
int mcp_serve(struct mcp *m, struct amp_error *err);
/* The next functions never fail; a failure of the output ends the session (m->broken). `result` and
 * `params` are given away. */
void mcp_result(struct mcp *m, const struct mcp_to *to, json_t *result);
void mcp_error(struct mcp *m, const struct mcp_to *to, enum amp_rpc_code code, json_t *data,
               const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void mcp_notify(struct mcp *m, const char *method, json_t *params);
/* A request that was cancelled gets no answer; a batch does not wait for it. */
void mcp_answer_none(struct mcp *m, const struct mcp_to *to);
void mcp_break(struct mcp *m, const struct amp_error *err);
/* A place for a call that waits; NULL: there is none. */
struct mcp_call *mcp_call_new(struct mcp *m, const struct mcp_to *to, struct amp_error *err);
void mcp_call_free(struct mcp *m, struct mcp_call *call);
/* A call that waits tells how it is going, if the client wants to know. */
void mcp_progress(struct mcp_call *call);
/* Whether the call may give its message to amp-route now; else it waits for earlier ones. */
bool mcp_may_emit(const struct mcp_call *call);
/* Answers other calls until fd is readable or the time has passed (monotonic; a signal and a broken
 * session end it, too). */
void mcp_serve_until(struct mcp *m, int fd, int64_t until_ms);
/* A log message, if the client wants this level; `to`: the request that it is about. */
void mcp_log(struct mcp *m, const struct mcp_to *to, enum mcp_level level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The state directory, opened with the first use. */
int mcp_store(struct mcp *m, struct amp_error *err);
/* The control FIFO, the same. */
int mcp_control(struct mcp *m, struct amp_error *err);

/* ---- methods.c ---- */

/* Carries out a request or a notification. */
void mcp_message(struct mcp *m, const struct amp_rpc_message *msg, int batch);

/* ---- tools.c, schema.c ---- */

void mcp_tools_list(struct mcp *m, const struct mcp_to *to);
void mcp_tools_call(struct mcp *m, const struct mcp_to *to, json_t *params);
/* The call has its result, or failed. */
void mcp_call_end(struct mcp_call *call, enum mcp_step how, const struct amp_error *err);
/* Adds how long a client may keep a result; steals and returns it. */
json_t *mcp_cacheable(const struct mcp_to *to, json_t *result, int ttl_ms);
json_t *mcp_schema(const struct mcp_field *fields);
/* 0: valid; -1: DATAERR bad_arguments, with what is wrong. */
int mcp_schema_check(const struct mcp_field *fields, const json_t *value, struct amp_error *err);

/* ---- the tools ---- */

enum mcp_step mcp_inbox_start(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_inbox_step(struct mcp_call *call, struct amp_error *err);
void mcp_inbox_stop(struct mcp_call *call, const char *why);
/* Records READ once the client has the message. Returns in how many ms to look again; -1: nothing
 * is on its way. */
int64_t mcp_inbox_settle(struct mcp *m);
/* The client knows the message: it answers it. */
void mcp_inbox_seen(struct mcp *m, const char *id);
void mcp_inbox_close(struct mcp *m);
/* The waiting messages, for the resource. NULL: failed. */
json_t *mcp_inbox_list(struct mcp *m, struct amp_error *err);
void mcp_outbox_flush(struct mcp *m);
enum mcp_step mcp_send(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_reply(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_progress_say(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_ask_start(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_ask_step(struct mcp_call *call, struct amp_error *err);
void mcp_ask_stop(struct mcp_call *call, const char *why);
/* Makes the result of ask_human without an answer. */
json_t *mcp_unanswered(const char *question, const char *why);
enum mcp_step mcp_task(struct mcp_call *call, struct amp_error *err);
/* Makes the result of my_task for a task. NULL: failed; NO no_task. */
json_t *mcp_task_read(struct mcp *m, const char *id, struct amp_error *err);

enum mcp_step mcp_attempt_inbox(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_attempt_inbox_step(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_attempt_result(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_attempt_verdict(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_attempt_progress(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_attempt_progress_step(struct mcp_call *call, struct amp_error *err);
void mcp_attempt_stop(struct mcp_call *call, const char *why);
enum mcp_step mcp_attempt_ask(struct mcp_call *call, struct amp_error *err);
enum mcp_step mcp_attempt_ask_step(struct mcp_call *call, struct amp_error *err);
void mcp_attempt_ask_stop(struct mcp_call *call, const char *why);
enum mcp_step mcp_attempt_task(struct mcp_call *call, struct amp_error *err);
json_t *mcp_attempt_task_read(struct mcp *m, struct amp_error *err);
/* The last verdict about the work, from the coordinator's record. NULL: failed; NO no_verdict. */
json_t *mcp_attempt_verdict_read(struct mcp *m, struct amp_error *err);

/* ---- resources.c ---- */

void mcp_resources_list(struct mcp *m, const struct mcp_to *to, const json_t *params);
void mcp_resources_templates(struct mcp *m, const struct mcp_to *to);
void mcp_resources_read(struct mcp *m, const struct mcp_to *to, const json_t *params);
/* on: resources/subscribe; else resources/unsubscribe. */
void mcp_resources_subscribe(struct mcp *m, const struct mcp_to *to, const json_t *params, bool on);
/* subscriptions/listen. */
void mcp_resources_listen(struct mcp *m, const struct mcp_to *to, const json_t *params);
void mcp_listen_free(struct mcp_call *call);
/* Tells clients what has changed. */
void mcp_resources_look(struct mcp *m);
bool mcp_resources_watched(const struct mcp *m);
void mcp_resources_close(struct mcp *m);

#endif

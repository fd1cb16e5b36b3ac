/*
 * The agent contract (amp-agent-contract(7)): the input of a command for one attempt, the meaning
 * of its exit status, and its answer. The agent gets messages in files, never as text in the
 * environment or the arguments.
 */
#ifndef AMP_WORK_AGENT_CONTRACT_CONTRACT_H
#define AMP_WORK_AGENT_CONTRACT_CONTRACT_H

#include <jansson.h>

#include <amp/base/child.h>

#define AMP_ANSWER_MAX   (4u << 20) /* bytes of an answer file */
#define AMP_WORK_LOG_MAX (1u << 20)

/* The input of an attempt. Strings are borrowed; NULL or "" leaves a variable empty. */
struct amp_contract {
    const char *role, *agent, *task, *subtask;
    int64_t attempt;
    const char *worktree, *branch, *base, *state_dir;
    const char *type;    /* of the agent, in a pool */
    const char *session; /* the name under which the agent can resume its last attempt */
    /* A confined agent gets no AMP_STATE, its git reads no system configuration, and of the
     * parent's environment only the variables for which passes is true (NULL: all). git_dir, if not
     * NULL, is set as GIT_DIR, with the worktree.
     */
    bool confined;
    const char *walls;   /* AMP_CONFINED: "full", "landlock"; NULL: "none" */
    const char *helpers; /* the directory of the adapters, the last one of PATH; NULL: none */
    const char *git_dir;
    bool (*passes)(const void *ctx, const char *variable);
    const void *passes_ctx;
    struct amp_span message;  /* the message's line */
    struct amp_span criteria; /* JSON, see amp-agent-contract(7) */
    struct amp_span diff;     /* unified diff; none: p NULL */
    struct amp_span context;  /* JSON: the messages that it refers to; none: p NULL */
    struct amp_span activity; /* JSON: what others do in the repository; none: p NULL */
    const char *const
        *extra; /* more NAME=value strings (such as git's refusal of pushes), or NULL */
};

/* One attempt's directory and the files in it. */
struct amp_attempt {
    char dir[1024];
    char message[1088], criteria[1088], diff[1088], context[1088], result[1088], work_log[1088];
    char activity[1088];
    char control[1088];  /* the FIFO, see control.h */
    char git[1088];      /* the quarantine of a confined attempt */
    char kept_dir[1088]; /* the agent's own, for all its attempts at the subtask */
    char kept[1088];     /* the file AMP_KEPT in it */
    char out[1088], err[1088];
};

/* Creates STATE/run/<task>/<agent>-<subtask>-<attempt>-<random>/ (0700) with the input files, and
 * kept-<agent>-<subtask>/ beside it, unless an earlier attempt made it. */
int amp_attempt_make(const struct amp_contract *c, struct amp_attempt *a, struct amp_error *err);

/* A list of NAME=value strings for exec. */
struct amp_env {
    char **v; /* NULL-terminated */
    size_t n, cap;
};
void amp_env_release(struct amp_env *e);
/* Whether the agent worked on the task before, so that it has its AMP_KEPT_DIR. */
bool amp_attempt_kept(const char *state_dir, const char *task, const char *agent);
/* The agent's environment: the parent's without variables that control git or these tools (GIT_*,
 * AMP_*), then the contract's variables, the agent's git identity, variables that disable prompts
 * and colours, and c->extra. */
int amp_contract_env(const struct amp_contract *c, const struct amp_attempt *a, char *const *parent,
                     struct amp_env *out, struct amp_error *err);
/* The address of an agent in its commits: "name@agents.invalid". */
void amp_agent_email(const char *agent, char *out, size_t size);

/* The end of an attempt, by its exit status alone. */
enum amp_attempt_end {
    AMP_END_DONE,      /* status 0 */
    AMP_END_REPEAT,    /* status 75: the agent asks for another attempt (later) */
    AMP_END_FAILED,    /* the agent reports a failure */
    AMP_END_MACHINERY, /* 126, 127, killed, crashed, timed out: no result */
    AMP_END_STOPPED,   /* ended by this process: interrupted, suspended */
};
/* why gets a reason for people ("killed by signal 9"). */
enum amp_attempt_end amp_attempt_read_end(const struct amp_child_end *end, char *why, size_t size);

/* Reads $AMP_RESULT and checks it against schemas/agent/<schema> ("result.json", "verdict.json";
 * NULL: any JSON object). *out is NULL if there is no file; the caller owns it. DATAERR bad_answer:
 * not a regular file, not JSON, or not valid by the schema. */
int amp_answer_read(const struct amp_attempt *a, const char *schema, json_t **out,
                    struct amp_error *err);
/* Appends the entries of $AMP_WORK_LOG to log (an array). A line that is not JSON becomes an entry
 * with the action "note". Each entry gets timestamp, action, file and detail. */
int amp_work_log_read(const struct amp_attempt *a, int64_t now_ms, json_t *log,
                      struct amp_error *err);
/* Adds an entry with the four members as strings. Takes no reference. */
int amp_work_log_add(json_t *log, const json_t *entry, int64_t now_ms, struct amp_error *err);

/* The living processes with the environment of an attempt in this state, by the agent and for the
 * task; NULL: any. kill: sends them KILL. Returns their number. Processes of other users, and those
 * that cleared their environment, are not found. */
struct amp_attempt_processes {
    const char *state_dir, *agent, *task;
    bool kill;
    bool ours; /* only descendants of this process, the subreaper of the agents that it started */
};
int amp_attempt_processes(const struct amp_attempt_processes *of);
/* Kills them, also those that are forked meanwhile, and waits up to a second until none is left.
 * Returns the number of signals. */
int amp_attempt_end_processes(const struct amp_attempt_processes *of);

/* Kills the processes that have the environment of an attempt of this agent in this state. The
 * caller holds the worker's lock, so no other worker owns them, and runs no attempt itself. ours:
 * the agent ran below this process. Returns their number. */
int amp_agent_end_leftovers(const char *state_dir, const char *agent, bool ours);

/* Reads a captured file of at most max bytes. The agent may have replaced it: a link is none. -1
 * without an error: there is no such file. */
int amp_attempt_output(const char *path, size_t max, struct amp_buf *out);
/* The last non-empty line of a captured file, with '?' for control characters; "" if there is none.
 */
void amp_attempt_last_line(const char *path, char *out, size_t size);

#endif

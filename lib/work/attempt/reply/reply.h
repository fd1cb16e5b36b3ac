/*
 * An agent's answer to a message that the state has: accept, progress, complete, fail, reply. The
 * answer is composed in the message's protocol (protocol/reply.h), moves the message's state and
 * ends its deadlines, and is put into an outbox, in one commit. The caller syncs and emits that
 * outbox (message/delivery/outbox.h), which signs the line.
 *
 *   AMP_BUF struct amp_buf line = {0};                  // with a maximum
 *   amp_outbox_lock(s, box, ...);                       // one process emits
 *   amp_reply(s, &answer, &result, err)                 // commits
 *   amp_outbox_finish(&(struct amp_outbox){.store = s, .name = box, .ids = ids, .out = &q}, ...)
 *
 * The identities are those of result.principal ("executor/NAME", or the agent's name).
 */
#ifndef AMP_WORK_ATTEMPT_REPLY_REPLY_H
#define AMP_WORK_ATTEMPT_REPLY_REPLY_H

#include "message/protocol/reply.h"
#include "message/store/store.h"

struct amp_git;

enum {
    AMP_REPLY_NAME_MAX = 256,
    AMP_REPLY_TEXT_MAX = 1 << 20, /* of a text, and of a JSON payload */
    AMP_REPLY_FILES_MAX = 50,
};
#define AMP_REPLY_LINE_MAX ((size_t)16 << 20)

struct amp_reply {
    enum amp_reply_act act;
    const char *id;   /* the message's, or an unambiguous prefix of at least four characters */
    const char *by;   /* the agent */
    const char *box;  /* the outbox that gets the line */
    const char *text; /* UTF-8; NULL or "": none */
    const json_t *data;
    const struct amp_reply_file *files;
    uint32_t n_files;
    bool has_percent, retryable;
    bool taken; /* the agent has the message, although this is not recorded yet */
    bool late;  /* the answer is sent although the message timed out; it changes no state */
    double percent;
    const char *code;
    int64_t eta_ms; /* when the end is expected; 0: unknown */
    int64_t now_ms;
    /* Starts git-worker when the answer needs the change of a branch; NULL: there is none, and the
     * answer must have the change in `data`. The caller closes it. */
    struct amp_git *(*git)(void *ctx, struct amp_error *err);
    void *git_ctx;
    /* Whether the agent may still answer, called in the batch that records the answer; -1 refuses
     * it with its error. NULL: it may. */
    int (*allowed)(void *ctx, struct amp_error *err);
    void *allowed_ctx;
};

struct amp_reply_result {
    char id[AMP_MSG_ID_MAX];            /* the message's complete id */
    char principal[AMP_REPLY_NAME_MAX]; /* whose key signs the line */
    enum {
        AMP_REPLY_COMPOSED, /* the line is in the outbox now */
        AMP_REPLY_REPEATED  /* a former process composed this answer, and the outbox still has it */
    } how;
    struct amp_buf line; /* without LF and signature; the caller initialises and releases it */
};

/*
 * 0, or -1 and nothing was changed:
 *   NO unknown_ref        the state has no such message
 *   NO ambiguous          the prefix fits several messages
 *   NO bad_sender         the message is for another agent
 *   NO handed_over        this agent handed the task over (lib/work/handoff)
 *   NO already_completed  it has an outcome
 *   NO refused_before     it was refused, or failed
 *   NO expired            its time to live has passed
 *   NO late               it timed out (unless `late`)
 *   NO already_accepted   accept: this agent has it
 *   NO unsupported_reply  the protocol has no such answer to it
 *   NO too_frequent       progress: the protocol sets a shortest interval
 *   NO, a code of message/ledger/holder.h (permission_denied, accept_required, not_claimant …)
 *   NO, a code of protocol/reply.h (missing_field, bad_value, eta_required …)
 *   NO, a code of its protocol: the composed line would not be valid
 */
int amp_reply(struct amp_store *s, const struct amp_reply *r, struct amp_reply_result *out,
              struct amp_error *err);

/* Removes the records of answers, a week after the last one to a message. */
#define AMP_REPLY_KIND "reply"

/* The complete id of a message in the ledger, from itself or an unambiguous prefix. NO unknown_ref,
 * ambiguous. */
int amp_reply_find(struct amp_store *s, const char *prefix, char id[AMP_MSG_ID_MAX],
                   struct amp_error *err);

/* Reads a file that an answer names: a regular file, opened without following a link at its end.
 * `mem` gets the strings, and the contents of a file of at most AMP_REPLY_INLINE_MAX bytes. NO
 * bad_file. */
#define AMP_REPLY_INLINE_MAX (64 << 10)
int amp_reply_file_read(const char *path, struct amp_buf *mem, struct amp_reply_file *out,
                        struct amp_error *err);
/* Reads a path below the directory `root`, and follows no link out of it: for a path from an agent
 * that may have fewer rights than this process. */
int amp_reply_file_read_below(int root, const char *path, struct amp_buf *mem,
                              struct amp_reply_file *out, struct amp_error *err);

#endif

/* AOP: versions, rules, refusals and policy. */
#ifndef AMP_MESSAGE_PROTOCOL_AOP_AOP_H
#define AMP_MESSAGE_PROTOCOL_AOP_AOP_H

#include <amp/json/writer.h>

#include "message/protocol/check/check.h"

#define AMP_AOP_VERSION "2.0.2-C" /* of the messages that these tools write */
#define AMP_AOP_V1      "V1_MARKDOWN"
#define AMP_AOP_NEITHER "UNSTRUCTURED"

/* The rules that a schema cannot express. */
void amp_aop_rules(struct amp_check *c);

/* See spec.h, waives. */
bool amp_aop_waives(struct amp_check *c, const struct amp_finding *f);

/* Detection of version 1 (AOP §1.3): AMP_AOP_V1 where the text is a task in Markdown, else NULL. */
const char *amp_aop_text(struct amp_span text, bool pinned);
/* Appends the task as a prompt of version 1, for an agent that reads no other version. */
int amp_aop_v1_prompt(const struct amp_view *v, struct amp_buf *out, struct amp_error *err);

/* See spec.h, refuse. */
enum amp_refuse_result amp_aop_refuse(const struct amp_view *v, const struct amp_finding *first,
                                      int64_t now_ms, struct amp_buf *out, struct amp_error *err);

/* See spec.h, effective. */
int amp_aop_effective(const struct amp_view *v, struct amp_jw *w, struct amp_error *err);

/* The code of the contract's list (§12) for a code of these tools: itself if it is there. */
const char *amp_aop_code(const char *code);
/* The first members of every message of this version. */
void amp_aop_header(struct amp_jw *w, const char *type);
/* Like amp_aop_code, for conversions: see struct cv_row, infer. */
const char *amp_aop_failure(struct amp_span code, struct amp_span summary);
/* The parts of a TASK's target that its RESPONSE repeats: the provider, and the model as a JSON
 * string; empty if the TASK has none. */
enum { AMP_AOP_PROVIDER, AMP_AOP_MODEL, AMP_AOP_TARGET };
void amp_aop_target(const struct amp_view *v, struct amp_span target[AMP_AOP_TARGET]);

/* Appends the RESPONSE FAILED to a TASK that was not delivered, or that got no RESPONSE in time,
 * one line with LF; nothing for any other message. Reads the view, not its document. */
struct amp_aop_refusal {
    const char *code, *what, *rule;
    bool late; /* there was no RESPONSE in time */
    struct amp_span target[AMP_AOP_TARGET];
};
int amp_aop_undelivered(const struct amp_view *v, const struct amp_aop_refusal *refusal,
                        int64_t now_ms, struct amp_buf *out, struct amp_error *err);

/* Appends the RESPONSE to a TASK whose end no agent reports, one line with LF: SKIPPED because of
 * another TASK, ABORTED by a person, or FAILED because its workers were lost. */
struct amp_aop_end {
    const char *state, *code, *what;
    int64_t began_ms; /* 0: it was not begun */
};
int amp_aop_ended(const struct amp_view *v, const struct amp_aop_end *end, int64_t now_ms,
                  struct amp_buf *out, struct amp_error *err);

/* The file access in the effective policy. */
struct amp_aop_paths;
void amp_aop_files(const struct amp_view *task, struct amp_aop_paths *read,
                   struct amp_aop_paths *write);

/* Whether the aop_version is one of version 2. */
bool amp_aop_is_2(const struct amp_tape *t);
/* Whether a message is a TASK: by its type, or by its task if the type is not valid. */
bool amp_aop_is_task(const struct amp_view *v);

#endif

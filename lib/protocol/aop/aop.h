/* What the files of AOP share. */
#ifndef AMP_PROTOCOL_AOP_H
#define AMP_PROTOCOL_AOP_H

#include "protocol/check/check.h"

#define AMP_AOP_VERSION "2.0.2-C" /* what we write */
#define AMP_AOP_V1      "V1_MARKDOWN"
#define AMP_AOP_NEITHER "UNSTRUCTURED"

/* What the schemas cannot say. */
void amp_aop_rules(struct amp_check *c);

/* See spec.h, waives. */
bool amp_aop_waives(struct amp_check *c, const struct amp_finding *f);

/* Detection of version 1 (AOP §1.3): AMP_AOP_V1 where the text is a task in Markdown, else NULL. */
const char *amp_aop_text(struct amp_span text, bool pinned);
/* The task of a view as version 1 says it, for an agent that reads nothing else. Appends to out. */
int amp_aop_v1_prompt(const struct amp_view *v, struct amp_buf *out, struct amp_error *err);

/* See spec.h, refuse. */
int amp_aop_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                   struct amp_buf *out, struct amp_error *err);

/* See spec.h, effective. */
struct amp_jw;
int amp_aop_effective(const struct amp_view *v, struct amp_jw *w, struct amp_error *err);

/* What a RESPONSE repeats of a TASK's target: the provider's word, and the model as a JSON string,
 * empty where it has none. */
enum { AMP_AOP_PROVIDER, AMP_AOP_MODEL, AMP_AOP_TARGET };
void amp_aop_target(const struct amp_view *v, struct amp_span target[AMP_AOP_TARGET]);

/* The RESPONSE that says FAILED of a TASK that was not delivered, one line with LF; nothing for any
 * other message. Reads the view, not its document. */
struct amp_aop_refusal {
    const char *code, *what, *rule;
    struct amp_span target[AMP_AOP_TARGET];
};
int amp_aop_undelivered(const struct amp_view *v, const struct amp_aop_refusal *refusal,
                        int64_t now_ms, struct amp_buf *out, struct amp_error *err);

/* The part of the effective policy that is about files. */
struct amp_aop_paths;
void amp_aop_files(const struct amp_view *task, struct amp_aop_paths *read,
                   struct amp_aop_paths *write);

/* Whether version 2 is claimed. */
bool amp_aop_is_2(const struct amp_tape *t);
/* Whether a message is a TASK: by its type, or by the task in it where the type is none. */
bool amp_aop_is_task(const struct amp_view *v);

/* The value under a key of an object token, or AMP_TOK_NONE; also where there is no object. */
uint32_t amp_aop_at(const struct amp_view *v, uint32_t object, struct amp_span key);

#endif

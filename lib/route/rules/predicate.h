/*
 * Predicates over a message: what a route asks. `to=executor,type=task_*` holds when every term
 * holds; a term is KEY=GLOB or KEY!=GLOB, GLOB may list alternatives with `|`; `*` alone holds for
 * every message. A field that the message does not have never equals and always differs. `\,`
 * stands for a comma inside a glob. `jq:EXPR` is left to the jq worker.
 */
#ifndef AMP_ROUTE_PREDICATE_H
#define AMP_ROUTE_PREDICATE_H

#include <amp/protocol/protocol.h>

#define AMP_PREDICATE_KEYS(X)                                                                      \
    X(TO, "to", "a recipient")                                                                     \
    X(FROM, "from", "the sender")                                                                  \
    X(TYPE, "type", "the protocol's word for the type")                                            \
    X(KIND, "kind", "dispatch, result, review, verdict, escalation, ack …")                        \
    X(TASK, "task", "the task")                                                                    \
    X(CORRELATION, "correlation", "the conversation, negotiation or workflow")                     \
    X(SOURCE, "source", "the stream in which it is numbered: a node's outbox, a producer")         \
    X(PROTOCOL, "protocol", "amp, sw4rm, aop, aof, rtp")                                           \
    X(ID, "id", "the message id")                                                                  \
    X(PRIORITY, "priority", "a number")                                                            \
    X(SEVERITY, "severity", "an escalation's: info, warning, critical")                            \
    X(DECISION, "decision", "a verdict's or a person's")

struct amp_predicate;

/* USAGE "bad_predicate" says what is wrong with the text. */
int amp_predicate_parse(struct amp_span text, struct amp_predicate **out, struct amp_error *err);
void amp_predicate_free(struct amp_predicate *p);
/* The expression of a jq: predicate, or NULL for a native one. */
const char *amp_predicate_jq(const struct amp_predicate *p);
/* Native ones only. */
bool amp_predicate_match(const struct amp_predicate *p, const struct amp_view *v);

/* Whether it asks for what stands in the view's body. */
bool amp_predicate_asks_body(const struct amp_predicate *p);

/* Whether it asks for no more than protocol, kind, type and priority. */
bool amp_predicate_is_plain(const struct amp_predicate *p);

/* Splits 'PREDICATE => PORT' at its last arrow; both parts are trimmed. */
int amp_route_split(struct amp_span text, struct amp_span *predicate, struct amp_span *port,
                    struct amp_error *err);

#endif

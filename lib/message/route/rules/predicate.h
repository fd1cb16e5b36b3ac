/*
 * Predicates of routes over a message. `to=executor,type=task_*` is true if all terms are true. A
 * term is KEY=GLOB or KEY!=GLOB; GLOB may list alternatives with `|`. `*` alone matches every
 * message. A missing field equals no glob and differs from every glob. `\,` is a comma in a glob.
 * The jq worker evaluates `jq:EXPR`. amp-predicates(7) describes the keys.
 */
#ifndef AMP_MESSAGE_ROUTE_RULES_PREDICATE_H
#define AMP_MESSAGE_ROUTE_RULES_PREDICATE_H

#include <amp/protocol/protocol.h>

struct amp_predicate;

/* USAGE bad_predicate: the text is invalid; err has the reason. */
int amp_predicate_parse(struct amp_span text, struct amp_predicate **out, struct amp_error *err);
void amp_predicate_free(struct amp_predicate *p);
/* The expression of a jq: predicate, or NULL for a native one. */
const char *amp_predicate_jq(const struct amp_predicate *p);
/* Tells whether the message matches; the predicate must be native. */
bool amp_predicate_match(const struct amp_predicate *p, const struct amp_view *v);
/* Whether it reads fields of the view's body. */
bool amp_predicate_asks_body(const struct amp_predicate *p);
/* Whether it reads protocol, kind, type and priority only. */
bool amp_predicate_is_plain(const struct amp_predicate *p);

/* Splits 'PREDICATE => PORT' at its last arrow; both parts are trimmed. */
int amp_route_split(struct amp_span text, struct amp_span *predicate, struct amp_span *port,
                    struct amp_error *err);

#endif

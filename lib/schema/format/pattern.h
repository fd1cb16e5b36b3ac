/* `pattern`: ECMA-262 regular expressions. Plain ones (anchored, a row of character classes with
 * counts that never need to go back) run on a matcher of our own in linear time; the rest on PCRE2
 * with limits. */
#ifndef SCHEMA_PATTERN_H
#define SCHEMA_PATTERN_H

#include "schema/arena.h"

struct amp_matcher; /* working memory, one a checker */

/* Adds a pattern to a list whose memory is in an arena. NULL when the text is no regular
 * expression: `why` says so then, and is empty when memory is short. */
enum { AMP_PATTERN_WHY = 200 };
struct amp_pattern *amp_pattern_compile(struct amp_arena *arena, struct amp_pattern **list,
                                        struct amp_span text, char why[AMP_PATTERN_WHY]);
/* What is outside of the arena. */
void amp_pattern_free_all(struct amp_pattern *list);

struct amp_matcher *amp_matcher_new(struct amp_error *err);
void amp_matcher_free(struct amp_matcher *m);
/* 1 matches, 0 does not, -1 past the limits. The subject is valid UTF-8. *used counts the matches
 * of one check: the more there were, the fewer steps each may take. */
int amp_pattern_match(const struct amp_pattern *p, struct amp_matcher *m, struct amp_span subject,
                      uint32_t *used, struct amp_error *err);

#endif

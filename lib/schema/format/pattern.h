/* ECMA-262 regular expressions. Plain ones (plain_pattern.h) run on an own matcher in linear time,
 * the others on PCRE2 with limits. */
#ifndef AMP_SCHEMA_FORMAT_PATTERN_H
#define AMP_SCHEMA_FORMAT_PATTERN_H

#include "base/arena.h"

struct amp_matcher; /* working memory of one checker */

/* Adds a pattern to a list in an arena. NULL if the text is not a regular expression, with the
 * reason in `why`, or if memory is short, with `why` empty. */
enum { AMP_PATTERN_WHY = 200 };
struct amp_pattern *amp_pattern_compile(struct amp_arena *arena, struct amp_pattern **list,
                                        struct amp_span text, char why[AMP_PATTERN_WHY]);
/* Frees the memory outside of the arena. */
void amp_pattern_free_all(struct amp_pattern *list);

struct amp_matcher *amp_matcher_new(struct amp_error *err);
void amp_matcher_free(struct amp_matcher *m);
/* Returns 1 if the subject, which is valid UTF-8, matches, 0 if not, -1 past the limits. *used
 * counts the matches of one check: the more there were, the fewer steps each may take. */
int amp_pattern_match(const struct amp_pattern *p, struct amp_matcher *m, struct amp_span subject,
                      uint32_t *used, struct amp_error *err);

#endif

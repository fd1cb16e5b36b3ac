/* Refuses agents the actions of people, with a record in the state directory where it can be
 * reached. */
#ifndef AMP_PEOPLE_ANSWER_PERSON_H
#define AMP_PEOPLE_ANSWER_PERSON_H

#include <amp/base/error.h>

/* amp_person_only (work/git/person.h); a refusal is also recorded, as permission_denied, in the
 * error log of `state`. state: NULL, or a directory, which is not created. */
int amp_person_only_recorded(const char *state, const char *tool, char *const *envp,
                             const char *act, struct amp_error *err);
/* Does the same for what belongs to the agent `name`: amp_person_or_self. */
int amp_person_or_self_recorded(const char *state, const char *tool, char *const *envp,
                                const char *name, const char *act, struct amp_error *err);

#endif

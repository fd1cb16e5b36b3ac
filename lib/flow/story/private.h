/* For the files of this folder. */
#ifndef AMP_FLOW_STORY_PRIVATE_H
#define AMP_FLOW_STORY_PRIVATE_H

#include "flow/story/story.h"

/* Adds the directories of a task's attempts in a state directory, the oldest first. */
int amp_story_attempts(const char *state, const char *id, struct amp_story *st,
                       struct amp_error *err);

#endif

/* Ends the agents that people suspended, if their tools do not. */
#ifndef AMP_PEOPLE_PAUSE_END_H
#define AMP_PEOPLE_PAUSE_END_H

#include "message/pause/pause.h"

/* Waits until the processes of suspended agents have ended. The tools end them; processes that
 * still run after 700 ms are killed here, so that a tool that is stuck does not keep its agent
 * alive. dir: the absolute path of the state directory. Returns how many are left after 1.5 s. */
int amp_pause_end(const char *dir, const struct amp_pauses *p,
                  void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2))));

#endif

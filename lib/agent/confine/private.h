/* Shared by the files of this folder. */
#ifndef AGENT_CONFINE_PRIVATE_H
#define AGENT_CONFINE_PRIVATE_H

#include "agent/confine.h"

#define CONFINE_HELPER     "confine"
#define CONFINE_HELPER_MS  20000 /* for the helper's own work */
#define CONFINE_PLACES_MAX 500   /* the helper's limit is 512 */

/* Reads a pipe to its end, at most size - 1 bytes, and adds a NUL. Returns their number. */
size_t confine_pipe_read(int fd, char *out, size_t size);
/* Whether path is dir or beneath it. */
bool confine_is_beneath(const char *path, const char *dir);

struct confine_place {
    char *from, *at; /* owned; from NULL: covered */
    bool write;
    bool granted; /* by the policy */
};
struct confine_places {
    struct confine_place v[CONFINE_PLACES_MAX];
    size_t n;
};
void confine_places_release(struct confine_places *p);
/* Collects the worktree, the tool's places and the policy's grants, resolved; parents before
 * children. Fails as amp_confine_start does; *p has to be released also then. */
int confine_places_collect(const struct amp_confine *c, struct confine_places *p,
                           struct amp_error *err);

#endif

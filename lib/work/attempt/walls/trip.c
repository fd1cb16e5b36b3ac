/*
 * The trip-wire: refs that must not move while an agent works are compared by value before and
 * after, whoever the reflog names. They are protected branches, their remote-tracking refs, those
 * that are symbolic, and protected branches of remotes on this machine. Notes with proofs are only
 * recorded. Moves that recorded landings made are not the agent's.
 */
#include <stdio.h>
#include <string.h>

#include "work/attempt/left/forgeries.h"
#include "work/attempt/walls/confined.h"
#include "work/git/override.h"
#include "work/task/landing/landing.h"

struct trip {
    struct amp_worker *w;
    struct amp_assignment *k;
    char *what;
    size_t size;
    bool tripped, failed;
    struct amp_error *err;
};

/* A person, or the loop for one, landed approved work meanwhile. */
static bool landing_moved(struct trip *t, const char *ref, const char *before, const char *after)
{
    static const char heads[] = "refs/heads/";
    int rc = strncmp(ref, heads, sizeof heads - 1) == 0
                 ? amp_landings_moved(t->w->store, ref + sizeof heads - 1, before, after, t->err)
                 : 0;

    t->failed |= rc < 0;
    return rc != 0;
}

/* The reflog is evidence for people; it does not excuse a move. */
static void on_change(void *ctx, const char *ref, const char *before, const char *after)
{
    struct trip *t = ctx;
    struct amp_git_reflog log;
    struct amp_error e;
    char text[512];

    if (t->tripped || t->failed)
        return;
    int covered = amp_override_covers(t->w->store, ref, t->k->began_ms, t->err);
    t->failed = covered < 0;
    if (covered || (*before && landing_moved(t, ref, before, after)))
        return;
    bool traced =
        *after && strncmp(ref, "refs/", 5) == 0 &&
        amp_git_reflog(t->w->git, t->k->repo, ref, *after == 'r' ? NULL : after, &log, &e) == 0;
    snprintf(text, sizeof text, "%s moved from %.60s to %.60s while %s worked; the reflog %s%s",
             ref, *before ? before : "nothing", *after ? after : "nothing", t->w->opt->agent,
             traced ? "names " : "has no entry", traced ? log.name : "");
    /* A confined agent cannot reach the repository: another process moved the ref. */
    if (!amp_worker_reaches_repository(t->w)) {
        t->w->opt->note("%s: %s; the agent was confined", t->k->task, text);
        return;
    }
    /* A person may have exported a proof meanwhile; a forged one proves nothing. */
    if (strcmp(ref, AMP_PROOF_NOTES) == 0) {
        t->failed = amp_forgeries_moved(t->w, t->k, text, t->err) < 0;
        return;
    }
    t->tripped = true;
    snprintf(t->what, t->size, "%s", text);
}

int amp_assignment_tripped(struct amp_worker *w, struct amp_assignment *k, char *what, size_t size,
                           struct amp_error *err)
{
    struct amp_git_refs now;
    struct trip t = {w, k, what, size, false, false, err};

    if (amp_git_refs(w->git, k->repo, true, &now, err) < 0)
        return -1;
    amp_git_refs_compare(&k->refs, &now, on_change, &t);
    amp_git_refs_release(&now);
    return t.failed ? -1 : t.tripped;
}

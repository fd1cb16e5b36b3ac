/*
 * Attempts to get out of a confinement. The program runs inside of it, in a worktree of a world
 * that the tests made (see world.c), tries one thing after the other and prints what it got. What
 * counts is decided outside: a secret that was read, a file outside that changed.
 */
#ifndef TESTS_ESCAPE_H
#define TESTS_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The facts about the world that an attacker could find out, from the file `facts` in the
 * worktree. */
struct world {
    char dir[256];      /* everything outside: secret, mark/, repo/, other/, state/ … */
    char tree[256];     /* the attacker's worktree */
    char abstract[64];  /* the name of an abstract socket */
    int pid, fd;        /* of a process outside; its descriptor of the secret */
    int fifo_fd;        /* its descriptor of the loop's FIFO */
    unsigned long addr; /* of the secret in its memory */
    int tcp, udp, tcp6; /* ports of its servers on the loopback interface */
    int shm;            /* the id of a segment of System V */
    int dev;            /* major << 8 | minor of a block device; 0: none */
};

/* What one attempt got; "" for nothing. */
#define PROOF_MAX 200

enum { FULL = 1, LANDLOCK = 2, BOTH = 3 };

struct attempt {
    const char *name, *what;
    /* Returns < 0 (-errno) if it failed. */
    int (*run)(const struct world *w, char proof[PROOF_MAX]);
    /* Outside, afterwards: whether it worked. NULL: it worked if it returned >= 0, and with a
     * proof if that has the secret. */
    bool (*judge)(const struct world *w);
    int stops;  /* the levels that stop it */
    bool reads; /* its proof is the secret */
};

extern const struct attempt file_attempts[], process_attempts[], kernel_attempts[], git_attempts[],
    net_attempts[], limit_attempts[];

/* "DIR/rest" in a static buffer; up to 8 at a time. */
const char *at(const char *dir, const char *rest);
int slurp(const char *path, char out[PROOF_MAX]); /* reads a file; -errno */
int spill(const char *path, const char *text);    /* appends to an existing or new file; -errno */
int shell(const char *script, const struct world *w); /* sh -c, with $DIR and $TREE; 0 or -1 */
bool marked(const char *path, const char *text);      /* whether a file contains the text */
int world_main(const char *dir, const char *tree);    /* the processes and sockets of the world */

#endif

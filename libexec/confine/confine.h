/*
 * confine: sets up a sandbox in a fresh process and executes a command in it. Private to this
 * folder; lib/work/confine/confine.h is the interface for the tools, plan.c describes the plan.
 *
 * Processes: the outer process stays outside of the sandbox, forwards signals and ends as the
 * command ended. With namespaces, the init process (1 in its pid namespace) sets up the mounts,
 * reaps orphans, and dies with the outer process, and all processes of the sandbox with it. The
 * command gives up its rights as the last step.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PATHS_MAX 512

enum network { DENY_ALL, EGRESS_RESTRICTED, EGRESS_UNRESTRICTED, FULL_ACCESS };

/* The ways by which signals reach the command. */
enum forwarding {
    FORWARD_NONE,    /* the starter signals every process of the tree */
    FORWARD_GROUP,   /* the command leads a group of its own, which gets what the outer process gets
                      */
    FORWARD_COMMAND, /* the command stays in the group; it gets what processes send, not what the
                        terminal sends to the group */
};

/* A path of the host that the command may use. */
struct mount_place {
    const char *from, *at; /* at: where it is visible in the new root */
    bool write;
    int tree;  /* a detached copy of its mount, or -1 */
    bool file; /* not a directory */
};

struct plan {
    bool namespaces, landlock, seccomp, probe;
    enum network network;
    enum forwarding forwarding;
    const char *home, *scratch; /* NULL: none */
    struct mount_place *places;
    size_t n_places;
    int64_t processes, memory_bytes, file_bytes, open_files, cpu_seconds; /* 0: no limit */
    int status_fd; /* gets the failure of the setup; -1: stderr */
    int gate_fd;   /* gets the listening socket for the gate; -1: none */
    /* not in the plan's text */
    char *const *argv;
    char cwd[4096];
    uint16_t port; /* of the gate's socket; 0: none */
};

/* Reads the plan from a descriptor and closes it. Ends the process with 78 if it is invalid. */
void plan_read(struct plan *p, int fd);

/* Reports why the command does not start, and ends the process: 77 confinement_unavailable, 78
 * bad_policy, 126 not_executable, 127 command_not_found. give_up_sys appends errno's text. */
void give_up(const struct plan *p, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
void give_up_sys(const struct plan *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* The new root: only the plan's paths, the toolchain, and private /tmp, /proc, /dev and HOME. The
 * caller is alone in new user, mount and pid namespaces. */
void root_build(struct plan *p);
/* Whether the number of processes of uid 0 can be limited: since Linux 6.14 a pid namespace has its
 * own pid_max. */
bool root_pids_limited(void);
/* Makes the caller the same user as outside. */
void root_map_user(const struct plan *p, uid_t uid, gid_t gid);

/* The read-only paths of the toolchain and the devices; both end with NULL. */
extern const char *const toolchain_dirs[], *const toolchain_etc[], *const device_names[];

/* The ABI of the kernel's Landlock; 0: none. */
int landlock_abi(void);
void landlock_enforce(const struct plan *p);
void filter_enforce(const struct plan *p);
/* Drops all capabilities and sets no_new_privs. */
void rights_drop(const struct plan *p);
void limits_set(const struct plan *p);
/* Executes the command; on failure reports it. */
void command_execute(const struct plan *p) __attribute__((noreturn));

/* Runs the command and ends as it ended. */
int outer_run(struct plan *p);
/* Prints what can be enforced, as JSON. */
int probe_run(void);

#endif

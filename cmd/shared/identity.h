/* The options and settings of identities (message/delivery/sender/identity.h). */
#ifndef CLI_IDENTITY_H
#define CLI_IDENTITY_H

#include "cli/rows.h"
#include "message/delivery/sender/identity.h"

struct amp_identity_cli {
    const char *require, *allowed_signers;
};

#define AMP_IDENTITY_CLI                                                                           \
    {                                                                                              \
        .require = "local"                                                                         \
    }
/* Rows for a static struct amp_identity_cli. */
#define AMP_OPT_IDENTITIES(o)                                                                      \
    AMP_OPT_IDENTITY((o).require), AMP_OPT_ALLOWED_SIGNERS((o).allowed_signers)

/* Describes a tool. */
struct amp_identity_tool {
    const char *state, *config; /* the state directory; --config, or NULL */
    const char *principal;      /* of its own messages; NULL: it signs nothing */
    const char *key;            /* see struct amp_identities_options */
    bool quiet;                 /* does not print that identities are off */
};
/* Opens the identities by the options and amp.json; prints a note if they are off. The result lives
 * until amp_identities_close. CONFIG worktree_path: the allowed_signers file is in a git worktree.
 */
int amp_identity_cli_open(const struct amp_identity_cli *o, const struct amp_identity_tool *tool,
                          struct amp_identities **out, struct amp_error *err);

#endif

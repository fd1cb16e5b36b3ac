/*
 * Trust: which key may speak for whom, and when. The files have the format of OpenSSH's
 * allowed_signers (ssh-keygen(1), ALLOWED SIGNERS); a file FILE.revoked beside one has its
 * revocations: "FINGERPRINT TIME [REASON]", one a line.
 *
 * A principal is NAME or ROLE/NAME. A key may speak for F if a principal of one of its lines
 * matches F or begins with F and "/": the key of executor/ann may say what is from "executor".
 */
#ifndef AMP_MESSAGE_IDENTITY_TRUST_H
#define AMP_MESSAGE_IDENTITY_TRUST_H

#include "message/identity/key.h"

enum {
    AMP_PRINCIPAL_MAX = 128,
    AMP_TRUST_FILE_MAX = 16 << 20,
};

/* Whether text is a principal: NAME or ROLE/NAME of letters, digits, "._@+-", in which only a NAME
 * after a ROLE has a dot, and no part begins with a dot or a dash. */
bool amp_principal_is(struct amp_span text);

/* A line that is not used, or a file that cannot be read: bad_line, bad_key, bad_option,
 * cert_authority, bad_revocation. */
struct amp_trust_finding {
    const char *path, *code, *what;
    uint32_t line; /* 0: the file */
};
typedef void (*amp_trust_finding_fn)(void *ctx, const struct amp_trust_finding *f);

struct amp_trust;
int amp_trust_new(amp_trust_finding_fn finding /* may be NULL */, void *ctx, struct amp_trust **out,
                  struct amp_error *err);
void amp_trust_free(struct amp_trust *t);
void amp_auto_trust(struct amp_trust **t);
/* Adds an allowed_signers file and its revocations. A missing file is empty, unless it is required:
 * CONFIG. local: its keys are those of this state. NOPERM trust_permissions: others can write it.
 */
int amp_trust_add(struct amp_trust *t, const char *path, bool local, bool required,
                  struct amp_error *err);
/* Reads the files again that have changed since; cheap if none has (2 stat calls for each). Call it
 * before a batch of messages. On failure nothing is changed. */
int amp_trust_refresh(struct amp_trust *t, struct amp_error *err);

/* A line of a file. Valid until the next refresh. */
struct amp_trust_entry {
    struct amp_span principals; /* a list of patterns, separated by commas */
    struct amp_span namespaces; /* the same; empty: all */
    int64_t valid_after_s;      /* Unix seconds; 0: no limit */
    int64_t valid_before_s;     /* the last second; 0: no limit */
    int64_t revoked_ms;         /* signatures from this time on are invalid; 0: none */
    const struct amp_pubkey *key;
    const char *path;
    uint32_t line;
    bool local;
};

/* The first entry by which the key may speak for `who` (empty: for anybody) in the namespace at a
 * time. `principal` gets the entry's principal: who itself, or the ROLE/NAME that begins with it.
 * NO unknown_key, key_revoked, key_expired (also: not yet valid), bad_sender. */
int amp_trust_find(const struct amp_trust *t, struct amp_span fingerprint, const char *ns,
                   struct amp_span who, int64_t time_ms, const struct amp_trust_entry **entry,
                   char principal[AMP_PRINCIPAL_MAX], struct amp_error *err);
/* Whether the key may speak for exactly this principal. */
bool amp_trust_is(const struct amp_trust *t, struct amp_span fingerprint, struct amp_span principal,
                  int64_t time_ms);
/* Calls fn for each entry, in the order of the files and lines, until it returns non-zero; returns
 * that. */
typedef int (*amp_trust_each_fn)(void *ctx, const struct amp_trust_entry *e, struct amp_error *err);
int amp_trust_each(const struct amp_trust *t, amp_trust_each_fn fn, void *ctx,
                   struct amp_error *err);

/* OpenSSH's match of a list of patterns with `*`, `?` and `!`. */
bool amp_patterns_match(struct amp_span text, struct amp_span patterns);

/*
 * Changes of a file, under a lock on FILE.lock, atomically; comments and other lines are kept. The
 * directory must exist. A file that is a symbolic link is refused.
 */
struct amp_trust_line {
    struct amp_span principals, namespaces, comment;
    int64_t valid_after_s, valid_before_s;
};
/* Adds a line. Returns 1 if a line with the same key and principals exists: it gets the new options
 * then. */
int amp_trust_file_add(const char *path, const struct amp_pubkey *key,
                       const struct amp_trust_line *line, struct amp_error *err);
/* Removes the lines of the key whose principals equal `principals` (empty: all its lines). *n gets
 * their number. */
int amp_trust_file_remove(const char *path, struct amp_span fingerprint, struct amp_span principals,
                          uint32_t *n, struct amp_error *err);
/* Sets valid-before of the key's lines, except of those that end earlier. */
int amp_trust_file_expire(const char *path, struct amp_span fingerprint, int64_t valid_before_s,
                          uint32_t *n, struct amp_error *err);
/* Adds a revocation to FILE.revoked, and sets valid-before of the key's lines, which other programs
 * read. An earlier revocation of the key stays. */
int amp_trust_file_revoke(const char *path, struct amp_span fingerprint, int64_t from_ms,
                          struct amp_span reason, uint32_t *n, struct amp_error *err);

#endif

/* A client of ssh-agent (draft-miller-ssh-agent). */
#ifndef AMP_MESSAGE_IDENTITY_PROCESS_AGENT_H
#define AMP_MESSAGE_IDENTITY_PROCESS_AGENT_H

#include "message/identity/key.h"

/* Connects to the socket. UNAVAILABLE agent_unavailable. */
int identity_agent_connect(const char *socket, int *fd, struct amp_error *err);
/* The agent's key with this fingerprint. NO key_not_found. */
int identity_agent_find(int fd, struct amp_span fingerprint, struct amp_pubkey *out,
                        struct amp_error *err);
/* Signs data. Appends the SSH signature blob. UNAVAILABLE agent_refused. */
int identity_agent_sign(int fd, const struct amp_pubkey *key, struct amp_span data,
                        struct amp_buf *blob, struct amp_error *err);

#endif

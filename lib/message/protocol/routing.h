/*
 * The terms of routing of a protocol: which messages a router refuses, signs or repeats, and the
 * codes of its refusals; and what a message means to a registry of agents. The router, admission
 * and the registry use them. One row per protocol, in lib/message/protocol/NAME/terms.c.
 */
#ifndef AMP_MESSAGE_PROTOCOL_ROUTING_H
#define AMP_MESSAGE_PROTOCOL_ROUTING_H

#include <amp/protocol/protocol.h>

/* The meaning of a message to a registry of agents. */
enum amp_registry_act {
    AMP_REGISTRY_NONE,
    AMP_REGISTRY_REGISTER,   /* the payload's member "agent" is a descriptor */
    AMP_REGISTRY_DESCRIPTOR, /* the payload is a descriptor */
    AMP_REGISTRY_DEREGISTER,
    AMP_REGISTRY_BEAT,   /* a heartbeat, or a request for one */
    AMP_REGISTRY_ACK,    /* an acknowledgement, which may be of a heartbeat */
    AMP_REGISTRY_PUBLISH /* the message is the catalog entry of a capability */
};

/* A function or list below may be NULL: the comment says what that means, or it means "none". */
struct amp_routing_terms {
    bool refuses_malformed;  /* the sender of a malformed message gets an answer */
    bool falls_back;         /* it is answered by amp_refuse, which has the work for an earlier
                                version of the protocol */
    bool acks_update_ledger; /* an acknowledgement that is routed does so */
    /* Whether its operation is routed once, and a repetition is answered. */
    bool (*routes_once)(const struct amp_view *v);
    bool signs;            /* only a signed message may leave the machine */
    bool takes_tokens;     /* external senders prove by a token that they may send */
    bool delivers_content; /* recipients get the message without its outer envelope */
    bool by_catalog;       /* work by capability goes to all agents of the catalog entry */
    bool expands_all;      /* payload.toAgents ["all"] is replaced when a message is published */
    const char *lost_code; /* of a name without an agent; NULL: no_route, or agent_unavailable after
                              the agent left */
    const char *unaddressed_code;   /* of a request without a recipient; NULL: no_route */
    const char *undeliverable_code; /* of any other request without a recipient, with our code */
    const char *expired_code;       /* of an expired request; NULL: ttl_expired */
    const char *full_code; /* of one after a gap in its stream, above a limit; NULL: backpressure */
    const char *sequence_code; /* of a number that does not rise; NULL: seq_not_monotonic */
    const char *tool_frame;    /* the type of a frame of a tool's stream */

    /* ---- Registry of agents ---- */
    enum amp_registry_act (*registry)(const struct amp_view *v);
    bool registry_answers; /* the registry answers all messages except acknowledgements */
};

#define X(id, name, title) extern const struct amp_routing_terms amp_routing_##name;
AMP_PROTOCOL_LIST(X)
#undef X
/* Never NULL: the row of AMP_PROTO_NONE is empty. */
const struct amp_routing_terms *amp_routing_of(enum amp_protocol p);

#endif

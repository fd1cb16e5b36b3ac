/*
 * A helper process that answers numbered requests: one line in, exactly one line out, each with the
 * number in "q". At most 64 requests and 1 MiB are in flight; one larger request goes alone. A
 * helper that exceeds the time limit of a request, or dies, is started again: the request fails,
 * and the others are sent again.
 */
#ifndef AMP_MESSAGE_PORT_HELPER_H
#define AMP_MESSAGE_PORT_HELPER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

struct amp_helper_options {
    const char *name;         /* of libexec/amp */
    const char *const *args;  /* NULL-terminated, without argv[0] */
    const char *env;          /* "NAME=value", for what others must not see; or NULL; borrowed */
    int64_t limit_ms;         /* of one request */
    volatile const int *stop; /* non-zero: amp_helper_probe ends, INTERRUPTED; may be NULL */
};

struct amp_helper;

/* The helper starts with the first request. */
int amp_helper_new(const struct amp_helper_options *opt, struct amp_helper **out,
                   struct amp_error *err);
void amp_helper_free(struct amp_helper *h);
/* Starts a helper without input and waits for its end: USAGE "bad_helper_arguments" if it refuses
 * its arguments (it prints why on stderr). */
int amp_helper_probe(struct amp_helper *h, struct amp_error *err);

enum amp_helper_asked {
    AMP_HELPER_ASKED,
    AMP_HELPER_FULL, /* too much is in flight: step first */
};
/* An enum amp_helper_asked, or -1. `request` has the members of a JSON object without braces
 * ("\"f\":[0],\"m\":{}"). */
int amp_helper_ask(struct amp_helper *h, uint64_t tag, struct amp_span request,
                   struct amp_error *err);
uint32_t amp_helper_in_flight(const struct amp_helper *h);

/* For the poll loop: fills two descriptors (-1: none), and lowers *timeout_ms. */
void amp_helper_watch(const struct amp_helper *h, struct pollfd fds[2], int *timeout_ms);

/* Works without blocking. `reply` is called once for each request, in their order, with the line of
 * the answer or the reason why there is none ("helper_timeout", "helper_died"). -1: the helper
 * cannot be started, or died three times within a minute and fails without requests too
 * (UNAVAILABLE "helper_unavailable"). */
typedef void (*amp_helper_reply_fn)(void *ctx, uint64_t tag, struct amp_span answer,
                                    const struct amp_error *why);
int amp_helper_step(struct amp_helper *h, amp_helper_reply_fn reply, void *ctx,
                    struct amp_error *err);

#endif

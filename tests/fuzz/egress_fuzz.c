/*
 * Any bytes through what egress-gate reads from a confined command. The first byte chooses: a host
 * of a list, a client hello, or the head of a request. What must hold: a result does not depend on
 * how the bytes arrive, what is accepted is accepted again in its own spelling, and what is
 * forwarded is one request for the same host.
 */
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "net/address.h"
#include "net/hello.h"
#include "net/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The spelling that amp_net_host_parse reads. */
static size_t host_spell(const struct amp_net_host *h, char *out, size_t size)
{
    bool six = h->literal && strchr(h->name, ':');
    int n = snprintf(out, size, "%s%s%s:%u", six ? "[" : "", h->name, six ? "]" : "",
                     (unsigned)h->port);
    MUST(n > 0 && (size_t)n < size);
    return (size_t)n;
}

static void check_host(const struct amp_net_host *h)
{
    char text[AMP_NET_NAME_MAX + 16];
    struct amp_net_host again;
    size_t n = host_spell(h, text, sizeof text);
    MUST(h->port > 0 && h->name[0]);
    MUST(amp_net_host_parse((struct amp_span){text, n}, 0, &again, NULL) == 0);
    MUST(again.port == h->port && again.literal == h->literal && strcmp(again.name, h->name) == 0);
    const struct amp_net_rule rule = {.host = *h};
    MUST(amp_net_rules_match(&rule, 1, &again));
}

static void fuzz_rule(struct amp_span text)
{
    struct amp_net_rule r;
    struct amp_error err = {0};
    if (amp_net_rule_parse(text, &r, &err) < 0) {
        MUST(err.code[0] && err.what[0]);
        return;
    }
    check_host(&r.host);
    /* A pattern does not list the name below which it is, and no address. */
    MUST(!r.below || (!r.host.literal && !amp_net_rules_match(&r, 1, &r.host)));
}

static void fuzz_hello(struct amp_span bytes)
{
    struct amp_net_name name = {0}, part = {0};
    struct amp_error err = {0};
    enum amp_net_hello whole = amp_net_hello_read(bytes, &name, &err);
    MUST(whole != AMP_NET_HELLO_BAD || err.code[0]);
    MUST(memchr(name.name, '\0', sizeof name.name) != NULL);
    for (size_t n = 0; n < bytes.n; n += 1 + bytes.n / 64) {
        enum amp_net_hello r = amp_net_hello_read((struct amp_span){bytes.p, n}, &part, &err);
        /* What is decided on the first bytes stays so. */
        if (r == AMP_NET_HELLO_DONE)
            MUST(whole == AMP_NET_HELLO_DONE && strcmp(part.name, name.name) == 0 &&
                 part.encrypted == name.encrypted);
        else if (r == AMP_NET_HELLO_BAD)
            MUST(whole == AMP_NET_HELLO_BAD);
    }
}

static void fuzz_request(struct amp_span bytes)
{
    struct amp_net_request r, again;
    struct amp_error err = {0};
    AMP_BUF struct amp_buf out = {0};
    int rc = amp_net_request_read(bytes, &r, &err);
    MUST(rc >= 0 || err.code[0]);
    if (rc <= 0)
        return;
    MUST(r.head <= bytes.n);
    check_host(&r.host);
    for (size_t n = 0; n < r.head; n += 1 + r.head / 64)
        MUST(amp_net_request_read((struct amp_span){bytes.p, n}, &again, &err) <= 0);
    if (r.tunnel)
        return;
    amp_buf_init(&out, 2 * bytes.n + 1024);
    MUST(amp_net_request_forward(bytes, &r, &out, &err) == 0);
    /* One head, and its first field is the host. */
    const char *end = memmem(out.data, out.len, "\r\n\r\n", 4);
    MUST(end && end + 4 == out.data + out.len);
    const char *host = memmem(out.data, out.len, "\r\n", 2);
    MUST(host && strncmp(host + 2, "Host: ", 6) == 0);
    MUST(memmem(host + 8, (size_t)(out.data + out.len - host - 8), "\r\nHost:", 7) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size); /* of its exact size, for the sanitizers */
    MUST(text != NULL);
    memcpy(text, data + 1, size - 1);
    const struct amp_span bytes = {text, size - 1};
    switch (data[0] % 3) {
    case 0:
        fuzz_rule(bytes);
        break;
    case 1:
        fuzz_hello(bytes);
        break;
    default:
        fuzz_request(bytes);
        break;
    }
    free(text);
    return 0;
}

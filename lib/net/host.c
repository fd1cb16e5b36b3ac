/* Reads host names and ports, and matches them with an allow-list. */
#include "net/host.h"

#include <arpa/inet.h>
#include <string.h>

#include <amp/base/num.h>

#include "base/codes.h"

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Copies a name in lower case and without a final dot; false: not a name. Its last label begins
 * with a letter, so no spelling of an address is a name ("127.1", "0x7f000001"). */
static bool name_read(struct amp_span text, char out[AMP_NET_NAME_MAX])
{
    if (amp_span_ends(text, "."))
        text.n--;
    if (text.n == 0 || text.n >= AMP_NET_NAME_MAX)
        return false;
    size_t label = 0; /* bytes of the current one */
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        out[i] = c;
        bool edge = label == 0 || text.p[i - 1] == '-';
        if (c == '.' ? edge : !is_name_char(c) || (c == '-' && label == 0) || label == 63)
            return false;
        label = c == '.' ? 0 : label + 1;
    }
    out[text.n] = '\0';
    char first = out[text.n - label];
    return label > 0 && out[text.n - 1] != '-' && first >= 'a' && first <= 'z';
}

/* An address in its one spelling; false: not an address. */
static bool literal_read(struct amp_span text, int family, char out[AMP_NET_NAME_MAX])
{
    char copy[INET6_ADDRSTRLEN];
    unsigned char raw[sizeof(struct in6_addr)];
    return !memchr(text.p, '\0', text.n) && amp_span_copy(text, copy, sizeof copy) &&
           inet_pton(family, copy, raw) == 1 &&
           inet_ntop(family, raw, out, AMP_NET_NAME_MAX) != NULL;
}

int amp_net_host_parse(struct amp_span text, uint16_t default_port, struct amp_net_host *out,
                       struct amp_error *err)
{
    struct amp_net_host h = {.port = default_port};
    struct amp_span name = text, port = {0};
    bool bracket = amp_span_starts(text, "[");
    if (bracket) {
        const char *end = memchr(text.p, ']', text.n);
        if (!end)
            return amp_fail(err, AMP_DATAERR, bad_host, "'%.*s': ] is missing",
                            AMP_CLIP(text, 100));
        name = (struct amp_span){text.p + 1, (size_t)(end - text.p) - 1};
        port = (struct amp_span){end + 1, text.n - name.n - 2};
        if (port.n && port.p[0] != ':')
            return amp_fail(err, AMP_DATAERR, bad_host, "'%.*s': expected :PORT after ]",
                            AMP_CLIP(text, 100));
    } else if (text.n) {
        const char *colon = memchr(text.p, ':', text.n);
        if (colon) {
            name.n = (size_t)(colon - text.p);
            port = (struct amp_span){colon, text.n - name.n};
        }
    }
    bool known = name.n != 0;
    if (known && bracket)
        known = h.literal = literal_read(name, AF_INET6, h.name);
    else if (known && !(h.literal = literal_read(name, AF_INET, h.name)))
        known = name_read(name, h.name);
    if (!known)
        return amp_fail(err, AMP_DATAERR, bad_host,
                        "'%.*s': not a host (expected NAME:PORT, an IPv4 address, or an IPv6 "
                        "address in brackets)",
                        AMP_CLIP(text, 100));
    int64_t n = default_port;
    if (port.n || !default_port) {
        struct amp_span digits = {port.n ? port.p + 1 : "", port.n ? port.n - 1 : 0};
        if (amp_num_parse(digits, 1, 65535, &n, NULL) < 0)
            return amp_fail(err, AMP_DATAERR, bad_port,
                            "'%.*s': expected a port from 1 to 65535 after the host",
                            AMP_CLIP(text, 100));
    }
    h.port = (uint16_t)n;
    *out = h;
    return 0;
}

int amp_net_rule_parse(struct amp_span text, struct amp_net_rule *out, struct amp_error *err)
{
    struct amp_net_rule r = {0};
    struct amp_span rest = text;
    if (amp_span_starts(text, "*.")) {
        r.below = true;
        rest = (struct amp_span){text.p + 2, text.n - 2};
    }
    if (amp_net_host_parse(rest, 0, &r.host, err) < 0)
        return -1;
    if (r.below && r.host.literal)
        return amp_fail(err, AMP_DATAERR, bad_host, "'%.*s': *. before an address",
                        AMP_CLIP(text, 100));
    *out = r;
    return 0;
}

bool amp_net_rules_match(const struct amp_net_rule *rules, unsigned n,
                         const struct amp_net_host *host)
{
    size_t len = strlen(host->name);
    for (unsigned i = 0; i < n; i++) {
        const struct amp_net_rule *r = &rules[i];
        size_t tail = strlen(r->host.name);
        if (r->host.port != host->port || r->host.literal != host->literal)
            continue;
        if (!r->below && strcmp(r->host.name, host->name) == 0)
            return true;
        if (r->below && len > tail + 1 && host->name[len - tail - 1] == '.' &&
            strcmp(host->name + len - tail, r->host.name) == 0)
            return true;
    }
    return false;
}

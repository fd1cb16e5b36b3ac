/* Tells public addresses from those of this machine, its networks and its provider. */
#include "net/address.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

struct range4 {
    uint32_t base;
    unsigned bits;
    enum amp_net_kind kind;
};
#define V4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

static const struct range4 ranges4[] = {
    {V4(0, 0, 0, 0), 8, AMP_NET_UNSPECIFIED},     {V4(10, 0, 0, 0), 8, AMP_NET_PRIVATE},
    {V4(100, 64, 0, 0), 10, AMP_NET_PRIVATE},     {V4(127, 0, 0, 0), 8, AMP_NET_LOOPBACK},
    {V4(168, 63, 129, 16), 32, AMP_NET_METADATA}, {V4(169, 254, 0, 0), 16, AMP_NET_LINK},
    {V4(172, 16, 0, 0), 12, AMP_NET_PRIVATE},     {V4(192, 0, 0, 0), 24, AMP_NET_RESERVED},
    {V4(192, 0, 2, 0), 24, AMP_NET_RESERVED},     {V4(192, 88, 99, 0), 24, AMP_NET_MAPPED},
    {V4(192, 168, 0, 0), 16, AMP_NET_PRIVATE},    {V4(198, 18, 0, 0), 15, AMP_NET_RESERVED},
    {V4(198, 51, 100, 0), 24, AMP_NET_RESERVED},  {V4(203, 0, 113, 0), 24, AMP_NET_RESERVED},
    {V4(224, 0, 0, 0), 4, AMP_NET_MULTICAST},     {V4(255, 255, 255, 255), 32, AMP_NET_MULTICAST},
    {V4(240, 0, 0, 0), 4, AMP_NET_RESERVED},
};

struct range6 {
    unsigned char base[16];
    unsigned bits;
    enum amp_net_kind kind;
};

/* The first match counts. What is outside of 2000::/3 and in none of these is reserved. */
static const struct range6 ranges6[] = {
    {{[15] = 1}, 128, AMP_NET_LOOPBACK},
    {{0}, 128, AMP_NET_UNSPECIFIED},
    {{0}, 80, AMP_NET_MAPPED}, /* ::a.b.c.d, ::ffff:a.b.c.d */
    {{0, 0x64, 0xff, 0x9b}, 32, AMP_NET_MAPPED},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, AMP_NET_RESERVED},
    {{0x20, 0x01, 0, 0}, 32, AMP_NET_MAPPED}, /* Teredo */
    {{0x20, 0x01}, 23, AMP_NET_RESERVED},
    {{0x20, 0x02}, 16, AMP_NET_MAPPED}, /* 6to4 */
    {{0x3f, 0xff}, 20, AMP_NET_RESERVED},
    {{0x20}, 3, AMP_NET_PUBLIC},
    {{0xfc}, 7, AMP_NET_PRIVATE},
    {{0xfe, 0xc0}, 10, AMP_NET_PRIVATE},
    {{0xfe, 0x80}, 10, AMP_NET_LINK},
    {{0xff}, 8, AMP_NET_MULTICAST},
};

static enum amp_net_kind kind_of_4(uint32_t a)
{
    for (size_t i = 0; i < sizeof ranges4 / sizeof *ranges4; i++)
        if (((a ^ ranges4[i].base) >> (32 - ranges4[i].bits)) == 0)
            return ranges4[i].kind;
    return AMP_NET_PUBLIC;
}

static int begins_with(const unsigned char *a, const unsigned char *base, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;
    return memcmp(a, base, bytes) == 0 &&
           (rest == 0 || ((a[bytes] ^ base[bytes]) >> (8 - rest)) == 0);
}

static enum amp_net_kind kind_of_6(const unsigned char *a)
{
    static const unsigned char nat64[12] = {0, 0x64, 0xff, 0x9b};
    if (memcmp(a, nat64, sizeof nat64) == 0)
        return kind_of_4(V4(a[12], a[13], a[14], a[15]));
    for (size_t i = 0; i < sizeof ranges6 / sizeof *ranges6; i++)
        if (begins_with(a, ranges6[i].base, ranges6[i].bits))
            return ranges6[i].kind;
    return AMP_NET_RESERVED;
}

enum amp_net_kind amp_net_address_kind(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, sa, sizeof v4);
        return kind_of_4(ntohl(v4.sin_addr.s_addr));
    }
    if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, sa, sizeof v6);
        return kind_of_6(v6.sin6_addr.s6_addr);
    }
    return AMP_NET_RESERVED;
}

const char *amp_net_kind_name(enum amp_net_kind kind)
{
    static const char *const names[] = {
        [AMP_NET_PUBLIC] = "public",       [AMP_NET_UNSPECIFIED] = "unspecified",
        [AMP_NET_LOOPBACK] = "loopback",   [AMP_NET_PRIVATE] = "private",
        [AMP_NET_LINK] = "link-local",     [AMP_NET_METADATA] = "metadata",
        [AMP_NET_MULTICAST] = "multicast", [AMP_NET_MAPPED] = "mapped",
        [AMP_NET_RESERVED] = "reserved",
    };
    return names[kind];
}

void amp_net_address_text(const struct sockaddr *sa, char out[INET6_ADDRSTRLEN])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    const char *p = NULL;
    if (sa->sa_family == AF_INET) {
        memcpy(&v4, sa, sizeof v4);
        p = inet_ntop(AF_INET, &v4.sin_addr, out, INET6_ADDRSTRLEN);
    } else if (sa->sa_family == AF_INET6) {
        memcpy(&v6, sa, sizeof v6);
        p = inet_ntop(AF_INET6, &v6.sin6_addr, out, INET6_ADDRSTRLEN);
    }
    if (!p)
        memcpy(out, "?", 2);
}

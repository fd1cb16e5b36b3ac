/* Hosts and allow-lists, kinds of addresses, the server name of a client hello, and the head of a
 * request to a proxy, each also with hostile input. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "../hello.h"
#include "../tap.h"
#include "net/address.h"
#include "net/hello.h"
#include "net/request.h"

/* ---- hosts ---- */

static void test_hosts(void)
{
    static const struct {
        const char *text, *name; /* name NULL: refused with code */
        int port;
        const char *code;
    } cases[] = {
        {"api.example.com:443", "api.example.com", 443, NULL},
        {"API.Example.COM.:443", "api.example.com", 443, NULL},
        {"localhost", "localhost", 80, NULL},
        {"a_b.example", "a_b.example", 80, NULL},
        {"127.0.0.1:8080", "127.0.0.1", 8080, NULL},
        {"[0:0:0:0:0:0:0:1]:9", "::1", 9, NULL},
        {"[::FFFF:1.2.3.4]", "::ffff:1.2.3.4", 80, NULL},
        {"xn--bcher-kva.example:1", "xn--bcher-kva.example", 1, NULL},
        {"", NULL, 0, "bad_host"},
        {":443", NULL, 0, "bad_host"},
        {".example.com:443", NULL, 0, "bad_host"},
        {"a..b:443", NULL, 0, "bad_host"},
        {"-a.example:443", NULL, 0, "bad_host"},
        {"a-.example:443", NULL, 0, "bad_host"},
        {"example-:443", NULL, 0, "bad_host"},
        {"127.1:80", NULL, 0, "bad_host"},
        {"0x7f.1:80", NULL, 0, "bad_host"},
        {"0x7f000001:80", NULL, 0, "bad_host"},
        {"2130706433:80", NULL, 0, "bad_host"},
        {"0177.0.0.1:80", NULL, 0, "bad_host"},
        {"1.2.3.4.:80", NULL, 0, "bad_host"},
        {"::1", NULL, 0, "bad_host"},
        {"[::1", NULL, 0, "bad_host"},
        {"[::1]80", NULL, 0, "bad_host"},
        {"[::1%lo]:80", NULL, 0, "bad_host"},
        {"[1.2.3.4]:80", NULL, 0, "bad_host"},
        {"user@host.example:80", NULL, 0, "bad_host"},
        {"a b.example:80", NULL, 0, "bad_host"},
        {"b\xc3\xbc.example:80", NULL, 0, "bad_host"},
        {"a%2e.example:80", NULL, 0, "bad_host"},
        {"host.example:", NULL, 0, "bad_port"},
        {"host.example:0", NULL, 0, "bad_port"},
        {"host.example:65536", NULL, 0, "bad_port"},
        {"host.example:-1", NULL, 0, "bad_port"},
        {"host.example:80:80", NULL, 0, "bad_port"},
        {"host.example:+80", NULL, 0, "bad_port"},
        {"host.example: 80", NULL, 0, "bad_port"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_net_host h = {0};
        struct amp_error err = {0};
        int rc = amp_net_host_parse(amp_span_str(cases[i].text), 80, &h, &err);
        bool ok = cases[i].name
                      ? rc == 0 && strcmp(h.name, cases[i].name) == 0 && h.port == cases[i].port
                      : rc == -1 && strcmp(err.code, cases[i].code) == 0;
        TAP_OK(ok, "host '%s': %s %d %s", cases[i].text, h.name, h.port, err.code);
    }
    struct amp_net_host h;
    struct amp_error err;
    TAP_INT(amp_net_host_parse(AMP_SPAN("a\0.example.com:443"), 0, &h, &err), -1,
            "a NUL in a name");
    TAP_INT(amp_net_host_parse(AMP_SPAN("127.0.0.1\0:443"), 0, &h, &err), -1,
            "a NUL in an address");
    TAP_INT(amp_net_host_parse(AMP_SPAN("a.example"), 0, &h, &err), -1, "no port");
    char label[300];
    memset(label, 'a', sizeof label);
    memcpy(label + 63, ":80", 4);
    TAP_INT(amp_net_host_parse(amp_span_str(label), 0, &h, &err), 0, "a label of 63 bytes");
    memset(label, 'a', sizeof label);
    memcpy(label + 64, ":80", 4);
    TAP_INT(amp_net_host_parse(amp_span_str(label), 0, &h, &err), -1, "a label of 64 bytes");
    for (int i = 0; i < 254; i++)
        label[i] = i % 2 ? '.' : 'a';
    label[253] = '\0';
    TAP_INT(amp_net_host_parse(amp_span_str(label), 80, &h, &err), 0, "a name of 253 bytes");
    memcpy(label + 253, "aa", 3);
    TAP_INT(amp_net_host_parse(amp_span_str(label), 80, &h, &err), -1, "a name of 255 bytes");
}

static void test_rules(void)
{
    static const char *const list[] = {"api.example.com:443", "*.example.org:443", "127.0.0.1:8080",
                                       "[::1]:8080"};
    static const struct {
        const char *host;
        bool listed;
    } cases[] = {
        {"api.example.com:443", true},
        {"api.example.com:80", false},
        {"x.api.example.com:443", false},
        {"example.com:443", false},
        {"a.example.org:443", true},
        {"a.b.example.org:443", true},
        {"example.org:443", false},
        {"badexample.org:443", false},
        {"a.example.org.evil:443", false},
        {"127.0.0.1:8080", true},
        {"127.0.0.2:8080", false},
        {"localhost:8080", false},
        {"[0::1]:8080", true},
        {"[::1]:443", false},
    };
    struct amp_net_rule rules[4], r;
    struct amp_error err;
    for (int i = 0; i < 4; i++)
        TAP_INT(amp_net_rule_parse(amp_span_str(list[i]), &rules[i], &err), 0, list[i]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_net_host h;
        TAP_OK(amp_net_host_parse(amp_span_str(cases[i].host), 0, &h, &err) == 0 &&
                   amp_net_rules_match(rules, 4, &h) == cases[i].listed,
               "%s is%s on the list", cases[i].host, cases[i].listed ? "" : " not");
    }
    static const char *const wrong[] = {"*:443",         "*.:443",          "a.*.example:443",
                                        "*.1.2.3.4:443", "*.*.com:443",     "example.com",
                                        "*.[::1]:443",   "*example.com:443"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        TAP_INT(amp_net_rule_parse(amp_span_str(wrong[i]), &r, &err), -1, wrong[i]);
}

/* ---- addresses ---- */

static void test_addresses(void)
{
    static const struct {
        const char *text;
        enum amp_net_kind kind;
    } cases[] = {
        {"8.8.8.8", AMP_NET_PUBLIC},
        {"1.0.0.0", AMP_NET_PUBLIC},
        {"0.0.0.0", AMP_NET_UNSPECIFIED},
        {"0.1.2.3", AMP_NET_UNSPECIFIED},
        {"127.0.0.1", AMP_NET_LOOPBACK},
        {"127.255.255.255", AMP_NET_LOOPBACK},
        {"128.0.0.1", AMP_NET_PUBLIC},
        {"10.0.0.1", AMP_NET_PRIVATE},
        {"9.255.255.255", AMP_NET_PUBLIC},
        {"11.0.0.0", AMP_NET_PUBLIC},
        {"172.15.255.255", AMP_NET_PUBLIC},
        {"172.16.0.0", AMP_NET_PRIVATE},
        {"172.31.255.255", AMP_NET_PRIVATE},
        {"172.32.0.0", AMP_NET_PUBLIC},
        {"192.168.1.1", AMP_NET_PRIVATE},
        {"100.64.0.1", AMP_NET_PRIVATE},
        {"100.100.100.200", AMP_NET_PRIVATE},
        {"100.127.255.255", AMP_NET_PRIVATE},
        {"100.128.0.0", AMP_NET_PUBLIC},
        {"169.254.169.254", AMP_NET_LINK},
        {"168.63.129.16", AMP_NET_METADATA},
        {"168.63.129.17", AMP_NET_PUBLIC},
        {"192.0.0.192", AMP_NET_RESERVED},
        {"192.0.2.1", AMP_NET_RESERVED},
        {"198.18.0.1", AMP_NET_RESERVED},
        {"198.19.255.255", AMP_NET_RESERVED},
        {"198.51.100.1", AMP_NET_RESERVED},
        {"203.0.113.1", AMP_NET_RESERVED},
        {"224.0.0.251", AMP_NET_MULTICAST},
        {"239.255.255.255", AMP_NET_MULTICAST},
        {"240.0.0.1", AMP_NET_RESERVED},
        {"255.255.255.255", AMP_NET_MULTICAST},
        {"::1", AMP_NET_LOOPBACK},
        {"::", AMP_NET_UNSPECIFIED},
        {"::ffff:8.8.8.8", AMP_NET_MAPPED},
        {"::ffff:127.0.0.1", AMP_NET_MAPPED},
        {"::127.0.0.1", AMP_NET_MAPPED},
        {"64:ff9b::8.8.8.8", AMP_NET_PUBLIC},
        {"64:ff9b::169.254.169.254", AMP_NET_LINK},
        {"64:ff9b::10.0.0.1", AMP_NET_PRIVATE},
        {"64:ff9b:1::1", AMP_NET_MAPPED},
        {"2002:7f00:1::", AMP_NET_MAPPED},
        {"2001::1", AMP_NET_MAPPED},
        {"2001:db8::1", AMP_NET_RESERVED},
        {"2001:20::1", AMP_NET_RESERVED},
        {"2001:4860:4860::8888", AMP_NET_PUBLIC},
        {"2606:4700::1", AMP_NET_PUBLIC},
        {"3fff::1", AMP_NET_RESERVED},
        {"fe80::1", AMP_NET_LINK},
        {"fec0::1", AMP_NET_PRIVATE},
        {"fc00::1", AMP_NET_PRIVATE},
        {"fd00:ec2::254", AMP_NET_PRIVATE},
        {"ff02::1", AMP_NET_MULTICAST},
        {"100::1", AMP_NET_RESERVED},
        {"4000::1", AMP_NET_RESERVED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sockaddr_in v4 = {.sin_family = AF_INET};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
        bool four = inet_pton(AF_INET, cases[i].text, &v4.sin_addr) == 1;
        if (!four)
            inet_pton(AF_INET6, cases[i].text, &v6.sin6_addr);
        const struct sockaddr *sa =
            four ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
        enum amp_net_kind kind = amp_net_address_kind(sa);
        char text[INET6_ADDRSTRLEN];
        amp_net_address_text(sa, text);
        TAP_OK(kind == cases[i].kind, "%s is %s", text, amp_net_kind_name(kind));
    }
    struct sockaddr other = {.sa_family = AF_UNIX};
    TAP_INT(amp_net_address_kind(&other), AMP_NET_RESERVED, "another family");
}

/* ---- client hello ---- */

/* Reads an exact copy on the heap, so that a sanitizer sees a read past it. */
static enum amp_net_hello hello_read(const struct hello *h, size_t n, struct amp_net_name *name,
                                     struct amp_error *err)
{
    char *copy = malloc(n ? n : 1);
    memcpy(copy, h->bytes, n);
    enum amp_net_hello r = amp_net_hello_read((struct amp_span){copy, n}, name, err);
    free(copy);
    return r;
}

static void test_hello_parts(void)
{
    struct hello whole = hello_for("api.example.com"), split = hello_split(&whole, 7);
    struct amp_net_name name = {0};
    struct amp_error err;
    size_t more = 0, done = 0;
    TAP_INT(hello_read(&whole, whole.n, &name, &err), AMP_NET_HELLO_DONE, "a hello");
    TAP_STR(name.name, "api.example.com", "its name");
    for (size_t n = 0; n < whole.n; n++)
        more += hello_read(&whole, n, &name, &err) == AMP_NET_HELLO_MORE;
    TAP_INT((int64_t)more, (int64_t)whole.n, "each beginning of it is incomplete");
    name = (struct amp_net_name){0};
    TAP_INT(hello_read(&split, split.n, &name, &err), AMP_NET_HELLO_DONE, "in records of 7 bytes");
    TAP_STR(name.name, "api.example.com", "its name");
    more = 0;
    for (size_t n = 0; n < split.n; n++)
        more += hello_read(&split, n, &name, &err) == AMP_NET_HELLO_MORE;
    TAP_INT((int64_t)more, (int64_t)split.n, "each beginning of them is incomplete");
    struct hello one = hello_split(&whole, 1);
    done = hello_read(&one, one.n, &name, &err) == AMP_NET_HELLO_DONE;
    TAP_OK(done, "in records of one byte");
    hello_text(&whole, "\x17\x03\x03", 3);
    TAP_INT(hello_read(&whole, whole.n, &name, &err), AMP_NET_HELLO_DONE, "bytes after it");
}

static void hello_bad(const struct hello *h, const char *code, const char *what)
{
    struct amp_net_name name;
    struct amp_error err = {0};
    enum amp_net_hello r = hello_read(h, h->n, &name, &err);
    TAP_OK(r == AMP_NET_HELLO_BAD && strcmp(err.code, code) == 0, "%s: %s: %s", what, err.code,
           err.what);
}

static void test_hello_names(void)
{
    static const char *const two[] = {"a.example", "b.example"};
    struct amp_net_name name;
    struct amp_error err;
    struct hello exts = {0}, h = hello_for(NULL);
    TAP_OK(hello_read(&h, h.n, &name, &err) == AMP_NET_HELLO_DONE && !name.name[0], "no name");
    hello_names(&exts, two, 2);
    h = hello_of(&exts, 0);
    hello_bad(&h, "bad_hello", "two names");
    exts.n = 0;
    hello_names(&exts, two, 1);
    hello_names(&exts, two + 1, 1);
    h = hello_of(&exts, 0);
    hello_bad(&h, "bad_hello", "two extensions");
    exts.n = 0;
    hello_names(&exts, NULL, 0);
    h = hello_of(&exts, 0);
    hello_bad(&h, "bad_hello", "an empty list of names");
    static const char *const wrong[] = {"",        "1.2.3.4",      "a b",          "a.example:443",
                                        "a..b",    "a.example.",   "b\xc3\xbc.de", "[::1]",
                                        "a\r\n.b", "*.example.org"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        h = hello_for(wrong[i]);
        hello_bad(&h, "bad_hello", "a wrong name");
    }
    h = hello_for("API.Example.com");
    TAP_INT(hello_read(&h, h.n, &name, &err), AMP_NET_HELLO_DONE, "upper case");
    TAP_STR(name.name, "api.example.com", "becomes lower case");
    exts.n = 0;
    hello_names(&exts, two, 1);
    hello_put(&exts, 0xfe0d, 2);
    hello_put(&exts, 0, 2);
    h = hello_of(&exts, 500);
    TAP_OK(hello_read(&h, h.n, &name, &err) == AMP_NET_HELLO_DONE && name.encrypted &&
               strcmp(name.name, "a.example") == 0,
           "an encrypted hello with its outer name");
}

static void test_hello_hostile(void)
{
    struct amp_net_name name;
    struct amp_error err;
    struct hello h = hello_for("a.example");
    h.bytes[0] = 23;
    hello_bad(&h, "not_tls", "another type of record");
    h = hello_for("a.example");
    h.bytes[1] = 2;
    hello_bad(&h, "not_tls", "another version");
    h = hello_for("a.example");
    h.bytes[5] = 2;
    hello_bad(&h, "bad_hello", "another message");
    h = hello_for("a.example");
    h.bytes[3] = h.bytes[4] = 0;
    hello_bad(&h, "bad_hello", "an empty record");
    h = hello_for("a.example");
    h.bytes[3] = 0xff;
    hello_bad(&h, "bad_hello", "a record that is too long");
    h = hello_for("a.example");
    h.bytes[6] = 1; /* the message has 64 KiB and more */
    hello_bad(&h, "hello_too_large", "a message that is too long");
    h = (struct hello){0};
    hello_text(&h, "GET / HTTP/1.1\r\n", 16);
    hello_bad(&h, "not_tls", "a request of HTTP");
    h = (struct hello){0};
    hello_text(&h, "SSH-2.0-x\r\n", 11);
    hello_bad(&h, "not_tls", "SSH");
    /* Every length in the message, changed: nothing crashes, and no other name comes out. */
    struct hello good = hello_for("a.example");
    unsigned other = 0;
    for (size_t i = 0; i < good.n; i++)
        for (unsigned v = 0; v < 256; v++) {
            h = good;
            h.bytes[i] = (unsigned char)v;
            if (hello_read(&h, h.n, &name, &err) == AMP_NET_HELLO_DONE && name.name[0] &&
                i < good.n - 9 && strcmp(name.name, "a.example") != 0)
                other++;
        }
    TAP_INT(other, 0, "a changed byte outside of the name gives no other name");
}

/* ---- requests ---- */

static int request_read(const char *text, struct amp_net_request *r, struct amp_error *err)
{
    size_t n = strlen(text);
    char *copy = malloc(n ? n : 1);
    memcpy(copy, text, n);
    int rc = amp_net_request_read((struct amp_span){copy, n}, r, err);
    free(copy); /* the spans of r are not used */
    return rc;
}

static void test_requests(void)
{
    static const struct {
        const char *text, *code; /* code: NULL: accepted, "": incomplete */
        const char *host;
        int port;
    } cases[] = {
        {"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", NULL, "a.example", 443},
        {"CONNECT a.example:443 HTTP/1.0\r\n\r\n", NULL, "a.example", 443},
        {"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", NULL, "::1", 443},
        {"GET http://a.example/ HTTP/1.1\r\nHost: A.example\r\n\r\n", NULL, "a.example", 80},
        {"GET HTTP://a.example:8080?q HTTP/1.1\r\n\r\n", NULL, "a.example", 8080},
        {"POST http://a.example/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", NULL, "a.example",
         80},
        {"", "", NULL, 0},
        {"CONNECT a.example:443 HTTP/1.1\r\n", "", NULL, 0},
        {"CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n", "", NULL, 0},
        {"CONNECT a.example HTTP/1.1\r\n\r\n", "bad_port", NULL, 0},
        {"CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n", "bad_host", NULL, 0},
        {"CONNECT http://a.example/ HTTP/1.1\r\n\r\n", "bad_port", NULL, 0},
        {"CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\n", "bad_request", NULL, 0},
        {"CONNECT a.example:443 HTTP/2.0\r\n\r\n", "bad_request", NULL, 0},
        {"CONNECT a.example:443  HTTP/1.1\r\n\r\n", "bad_request", NULL, 0},
        {"CONNECT a.example:443\r\n\r\n", "bad_request", NULL, 0},
        {"CONNECT\r\n\r\n", "bad_request", NULL, 0},
        {"\r\n\r\n", "bad_request", NULL, 0},
        {"CONNECT a.example:443 HTTP/1.1\n\n", "bad_request", NULL, 0},
        {"connect a.example:443 HTTP/1.1\r\n\r\n", "not_proxied", NULL, 0},
        {"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "not_proxied", NULL, 0},
        {"GET https://a.example/ HTTP/1.1\r\n\r\n", "not_proxied", NULL, 0},
        {"GET ftp://a.example/ HTTP/1.1\r\n\r\n", "not_proxied", NULL, 0},
        {"GET http:///x HTTP/1.1\r\n\r\n", "bad_host", NULL, 0},
        {"GET http://user@a.example/ HTTP/1.1\r\n\r\n", "bad_host", NULL, 0},
        {"GET http://a.example@b.example/ HTTP/1.1\r\n\r\n", "bad_host", NULL, 0},
        {"GET http://a.example\\@b.example/ HTTP/1.1\r\n\r\n", "bad_host", NULL, 0},
        {"GET http://a.example/#x HTTP/1.1\r\n\r\n", "bad_request", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", "host_mismatch", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "host_mismatch", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nHost:\r\n\r\n", "host_mismatch", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
         "bad_request", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nHost : a.example\r\n\r\n", "bad_request", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nX: a\r\n folded\r\n\r\n", "bad_request", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nX: a\nHost: b\r\n\r\n", "bad_request", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nX: a\rHost: b\r\n\r\n", "bad_request", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nX: \x01\r\n\r\n", "bad_request", NULL, 0},
        {"GET http://a.example/\x7f HTTP/1.1\r\n\r\n", "bad_request", NULL, 0},
        {"GET http://a.example/ HTTP/1.1\r\nno colon\r\n\r\n", "bad_request", NULL, 0},
        {"G@T http://a.example/ HTTP/1.1\r\n\r\n", "bad_request", NULL, 0},
        {"POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "length_required",
         NULL, 0},
        {"POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
         "bad_request", NULL, 0},
        {"POST http://a.example/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "bad_request", NULL, 0},
        {"POST http://a.example/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", "bad_request", NULL, 0},
        {"POST http://a.example/ HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
         "bad_request", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_net_request r = {0};
        struct amp_error err = {0};
        const char *code = cases[i].code;
        int rc = request_read(cases[i].text, &r, &err);
        bool ok = !code ? rc == 1 && strcmp(r.host.name, cases[i].host) == 0 &&
                              r.host.port == cases[i].port
                  : code[0] == '\0' ? rc == 0
                                    : rc == -1 && strcmp(err.code, code) == 0;
        TAP_OK(ok, "request %zu: %d %s", i, rc, err.code);
    }
    char many[8192] = "GET http://a.example/ HTTP/1.1\r\n";
    for (int i = 0; i <= AMP_NET_FIELDS_MAX; i++)
        strcat(many, "X: y\r\n");
    strcat(many, "\r\n");
    struct amp_net_request r;
    struct amp_error err;
    TAP_INT(request_read(many, &r, &err), -1, "more than 128 fields");
}

static void test_forward(void)
{
    static const char head[] = "POST http://a.example:8080?q=1 HTTP/1.1\r\n"
                               "Host: a.example:8080\r\n"
                               "Proxy-Authorization: Basic c2VjcmV0\r\n"
                               "Proxy-Connection: keep-alive\r\n"
                               "Connection: X-Hop, keep-alive\r\n"
                               "Upgrade: websocket\r\n"
                               "X-Own:  value \r\n"
                               "Content-Length: 5\r\n\r\nhello";
    struct amp_net_request r;
    struct amp_error err;
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, 4096);
    TAP_INT(amp_net_request_read(AMP_SPAN(head), &r, &err), 1, "a request with a body");
    TAP_INT((int64_t)r.body, 5, "its length");
    TAP_INT((int64_t)(sizeof head - 1 - r.head), 5, "after the head");
    TAP_INT(amp_net_request_forward(AMP_SPAN(head), &r, &out, &err), 0, "is forwarded");
    TAP_SPAN(amp_buf_span(&out),
             "POST /?q=1 HTTP/1.1\r\nHost: a.example:8080\r\nX-Own: value\r\n"
             "Content-Length: 5\r\nConnection: close\r\n\r\n",
             "without the fields for the proxy");
    AMP_BUF struct amp_buf small = {0};
    amp_buf_init(&small, 40);
    TAP_INT(amp_net_request_forward(AMP_SPAN(head), &r, &small, &err), -1, "no room");
    TAP_INT((int64_t)small.len, 0, "leaves nothing");
}

int main(void)
{
    test_hosts();
    test_rules();
    test_addresses();
    test_hello_parts();
    test_hello_names();
    test_hello_hostile();
    test_requests();
    test_forward();
    return tap_done();
}

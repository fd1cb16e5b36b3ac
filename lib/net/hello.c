/* Reads the server name of a TLS ClientHello. */
#include "net/hello.h"

#include <string.h>

#include "base/codes.h"

enum {
    RECORD_HEAD = 5,
    RECORD_MAX = 16384,
    HANDSHAKE = 22,
    CLIENT_HELLO = 1,
    EXT_SERVER_NAME = 0,
    EXT_ENCRYPTED_HELLO = 0xfe0d,
    EXTENSIONS_MAX = 256,
};

/* Bytes that are read from the front. Past the end, bad is set and values are 0. */
struct cursor {
    const unsigned char *p;
    size_t n;
    bool bad;
};

static unsigned cursor_number(struct cursor *c, unsigned bytes)
{
    unsigned v = 0;
    if (c->bad || c->n < bytes) {
        c->bad = true;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | c->p[i];
    c->p += bytes;
    c->n -= bytes;
    return v;
}

/* A part with its length before it, in a number of `bytes` bytes. */
static struct cursor cursor_part(struct cursor *c, unsigned bytes)
{
    struct cursor part = {0};
    size_t n = cursor_number(c, bytes);
    if (c->bad || n > c->n) {
        c->bad = part.bad = true;
        return part;
    }
    part.p = c->p;
    part.n = n;
    c->p += n;
    c->n -= n;
    return part;
}

static enum amp_net_hello hello_fail(struct amp_error *err, const char *code, const char *what)
{
    amp_fail_text(err, AMP_DATAERR, code, "the first message of the client: %s", what);
    return AMP_NET_HELLO_BAD;
}

static const char *server_name_read(struct cursor ext, struct amp_net_name *out)
{
    struct cursor list = cursor_part(&ext, 2);
    if (ext.bad || ext.n || list.n == 0)
        return "malformed server_name extension";
    unsigned type = cursor_number(&list, 1);
    struct cursor name = cursor_part(&list, 2);
    if (list.bad || type != 0)
        return "a server name of an unknown type";
    if (list.n)
        return "several server names";
    struct amp_net_host host;
    struct amp_span text = {(const char *)name.p, name.n};
    /* With a default port the whole text must be a host; a colon would start a port. */
    if (text.n == 0 || memchr(text.p, ':', text.n) || text.p[text.n - 1] == '.' ||
        amp_net_host_parse(text, 443, &host, NULL) < 0 || host.literal)
        return "the server name is not a host name";
    memcpy(out->name, host.name, sizeof out->name);
    return NULL;
}

/* Reads the body of the message; returns what is wrong with it, or NULL. */
static const char *body_read(struct cursor body, struct amp_net_name *out)
{
    cursor_number(&body, 2); /* the version */
    for (int i = 0; i < 8; i++)
        cursor_number(&body, 4); /* random */
    struct cursor session = cursor_part(&body, 1), suites = cursor_part(&body, 2),
                  compression = cursor_part(&body, 1);
    if (body.bad || session.n > 32 || suites.n == 0 || suites.n % 2 || compression.n == 0)
        return "malformed";
    if (body.n == 0)
        return NULL; /* without extensions, as in old versions */
    struct cursor exts = cursor_part(&body, 2);
    if (body.bad || body.n)
        return "malformed extensions";
    unsigned seen[EXTENSIONS_MAX], n = 0;
    while (exts.n) {
        unsigned type = cursor_number(&exts, 2);
        struct cursor ext = cursor_part(&exts, 2);
        if (exts.bad)
            return "malformed extensions";
        for (unsigned i = 0; i < n; i++)
            if (seen[i] == type)
                return "an extension occurs twice";
        if (n == EXTENSIONS_MAX)
            return "more than 256 extensions";
        seen[n++] = type;
        if (type == EXT_ENCRYPTED_HELLO)
            out->encrypted = true;
        const char *wrong = type == EXT_SERVER_NAME ? server_name_read(ext, out) : NULL;
        if (wrong)
            return wrong;
    }
    return NULL;
}

enum amp_net_hello amp_net_hello_read(struct amp_span bytes, struct amp_net_name *out,
                                      struct amp_error *err)
{
    static const char too_large[] = "larger than 64 KiB";
    unsigned char message[AMP_NET_HELLO_MAX];
    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t left = bytes.n, got = 0, want = 4;
    /* Collects the fragments of the records until the message is complete. */
    while (got < want) {
        if (left && p[0] != HANDSHAKE)
            return hello_fail(err, AMP_CODE(not_tls), "not a TLS handshake");
        if (left > 1 && p[1] != 3)
            return hello_fail(err, AMP_CODE(not_tls), "not a TLS handshake");
        if (left < RECORD_HEAD)
            return AMP_NET_HELLO_MORE;
        size_t n = (size_t)p[3] << 8 | p[4];
        if (n == 0 || n > RECORD_MAX)
            return hello_fail(err, AMP_CODE(bad_hello), "a record of a wrong length");
        if (n > sizeof message - got)
            return hello_fail(err, AMP_CODE(hello_too_large), too_large);
        size_t have = left - RECORD_HEAD < n ? left - RECORD_HEAD : n;
        memcpy(message + got, p + RECORD_HEAD, have);
        got += have;
        if (got >= 1 && message[0] != CLIENT_HELLO)
            return hello_fail(err, AMP_CODE(bad_hello), "not a ClientHello");
        if (got >= 4)
            want = 4 + ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
        if (want > sizeof message)
            return hello_fail(err, AMP_CODE(hello_too_large), too_large);
        if (have < n && got < want)
            return AMP_NET_HELLO_MORE;
        p += RECORD_HEAD + have;
        left -= RECORD_HEAD + have;
    }
    struct amp_net_name name = {0};
    const char *wrong = body_read((struct cursor){.p = message + 4, .n = want - 4}, &name);
    if (wrong)
        return hello_fail(err, AMP_CODE(bad_hello), wrong);
    *out = name;
    return AMP_NET_HELLO_DONE;
}

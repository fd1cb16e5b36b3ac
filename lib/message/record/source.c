/* Names of sources and consumers in keys. */
#include "message/record/source.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#define NAME_MOST 256 /* bytes of a part; a longer one is replaced by its digest */

static bool is_plain(struct amp_span s)
{
    if (s.n > NAME_MOST || (s.n > 7 && memcmp(s.p, "sha256:", 7) == 0))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20)
            return false;
    return true;
}

struct amp_span amp_source_name(struct amp_span name, char out[AMP_SOURCE_NAME_MAX])
{
    if (is_plain(name)) {
        memcpy(out, name.p ? name.p : "", name.n);
        out[name.n] = '\0';
        return (struct amp_span){out, name.n};
    }
    char digest[AMP_SHA256_MAX];
    amp_sha256_hex(name, digest);
    int n = snprintf(out, AMP_SOURCE_NAME_MAX, "sha256:%s", digest);
    return (struct amp_span){out, (size_t)n};
}

struct amp_span amp_source_key(struct amp_span consumer, struct amp_span source,
                               char out[AMP_SOURCE_KEY_MAX])
{
    char name[AMP_SOURCE_NAME_MAX];
    size_t n = amp_source_name(consumer, out).n;
    struct amp_span part = amp_source_name(source, name);
    out[n++] = '\n';
    memcpy(out + n, part.p, part.n + 1);
    return (struct amp_span){out, n + part.n};
}

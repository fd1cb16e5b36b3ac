/* The digest of an input's bytes: BLAKE2b-256, three times as fast as SHA-256 here. Logs of old
 * hold SHA-256 sums; those have no prefix. */
#include "store/store_int.h"

#include <sodium.h>
#include <string.h>

#include <amp/base/id.h>

void amp_store_digest(struct amp_span bytes, char out[AMP_DIGEST_MAX])
{
    static const char hex[] = "0123456789abcdef";
    static const unsigned char none[1];
    unsigned char sum[32];
    crypto_generichash(sum, sizeof sum, bytes.n ? (const unsigned char *)bytes.p : none, bytes.n,
                       NULL, 0);
    memcpy(out, "b2:", 3);
    for (size_t i = 0; i < sizeof sum; i++) {
        out[3 + 2 * i] = hex[sum[i] >> 4];
        out[4 + 2 * i] = hex[sum[i] & 15];
    }
    out[3 + 2 * sizeof sum] = '\0';
}

bool amp_store_digest_is(const char *sum, const char *digest, struct amp_span bytes)
{
    char old[AMP_SHA256_MAX];
    if (strncmp(sum, "b2:", 3) == 0)
        return strcmp(sum, digest) == 0;
    amp_sha256_hex(bytes, old);
    return strcmp(sum, old) == 0;
}

/* The digest of an input's bytes: BLAKE2b-256, three times as fast as SHA-256. Old logs have
 * SHA-256 sums, without a prefix. */
#include "store/store_int.h"

#include <sodium.h>
#include <string.h>

#include <amp/base/id.h>

void amp_store_digest(struct amp_span bytes, char out[AMP_DIGEST_MAX])
{
    static const unsigned char none[1];
    unsigned char sum[32];
    crypto_generichash(sum, sizeof sum, bytes.n ? (const unsigned char *)bytes.p : none, bytes.n,
                       NULL, 0);
    memcpy(out, "b2:", 3);
    sodium_bin2hex(out + 3, AMP_DIGEST_MAX - 3, sum, sizeof sum);
}

bool amp_store_digest_is(const char *sum, const char *digest, struct amp_span bytes)
{
    char old[AMP_SHA256_MAX];
    if (strncmp(sum, "b2:", 3) == 0)
        return strcmp(sum, digest) == 0;
    amp_sha256_hex(bytes, old);
    return strcmp(sum, old) == 0;
}

/* SHA-256. Alone in its file, so that programs which digest nothing do not link libsodium. */
#include <amp/base/id.h>

#include <sodium.h>

void amp_sha256_hex(struct amp_span data, char out[AMP_SHA256_MAX])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char sum[crypto_hash_sha256_BYTES];
    static const unsigned char none[1];
    crypto_hash_sha256(sum, data.n ? (const unsigned char *)data.p : none, data.n);
    for (size_t i = 0; i < sizeof sum; i++) {
        out[2 * i] = hex[sum[i] >> 4];
        out[2 * i + 1] = hex[sum[i] & 15];
    }
    out[2 * sizeof sum] = '\0';
}

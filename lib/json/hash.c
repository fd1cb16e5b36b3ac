/* The key of the text hash: drawn at first use, the same for every tape and schema afterwards. */
#include "json/hash.h"

#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/random.h>

static struct amp_json_hash_key key;
static atomic_int state; /* 0 no key, 1 somebody draws it, 2 ready */

const struct amp_json_hash_key *amp_json_hash_key(void)
{
    if (atomic_load_explicit(&state, memory_order_acquire) == 2)
        return &key;
    int none = 0;
    if (!atomic_compare_exchange_strong(&state, &none, 1)) {
        while (atomic_load_explicit(&state, memory_order_acquire) != 2)
            continue;
        return &key;
    }
    struct amp_json_hash_key k = {0, 0};
    if (getrandom(&k, sizeof k, GRND_NONBLOCK) != (ssize_t)sizeof k) {
        /* Early at boot: the kernel gave every process 16 random bytes at its start. */
        const void *start = (const void *)getauxval(AT_RANDOM);
        if (start)
            memcpy(&k, start, sizeof k);
    }
    k.a |= 1;
    k.b |= 1;
    key = k;
    atomic_store_explicit(&state, 2, memory_order_release);
    return &key;
}

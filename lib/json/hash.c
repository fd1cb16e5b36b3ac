/* The key of the text hash: drawn at the first use, then the same for all tapes and schemas. */
#include "json/hash.h"

#include <sys/auxv.h>
#include <sys/random.h>

struct amp_json_hash_key amp_json_drawn_key;
int amp_json_key_state; /* 0: no key, 1: a thread draws it, 2: ready */

const struct amp_json_hash_key *amp_json_draw_key(void)
{
    int none = 0;
    if (!__atomic_compare_exchange_n(&amp_json_key_state, &none, 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        while (__atomic_load_n(&amp_json_key_state, __ATOMIC_ACQUIRE) != 2)
            continue;
        return &amp_json_drawn_key;
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
    amp_json_drawn_key = k;
    __atomic_store_n(&amp_json_key_state, 2, __ATOMIC_RELEASE);
    return &amp_json_drawn_key;
}

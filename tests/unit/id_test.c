/* Identifiers and digests. */
#include <amp/base/id.h>

#include "tap.h"

int main(void)
{
    char a[AMP_UUID_MAX], b[AMP_UUID_MAX];
    amp_uuid4(a);
    amp_uuid4(b);
    TAP_OK(strlen(a) == 36 && strcmp(a, b) != 0, "UUIDs differ");
    TAP_OK(a[14] == '4' && strchr("89ab", a[19]) && a[8] == '-' && a[23] == '-', "version 4");
    TAP_OK(strspn(a, "0123456789abcdef-") == 36, "lower case");
    char t[1000][AMP_ID_TAIL_MAX];
    bool good = true;
    for (int i = 0; i < 1000; i++) {
        amp_id_tail(1772116327123, t[i]);
        good = good && strncmp(t[i], "1772116327123", 13) == 0 &&
               strspn(t[i], "0123456789") == strlen(t[i]) && strlen(t[i]) < AMP_ID_TAIL_MAX;
        for (int j = 0; j < i; j++)
            good = good && strcmp(t[i], t[j]) != 0;
    }
    TAP_OK(good, "tails are numbers and none comes twice");
    amp_id_tail(INT64_MAX, t[0]);
    TAP_OK(strlen(t[0]) == AMP_ID_TAIL_MAX - 1, "the longest tail fits");
    amp_id_tail(-5, t[0]);
    TAP_OK(t[0][0] == '0', "no minus sign");
    char h[AMP_SHA256_MAX];
    amp_sha256_hex(AMP_SPAN("abc"), h);
    TAP_STR(h, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "SHA-256 of abc");
    amp_sha256_hex((struct amp_span){NULL, 0}, h);
    TAP_STR(h, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "of nothing");
    static const char *const yes[] = {"a", "T-2026-001", "a.b_c-d", "_x", "0"};
    static const char *const no[] = {"", ".", "..", ".a", "-a", "a/b", "a b", "a\n", "é", "a:b"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        TAP_OK(amp_id_is_safe(amp_span_str(yes[i])), "safe: '%s'", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        TAP_OK(!amp_id_is_safe(amp_span_str(no[i])), "unsafe: number %zu", i);
    char longest[130];
    memset(longest, 'a', sizeof longest);
    TAP_OK(amp_id_is_safe((struct amp_span){longest, 128}), "128 bytes");
    TAP_OK(!amp_id_is_safe((struct amp_span){longest, 129}), "129 bytes");
    TAP_OK(!amp_id_is_safe((struct amp_span){"a\0b", 3}), "NUL inside");
    unsigned char r[64] = {0}, z[64] = {0};
    amp_random(r, sizeof r);
    TAP_OK(memcmp(r, z, sizeof r) != 0, "randomness");
    return tap_done();
}

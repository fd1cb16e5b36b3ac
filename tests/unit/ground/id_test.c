/* Identifiers and digests. */
#include <amp/base/id.h>

#include "../tap.h"

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
    /* Around the ends of the blocks that it works in. */
    static const struct {
        size_t n;
        const char *sum;
    } rows[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
        {1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"},
    };
    char as[1000];
    memset(as, 'a', sizeof as);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        amp_sha256_hex((struct amp_span){as, rows[i].n}, h);
        TAP_OK(strcmp(h, rows[i].sum) == 0, "SHA-256 of %zu bytes", rows[i].n);
    }
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

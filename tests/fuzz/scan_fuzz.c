/* Any bytes through the scanner: both builds of its inner loops must agree, and what they accept
 * must hold together (nesting, offsets, paths that lead back, texts that decode). */
#define AMP_NO_SIMD             1
#define amp_tape_scan           portable_scan
#define amp_json_limits_default portable_limits
#define amp_scan_fail           portable_fail
#define amp_scan_fail_utf8      portable_fail_utf8
#define amp_scan_scratch        portable_scratch
#define amp_scan_rest_of_string portable_rest_of_string
#define amp_scan_escaped_hash   portable_escaped_hash
#include "../../lib/json/scan.c"
#include "../../lib/json/scan_strings.c"
#undef amp_tape_scan
#undef amp_json_limits_default

#include "must.h"
#include "json/decimal.h"
#include "json/equal.h"

int amp_tape_scan(struct amp_tape *t, const char *text, size_t n, struct amp_json_fault *fault);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_token(const struct amp_tok *x, const struct amp_tok *y)
{
    return x->off == y->off && x->len == y->len && x->next == y->next && x->count == y->count &&
           x->type == y->type && x->flags == y->flags;
}

static void check_numbers(const struct amp_tape *t, uint32_t k)
{
    struct amp_decimal d = amp_decimal_read(amp_tok_raw(t, k));
    int64_t i;
    double r;
    MUST(amp_decimal_compare(&d, &d) == 0);
    MUST(!amp_tok_int(t, k, &i) || amp_decimal_is_integer(&d));
    amp_tok_real(t, k, &r);
    if (d.n && d.n < 200 && !d.neg)
        MUST(amp_decimal_multiple(&d, &d));
}

static void check_token(const struct amp_tape *t, uint32_t k)
{
    const struct amp_tok *v = &t->tok[k];
    struct amp_buf path, text;
    struct amp_span s;
    MUST(v->next > k && v->next <= t->n);
    MUST((size_t)v->off + v->len <= t->len);
    amp_buf_init(&path, 1 << 20);
    amp_buf_init(&text, 1 << 20);
    if (v->type == AMP_JSON_STRING) {
        MUST(!amp_tok_text(t, k, &text, &s, NULL) && s.n <= v->len);
        MUST(amp_tok_is(t, k, s) && amp_json_length(t, k) <= s.n);
    } else if (v->type == AMP_JSON_NUMBER) {
        check_numbers(t, k);
    }
    if (!(v->flags & AMP_TOK_KEY)) {
        MUST(!amp_tape_path(t, k, &path, &text, NULL));
        MUST(amp_tape_pointer(t, 0, amp_buf_span(&path)) == k);
    }
    amp_buf_release(&path);
    amp_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct amp_tape a, b;
    struct amp_json_fault f = {0}, g = {0};
    amp_tape_init(&a, NULL);
    amp_tape_init(&b, NULL);
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text = realloc(text, size ? size : 1);
    int r = amp_tape_scan(&a, text, size, &f);
    MUST(r == portable_scan(&b, text, size, &g) && a.n == b.n && f.offset == g.offset);
    if (r) {
        MUST(a.n == 0 && f.code && f.what[0] && f.offset <= size && !strcmp(f.what, g.what));
    } else {
        for (uint32_t k = 0; k < a.n; k++)
            MUST(same_token(&a.tok[k], &b.tok[k]));
        for (uint32_t k = 0; k < a.n && k < 300; k++)
            check_token(&a, k);
        MUST(amp_tape_equal(&a, 0, &b, 0) && amp_tape_hash(&a, 0) == amp_tape_hash(&b, 0));
    }
    free(text);
    amp_tape_release(&a);
    amp_tape_release(&b);
    return 0;
}

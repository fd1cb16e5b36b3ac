/* What belongs to the directory and not to one of the tools that share it: the member "store" of
 * its amp.json. What an option says stands before it. */
#include "store/store_int.h"

#include <fcntl.h>
#include <unistd.h>

enum { FILE_MAX = 4 * 1024 * 1024 };

static const double day_ms = 86400000.0;

static int number(const struct amp_tape *t, uint32_t store, const char *key, double least,
                  double most, double *out, struct amp_error *err)
{
    uint32_t tok = amp_tape_get(t, store, amp_span_str(key));
    if (tok == AMP_TOK_NONE)
        return 0;
    if (!amp_tok_real(t, tok, out) || *out < least || *out > most)
        return amp_fail(err, AMP_CONFIG, "config_invalid",
                        "amp.json of the state directory: store.%s is a number from %.0f to %.0f",
                        key, least, most);
    return 0;
}

static int read_settings(struct amp_store *s, const struct amp_tape *t, uint32_t store,
                         struct amp_error *err)
{
    double bytes = 0, segments = 0, days = 0, error_bytes = 0, error_files = 0;
    if (number(t, store, "segment_bytes", 65536, 1 << 30, &bytes, err) != 0 ||
        number(t, store, "keep_segments", 2, 1000000, &segments, err) != 0 ||
        number(t, store, "keep_days", 0, 36500, &days, err) != 0 ||
        number(t, store, "error_bytes", 65536, 1 << 30, &error_bytes, err) != 0 ||
        number(t, store, "error_files", 2, 1000, &error_files, err) != 0)
        return -1;
    if (!s->opt.segment_bytes)
        s->opt.segment_bytes = (uint64_t)bytes;
    if (!s->opt.keep_segments)
        s->opt.keep_segments = (uint32_t)segments;
    if (!s->opt.keep_ms)
        s->opt.keep_ms = (uint64_t)(days * day_ms);
    if (!s->opt.error_bytes)
        s->opt.error_bytes = (uint64_t)error_bytes;
    if (!s->opt.error_files)
        s->opt.error_files = (uint32_t)error_files;
    return 0;
}

static int read_file(struct amp_store *s, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_tape t;
    struct amp_json_fault fault;
    amp_buf_init(&text, FILE_MAX);
    if (faccessat(s->dirfd, "amp.json", F_OK, 0) != 0)
        return 0;
    if (amp_file_read(s->dirfd, "amp.json", FILE_MAX, &text, err) != 0)
        return -1;
    amp_tape_init(&t, NULL);
    int rc = 0;
    if (amp_tape_scan(&t, text.data, text.len, &fault) != 0) {
        rc = amp_json_fail(err, AMP_CONFIG, "config_invalid",
                           "amp.json of the state directory is not JSON", &fault);
    } else {
        uint32_t store = amp_tape_get(&t, 0, AMP_SPAN("store"));
        if (store != AMP_TOK_NONE)
            rc = read_settings(s, &t, store, err);
    }
    amp_tape_release(&t);
    return rc;
}

int amp_store_settings(struct amp_store *s, struct amp_error *err)
{
    if (read_file(s, err) != 0)
        return -1;
    if (!s->opt.segment_bytes)
        s->opt.segment_bytes = 64u << 20;
    if (!s->opt.keep_segments)
        s->opt.keep_segments = 16;
    if (!s->opt.error_bytes)
        s->opt.error_bytes = 16u << 20;
    if (!s->opt.error_files)
        s->opt.error_files = 4;
    return 0;
}

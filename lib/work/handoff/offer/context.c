/*
 * The context snapshot of a handoff: a file of the state directory, known by its SHA-256. In a
 * message it is {"content_type","sha256","bytes"} with "text", or "data_b64" if it is not UTF-8.
 * A string of base64 is bytes, as protobuf writes them. Another JSON value is taken as it is, as
 * application/json.
 */
#include "work/handoff/offer/handoff.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "json/text.h"

#define FOLDER "handoff"

/* The path of the file below the state directory. */
static void context_path(const struct amp_handoff *r, char out[96])
{
    char name[AMP_SHA256_MAX];
    amp_sha256_hex(r->id, name);
    snprintf(out, 96, FOLDER "/%s", name);
}

static int folder_open(struct amp_store *s, struct amp_error *err)
{
    int fd = open(amp_store_dir(s), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? amp_fail_errno(err, AMP_IOERR, "%s", amp_store_dir(s)) : fd;
}

static bool is_text(struct amp_span s)
{
    for (size_t i = 0; i < s.n;) {
        size_t n = amp_utf8_length((const unsigned char *)s.p + i, s.n - i);
        if (n == 0 || s.p[i] == '\0')
            return false;
        i += n;
    }
    return true;
}

bool amp_handoff_context_is_json(struct amp_span bytes)
{
    struct amp_error none;
    json_auto_t *j = bytes.n > 0 && (bytes.p[0] == '{' || bytes.p[0] == '[')
                         ? amp_json_load(bytes, &none)
                         : NULL;
    return j != NULL;
}

int amp_handoff_context_value(struct amp_span bytes, struct amp_span content_type, bool brief,
                              struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf b64 = {.max = (size_t)AMP_HANDOFF_CONTEXT_MAX * 2};
    char sum[AMP_SHA256_MAX];
    struct amp_jw w;

    amp_sha256_hex(bytes, sum);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "content_type", content_type);
    amp_jw_member_text(&w, "sha256", sum);
    amp_jw_member_uint(&w, "bytes", bytes.n);
    if (!brief && is_text(bytes)) {
        amp_jw_member_str(&w, "text", bytes);
    } else if (!brief) {
        if (amp_base64_add(&b64, bytes, err) < 0)
            return -1;
        amp_jw_member_str(&w, "data_b64", amp_buf_span(&b64));
    }
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

static int digest_refuse(struct amp_error *err)
{
    return amp_fail(err, AMP_NO, context_changed, "the context snapshot does not have its digest");
}

/* Decodes a string of base64, protobuf's JSON form of bytes. 1: decoded; 0: it is another value. */
static int base64_open(struct amp_span value, struct amp_buf *bytes, char type[128],
                       struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    AMP_BUF struct amp_buf mem = {.max = value.n + 1};
    struct amp_json_fault fault;
    struct amp_span text;

    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, value.p, value.n, &fault) < 0)
        return amp_json_fault_is_memory(&fault) ? amp_fail_memory(err) : 0;
    if (t.tok[0].type != AMP_JSON_STRING)
        return 0;
    if (amp_tok_text(&t, 0, &mem, &text, err) < 0)
        return -1;
    if (amp_base64_decode(text, bytes, err) < 0)
        return amp_code_is(err->code, bad_value) ? 0 : -1;
    snprintf(type, 128, "%s",
             amp_handoff_context_is_json(amp_buf_span(bytes)) ? "application/json"
                                                              : "application/octet-stream");
    return 1;
}

/* The bytes and the type of the value, whose digest is checked if it has one. */
static int value_open(struct amp_span value, struct amp_buf *bytes, char type[128],
                      struct amp_error *err)
{
    char sum[AMP_SHA256_MAX];
    struct amp_error why;
    json_auto_t *j = value.p[0] == '{' ? amp_json_load(value, &why) : NULL;
    const json_t *text = json_object_get(j, "text"), *b64 = json_object_get(j, "data_b64");
    const char *digest = amp_json_str(j, "sha256"), *of = amp_json_str(j, "content_type");

    int decoded = value.p[0] == '"' ? base64_open(value, bytes, type, err) : 0;
    if (decoded != 0)
        return decoded < 0 ? -1 : 0;
    snprintf(type, 128, "%s", "application/json");
    if (!*digest || !*of || strlen(of) >= 128 || (!json_is_string(text) && !json_is_string(b64)))
        return amp_buf_add(bytes, value.p, value.n, err);
    snprintf(type, 128, "%s", of);
    if (text ? amp_buf_add(bytes, json_string_value(text), json_string_length(text), err) < 0
             : amp_base64_decode((struct amp_span){json_string_value(b64), json_string_length(b64)},
                                 bytes, err) < 0)
        return err->status == AMP_DATAERR ? digest_refuse(err) : -1;
    amp_sha256_hex(amp_buf_span(bytes), sum);
    return strcmp(sum, digest) == 0 ? 0 : digest_refuse(err);
}

int amp_handoff_context_keep(struct amp_handoffs *h, struct amp_span value, struct amp_handoff *r,
                             struct amp_buf *mem, struct amp_error *err)
{
    AMP_BUF struct amp_buf bytes = {.max = AMP_HANDOFF_CONTEXT_MAX};
    char type[128], sum[AMP_SHA256_MAX], path[96], folder[4200];

    if (value.n == 0)
        return 0;
    if (value_open(value, &bytes, type, err) < 0) {
        bool large = amp_code_is(err->code, buffer_full);
        return large ? amp_fail(err, AMP_NO, payload_too_large,
                                "the context snapshot is larger than %d bytes",
                                AMP_HANDOFF_CONTEXT_MAX)
                     : -1;
    }
    amp_sha256_hex(amp_buf_span(&bytes), sum);
    context_path(r, path);
    snprintf(folder, sizeof folder, "%s/" FOLDER, amp_store_dir(h->store));
    if (amp_mkdirs(folder, 0700, err) < 0)
        return -1;
    AMP_CLOSE int fd = folder_open(h->store, err);
    if (fd < 0 || amp_file_write_atomic(fd, path, 0600, amp_buf_span(&bytes), err) < 0)
        return -1;
    amp_buf_reset(mem);
    if (amp_buf_add(mem, type, strlen(type) + 1, err) < 0 || amp_buf_str(mem, sum, err) < 0)
        return -1;
    r->content_type = amp_span_str(mem->data);
    r->digest = amp_span_str(mem->data + strlen(type) + 1);
    r->bytes = (int64_t)bytes.len;
    return 0;
}

int amp_handoff_context_read(struct amp_store *s, const struct amp_handoff *r, struct amp_buf *out,
                             struct amp_error *err)
{
    char path[96], sum[AMP_SHA256_MAX];
    const size_t before = out->len;
    struct amp_error why;

    if (r->digest.n == 0)
        return 0;
    context_path(r, path);
    AMP_CLOSE int fd = folder_open(s, err);
    if (fd < 0)
        return -1;
    AMP_BUF struct amp_buf bytes = {.max = AMP_HANDOFF_CONTEXT_MAX + 1};
    if (amp_file_read(fd, path, AMP_HANDOFF_CONTEXT_MAX, &bytes, &why) < 0)
        return amp_fail(err, AMP_NO, context_changed, "the context snapshot cannot be read: %s",
                        why.what);
    amp_sha256_hex(amp_buf_span(&bytes), sum);
    if ((int64_t)bytes.len != r->bytes || !amp_span_is(r->digest, sum))
        return digest_refuse(err);
    out->len = before;
    return amp_buf_add(out, bytes.data ? bytes.data : "", bytes.len, err);
}

void amp_handoff_context_drop(struct amp_store *s, const struct amp_handoff *r)
{
    char path[96];
    struct amp_error none;

    if (r->digest.n == 0)
        return;
    context_path(r, path);
    AMP_CLOSE int fd = folder_open(s, &none);
    if (fd >= 0)
        unlinkat(fd, path, 0);
}

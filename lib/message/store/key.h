/*
 * Keys of stored records: "kind.part.part". Letters, digits, '-' and '_' of a part stand for
 * themselves, every other byte is percent-encoded, so a separator never occurs within a part.
 *
 * A part of more than AMP_KEY_PART_MAX bytes, with a control character, or that begins with
 * "sha256:", is replaced by "sha256:" and the SHA-256 of the part in hex. An encoded part has no
 * ':', so a digest is never taken for a part, and two different parts never give the same key.
 *
 * A message without an id is known by the digest of its line, "sha256:<hex>" (AMP_KEY_NAMED). In a
 * key this is "line:<hex>", so that no part's digest is the same.
 */
#ifndef AMP_MESSAGE_STORE_KEY_H
#define AMP_MESSAGE_STORE_KEY_H

#include <amp/base/buf.h>

enum {
    AMP_KEY_PARTS = 4,
    AMP_KEY_KIND_MAX = 32,
    AMP_KEY_PART_MAX = 256,
    AMP_KEY_MAX = AMP_KEY_KIND_MAX + AMP_KEY_PARTS * (1 + 3 * AMP_KEY_PART_MAX) + 1,
    AMP_KEY_NAME_MAX = 72, /* "sha256:", 64 hex digits, NUL */
};

/* A key as its unencoded parts. The caller owns the spans. */
struct amp_key {
    const char *kind;
    struct amp_span part[AMP_KEY_PARTS];
    uint32_t n;
    bool named;           /* a part that is "sha256:<hex>" is the digest of a line */
    struct amp_span text; /* not empty: the encoded key; the parts are ignored then, */
    struct amp_span full; /* and this is its text without digests, empty if it is unknown */
};

/* AMP_KEY(kind, part...): each part is a span. */
#define AMP_KEY(kind_, ...)                                                                        \
    ((struct amp_key){.kind = (kind_),                                                             \
                      .part = {__VA_ARGS__},                                                       \
                      .n = sizeof((struct amp_span[]){__VA_ARGS__}) / sizeof(struct amp_span)})
/* Like AMP_KEY, if a part may be a name from amp_key_message_name. */
#define AMP_KEY_NAMED(kind_, ...)                                                                  \
    ((struct amp_key){.kind = (kind_),                                                             \
                      .part = {__VA_ARGS__},                                                       \
                      .n = sizeof((struct amp_span[]){__VA_ARGS__}) / sizeof(struct amp_span),     \
                      .named = true})
/* A key given as its encoded text, as records refer to it. */
#define AMP_KEY_TEXT(text_) ((struct amp_key){.text = (text_)})

/* Encodes a key, with a NUL at its end. NO bad_id: its only part is empty. */
int amp_key_text(const struct amp_key *key, char out[AMP_KEY_MAX], struct amp_span *text,
                 struct amp_error *err);
/* Appends the text of the key with all parts in full, without digests, to read the parts again. */
int amp_key_full(const struct amp_key *key, struct amp_buf *out, struct amp_error *err);
/* The beginning of a first part that its key has as it is, for amp_store_each_of; empty: there is
 * none. */
struct amp_span amp_key_prefix(struct amp_span part);
/* Whether a part was replaced by its digest. */
bool amp_key_is_digested(struct amp_span text);

/* Splits the text of a key. Kind and parts are decoded into mem, which is emptied first, each with
 * a NUL at its end. A digest is "sha256:<hex>". IOERR log_damaged: the text is not a key. */
int amp_key_split(struct amp_span text, struct amp_buf *mem, struct amp_key *out,
                  struct amp_error *err);

/* The name of a message in keys, for AMP_KEY_NAMED: its id, or the digest of its line if it has no
 * id or an id that looks like a digest. The result points into `id` or `out`. */
struct amp_span amp_key_message_name(struct amp_span id, struct amp_span line,
                                     char out[AMP_KEY_NAME_MAX]);
/* A part as it is in a key, but not encoded: the part or its digest, with a NUL at its end. */
struct amp_span amp_key_part_name(struct amp_span part, char out[AMP_KEY_PART_MAX + 1]);
/* The SHA-256 in hex of several parts with their lengths, so that different parts differ. */
int amp_key_digest(const struct amp_span *parts, uint32_t n, char out[AMP_KEY_NAME_MAX],
                   struct amp_error *err);

#endif

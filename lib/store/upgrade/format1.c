/*
 * Converting frames of format 1 to format 2.
 *
 * In format 1 a key had one encoded id. Ids of several parts had line feeds between them (a job and
 * a branch's base had a slash), and long ids were replaced by digests, with a different rule for
 * each kind. The ids of outbox entries contained their role. Records refer to keys in two places:
 * the operation of a message ("claim"), and the messages of an inbox.
 *
 * A digest cannot be inverted, but nearly all texts are known from other records: the operation's
 * parts are in the message, the message's id is in the record of its delivery, the line of a dead
 * letter is in its record. The others are names of sources, whose digest is the same in both
 * formats.
 */
#include "store/upgrade/format1.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/grow.h"
#include "json/record.h"

#define DIGEST "sha256:"
enum { DEAD_DIGITS = 16 }; /* of the name of a dead letter whose message has no id */

struct alias {
    char *was, *is;
};

/* The buffers. IDS: texts of the converted frame; NAMES: of its blobs; PARTS: of its key. */
enum { PARTS, BLOB, JSON, ID, TEXT, IDS, NAMES, FULL, BUFFERS };

struct amp_format1 {
    struct amp_store *s;
    struct amp_frame_arena arena;
    struct amp_tape state; /* of the record */
    struct amp_buf buf[BUFFERS];
    struct alias *alias;
    size_t n, cap;
    char key[AMP_KEY_MAX];
};

struct amp_format1 *amp_format1_new(struct amp_store *s, struct amp_error *err)
{
    struct amp_format1 *c = calloc(1, sizeof *c);
    if (!c) {
        amp_fail_memory(err);
        return NULL;
    }
    c->s = s;
    amp_frame_arena_init(&c->arena);
    amp_tape_init(&c->state, NULL);
    for (size_t i = 0; i < BUFFERS; i++)
        amp_buf_init(&c->buf[i], SIZE_MAX / 2);
    return c;
}

void amp_format1_free(struct amp_format1 *c)
{
    if (!c)
        return;
    amp_frame_arena_release(&c->arena);
    amp_tape_release(&c->state);
    for (size_t i = 0; i < BUFFERS; i++)
        amp_buf_release(&c->buf[i]);
    for (uint32_t i = 0; i < c->n; i++) {
        free(c->alias[i].was);
        free(c->alias[i].is);
    }
    free(c->alias);
    free(c);
}

/* ---- names that changed ---- */

static bool is_digest(struct amp_span id)
{
    return id.n == sizeof DIGEST - 1 + 64 && amp_span_starts(id, DIGEST);
}

static const char *alias_find(const struct amp_format1 *c, struct amp_span was)
{
    if (was.n != DEAD_DIGITS && !is_digest(was))
        return NULL;
    for (uint32_t i = 0; i < c->n; i++)
        if (amp_span_is(was, c->alias[i].was))
            return c->alias[i].is;
    return NULL;
}

static int alias_add(struct amp_format1 *c, struct amp_span was, struct amp_span is,
                     struct amp_error *err)
{
    if (alias_find(c, was))
        return 0;
    if (amp_grow(&c->alias, &c->cap, c->n, sizeof *c->alias, err) < 0)
        return -1;
    struct alias a = {amp_span_dup(was), amp_span_dup(is)};
    if (!a.was || !a.is) {
        free(a.was);
        free(a.is);
        return amp_fail_memory(err);
    }
    c->alias[c->n++] = a;
    return 0;
}

/* ---- keys ---- */

/* Cuts at the first `at`; false: there is none. */
static bool span_cut(struct amp_span text, char at, struct amp_span *before,
                     struct amp_span *behind)
{
    const char *p = text.n ? memchr(text.p, at, text.n) : NULL;
    if (!p)
        return false;
    *before = (struct amp_span){text.p, (size_t)(p - text.p)};
    *behind = (struct amp_span){p + 1, text.n - before->n - 1};
    return true;
}

/* Marks a digest of a part whose text is unknown like a digest of a known part. */
static void digests_keep(struct amp_span *text, char mem[AMP_KEY_MAX])
{
    char *p;
    while ((p = memmem(mem, text->n, ".line:", 6))) {
        memmove(p + 8, p + 6, text->n - (size_t)(p - mem) - 6 + 1);
        memcpy(p, "." DIGEST, 8);
        text->n += 2;
    }
}

/* The parts of an id of format 1. */
static struct amp_key key_parts(const char *kind, struct amp_span id, struct amp_span msg_id)
{
    struct amp_key k = AMP_KEY(kind, id);
    struct amp_span a, b, d;
    if (strcmp(kind, "cursor") == 0 || strcmp(kind, "sequence") == 0 ||
        strcmp(kind, "inbox") == 0) {
        k = span_cut(id, '\n', &a, &b) ? AMP_KEY_NAMED(kind, a, b) : AMP_KEY_NAMED(kind, id);
    } else if (strcmp(kind, "awaited") == 0 && span_cut(id, '\n', &a, &b)) {
        k = span_cut(b, '\n', &b, &d) ? AMP_KEY(kind, a, b, d) : AMP_KEY_NAMED(kind, a, b);
    } else if (strcmp(kind, "token") == 0) {
        if (!span_cut(id, '\n', &a, &b))
            k = AMP_KEY_NAMED(kind, id);
        else if (amp_span_is(a, "rtp") && is_digest(b))
            k = AMP_KEY(kind, AMP_SPAN(""), a, ((struct amp_span){b.p + 7, b.n - 7}));
        else if (b.n && b.p[0] == '\n')
            k = AMP_KEY(kind, a, AMP_SPAN(""), ((struct amp_span){b.p + 1, b.n - 1}));
        else
            k = AMP_KEY(kind, a, b);
    } else if (strcmp(kind, "base") == 0 && span_cut(id, '/', &a, &b)) {
        k = AMP_KEY(kind, a, b);
    } else if (strcmp(kind, "job") == 0 && msg_id.n && id.n > msg_id.n + 1 &&
               memcmp(id.p + id.n - msg_id.n, msg_id.p, msg_id.n) == 0) {
        k = AMP_KEY(kind, ((struct amp_span){id.p, id.n - msg_id.n - 1}), msg_id);
    } else if (strcmp(kind, "dead") == 0) {
        k.named = true;
    }
    return k;
}

static int key_write(const struct amp_key *k, char mem[AMP_KEY_MAX], struct amp_span *text,
                     struct amp_error *err)
{
    if (amp_key_text(k, mem, text, err) < 0)
        return -1;
    if (k->named && strcmp(k->kind, "inbox") != 0 && strcmp(k->kind, "dead") != 0)
        digests_keep(text, mem);
    return 0;
}

/* The key of an operation in a message's record. */
static int operation_write(struct amp_format1 *c, struct amp_span id, char mem[AMP_KEY_MAX],
                           struct amp_span *text, struct amp_error *err)
{
    const char *is = alias_find(c, id);
    if (is) {
        struct amp_key k = AMP_KEY_TEXT(amp_span_str(is));
        return amp_key_text(&k, mem, text, err);
    }
    struct amp_key k = key_parts("token", id, (struct amp_span){0});
    return key_write(&k, mem, text, err);
}

/* ---- records ---- */

/* Scans the frame's record: 1; 0: the frame has none. */
static int state_scan(struct amp_format1 *c, const struct amp_frame *f, struct amp_span *json,
                      struct amp_error *err)
{
    *json = f->state;
    if (f->state_blob.n) {
        amp_buf_reset(&c->buf[BLOB]);
        if (amp_blob_get(c->s, f->state_blob, &c->buf[BLOB], err) < 0)
            return -1;
        *json = amp_buf_span(&c->buf[BLOB]);
    }
    if (!json->n)
        return 0;
    return amp_rec_scan(&c->state, *json, "a record", err) < 0 ? -1 : 1;
}

/* A member's text, valid until mem is used again; empty: it is not a string. */
static int member_text(struct amp_format1 *c, uint32_t object, const char *name,
                       struct amp_buf *mem, struct amp_span *out, struct amp_error *err)
{
    uint32_t t = amp_tape_get(&c->state, object, amp_span_str(name));
    *out = (struct amp_span){"", 0};
    amp_buf_reset(mem);
    return t == AMP_TOK_NONE || c->state.tok[t].type != AMP_JSON_STRING
               ? 0
               : amp_tok_text(&c->state, t, mem, out, err);
}

/* The message in a record. */
static int line_of(struct amp_format1 *c, struct amp_buf *mem, struct amp_span *line,
                   struct amp_error *err)
{
    uint32_t t = amp_tape_get(&c->state, 0, AMP_SPAN("msg"));
    if (t == AMP_TOK_NONE)
        return member_text(c, 0, "text", mem, line, err);
    if (c->state.tok[t].type == AMP_JSON_STRING)
        return member_text(c, 0, "msg", mem, line, err);
    *line = amp_tok_source(&c->state, t);
    return 0;
}

/* Learns the parts of an operation whose name is a digest, from its message. */
static int operation_learn(struct amp_format1 *c, struct amp_span claim, struct amp_error *err)
{
    char sum[AMP_SHA256_MAX], mem[AMP_KEY_MAX];
    struct amp_span from, token, text;
    uint32_t at = amp_tape_get(&c->state, 0, AMP_SPAN("msg")), inner;
    if (at == AMP_TOK_NONE || c->state.tok[at].type != AMP_JSON_OBJECT)
        return 0;
    inner = amp_tape_get(&c->state, at, AMP_SPAN("msg"));
    if (inner != AMP_TOK_NONE && c->state.tok[inner].type == AMP_JSON_OBJECT)
        at = inner;
    if (member_text(c, at, "producer_id", &c->buf[ID], &from, err) < 0 ||
        member_text(c, at, "idempotency_token", &c->buf[TEXT], &token, err) < 0)
        return -1;
    AMP_BUF struct amp_buf name = {0};
    amp_buf_init(&name, from.n + token.n + 64);
    if (amp_buf_add(&name, from.p, from.n, err) < 0 || amp_buf_add(&name, "\n", 1, err) < 0 ||
        amp_buf_add(&name, token.p, token.n, err) < 0 ||
        amp_buf_fmt(&name, err, "\n%zu", from.n) < 0)
        return -1;
    amp_sha256_hex(amp_buf_span(&name), sum);
    if (memcmp(sum, claim.p + sizeof DIGEST - 1, 64) != 0)
        return 0;
    struct amp_key k = AMP_KEY("token", from, token);
    return amp_key_text(&k, mem, &text, err) < 0 ? -1 : alias_add(c, claim, text, err);
}

/* Learns a dead letter's name: the id of its message, or a digest of the line. */
static int dead_learn(struct amp_format1 *c, struct amp_span id, struct amp_error *err)
{
    char name[AMP_KEY_NAME_MAX];
    struct amp_span msg_id, line;
    if (member_text(c, 0, "msg_id", &c->buf[TEXT], &msg_id, err) < 0)
        return -1;
    if (amp_span_eq(msg_id, id) && !is_digest(id))
        return 0;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, SIZE_MAX / 2);
    if (line_of(c, &mem, &line, err) < 0)
        return -1;
    return alias_add(c, id, amp_key_message_name(msg_id, line, name), err);
}

static int frame_open(struct amp_format1 *c, struct amp_span frame,
                      const struct amp_frame_head *head, struct amp_frame *f, struct amp_key *k,
                      struct amp_error *err)
{
    if (amp_frame_decode(frame, head, &c->arena, f, err) < 0)
        return -1;
    *k = (struct amp_key){0};
    return f->key.n ? amp_key_split(f->key, &c->buf[PARTS], k, err) : 0;
}

int amp_format1_learn(struct amp_format1 *c, struct amp_span frame,
                      const struct amp_frame_head *head, struct amp_error *err)
{
    struct amp_frame f;
    struct amp_key k;
    struct amp_span json, text, a, id;
    if (!memmem(frame.p, frame.n, DIGEST, sizeof DIGEST - 1) &&
        !memmem(frame.p, frame.n < 256 ? frame.n : 256, "\"key\":\"dead.", 12))
        return 0;
    if (frame_open(c, frame, head, &f, &k, err) < 0)
        return -1;
    int rc = k.n ? state_scan(c, &f, &json, err) : 0;
    if (rc <= 0)
        return rc;
    if (strcmp(k.kind, "message") == 0) {
        AMP_BUF struct amp_buf claim = {0};
        amp_buf_init(&claim, SIZE_MAX / 2);
        if (member_text(c, 0, "claim", &claim, &text, err) < 0)
            return -1;
        return is_digest(text) ? operation_learn(c, text, err) : 0;
    }
    if (strcmp(k.kind, "inbox") == 0 && span_cut(k.part[0], '\n', &a, &id) && is_digest(id)) {
        if (member_text(c, 0, "msg_id", &c->buf[TEXT], &text, err) < 0)
            return -1;
        return text.n ? alias_add(c, id, text, err) : 0;
    }
    return strcmp(k.kind, "dead") == 0 ? dead_learn(c, k.part[0], err) : 0;
}

/* ---- converting ---- */

/* Appends the record up to a string, and another string instead of it. */
static int string_replace(struct amp_format1 *c, uint32_t tok, const char **done,
                          struct amp_span with, struct amp_error *err)
{
    struct amp_span was = amp_tok_source(&c->state, tok);
    struct amp_jw w;
    if (amp_buf_add(&c->buf[JSON], *done, (size_t)(was.p - *done), err) < 0)
        return -1;
    amp_jw_init(&w, &c->buf[JSON]);
    amp_jw_str(&w, with);
    *done = was.p + was.n;
    return amp_jw_end(&w, err);
}

/* Replaces a message's name in an inbox's list if it changed. */
static int name_replace(struct amp_format1 *c, uint32_t tok, const char **done,
                        struct amp_error *err)
{
    struct amp_span id;
    amp_buf_reset(&c->buf[TEXT]);
    if (tok == AMP_TOK_NONE || c->state.tok[tok].type != AMP_JSON_STRING)
        return 0;
    if (amp_tok_text(&c->state, tok, &c->buf[TEXT], &id, err) < 0)
        return -1;
    const char *is = is_digest(id) ? alias_find(c, id) : NULL;
    return is ? string_replace(c, tok, done, amp_span_str(is), err) : 0;
}

static int list_replace(struct amp_format1 *c, const char *list, bool objects, const char **done,
                        struct amp_error *err)
{
    uint32_t at = amp_tape_get(&c->state, 0, amp_span_str(list));
    if (at == AMP_TOK_NONE || c->state.tok[at].type != AMP_JSON_ARRAY)
        return 0;
    for (uint32_t i = 0, t = at + 1; i < c->state.tok[at].count; i++, t = c->state.tok[t].next) {
        uint32_t id = objects ? amp_tape_get(&c->state, t, AMP_SPAN("id")) : t;
        if (name_replace(c, id, done, err) < 0)
            return -1;
    }
    return 0;
}

/* Converts the keys and names in a record. */
static int record_convert(struct amp_format1 *c, struct amp_frame *f, const char *kind,
                          struct amp_error *err)
{
    struct amp_span json, claim;
    char mem[AMP_KEY_MAX];
    bool is_message = strcmp(kind, "message") == 0, is_inbox = strcmp(kind, "inboxes") == 0;
    int rc = is_message || is_inbox ? state_scan(c, f, &json, err) : 0;
    if (rc <= 0)
        return rc;
    const char *done = json.p;
    amp_buf_reset(&c->buf[JSON]);
    if (is_message) {
        uint32_t t = amp_tape_get(&c->state, 0, AMP_SPAN("claim"));
        if (member_text(c, 0, "claim", &c->buf[TEXT], &claim, err) < 0)
            return -1;
        if (claim.n && (operation_write(c, claim, mem, &claim, err) < 0 ||
                        string_replace(c, t, &done, claim, err) < 0))
            return -1;
    } else if (list_replace(c, "waiting", true, &done, err) < 0 ||
               list_replace(c, "open", false, &done, err) < 0) {
        return -1;
    }
    if (done == json.p)
        return 0;
    if (amp_buf_add(&c->buf[JSON], done, (size_t)(json.p + json.n - done), err) < 0)
        return -1;
    f->state = amp_buf_span(&c->buf[JSON]);
    f->state_blob = (struct amp_span){0};
    return 0;
}

static int key_convert(struct amp_format1 *c, struct amp_frame *f, const struct amp_key *k,
                       struct amp_error *err)
{
    struct amp_span id = k->part[0], msg_id = {0}, json, a, b;
    struct amp_key key;
    int rc = strcmp(k->kind, "job") == 0 ? state_scan(c, f, &json, err) : 0;
    if (rc < 0 || (rc > 0 && member_text(c, 0, "msg_id", &c->buf[ID], &msg_id, err) < 0))
        return -1;
    if (strcmp(k->kind, "token") == 0)
        return operation_write(c, id, c->key, &f->key, err);
    const char *is = NULL;
    if (strcmp(k->kind, "dead") == 0 && (is = alias_find(c, id)))
        id = amp_span_str(is);
    key = key_parts(k->kind, id, msg_id);
    if (strcmp(k->kind, "inbox") == 0 && span_cut(id, '\n', &a, &b) && is_digest(b) &&
        (is = alias_find(c, b)))
        key.part[1] = amp_span_str(is);
    if (key_write(&key, c->key, &f->key, err) < 0)
        return -1;
    amp_buf_reset(&c->buf[FULL]);
    if (!amp_key_is_digested(f->key))
        return 0;
    for (uint32_t i = 0; i < key.n; i++)
        if (key.named && is_digest(key.part[i]))
            return 0; /* its text is unknown */
    if (amp_key_full(&key, &c->buf[FULL], err) < 0)
        return -1;
    if (c->buf[FULL].len < AMP_KEY_MAX)
        f->full = amp_buf_span(&c->buf[FULL]);
    return 0;
}

/* Copies a text of this frame into c->buf[IDS], which has room for all of them and does not move.
 */
static int text_keep(struct amp_format1 *c, struct amp_span text, struct amp_span *out,
                     struct amp_error *err)
{
    size_t at = c->buf[IDS].len;
    if (amp_buf_add(&c->buf[IDS], text.p, text.n, err) < 0)
        return -1;
    *out = (struct amp_span){c->buf[IDS].data + at, text.n};
    return 0;
}

/* Converts the name of an outbox of events that wait behind a gap. */
static int box_convert(struct amp_format1 *c, struct amp_span *name, struct amp_error *err)
{
    char mem[AMP_KEY_MAX];
    struct amp_span a, b, d, text;
    if (!span_cut(*name, '\n', &a, &b) || !amp_span_is(a, "held") || !span_cut(b, '\n', &b, &d))
        return 0;
    struct amp_key k = AMP_KEY_NAMED("held", b, d);
    return key_write(&k, mem, &text, err) < 0 ? -1 : text_keep(c, text, name, err);
}

/* Converts the id of an input that moved a cursor ("CONSUMER LF SOURCE LF MOVES NUMBER"), or that
 * was sent again ("resent-TIMES-TIME-ID"). */
static int input_convert(struct amp_format1 *c, const char *kind, struct amp_span *id,
                         struct amp_error *err)
{
    char mem[AMP_KEY_MAX];
    struct amp_span a, b, d, e, text, in = *id;
    struct amp_key k;
    if (strcmp(kind, "cursor") == 0 && span_cut(in, '\n', &a, &b) && span_cut(b, '\n', &b, &d) &&
        span_cut(d, ' ', &d, &e)) {
        k = AMP_KEY_NAMED(kind, a, b, d, e);
    } else if (amp_span_starts(in, "resent-") &&
               span_cut((struct amp_span){in.p + 7, in.n - 7}, '-', &a, &b) &&
               span_cut(b, '-', &b, &d)) {
        const char *is = alias_find(c, d);
        k = AMP_KEY_NAMED("resent", a, b, is ? amp_span_str(is) : d);
    } else {
        return 0;
    }
    if (amp_key_text(&k, mem, &text, err) < 0)
        return -1;
    if (strcmp(k.kind, "cursor") == 0)
        digests_keep(&text, mem);
    return text_keep(c, text, id, err);
}

/* The id of an answer contained its kind and its message: "STAGE-of-ID". */
static bool is_answer(struct amp_span id, struct amp_span *of)
{
    static const char *const before[] = {"answer-to-", "READ-of-", "FULFILLED-of-", "RECEIVED-of-"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (amp_span_starts(id, before[i])) {
            size_t n = strlen(before[i]);
            *of = (struct amp_span){id.p + n, id.n - n};
            return true;
        }
    return false;
}

static int out_convert(struct amp_format1 *c, struct amp_frame_out *o, struct amp_error *err)
{
    char mem[AMP_KEY_MAX];
    struct amp_span id = o->id, a, b, d, text;
    if (id.n > 1 && id.p[0] == '\n') {
        o->role = AMP_ROLE_recipient;
        o->id = (struct amp_span){id.p + 1, id.n - 1};
        return 0;
    }
    if (id.n > 0 && id.p[id.n - 1] == '\n') {
        o->role = AMP_ROLE_group;
        id.n--;
    } else if (is_answer(id, &id)) {
        o->role = AMP_ROLE_answer;
    } else if (span_cut(id, ' ', &a, &b) && amp_span_is(a, "held") && span_cut(b, ' ', &b, &d) &&
               span_cut(d, ' ', &d, &a)) {
        struct amp_key k = AMP_KEY("held", b, d, a);
        o->role = AMP_ROLE_held;
        return amp_key_text(&k, mem, &text, err) < 0 ? -1 : text_keep(c, text, &o->id, err);
    }
    if (amp_span_is(id, "unnamed"))
        id.n = 0;
    const char *is = alias_find(c, id);
    o->id = is ? amp_span_str(is) : id;
    return 0;
}

int amp_format1_convert(struct amp_format1 *c, struct amp_span frame,
                        const struct amp_frame_head *head, struct amp_frame *f,
                        struct amp_error *err)
{
    struct amp_key k;
    amp_buf_reset(&c->buf[NAMES]);
    amp_buf_reset(&c->buf[IDS]);
    /* Texts of the frame are kept in ids, which must not move. */
    if (frame_open(c, frame, head, f, &k, err) < 0 ||
        amp_buf_reserve(&c->buf[IDS], (f->n_out + 4u) * AMP_KEY_MAX, err) < 0)
        return -1;
    if (k.n && (record_convert(c, f, k.kind, err) < 0 || key_convert(c, f, &k, err) < 0 ||
                input_convert(c, k.kind, &f->in_id, err) < 0))
        return -1;
    if (box_convert(c, &f->actor, err) < 0 || box_convert(c, &f->in_consumer, err) < 0)
        return -1;
    for (uint32_t i = 0; i < f->n_out; i++)
        if (out_convert(c, &c->arena.out[i], err) < 0 ||
            box_convert(c, &c->arena.out[i].consumer, err) < 0)
            return -1;
    return amp_blob_shrink(c->s, f, c->arena.out, &c->buf[NAMES], err);
}

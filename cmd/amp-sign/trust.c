/* The lines of an allowed_signers file. */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "cli/list.h"
#include "sign.h"

static int file_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    if (!opt.allowed)
        amp_die_usage("no file: give --allowed-signers FILE or set identity.allowed_signers");
    return 0;
}

/* A list of principals: patterns without spaces, quotes and control characters. */
static bool list_is(struct amp_span list)
{
    for (size_t i = 0; i < list.n; i++)
        if ((unsigned char)list.p[i] <= ' ' || list.p[i] == '"' || list.p[i] == '\\' ||
            list.p[i] == '#' || list.p[i] == 0x7f)
            return false;
    return list.n > 0 && list.n <= 1023 && list.p[0] != ',' && list.p[list.n - 1] != ',';
}

static bool comment_is(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    return true;
}

static int seconds_named(const char *option, const char *text, int64_t *s, struct amp_error *err)
{
    int64_t ms;
    if (!text)
        return 0;
    if (time_named(option, text, &ms, err) < 0)
        return -1;
    *s = ms / 1000;
    return 0;
}

static struct amp_pubkey added;

static int add_check(struct amp_command *c, struct amp_error *err)
{
    file_check(c, err);
    if (!list_is(amp_span_str(c->argv[0])))
        amp_die_usage("PRINCIPALS are names or patterns, separated by commas, not '%s'",
                      c->argv[0]);
    if (!list_is(amp_span_str(opt.namespaces)))
        amp_die_usage("--namespaces takes names, separated by commas");
    if (opt.comment && !comment_is(opt.comment))
        amp_die_usage("--comment has a control character");
    if (key_named(c->argv[1], &added, err) < 0)
        return -1;
    if (added.n == 0)
        amp_die_usage("KEY is a public key or a .pub file; a fingerprint is not enough");
    return 0;
}

static int verb_trust_add(struct amp_command *c, struct amp_error *err)
{
    struct amp_trust_line line = {.principals = amp_span_str(c->argv[0]),
                                  .namespaces = amp_span_str(opt.namespaces),
                                  .comment = amp_span_str(opt.comment ? opt.comment : "")};
    char what[320];
    if (seconds_named("valid-after", opt.after, &line.valid_after_s, err) < 0 ||
        seconds_named("valid-before", opt.before, &line.valid_before_s, err) < 0)
        return -1;
    if (line.valid_before_s > 0 && line.valid_before_s <= line.valid_after_s)
        return amp_fail(err, AMP_USAGE, bad_time, "--valid-before is not after --valid-after");
    if (amp_trust_file_add(opt.allowed, &added, &line, err) < 0)
        return -1;
    snprintf(what, sizeof what, "the key may speak for %.120s (%.120s)", c->argv[0], opt.allowed);
    return change_record(c->store, AMP_CODE(key_trusted), amp_span_str(added.fingerprint), what,
                         err);
}

static int verb_trust_remove(struct amp_command *c, struct amp_error *err)
{
    struct amp_pubkey key;
    uint32_t n;
    char what[320];
    if (key_named(c->argv[0], &key, err) < 0 ||
        amp_trust_file_remove(opt.allowed, amp_span_str(key.fingerprint),
                              amp_span_str(opt.only ? opt.only : ""), &n, err) < 0)
        return -1;
    if (n == 0)
        return amp_fail(err, AMP_NO, key_not_found, "%s has no such line of %s", opt.allowed,
                        key.fingerprint);
    snprintf(what, sizeof what, "%u lines of the key were removed (%.200s)", n, opt.allowed);
    return change_record(c->store, AMP_CODE(key_untrusted), amp_span_str(key.fingerprint), what,
                         err);
}

/* Listing */

/* Returns the entry's present status. */
static const char *status_of(const struct amp_trust_entry *e, int64_t now_ms)
{
    int64_t s = now_ms / 1000;
    if (e->revoked_ms != 0 && now_ms >= e->revoked_ms)
        return "revoked";
    if (e->valid_after_s != 0 && s < e->valid_after_s)
        return "future";
    return e->valid_before_s != 0 && s > e->valid_before_s ? "expired" : "valid";
}

struct row {
    struct amp_trust_entry e;
    const char *key, *type, *status;
    int64_t after_ms, before_ms;
    struct amp_span namespaces; /* for people */
};

static struct amp_span place_text(const void *row, char mem[AMP_CELL_MAX])
{
    const struct row *r = row;
    snprintf(mem, AMP_CELL_MAX, "%.280s:%u", r->e.path, r->e.line);
    return amp_span_str(mem);
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct row, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct row, key, head, member)
static const struct amp_column columns[] = {
    EVER(CSTR, "key", "KEY", key),
    EVER(CSTR, "type", NULL, type),
    EVER(CSTR, "status", "STATUS", status),
    EVER(TEXT, "principals", "PRINCIPALS", e.principals),
    SOME(TEXT, "namespaces", NULL, e.namespaces),
    SOME(TEXT, NULL, "NAMESPACES", namespaces),
    SOME(TIME, "valid_after", NULL, after_ms),
    SOME(TIME, "valid_before", "UNTIL", before_ms),
    SOME(TIME, "revoked_from", NULL, e.revoked_ms),
    EVER(FLAG, "local", NULL, e.local),
    EVER(CSTR, "file", NULL, e.path),
    EVER(INT, "line", NULL, e.line),
    AMP_COLUMN_MADE(NULL, "FILE", place_text),
    {0},
};

static int entry_print(void *ctx, const struct amp_trust_entry *e, struct amp_error *err)
{
    const struct amp_listing *l = ctx;
    const struct row row = {.e = *e,
                            .key = e->key->fingerprint,
                            .type = e->key->type,
                            .status = status_of(e, l->now_ms),
                            .after_ms = e->valid_after_s * 1000,
                            .before_ms = e->valid_before_s * 1000,
                            .namespaces = e->namespaces.n ? e->namespaces : AMP_SPAN("*")};
    return amp_listing_row(ctx, &row, err);
}

static int verb_trust_list(struct amp_command *c, struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_trust) struct amp_trust *trust = NULL;
    return trust_open(&trust, err) < 0 ? -1 : amp_trust_each(trust, entry_print, c->list, err);
}

static const struct amp_opt add_opts[] = {
    {0, "namespaces", AMP_OPT_STRING, &opt.namespaces, "LIST",
     .doc = "what the key may sign, patterns separated by commas"},
    {0, "valid-after", AMP_OPT_STRING, &opt.after, "TIME", .doc = "start of the key's validity"},
    {0, "valid-before", AMP_OPT_STRING, &opt.before, "TIME", .doc = "end of the key's validity"},
    {0, "comment", AMP_OPT_STRING, &opt.comment, "TEXT", .doc = "comment in the line"},
    AMP_OPT_END,
};
static const struct amp_opt list_opts[] = {
    AMP_OPT_JSON("print one JSON object per line"),
    AMP_OPT_END,
};
static const struct amp_opt remove_opts[] = {
    {0, "principals", AMP_OPT_STRING, &opt.only, "LIST",
     .doc = "only the line with exactly these principals"},
    AMP_OPT_END,
};

const struct amp_verb trust_verbs[] = {
    {"trust add", "PRINCIPALS KEY", "trust a key to speak for principals", add_opts, verb_trust_add,
     .least = 2, .most = 2, .usage = "PRINCIPALS and KEY are required", .check = add_check,
     .opens = AMP_OPENS_GIVEN, .act = "change trust", .who = AMP_WHO_PERSON},
    {"trust list", "", "list the trusted keys", list_opts, verb_trust_list, .lists = columns},
    {"trust remove", "KEY", "remove the lines of a key", remove_opts, verb_trust_remove, .least = 1,
     .most = 1, .usage = "one KEY is required", .check = file_check, .opens = AMP_OPENS_GIVEN,
     .act = "change trust", .who = AMP_WHO_PERSON},
    {0},
};

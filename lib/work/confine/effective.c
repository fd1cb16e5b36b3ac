/* The effective access of a task, read from the record of `amp-validate --effective`, so that
 * exactly what it shows is enforced. */
#include "work/confine/effective.h"

#include <stdlib.h>
#include <string.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>
#include <amp/schema/schema.h>

#include "base/codes.h"
#include "message/protocol/spec.h"

#define RECORD_MAX ((size_t)8 << 20)
#define SCHEMA     "records/effective.json"

struct record {
    struct amp_buf text, room;
    struct amp_tape tape;
};
static void record_release(struct record *r)
{
    amp_tape_release(&r->tape);
    amp_buf_release(&r->text);
    amp_buf_release(&r->room);
}

static void record_init(struct record *r)
{
    amp_buf_init(&r->text, RECORD_MAX);
    amp_buf_init(&r->room, RECORD_MAX);
    amp_tape_init(&r->tape, NULL);
}

static int record_scan(struct record *r, struct amp_error *err)
{
    struct amp_json_fault fault;
    return amp_tape_scan(&r->tape, r->text.data, r->text.len, &fault) < 0
               ? amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_access), "the effective access",
                               &fault)
               : 0;
}

/* 1: the message has no policy. */
static int record_make(const struct amp_view *v, struct record *r, struct amp_error *err)
{
    const struct amp_spec *s = amp_spec_of(v->protocol);
    struct amp_jw w;
    if (!s || !s->effective)
        return 1;
    amp_jw_init(&w, &r->text);
    amp_jw_open(&w, '{');
    int rc = s->effective(v, &w, err);
    amp_jw_close(&w, '}');
    if (rc)
        return rc;
    return amp_jw_end(&w, err) < 0 ? -1 : record_scan(r, err);
}

static uint32_t value_of(const struct record *r, const char *pointer)
{
    return amp_tape_pointer(&r->tape, 0, amp_span_str(pointer));
}

static bool value_is(const struct record *r, const char *pointer, const char *text)
{
    uint32_t at = value_of(r, pointer);
    return at != AMP_TOK_NONE && amp_tok_is(&r->tape, at, amp_span_str(text));
}

/* The path below the root; false: it is elsewhere. */
static bool path_below(struct amp_span path, struct amp_span root, struct amp_span *out)
{
    size_t n = root.n;
    while (n > 0 && root.p[n - 1] == '/')
        n--;
    if (path.n < n || memcmp(path.p, root.p, n) != 0 || (path.n > n && path.p[n] != '/'))
        return false;
    while (n < path.n && path.p[n] == '/')
        n++;
    *out = (struct amp_span){path.p + n, path.n - n};
    return true;
}

/* The list of a member as paths of the worktree; null is no restriction. */
static int paths_take(struct record *r, const char *pointer, char ***out, struct amp_error *err)
{
    uint32_t list = value_of(r, pointer), root = value_of(r, "/workspace_root");
    struct amp_span at = {0}, path, below;
    size_t n = 0;
    if (list == AMP_TOK_NONE || r->tape.tok[list].type != AMP_JSON_ARRAY)
        return 0;
    char **paths = calloc(r->tape.tok[list].count + 1, sizeof *paths);
    if (!paths)
        return amp_fail_memory(err);
    *out = paths;
    amp_buf_reset(&r->room);
    /* The room must not move: decoded texts are not longer than the record. */
    if (amp_buf_reserve(&r->room, r->text.len, err) < 0 ||
        (root != AMP_TOK_NONE && amp_tok_text(&r->tape, root, &r->room, &at, err) < 0))
        return -1;
    for (uint32_t i = list + 1; i < r->tape.tok[list].next; i = r->tape.tok[i].next) {
        if (amp_tok_text(&r->tape, i, &r->room, &path, err) < 0)
            return -1;
        if (root == AMP_TOK_NONE || !path_below(path, at, &below) || memchr(below.p, '\0', below.n))
            continue;
        if (!(paths[n++] = amp_span_dup(below)))
            return amp_fail_memory(err);
    }
    return 0;
}

static enum amp_network network_most(const struct record *r)
{
    return value_is(r, "/network_access/value", "FULL")         ? AMP_NETWORK_FULL_ACCESS
           : value_is(r, "/network_access/value", "RESTRICTED") ? AMP_NETWORK_EGRESS_RESTRICTED
                                                                : AMP_NETWORK_DENY_ALL;
}

void amp_access_release(struct amp_confine_policy *p)
{
    struct amp_confine_policy own = {.only_read = p->only_read, .only_write = p->only_write};
    amp_confine_policy_release(&own);
    p->only_read = p->only_write = NULL;
}

static int record_apply(struct record *r, struct amp_confine_policy *p, struct amp_error *err)
{
    if (paths_take(r, "/read_paths/value", &p->only_read, err) < 0 ||
        paths_take(r, "/write_paths/value", &p->only_write, err) < 0)
        return -1;
    uint32_t flag = value_of(r, "/read_only_mode/value");
    p->read_only |= flag != AMP_TOK_NONE && r->tape.tok[flag].type == AMP_JSON_TRUE;
    /* The policies are in the order of their strictness. */
    if (network_most(r) < p->network)
        p->network = network_most(r);
    return 0;
}

int amp_access_restrict(const struct amp_view *v, struct amp_confine_policy *p,
                        struct amp_error *err)
{
    AMP_CLEANUP(record_release) struct record r = {0};
    record_init(&r);
    int rc = record_make(v, &r, err);
    return rc ? rc : record_apply(&r, p, err);
}

/* 0: the record of a valid message with a policy; 1: it is none; -1: failure. */
static int record_of_message(struct amp_span text, struct record *r, struct amp_error *err)
{
    struct amp_reader *reader = amp_reader_new(NULL, err);
    struct amp_view v;
    int rc = reader ? amp_reader_line(reader, text, NULL, &v, NULL, NULL, err) : -1;
    if (rc >= 0)
        rc = rc == 0 ? 1 : record_make(&v, r, err);
    amp_reader_free(reader);
    return rc;
}

int amp_access_restrict_text(struct amp_span text, struct amp_confine_policy *p,
                             struct amp_error *err)
{
    AMP_CLEANUP(record_release) struct record r = {0};
    struct amp_error why;
    int rc;
    while (text.n && strchr(" \t\r\n", text.p[text.n - 1]))
        text.n--;
    record_init(&r);
    if (amp_schema_check_text(SCHEMA, text, &why) == 0)
        rc = amp_buf_add(&r.text, text.p, text.n, err) < 0 ? -1 : record_scan(&r, err);
    else
        rc = why.status == AMP_TEMPFAIL ? amp_fail_memory(err) : record_of_message(text, &r, err);
    if (rc > 0)
        return amp_fail(err, AMP_DATAERR, bad_access,
                        "neither a record of amp-validate --effective nor a valid AOP TASK");
    return rc < 0 ? -1 : record_apply(&r, p, err);
}

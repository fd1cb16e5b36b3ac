/* A schema with a metaschema of its own has to fit it. The drafts' own metaschemas need no such
 * check: what they ask for is asked by the compiler, with better words. */
#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "schema/compile/compiler.h"

struct misfit {
    const struct amp_tape *tape;
    const char *name; /* of the schema, for people */
    struct amp_error *err;
};

static void on_violation(void *ctx, const struct amp_violation *v)
{
    const struct misfit *m = ctx;
    struct amp_span at = amp_tok_source(m->tape, v->tok);
    unsigned line = 1;
    AMP_BUF struct amp_buf pointer = {0};
    amp_buf_init(&pointer, 64 * 1024);
    for (const char *p = m->tape->text; p < at.p; p++)
        line += *p == '\n';
    if (amp_tape_path(m->tape, v->tok, &pointer, NULL, NULL) < 0)
        amp_buf_reset(&pointer);
    amp_fail(m->err, AMP_DATAERR, "invalid_schema",
             "%.120s:%u: #%.*s: does not match its metaschema: expected %.150s", m->name, line,
             (int)(pointer.len < 100 ? pointer.len : 100), pointer.len ? pointer.data : "",
             v->expected);
}

static int check(const struct amp_schema *meta, const struct misfit *m, struct amp_error *err)
{
    struct amp_schema_run *run = amp_schema_run_new(err);
    if (!run)
        return -1;
    int valid = amp_schema_check(meta, run, m->tape, 0, err);
    if (valid == 0) {
        amp_fail(err, AMP_DATAERR, "invalid_schema", "%.120s does not match its metaschema",
                 m->name);
        amp_schema_explain(meta, run, m->tape, 0, 1, on_violation, (void *)(uintptr_t)m, NULL);
    }
    amp_schema_run_free(run);
    return valid > 0 ? 0 : -1;
}

static int check_tape(const struct amp_tape *t, struct user_files *files, const char *name,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf plain = {0};
    struct amp_span uri, text;
    uint32_t tok = amp_tape_get(t, 0, AMP_SPAN("$schema"));
    amp_buf_init(&plain, 64 * 1024);
    if (tok == AMP_TOK_NONE)
        return 0;
    if (amp_tok_text(t, tok, &plain, &uri, err) < 0)
        return -1;
    if (uri.n > 0 && uri.p[uri.n - 1] == '#')
        uri.n--;
    if (amp_draft_find(uri) != AMP_DRAFT_NONE || user_files_resolve(files, uri, &text) < 0)
        return 0; /* the compiler has been content with it */
    AMP_FREE char *base = amp_span_dup(uri);
    struct amp_schema_options how = {
        .resolve = user_files_resolve, .resolve_ctx = files, .base_uri = base};
    struct amp_schema *meta = amp_schema_compile(text, &how, err);
    if (!meta)
        return -1;
    struct misfit m = {t, name, err};
    int fits = check(meta, &m, err);
    amp_schema_free(meta);
    return fits;
}

int user_meta_check(struct amp_span schema, struct user_files *files, const char *name,
                    struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_tape t;
    amp_tape_init(&t, NULL);
    int fits =
        amp_tape_scan(&t, schema.p, schema.n, &fault) < 0 ? 0 : check_tape(&t, files, name, err);
    amp_tape_release(&t);
    return fits;
}

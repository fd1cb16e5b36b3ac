/* Checks a small document that is read once, such as settings, against a built-in schema. */
#include <string.h>

#include <amp/schema/schema.h>

#include "base/codes.h"

struct report {
    struct amp_error *err;
    const struct amp_tape *tape;
};

static void on_violation(void *ctx, const struct amp_violation *v)
{
    struct report *r = ctx;
    AMP_BUF struct amp_buf pointer = {0}, dotted = {0};

    amp_buf_init(&pointer, 4096);
    amp_buf_init(&dotted, 4096);
    if (amp_tape_path(r->tape, v->tok, &pointer, &dotted, NULL) < 0)
        amp_buf_reset(&dotted);
    /* A missing member has no place of its own, so its name follows its object's. */
    struct amp_span name = {"", 0};
    if (strcmp(v->keyword, "required") == 0 || strcmp(v->keyword, "dependentRequired") == 0)
        name = v->name;
    amp_fail(r->err, AMP_DATAERR, schema_violation, "%.*s%s%.*s: %s: expected %s", (int)dotted.len,
             dotted.len ? dotted.data : "", dotted.len && name.n ? "." : "", (int)name.n, name.p,
             v->keyword, v->expected ? v->expected : "another value");
}

static int resolve_file(void *ctx, struct amp_span uri, struct amp_span *text)
{
    const struct amp_schema_file *f = amp_schema_file_by_uri(uri);

    (void)ctx;
    if (!f)
        return -1;
    *text = f->text;
    return 0;
}

/* Checks the document and reports its first violation. */
static int check_tape(const struct amp_schema_file *f, const struct amp_tape *tape,
                      struct amp_error *err)
{
    const struct amp_schema_options opt = {.resolve = resolve_file};
    struct amp_schema *s = amp_schema_compile(f->text, &opt, err);
    struct amp_schema_run *run = s ? amp_schema_run_new(err) : NULL;
    int valid = run ? amp_schema_check(s, run, tape, 0, err) : -1;
    if (valid == 0) {
        struct report report = {err, tape};
        amp_fail(err, AMP_DATAERR, schema_violation, "does not fit schemas/%s", f->path);
        amp_schema_explain(s, run, tape, 0, 1, on_violation, &report, NULL);
    }
    amp_schema_run_free(run);
    amp_schema_free(s);
    return valid == 1 ? 0 : -1;
}

int amp_schema_check_text(const char *path, struct amp_span text, struct amp_error *err)
{
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape tape = {0};
    amp_tape_init(&tape, NULL);
    const struct amp_schema_file *f = amp_schema_file_find(amp_span_str(path));
    if (!f)
        return amp_fail(err, AMP_INTERNAL, internal, "no schema %s", path);
    if (amp_tape_scan(&tape, text.p, text.n, &fault) == 0)
        return check_tape(f, &tape, err);
    if (amp_json_fault_is_memory(&fault))
        return amp_fail_memory(err);
    return amp_fail(err, AMP_DATAERR, invalid_json, "%s at byte %u", fault.what, fault.offset);
}

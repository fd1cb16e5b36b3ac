/* A small document against a schema that is compiled in, for what is read once: answers, settings.
 */
#include <string.h>

#include <amp/schema/schema.h>

struct said {
    struct amp_error *err;
    const struct amp_tape *tape;
};

static void on_violation(void *ctx, const struct amp_violation *v)
{
    struct said *s = ctx;
    AMP_BUF struct amp_buf pointer = {0}, dotted = {0};

    amp_buf_init(&pointer, 4096);
    amp_buf_init(&dotted, 4096);
    if (amp_tape_path(s->tape, v->tok, &pointer, &dotted, NULL))
        amp_buf_reset(&dotted);
    /* What is missing has no place of its own: it is named behind its object's. */
    struct amp_span name = {"", 0};
    if (strcmp(v->keyword, "required") == 0 || strcmp(v->keyword, "dependentRequired") == 0)
        name = v->name;
    amp_fail(s->err, AMP_DATAERR, "schema_violation", "%.*s%s%.*s: %s: expected %s",
             (int)dotted.len, dotted.len ? dotted.data : "", dotted.len && name.n ? "." : "",
             (int)name.n, name.p, v->keyword, v->expected ? v->expected : "another value");
}

static int resolve(void *ctx, struct amp_span uri, struct amp_span *text)
{
    const struct amp_schema_file *f = amp_schema_file_by_uri(uri);

    (void)ctx;
    if (!f)
        return -1;
    *text = f->text;
    return 0;
}

int amp_schema_check_text(const char *path, struct amp_span text, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_tape tape;
    struct amp_schema *s = NULL;
    struct amp_schema_run *run = NULL;
    int rc = -1;

    amp_tape_init(&tape, NULL);
    const struct amp_schema_file *f = amp_schema_file_find(amp_span_str(path));
    if (!f) {
        amp_fail(err, AMP_INTERNAL, "internal", "no schema %s", path);
        goto out;
    }
    if (amp_tape_scan(&tape, text.p, text.n, &fault)) {
        if (amp_json_fault_is_memory(&fault))
            amp_fail_memory(err);
        else
            amp_fail(err, AMP_DATAERR, "invalid_json", "%s at byte %u", fault.what, fault.offset);
        goto out;
    }
    const struct amp_schema_options opt = {.resolve = resolve};
    if (!(s = amp_schema_compile(f->text, &opt, err)) || !(run = amp_schema_run_new(err)))
        goto out;
    rc = amp_schema_check(s, run, &tape, 0, err);
    if (rc == 0) {
        struct said said = {err, &tape};
        amp_fail(err, AMP_DATAERR, "schema_violation", "does not fit schemas/%s", path);
        amp_schema_explain(s, run, &tape, 0, 1, on_violation, &said, NULL);
    }
    rc = rc == 1 ? 0 : -1;
out:
    amp_schema_run_free(run);
    amp_schema_free(s);
    amp_tape_release(&tape);
    return rc;
}

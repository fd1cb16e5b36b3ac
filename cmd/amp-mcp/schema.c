/* The JSON schemas of the tools, made from their tables of fields, and the check of arguments. */
#include <stdio.h>
#include <string.h>

#include <amp/schema/schema.h>

#include "base/codes.h"
#include "mcp.h"
#include "message/protocol/compose/json.h"

static const char *const type_names[] = {
    [MCP_TEXT] = "string",       [MCP_INTEGER] = "integer", [MCP_NUMBER] = "number",
    [MCP_BOOLEAN] = "boolean",   [MCP_JUDGED] = NULL,       [MCP_TEXTS] = "array",
    [MCP_JUDGES] = "array",      [MCP_OBJECTS] = "array",   [MCP_OBJECT] = "object",
    [MCP_OBJECTS_ANY] = "array",
};

static json_t *judged_schema(void)
{
    return json_pack("{s:[s,s]}", "type", "boolean", "null");
}

static json_t *items_schema(const struct mcp_field *f)
{
    if (f->type == MCP_OBJECTS)
        return mcp_schema(f->of);
    if (f->type == MCP_OBJECTS_ANY)
        return json_pack("{s:s}", "type", "object");
    return f->type == MCP_JUDGES ? judged_schema()
                                 : json_pack("{s:s, s:i}", "type", "string", "minLength", 1);
}

static int limits_put(json_t *s, const struct mcp_field *f)
{
    static const char *const names[][2] = {[MCP_TEXT] = {"minLength", "maxLength"},
                                           [MCP_INTEGER] = {"minimum", "maximum"},
                                           [MCP_NUMBER] = {"minimum", "maximum"},
                                           [MCP_BOOLEAN] = {NULL, NULL},
                                           [MCP_JUDGED] = {NULL, NULL},
                                           [MCP_TEXTS] = {"minItems", "maxItems"},
                                           [MCP_JUDGES] = {"minItems", "maxItems"},
                                           [MCP_OBJECTS] = {"minItems", "maxItems"},
                                           [MCP_OBJECT] = {NULL, NULL},
                                           [MCP_OBJECTS_ANY] = {NULL, NULL}};
    const char *const *name = names[f->type];

    if (!name[0] || (!f->min && !f->max))
        return 0;
    return json_object_set_new(s, name[0], json_integer(f->min)) < 0 ||
                   json_object_set_new(s, name[1], json_integer(f->max)) < 0
               ? -1
               : 0;
}

static json_t *field_schema(const struct mcp_field *f)
{
    json_t *s =
        f->type == MCP_JUDGED ? judged_schema() : json_pack("{s:s}", "type", type_names[f->type]);
    bool listed = f->type == MCP_TEXTS || f->type == MCP_JUDGES || f->type == MCP_OBJECTS ||
                  f->type == MCP_OBJECTS_ANY;
    json_t *choices = f->choices ? json_array() : NULL;

    for (const char *const *c = f->choices; c && *c; c++)
        json_array_append_new(choices, json_string(*c));
    if (!s || json_object_set_new(s, "description", json_string(f->doc)) < 0 ||
        limits_put(s, f) < 0 || (listed && json_object_set_new(s, "items", items_schema(f)) < 0) ||
        (choices && json_object_set(s, "enum", choices) < 0)) {
        json_decref(s);
        s = NULL;
    }
    json_decref(choices);
    return s;
}

json_t *mcp_schema(const struct mcp_field *fields)
{
    json_auto_t *properties = json_object(), *required = json_array();

    for (const struct mcp_field *f = fields; f && f->name; f++)
        if (json_object_set_new(properties, f->name, field_schema(f)) < 0 ||
            (f->required && json_array_append_new(required, json_string(f->name)) < 0))
            return NULL;
    json_t *s = json_pack("{s:s, s:O}", "type", "object", "properties", properties);
    if (!s || (json_array_size(required) && json_object_set(s, "required", required) < 0) ||
        json_object_set_new(s, "additionalProperties", json_false()) < 0) {
        json_decref(s);
        return NULL;
    }
    return s;
}

/* ---- checking ---- */

struct faults {
    const struct amp_tape *t;
    struct amp_error *err;
    bool any;
};

static void fault_take(void *ctx, const struct amp_violation *v)
{
    struct faults *f = ctx;
    AMP_BUF struct amp_buf pointer = {0}, dotted = {0};
    bool near = *v->nearest;

    if (f->any)
        return;
    f->any = true;
    amp_buf_init(&pointer, 4096);
    amp_buf_init(&dotted, 4096);
    if (amp_tape_path(f->t, v->tok, &pointer, &dotted, f->err) < 0 ||
        (v->name.n &&
         amp_buf_fmt(&dotted, f->err, "%s%.*s", dotted.len ? "." : "", AMP_CLIP(v->name, 100)) < 0))
        return;
    amp_fail(f->err, AMP_DATAERR, bad_arguments, "%.*s: %s: expected %.200s%s%.60s%s",
             AMP_CLIP(amp_buf_span(&dotted), 120), v->keyword, v->expected,
             near ? " (did you mean \"" : "", near ? v->nearest : "", near ? "\"?)" : "");
}

int mcp_schema_check(const struct mcp_field *fields, const json_t *value, struct amp_error *err)
{
    const struct amp_schema_options opt = {.name = "arguments"};
    AMP_BUF struct amp_buf schema = {0}, text = {0};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    struct faults f = {.t = &t, .err = err};

    json_auto_t *made = mcp_schema(fields);
    amp_buf_init(&schema, MCP_LINE_MAX);
    amp_buf_init(&text, MCP_LINE_MAX);
    amp_tape_init(&t, NULL);
    if (!made)
        return amp_fail_memory(err);
    if (amp_json_dump(made, &schema, err) < 0 || amp_json_dump(value, &text, err) < 0)
        return -1;
    if (amp_tape_scan(&t, text.data, text.len, &fault) < 0)
        return amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_arguments), "the arguments", &fault);
    struct amp_schema *s = amp_schema_compile(amp_buf_span(&schema), &opt, err);
    struct amp_schema_run *run = s ? amp_schema_run_new(err) : NULL;
    int found = run ? amp_schema_explain(s, run, &t, 0, 1, fault_take, &f, err) : -1;
    amp_schema_run_free(run);
    amp_schema_free(s);
    return found ? -1 : 0;
}

/*
 * JSON Schema 2020-12 and draft-07. A schema is compiled once and checks values on tapes. The check
 * is fast and returns only whether the value is valid; a second pass explains why it is not.
 * Compiled schemas are immutable.
 */
#ifndef AMP_SCHEMA_SCHEMA_H
#define AMP_SCHEMA_SCHEMA_H

#include <amp/base/api.h>
#include <amp/json/tape.h>

AMP_API_BEGIN

struct amp_schema;

/* Finds the text of another schema by absolute URI or by file name; returns 0 and a span that
 * outlives the compile, or -1. */
typedef int (*amp_schema_resolve_fn)(void *ctx, struct amp_span uri, struct amp_span *text);

struct amp_schema_options {
    amp_schema_resolve_fn resolve; /* NULL: references are within the document */
    void *resolve_ctx;
    const char *base_uri; /* for a document without $id; NULL: none */
    const char *name;     /* of the schema in error messages; NULL: the base URI */
    /* NULL, or called for unknown keywords that are similar to a known one, and for keywords of
     * another draft; with the place, as in errors. */
    void (*remark)(void *ctx, const char *what);
    void *remark_ctx;
    bool formats; /* assert `format` */
    bool draft7;  /* for a document without $schema; else 2020-12 */
    bool lasting; /* all texts outlive the schema, so none is copied */
};

/* Codes: invalid_schema, unresolved_ref, bad_pattern, unknown_vocabulary, each with its place
 * ("name:line:column: #/pointer: what was expected"), no_memory. NULL on failure. The text need not
 * outlive the call. */
struct amp_schema *amp_schema_compile(struct amp_span text, const struct amp_schema_options *opt,
                                      struct amp_error *err);
void amp_schema_free(struct amp_schema *s);

/* Schemas with the same options that share documents and compiled subschemas. One thread uses a set
 * and all its schemas. The set's resolve function finds every document; $dynamicRef is refused
 * (invalid_schema), as its meaning depends on the schema that leads to it. The strings in opt must
 * outlive the set. */
struct amp_schema_set;
struct amp_schema_set *amp_schema_set_new(const struct amp_schema_options *opt,
                                          struct amp_error *err);
/* Frees the schemas as well. */
void amp_schema_set_free(struct amp_schema_set *set);
/* The schema with this absolute URI, compiled at the first call; owned by the set. NULL on
 * failure, as amp_schema_compile; a set that failed to compile a schema fails from then on. */
struct amp_schema *amp_schema_set_get(struct amp_schema_set *set, struct amp_span uri,
                                      struct amp_error *err);

/* For a schema compiled with `lasting` that one thread uses. fold frees the memory that only
 * amp_schema_explain and amp_schema_output need; unfold makes it again and is called before them.
 */
void amp_schema_fold(struct amp_schema *s);
int amp_schema_unfold(struct amp_schema *s, struct amp_error *err);

/* The working memory of a checker, one for each thread. */
struct amp_schema_run;
struct amp_schema_run *amp_schema_run_new(struct amp_error *err);
void amp_schema_run_free(struct amp_schema_run *r);

/* Returns 1 if the value is valid, 0 if not, -1 if it cannot be decided (pattern_limit,
 * schema_too_deep, schema_limit, no_memory). */
int amp_schema_check(const struct amp_schema *s, struct amp_schema_run *r, const struct amp_tape *t,
                     uint32_t tok, struct amp_error *err);

/* One violation. Its strings are valid during the call only. */
struct amp_violation {
    const char *keyword;       /* "required", "enum", "type" … */
    uint32_t tok;              /* the instance value at fault (for required: the object) */
    struct amp_span name;      /* required, dependentRequired, additionalProperties,
                                  unevaluatedProperties: the property; else empty */
    struct amp_span schema_at; /* JSON Pointer into the schema */
    const char *expected;      /* for people: "one of admin, coordinator, executor" */
    const char *nearest;       /* the allowed word or name that was probably meant, or "" */
    struct amp_span about;     /* required: the description in the schema, or empty */
};
typedef void (*amp_violation_fn)(void *ctx, const struct amp_violation *v);
/* Calls fn for each violation in the order of the document, at most `most` (0: 512). Returns their
 * number, 0 if the value is valid, -1 on error. */
int amp_schema_explain(const struct amp_schema *s, struct amp_schema_run *r,
                       const struct amp_tape *t, uint32_t tok, int most, amp_violation_fn fn,
                       void *ctx, struct amp_error *err);

/* The built-in schemas: schemas/<protocol>/<name>.json. */
struct amp_schema_file {
    const char *path; /* "amp/task_dispatch.json" */
    struct amp_span text;
};
extern const struct amp_schema_file amp_schema_files[];
extern const size_t amp_schema_files_count;
const struct amp_schema_file *amp_schema_file_find(struct amp_span path);

/* The URI of a built-in schema is its $id, or else this and its path. by_uri accepts both, and the
 * URIs of the drafts' metaschemas. */
#define AMP_SCHEMA_URI "https://amp.invalid/schemas/"
const struct amp_schema_file *amp_schema_file_by_uri(struct amp_span uri);

/* Appends a built-in schema as a document that needs no other: the schemas that it refers to are
 * embedded under $defs, all with an $id. Without such references the text is unchanged. */
int amp_schema_bundle(const struct amp_schema_file *f, struct amp_buf *out, struct amp_error *err);

/* Checks a complete document against a built-in schema. The error has the first fault and what was
 * expected (DATAERR schema_violation, invalid_json). */
int amp_schema_check_text(const char *path, struct amp_span text, struct amp_error *err);

AMP_API_END

#endif

/*
 * JSON Schema 2020-12 and draft-07, compiled once and checked over a tape. The check is yes or no
 * and fast; a second, explaining pass runs only for values that failed. Compiled schemas are
 * immutable.
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
    amp_schema_resolve_fn resolve; /* NULL: references stay inside the document */
    void *resolve_ctx;
    const char *base_uri; /* where the document has no $id; NULL for none */
    const char *name;     /* of the schema in error messages; NULL: the base URI */
    /* NULL, or called for keywords that are unknown but nearly written like a known one, or of
     * another draft; with the place, as in errors. */
    void (*remark)(void *ctx, const char *what);
    void *remark_ctx;
    bool formats; /* assert `format` */
    bool draft7;  /* where the document has no $schema; else 2020-12 */
    bool lasting; /* the text, and what resolve finds, outlives the schema: no copy is made */
};

/* Codes: invalid_schema, unresolved_ref, bad_pattern, unknown_vocabulary, each with its place
 * ("name:line:column: #/pointer: what was expected"), no_memory. NULL on failure. The text need not
 * outlive the call. */
struct amp_schema *amp_schema_compile(struct amp_span text, const struct amp_schema_options *opt,
                                      struct amp_error *err);
void amp_schema_free(struct amp_schema *s);

/* Schemas with the same options that share documents and compiled subschemas: what several of them
 * refer to is compiled once. One thread uses a set and all its schemas. The set's resolve function
 * finds every document; $dynamicRef is refused (invalid_schema), as its meaning depends on the
 * schema that leads to it. The strings in opt must outlive the set. */
struct amp_schema_set;
struct amp_schema_set *amp_schema_set_new(const struct amp_schema_options *opt,
                                          struct amp_error *err);
/* Frees the schemas as well. */
void amp_schema_set_free(struct amp_schema_set *set);
/* The schema with this absolute URI, compiled when it is first asked for; owned by the set. NULL on
 * failure, as amp_schema_compile; a set that failed to compile a schema fails from then on. */
struct amp_schema *amp_schema_set_get(struct amp_schema_set *set, struct amp_span uri,
                                      struct amp_error *err);

/* For a schema compiled with `lasting` that one thread uses: gives back the memory that only
 * amp_schema_explain and the output forms need; unfold makes it again before they are called. */
void amp_schema_fold(struct amp_schema *s);
int amp_schema_unfold(struct amp_schema *s, struct amp_error *err);

/* Working memory of one checker (one a thread). */
struct amp_schema_run;
struct amp_schema_run *amp_schema_run_new(struct amp_error *err);
void amp_schema_run_free(struct amp_schema_run *r);

/* 1 valid, 0 invalid, -1 could not be decided (err: pattern_limit, schema_too_deep,
 * no_memory). */
int amp_schema_check(const struct amp_schema *s, struct amp_schema_run *r, const struct amp_tape *t,
                     uint32_t tok, struct amp_error *err);

/* One violation, first in document order first. Strings are valid during the call only. */
struct amp_violation {
    const char *keyword;       /* "required", "enum", "type" … */
    uint32_t tok;              /* the instance value at fault (for required: the object) */
    struct amp_span name;      /* required, dependentRequired, additionalProperties,
                                  unevaluatedProperties: the property; else empty */
    struct amp_span schema_at; /* JSON Pointer into the schema */
    const char *expected;      /* for people: "one of admin, coordinator, executor" */
    const char *nearest;       /* the allowed word or name that was probably meant, or "" */
    struct amp_span about;     /* required: what the schema's description says of it, or empty */
};
typedef void (*amp_violation_fn)(void *ctx, const struct amp_violation *v);
/* Calls fn for each violation (at most `most`, 0 for all up to 512); returns how many, 0 when
 * valid, -1 on error. */
int amp_schema_explain(const struct amp_schema *s, struct amp_schema_run *r,
                       const struct amp_tape *t, uint32_t tok, int most, amp_violation_fn fn,
                       void *ctx, struct amp_error *err);

/* The schemas that are compiled in: schemas/<protocol>/<name>.json. */
struct amp_schema_file {
    const char *path; /* "amp/task_dispatch.json" */
    struct amp_span text;
};
extern const struct amp_schema_file amp_schema_files[];
extern const size_t amp_schema_files_count;
const struct amp_schema_file *amp_schema_file_find(struct amp_span path);

/* The URI of a schema that is compiled in is its $id, else this and its path. by_uri takes both,
 * and the drafts' own URIs. */
#define AMP_SCHEMA_URI "https://amp.invalid/schemas/"
const struct amp_schema_file *amp_schema_file_by_uri(struct amp_span uri);

/* Appends a schema that is compiled in as a document that needs no other: the schemas that it
 * refers to are embedded under $defs, and all have an $id then. Without such references the text is
 * appended as it is. */
int amp_schema_bundle(const struct amp_schema_file *f, struct amp_buf *out, struct amp_error *err);

/* Checks a whole document against a schema that is compiled in; the error tells the first thing at
 * fault and what was expected (DATAERR schema_violation, invalid_json). */
int amp_schema_check_text(const char *path, struct amp_span text, struct amp_error *err);

AMP_API_END

#endif

/* Lines and documents against a schema of the user's own (--schema). */
#ifndef AMP_VALIDATE_SCHEMA_H
#define AMP_VALIDATE_SCHEMA_H

#include <amp/protocol/protocol.h>
#include <amp/schema/output.h>

struct user_schema_options {
    const char *file;           /* a path, "-" for standard input, or the name of a built-in */
    const char *const *resolve; /* URI-PREFIX=DIR, NULL-terminated, or NULL */
    const char *draft;          /* "7", "2020-12" or NULL: where the schema does not say */
    bool formats;               /* assert them */
    bool strict;                /* refuse a schema with keywords that look like slips */
};

/* Compiled once; any number of threads may check against it. */
struct user_schema;
struct user_schema *user_schema_new(const struct user_schema_options *opt, struct amp_error *err);
void user_schema_free(struct user_schema *u);

/* Whether this path is standard input, where only one reader gets what there is. */
bool user_schema_is_stdin(const char *path);

/* What one thread needs to check. */
struct user_check;
struct user_check *user_check_new(const struct user_schema *u, const struct amp_json_limits *limits,
                                  struct amp_error *err);
void user_check_free(struct user_check *c);
/* As amp_reader_line: 1 valid, 0 at least one error was reported, -1 internal failure. The view
 * holds the text and its tape; findings live until the next call. */
int user_check_text(struct user_check *c, struct amp_span text, const struct amp_check_options *opt,
                    struct amp_view *view, amp_finding_fn fn, void *ctx, struct amp_error *err);
/* As amp_reader_output, for the text that was checked last. */
int user_check_output(struct user_check *c, enum amp_output form, struct amp_buf *out,
                      struct amp_error *err);

/* files.c: schema files by URI. Nothing is ever fetched. */
struct user_files;
/* `schema` is the file of the schema itself, or NULL: what lies beside or below it is found by its
 * own file URI, which is set at *base (heap). Built-in schemas are found by their own URIs, where
 * no prefix in `resolve` fits. */
struct user_files *user_files_new(const char *const *resolve, const char *schema, char **base,
                                  struct amp_error *err);
void user_files_free(struct user_files *f);
int user_files_resolve(void *files, struct amp_span uri, struct amp_span *text);
/* Why the last one that was asked for was not found, for people; "" where all were. */
const char *user_files_why(const struct user_files *f);

/* meta.c: a schema that names a metaschema of its own fits it. */
int user_meta_check(struct amp_span schema, struct user_files *files, const char *name,
                    struct amp_error *err);

#endif

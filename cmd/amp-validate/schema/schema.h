/* Lines and documents checked against a user's schema (--schema). */
#ifndef AMP_VALIDATE_SCHEMA_H
#define AMP_VALIDATE_SCHEMA_H

#include <amp/protocol/protocol.h>
#include <amp/schema/output.h>

struct user_schema_options {
    const char *file;           /* a path, "-" for standard input, or the name of a built-in */
    const char *const *resolve; /* URI-PREFIX=DIR, NULL-terminated, or NULL */
    const char *draft;          /* "7", "2020-12" or NULL: for a schema without $schema */
    bool formats;               /* assert them */
    bool strict;                /* refuse a schema with probable slips */
};

/* Any number of threads may use the schema. NULL on failure. */
struct amp_schema *user_schema_new(const struct user_schema_options *opt, struct amp_error *err);

/* Whether this path is standard input, which only one reader can read. */
bool user_schema_is_stdin(const char *path);

/* The memory of one thread that checks. */
struct user_check;
struct user_check *user_check_new(const struct amp_schema *s, const struct amp_json_limits *limits,
                                  struct amp_error *err);
void user_check_free(struct user_check *c);
/* Checks a line, or the message in a signed one; `whole`: the text as it is, also if it has the
 * form of a signed line. As amp_reader_line: 1 valid, 0 at least one error was reported, -1
 * internal failure. The view has only the text and its tape; findings live until the next call. */
int user_check_text(struct user_check *c, struct amp_span line, bool whole,
                    const struct amp_check_options *opt, struct amp_view *view, amp_finding_fn fn,
                    void *ctx, struct amp_error *err);
/* As amp_reader_output, for the text that was checked last. */
int user_check_output(struct user_check *c, enum amp_output form, struct amp_buf *out,
                      struct amp_error *err);

/* files.c: schema files by URI. Nothing is downloaded. */
struct user_files;
/* `schema` is the file of the schema itself, or NULL. *base becomes its file URI (heap); files
 * beside and below it are found by theirs. Built-in schemas are found by their URIs if no prefix in
 * `resolve` matches. */
struct user_files *user_files_new(const char *const *resolve, const char *schema, char **base,
                                  struct amp_error *err);
void user_files_free(struct user_files *f);
int user_files_resolve(void *files, struct amp_span uri, struct amp_span *text);
/* Why the last schema was not found, for people; "" if all were found. */
const char *user_files_why(const struct user_files *f);

#endif

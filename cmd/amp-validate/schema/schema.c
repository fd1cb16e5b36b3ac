/* A user's schema: compiled once; each thread has its own memory to check with it. */
#include "schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/pipe.h>

#include "base/codes.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "message/protocol/check/check.h"
#include "message/protocol/spec.h"
#include "schema/compile/compiler.h"

enum { SCHEMA_MOST = 32 * 1024 * 1024, ARENA_MOST = 64 * 1024 * 1024 };

struct user_check {
    const struct amp_schema *schema;
    struct amp_schema_run *run;
    struct amp_tape tape;
    struct amp_arena arena;
    struct amp_check check;
    bool scanned; /* the last text is JSON */
};

/* Adds the reason why a schema was not found. */
static void add_why(struct amp_error *err, const char *why)
{
    size_t n = strlen(err->what);
    if (amp_code_is(err->code, unresolved_ref) && why[0])
        snprintf(err->what + n, sizeof err->what - n, ": %s", why);
}

/* A probable slip in the schema, which the standard allows. */
static void on_remark(void *ctx, const char *what)
{
    ++*(int *)ctx;
    amp_warn("%s", what);
}

/* The source of a schema. */
struct source {
    const struct amp_schema_file *known; /* built in; or */
    int fd;                              /* the file to read */
    bool own_fd;                         /* to be closed */
    bool has_dir;                        /* a file: it may refer to files beside it */
    const char *name;
};

static const struct amp_schema_file *find_known(const char *name)
{
    char path[256];
    int n = snprintf(path, sizeof path, "%s.json", name);
    return n > 0 && (size_t)n < sizeof path ? amp_schema_file_find(amp_span_str(path)) : NULL;
}

/* Suggests the built-in schema that was probably meant. */
static void suggest_known(const char *name, struct amp_error *err)
{
    struct amp_nearest near;
    size_t n = strlen(err->what);
    amp_nearest_init(&near, amp_span_str(name));
    for (size_t i = 0; i < amp_schema_files_count; i++) {
        const char *path = amp_schema_files[i].path;
        amp_nearest_try(&near, (struct amp_span){path, strlen(path) - strlen(".json")});
    }
    if (near.word[0])
        snprintf(err->what + n, sizeof err->what - n, "; did you mean the built-in `%s`?",
                 near.word);
}

bool user_schema_is_stdin(const char *path)
{
    struct stat it, in;
    if (strcmp(path, "-") == 0)
        return true;
    /* A file can be opened again, a pipe cannot. */
    return stat(path, &it) == 0 && fstat(STDIN_FILENO, &in) == 0 && !S_ISREG(it.st_mode) &&
           !S_ISDIR(it.st_mode) && it.st_dev == in.st_dev && it.st_ino == in.st_ino;
}

static int open_source(const char *file, struct source *s, struct amp_error *err)
{
    struct stat st;
    *s = (struct source){.fd = STDIN_FILENO, .name = "stdin"};
    if (user_schema_is_stdin(file))
        return 0;
    s->name = file;
    s->fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0 && errno == ENOENT && (s->known = find_known(file)))
        return 0;
    if (s->fd < 0 || fstat(s->fd, &st) < 0) {
        amp_fail_errno(err, AMP_DATAERR, "cannot open the schema %s", file);
        suggest_known(file, err);
        return -1;
    }
    s->own_fd = true;
    s->has_dir = S_ISREG(st.st_mode);
    return 0;
}

static int read_source(const struct source *s, struct amp_buf *out, struct amp_error *err)
{
    enum amp_read got = AMP_READ_BYTES;
    if (s->fd == STDIN_FILENO)
        amp_note_terminal(NULL);
    if (s->known)
        return amp_buf_add(out, s->known->text.p, s->known->text.n, err);
    while (got > AMP_READ_END && out->len <= SCHEMA_MOST)
        got = amp_read_more(s->fd, out, 64 * 1024, s->name, err);
    if (got == AMP_READ_FAILED && err->status == AMP_IOERR)
        err->status = AMP_DATAERR; /* a directory, for one */
    if (got > AMP_READ_END)
        return amp_fail(err, AMP_DATAERR, file_too_large, "%s is larger than %d bytes", s->name,
                        SCHEMA_MOST);
    return got;
}

struct misfit {
    const struct amp_tape *tape;
    const char *name; /* of the schema, for people */
    struct amp_error *err;
};

static void on_misfit(void *ctx, const struct amp_violation *v)
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
    amp_fail(m->err, AMP_DATAERR, invalid_schema,
             "%.120s:%u: #%.*s: does not match its metaschema: expected %.150s", m->name, line,
             (int)(pointer.len < 100 ? pointer.len : 100), pointer.len ? pointer.data : "",
             v->expected);
}

static int check_misfit(const struct amp_schema *meta, const struct misfit *m,
                        struct amp_error *err)
{
    struct amp_schema_run *run = amp_schema_run_new(err);
    if (!run)
        return -1;
    int valid = amp_schema_check(meta, run, m->tape, 0, err);
    if (valid == 0) {
        amp_fail(err, AMP_DATAERR, invalid_schema, "%.120s does not match its metaschema", m->name);
        amp_schema_explain(meta, run, m->tape, 0, 1, on_misfit, (void *)(uintptr_t)m, NULL);
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
        return 0; /* the compiler accepted it */
    AMP_FREE char *base = amp_span_dup(uri);
    struct amp_schema_options how = {
        .resolve = user_files_resolve, .resolve_ctx = files, .base_uri = base};
    struct amp_schema *meta = amp_schema_compile(text, &how, err);
    if (!meta)
        return -1;
    struct misfit m = {t, name, err};
    int fits = check_misfit(meta, &m, err);
    amp_schema_free(meta);
    return fits;
}

/* Checks a schema against its metaschema, if that is a user's. The compiler checks what the drafts'
 * own metaschemas require, with better messages. */
static int check_meta(struct amp_span schema, struct user_files *files, const char *name,
                      struct amp_error *err)
{
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    amp_tape_init(&t, NULL);
    return amp_tape_scan(&t, schema.p, schema.n, &fault) < 0 ? 0 : check_tape(&t, files, name, err);
}

static struct amp_schema *compile_text(const struct user_schema_options *opt,
                                       const struct source *s, struct user_files *files,
                                       const char *base, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    int slips = 0;
    amp_buf_init(&text, SCHEMA_MOST + 128 * 1024);
    if (read_source(s, &text, err) < 0)
        return NULL;
    struct amp_schema_options how = {.resolve = user_files_resolve,
                                     .resolve_ctx = files,
                                     .base_uri = base,
                                     .name = s->name,
                                     .remark = on_remark,
                                     .remark_ctx = &slips,
                                     .formats = opt->formats,
                                     .draft7 = opt->draft && strcmp(opt->draft, "7") == 0};
    struct amp_schema *schema = amp_schema_compile(amp_buf_span(&text), &how, err);
    if (!schema) {
        add_why(err, user_files_why(files));
        return NULL;
    }
    int bad = check_meta(amp_buf_span(&text), files, how.name, err);
    if (bad == 0 && opt->strict && slips)
        bad = amp_fail(err, AMP_DATAERR, invalid_schema,
                       "the schema has unknown keywords (--strict)");
    if (bad == 0)
        return schema;
    amp_schema_free(schema);
    return NULL;
}

struct amp_schema *user_schema_new(const struct user_schema_options *opt, struct amp_error *err)
{
    AMP_FREE char *base = NULL;
    char uri[sizeof AMP_SCHEMA_URI + 256];
    struct source s;
    if (open_source(opt->file, &s, err) < 0)
        return NULL;
    struct user_files *files =
        user_files_new(opt->resolve, s.has_dir ? opt->file : NULL, &base, err);
    if (s.known)
        snprintf(uri, sizeof uri, "%s%s", AMP_SCHEMA_URI, s.known->path);
    struct amp_schema *schema =
        files ? compile_text(opt, &s, files, s.known ? uri : base, err) : NULL;
    user_files_free(files);
    if (s.own_fd)
        close(s.fd);
    return schema;
}

struct user_check *user_check_new(const struct amp_schema *s, const struct amp_json_limits *limits,
                                  struct amp_error *err)
{
    struct user_check *c = calloc(1, sizeof *c);
    if (!c) {
        amp_fail_memory(err);
        return NULL;
    }
    c->schema = s;
    amp_tape_init(&c->tape, limits);
    amp_arena_init(&c->arena, ARENA_MOST);
    c->run = amp_schema_run_new(err);
    if (c->run)
        return c;
    user_check_free(c);
    return NULL;
}

void user_check_free(struct user_check *c)
{
    if (!c)
        return;
    amp_schema_run_free(c->run);
    amp_tape_release(&c->tape);
    amp_arena_release(&c->arena);
    free(c);
}

static void on_violation(void *ctx, const struct amp_violation *v)
{
    static const struct amp_code_row codes[] = {{"*", "*", AMP_CODE(schema_violation), NULL}, {0}};
    amp_check_violation(ctx, v, codes);
}

/* Adds a finding about the complete text. */
static void add_finding(struct user_check *c, const char *code, const char *rule, const char *what,
                        uint32_t offset)
{
    struct amp_fault f = {
        .severity = AMP_SEV_ERROR, .code = code, .rule = rule, .tok = AMP_TOK_NONE};
    amp_check_add(&c->check, &f, "%s", what);
    if (c->check.n > 0)
        c->check.found[c->check.n - 1].offset = offset;
}

/* A limit of a check is a fault of the line. Any other error ends the run and is copied to err. */
static bool is_limit(const struct amp_error *why, struct amp_error *err)
{
    if (why->status != AMP_DATAERR)
        *err = *why;
    return why->status == AMP_DATAERR;
}

static int add_limit(struct user_check *c, const struct amp_error *why, struct amp_error *err)
{
    if (!is_limit(why, err))
        return -1;
    char *code = amp_arena_get(&c->arena, sizeof why->code);
    if (!code)
        return amp_fail_memory(err);
    memcpy(code, why->code, sizeof why->code);
    add_finding(c, code, "limit", why->what, 0);
    return 0;
}

static int explain_text(struct user_check *c, struct amp_error *err)
{
    struct amp_error why;
    int n = amp_schema_explain(c->schema, c->run, &c->tape, 0, 0, on_violation, &c->check, &why);
    if (n < 0 && !is_limit(&why, err))
        return -1;
    if (n < 0)
        add_finding(c, AMP_CODE(schema_violation), "schema",
                    "does not match the schema; finding the reason would exceed the limits", 0);
    else if (c->check.n == 0) /* a refused line needs a finding */
        add_finding(c, AMP_CODE(schema_violation), "schema", "does not match the schema", 0);
    return 0;
}

int user_check_text(struct user_check *c, struct amp_span line, bool whole,
                    const struct amp_check_options *opt, struct amp_view *view, amp_finding_fn fn,
                    void *ctx, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_error why;
    struct amp_span text = line;
    if (!whole && amp_line_message(line, &text, err) < 0)
        return -1;
    *view = (struct amp_view){.line = line,
                              .message = text,
                              .text = text,
                              .tape = &c->tape,
                              .size = text.n,
                              .payload = AMP_TOK_NONE};
    c->scanned = amp_tape_scan(&c->tape, text.p, text.n, &fault) == 0;
    view->json = c->scanned;
    int valid = c->scanned ? amp_schema_check(c->schema, c->run, &c->tape, 0, &why) : 0;
    if (valid > 0)
        return 1;
    amp_arena_reset(&c->arena);
    amp_check_start(&c->check, view, opt);
    c->check.arena = &c->arena;
    if (!c->scanned) {
        add_finding(c, fault.code, "json", fault.what, fault.offset);
    } else if ((valid < 0 ? add_limit(c, &why, err) : explain_text(c, err)) < 0) {
        return -1;
    }
    if (c->check.failed)
        return amp_fail_memory(err);
    return amp_check_report(&c->check, fn, ctx) == 0;
}

int user_check_output(struct user_check *c, enum amp_output form, struct amp_buf *out,
                      struct amp_error *err)
{
    struct amp_error why;
    if (!c->scanned)
        return 0;
    int got = amp_schema_output(c->schema, c->run, &c->tape, 0, form, out, &why);
    if (got < 0 && !is_limit(&why, err))
        return -1;
    return got >= 0;
}

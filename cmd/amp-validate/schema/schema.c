/* A user's own schema: compiled once, checked by each thread with memory of its own. */
#include "schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/pipe.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "protocol/check/check.h"
#include "protocol/spec.h"

enum { SCHEMA_MOST = 32 * 1024 * 1024, POOL_MOST = 64 * 1024 * 1024 };

struct user_schema {
    struct amp_schema *schema;
};

struct user_check {
    const struct user_schema *of;
    struct amp_schema_run *run;
    struct amp_tape tape;
    struct amp_pool pool;
    struct amp_check check;
    bool scanned; /* the last text is JSON */
};

/* Where a schema was looked for in vain. */
static void add_why(struct amp_error *err, const char *why)
{
    size_t n = strlen(err->what);
    if (strcmp(err->code, "unresolved_ref") == 0 && why[0])
        snprintf(err->what + n, sizeof err->what - n, ": %s", why);
}

/* A slip in the schema: nothing is wrong by the standard, and all the same not as it was meant. */
static void on_remark(void *ctx, const char *what)
{
    ++*(int *)ctx;
    amp_warn("%s", what);
}

/* Where a schema comes from. */
struct source {
    const struct amp_schema_file *known; /* compiled in; or */
    int fd;                              /* to read it from */
    bool own_fd;                         /* to be closed */
    bool has_dir;                        /* a file: what is beside it may be referred to */
    const char *name;
};

static const struct amp_schema_file *find_known(const char *name)
{
    char path[256];
    int n = snprintf(path, sizeof path, "%s.json", name);
    return n > 0 && (size_t)n < sizeof path ? amp_schema_file_find(amp_span_str(path)) : NULL;
}

/* Adds the built-in schema that was probably meant. */
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
    /* A file can be opened once more, a pipe cannot. */
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
        return amp_fail(err, AMP_DATAERR, "file_too_large", "%s is larger than %d bytes", s->name,
                        SCHEMA_MOST);
    return got;
}

static int compile_text(struct user_schema *u, const struct user_schema_options *opt,
                        const struct source *s, struct user_files *files, const char *base,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    int slips = 0;
    amp_buf_init(&text, SCHEMA_MOST + 128 * 1024);
    if (read_source(s, &text, err) < 0)
        return -1;
    struct amp_schema_options how = {.resolve = user_files_resolve,
                                     .resolve_ctx = files,
                                     .base_uri = base,
                                     .name = s->name,
                                     .remark = on_remark,
                                     .remark_ctx = &slips,
                                     .formats = opt->formats,
                                     .draft7 = opt->draft && strcmp(opt->draft, "7") == 0};
    u->schema = amp_schema_compile(amp_buf_span(&text), &how, err);
    if (!u->schema) {
        add_why(err, user_files_why(files));
        return -1;
    }
    if (user_meta_check(amp_buf_span(&text), files, how.name, err) < 0)
        return -1;
    if (opt->strict && slips)
        return amp_fail(err, AMP_DATAERR, "invalid_schema",
                        "the schema has unknown keywords (--strict)");
    return 0;
}

static int compile(struct user_schema *u, const struct user_schema_options *opt,
                   struct amp_error *err)
{
    AMP_FREE char *base = NULL;
    char uri[sizeof AMP_SCHEMA_URI + 256];
    struct source s;
    if (open_source(opt->file, &s, err) < 0)
        return -1;
    struct user_files *files =
        user_files_new(opt->resolve, s.has_dir ? opt->file : NULL, &base, err);
    if (s.known)
        snprintf(uri, sizeof uri, "%s%s", AMP_SCHEMA_URI, s.known->path);
    int got = files ? compile_text(u, opt, &s, files, s.known ? uri : base, err) : -1;
    user_files_free(files);
    if (s.own_fd)
        close(s.fd);
    return got;
}

struct user_schema *user_schema_new(const struct user_schema_options *opt, struct amp_error *err)
{
    struct user_schema *u = calloc(1, sizeof *u);
    if (!u) {
        amp_fail_memory(err);
        return NULL;
    }
    if (compile(u, opt, err) == 0)
        return u;
    user_schema_free(u);
    return NULL;
}

void user_schema_free(struct user_schema *u)
{
    if (!u)
        return;
    amp_schema_free(u->schema);
    free(u);
}

struct user_check *user_check_new(const struct user_schema *u, const struct amp_json_limits *limits,
                                  struct amp_error *err)
{
    struct user_check *c = calloc(1, sizeof *c);
    if (!c) {
        amp_fail_memory(err);
        return NULL;
    }
    c->of = u;
    amp_tape_init(&c->tape, limits);
    amp_pool_init(&c->pool, POOL_MOST);
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
    amp_pool_release(&c->pool);
    free(c);
}

static void on_violation(void *ctx, const struct amp_violation *v)
{
    static const struct amp_code_row codes[] = {{"*", "*", "schema_violation", NULL}, {0}};
    amp_check_violation(ctx, v, codes);
}

/* A text that no verdict can be given about, or that is no JSON at all. */
static void whole(struct user_check *c, const char *code, const char *rule, const char *what,
                  uint32_t offset)
{
    struct amp_fault f = {
        .severity = AMP_SEV_ERROR, .code = code, .rule = rule, .tok = AMP_TOK_NONE};
    amp_check_add(&c->check, &f, "%s", what);
    if (c->check.n > 0)
        c->check.found[c->check.n - 1].offset = offset;
}

/* A limit that a check meets is a fault of the line; anything else ends the run. */
static int at_limit(struct user_check *c, struct amp_error *why, struct amp_error *err)
{
    if (why->status != AMP_DATAERR) {
        *err = *why;
        return -1;
    }
    char *code = amp_pool_get(&c->pool, sizeof why->code);
    if (!code)
        return amp_fail_memory(err);
    memcpy(code, why->code, sizeof why->code);
    whole(c, code, "limit", why->what, 0);
    return 0;
}

static int explain(struct user_check *c, struct amp_error *err)
{
    struct amp_error why;
    int n =
        amp_schema_explain(c->of->schema, c->run, &c->tape, 0, 0, on_violation, &c->check, &why);
    if (n < 0 && why.status != AMP_DATAERR) {
        *err = why;
        return -1;
    }
    if (n < 0) /* that it does not fit is known all the same */
        whole(c, "schema_violation", "schema",
              "does not match the schema; finding the reason would exceed the limits", 0);
    else if (c->check.n == 0) /* never let a refused line pass for want of an explanation */
        whole(c, "schema_violation", "schema", "does not match the schema", 0);
    return 0;
}

int user_check_text(struct user_check *c, struct amp_span text, const struct amp_check_options *opt,
                    struct amp_view *view, amp_finding_fn fn, void *ctx, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_error why;
    *view = (struct amp_view){
        .line = text, .text = text, .tape = &c->tape, .size = text.n, .payload = AMP_TOK_NONE};
    c->scanned = amp_tape_scan(&c->tape, text.p, text.n, &fault) == 0;
    view->json = c->scanned;
    int valid = c->scanned ? amp_schema_check(c->of->schema, c->run, &c->tape, 0, &why) : 0;
    if (valid > 0)
        return 1;
    amp_pool_reset(&c->pool);
    amp_check_start(&c->check, view, opt);
    c->check.arena = &c->pool;
    if (!c->scanned) {
        whole(c, fault.code, "json", fault.what, fault.offset);
    } else if ((valid < 0 ? at_limit(c, &why, err) : explain(c, err)) < 0) {
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
    int got = amp_schema_output(c->of->schema, c->run, &c->tape, 0, form, out, &why);
    if (got < 0 && why.status != AMP_DATAERR) {
        *err = why;
        return -1;
    }
    return got >= 0;
}

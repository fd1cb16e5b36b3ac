/*
 * Schema files by URI. Each URI prefix has a directory; the longest that matches is used. Only
 * files below that directory are read: no "..", no symbolic links, no network.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include <amp/schema/schema.h>

#include "base/codes.h"
#include "base/grow.h"
#include "schema.h"
#include "schema/format/format.h"
#include "schema/format/uri.h"

enum { TEXT_MOST = 32 * 1024 * 1024, FILES_MOST = 10000, PATH_MOST = 4000 };

struct mapping {
    struct amp_span prefix;
    const char *path; /* a directory, or the one file of this URI */
    int dir;          /* opened at first use; -1 */
};

struct user_files {
    struct mapping *maps;
    size_t n_maps;
    struct amp_buf *texts; /* the compiler uses them until it has finished */
    size_t n_texts, cap_texts;
    char *own_prefix, *own_dir;
    char why[800];
};

/* A file's path as a URI. */
static char *file_uri(const char *path)
{
    AMP_BUF struct amp_buf uri = {0};
    amp_buf_init(&uri, 4 * PATH_MOST);
    bool bad = amp_buf_str(&uri, "file://", NULL) < 0 ||
               amp_uri_encode(amp_span_str(path), "/-._~", &uri, NULL) < 0;
    return bad ? NULL : amp_span_dup(amp_buf_span(&uri));
}

/* The schema's own directory, under its own URI. */
static int add_own(struct user_files *f, const char *schema, char **base, struct amp_error *err)
{
    AMP_FREE char *real = realpath(schema, NULL);
    if (!real)
        return amp_fail_errno(err, AMP_DATAERR, "cannot read the schema %s", schema);
    AMP_FREE char *uri = file_uri(real);
    char *slash = strrchr(real, '/');
    slash[slash == real] = '\0';
    f->own_dir = strdup(real);
    if (!uri || !f->own_dir)
        return amp_fail_memory(err);
    const char *end = strrchr(uri, '/');
    f->own_prefix = amp_span_dup((struct amp_span){uri, (size_t)(end + 1 - uri)});
    if (!f->own_prefix)
        return amp_fail_memory(err);
    f->maps[f->n_maps++] = (struct mapping){amp_span_str(f->own_prefix), f->own_dir, -1};
    *base = uri;
    uri = NULL; /* the caller owns it */
    return 0;
}

static int add_mapping(struct user_files *f, const char *text, struct amp_error *err)
{
    const char *equals = strrchr(text, '=');
    struct stat st;
    if (!equals || equals == text || !equals[1])
        return amp_fail(err, AMP_USAGE, usage, "--resolve takes URI-PREFIX=DIR, not %.100s", text);
    struct amp_span prefix = {text, (size_t)(equals - text)};
    if (!memchr(prefix.p, ':', prefix.n))
        return amp_fail(err, AMP_USAGE, usage,
                        "--resolve: %.*s is not an absolute URI: it has no scheme",
                        (int)(prefix.n < 100 ? prefix.n : 100), prefix.p);
    if (stat(equals + 1, &st) < 0)
        return amp_fail_errno(err, AMP_DATAERR, "--resolve: cannot use %s", equals + 1);
    for (size_t i = 0; i < f->n_maps; i++)
        if (amp_span_eq(f->maps[i].prefix, prefix))
            return amp_fail(err, AMP_USAGE, usage, "--resolve: %.*s is given twice",
                            (int)(prefix.n < 100 ? prefix.n : 100), prefix.p);
    f->maps[f->n_maps++] = (struct mapping){prefix, equals + 1, -1};
    return 0;
}

struct user_files *user_files_new(const char *const *resolve, const char *schema, char **base,
                                  struct amp_error *err)
{
    size_t n = 0;
    struct user_files *f = calloc(1, sizeof *f);
    for (; resolve && resolve[n]; n++)
        continue;
    if (!f || !(f->maps = calloc(n + 1, sizeof *f->maps))) {
        free(f);
        amp_fail_memory(err);
        return NULL;
    }
    *base = NULL;
    bool good = true;
    for (size_t i = 0; i < n && good; i++)
        good = add_mapping(f, resolve[i], err) == 0;
    if (good && schema)
        good = add_own(f, schema, base, err) == 0;
    if (good)
        return f;
    user_files_free(f);
    return NULL;
}

void user_files_free(struct user_files *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n_maps; i++)
        if (f->maps[i].dir >= 0)
            close(f->maps[i].dir);
    for (size_t i = 0; i < f->n_texts; i++)
        amp_buf_release(&f->texts[i]);
    free(f->texts);
    free(f->maps);
    free(f->own_prefix);
    free(f->own_dir);
    free(f);
}

const char *user_files_why(const struct user_files *f)
{
    return f->why;
}

/* A prefix must end at the end of a part of the URI: ".../a" does not match ".../ab". */
static bool prefix_matches(struct amp_span prefix, struct amp_span uri)
{
    if (uri.n < prefix.n || memcmp(uri.p, prefix.p, prefix.n) != 0)
        return false;
    return uri.n == prefix.n || uri.p[prefix.n] == '/' || strchr("/:#?=", prefix.p[prefix.n - 1]);
}

/* Decodes the rest of a URI as a path. False if it is not a path below the directory. */
static bool path_of(struct amp_span rest, char out[PATH_MOST])
{
    size_t n = 0;
    while (rest.n && *rest.p == '/') {
        rest.p++;
        rest.n--;
    }
    for (size_t i = 0; i < rest.n; i++) {
        char c = rest.p[i];
        if (c == '%') {
            if (!amp_is_percent(rest.p + i, rest.n - i))
                return false;
            c = (char)(amp_hex_value(rest.p[i + 1]) << 4 | amp_hex_value(rest.p[i + 2]));
            i += 2;
        }
        if (!c || n + sizeof ".json" >= PATH_MOST)
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    for (const char *p = out; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (!p[2] || p[2] == '/'))
            return false;
    }
    return n > 0;
}

/* The directory, or -1 if the mapping is one file. */
static int open_dir(struct mapping *m)
{
    if (m->dir < 0)
        m->dir = open(m->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return m->dir;
}

static int open_file(struct mapping *m, struct amp_span uri, struct amp_error *err)
{
    struct amp_span rest = {uri.p + m->prefix.n, uri.n - m->prefix.n};
    char path[PATH_MOST];
    int dir = open_dir(m);
    if (dir < 0 && rest.n == 0) {
        int fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        return fd >= 0 ? fd : amp_fail_errno(err, AMP_DATAERR, "cannot open %s", m->path);
    }
    if (!path_of(rest, path))
        return amp_fail(err, AMP_DATAERR, bad_path, "%.*s does not name a file below %s",
                        (int)(uri.n < 200 ? uri.n : 200), uri.p, m->path);
    int fd = amp_open_beneath(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
    if (fd < 0 && err->sys == ENOENT) { /* many an $id lacks the suffix */
        struct amp_error second;
        memcpy(path + strlen(path), ".json", sizeof ".json");
        fd = amp_open_beneath(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &second);
    }
    return fd;
}

static int read_all(int fd, struct amp_buf *out, struct amp_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return amp_fail(err, AMP_DATAERR, bad_file, "not a regular file");
    enum amp_read got = AMP_READ_BYTES;
    while (got > AMP_READ_END)
        got = amp_read_more(fd, out, 64 * 1024, "it", err);
    return got;
}

static int load_file(struct user_files *f, struct mapping *m, struct amp_span uri,
                     struct amp_span *text, struct amp_error *err)
{
    if (f->n_texts == FILES_MOST)
        return amp_fail(err, AMP_DATAERR, too_many, "more than %d schema files", FILES_MOST);
    if (amp_grow(&f->texts, &f->cap_texts, f->n_texts, sizeof *f->texts, err) < 0)
        return -1;
    AMP_CLOSE int fd = open_file(m, uri, err);
    if (fd < 0)
        return -1;
    AMP_BUF struct amp_buf buf = {0};
    amp_buf_init(&buf, TEXT_MOST);
    if (read_all(fd, &buf, err) < 0)
        return -1;
    *text = amp_buf_span(&buf);
    f->texts[f->n_texts++] = buf;
    amp_buf_init(&buf, 0);
    return 0;
}

int user_files_resolve(void *files, struct amp_span uri, struct amp_span *text)
{
    struct user_files *f = files;
    struct mapping *best = NULL;
    struct amp_error err;
    int shown = (int)(uri.n < 150 ? uri.n : 150);
    for (size_t i = 0; i < f->n_maps; i++)
        if (prefix_matches(f->maps[i].prefix, uri) &&
            (!best || f->maps[i].prefix.n > best->prefix.n))
            best = &f->maps[i];
    const struct amp_schema_file *known = best ? NULL : amp_schema_file_by_uri(uri);
    if (known) {
        *text = known->text;
        return 0;
    }
    if (!best) {
        snprintf(f->why, sizeof f->why,
                 "no --resolve URI-PREFIX=DIR matches %.*s; schemas are not downloaded", shown,
                 uri.p);
        return -1;
    }
    if (load_file(f, best, uri, text, &err) == 0)
        return 0;
    snprintf(f->why, sizeof f->why, "%.*s below %.60s: %s", shown, uri.p, best->path, err.what);
    return -1;
}

/*
 * The new objects of a quarantine. Loose objects are read through descriptors below its directory,
 * without following links; packs are copied, checked and indexed in a directory of ours. One walk
 * from the new commit reads and parses every object that the repository lacks. A second one writes
 * them: objects before those that name them, so that an interrupted takeover leaves no object in
 * the repository whose parts are missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <git2/sys/odb_backend.h>
#include <git2/sys/repository.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "base/grow.h"
#include "quarantine.h"

#define PACK_FROM     500 /* from more objects a pack is written */
#define PACKS_MAX     64
#define SEEN_MAX      (8u << 20) /* objects that are looked at, old ones included, and steps */
#define DEPTH_MAX     2048       /* of nested trees, as git's core.maxTreeDepth */
#define HEADER_MAX    64         /* of a loose object: "commit 123" and NUL */
#define COPY_SIZE     65536
#define SCRATCH_NAME  "tmp_objdir-amp-" /* git prune removes what a crash leaves of it */
#define COMPRESS_ROOM 65536             /* by which a loose object may exceed its contents */

/* An object that a new one names. WANTED: new, not checked yet. */
enum seen_state { SEEN_FREE, SEEN_OLD, SEEN_WANTED, SEEN_EXPANDED };
struct seen {
    git_oid oid;
    git_object_t type;
    enum seen_state state;
    bool counted;         /* of a tree: paths, bytes and depth are known */
    uint32_t depth;       /* of the trees below and it */
    uint64_t paths, size; /* what a checkout writes; of a blob: its size */
};

/* A step of the walk; expanded: the objects that it names have been checked. */
struct step {
    git_oid oid;
    git_object_t type;
    bool expanded;
};

struct incoming {
    git_odb_backend loose; /* first: the library passes its address back */
    struct request *r;
    int dir; /* of the quarantine */
    struct incoming_limits limits;
    git_odb *old, *all; /* the repository's objects; the same and the new ones */
    git_repository *view;
    char scratch[PATH_MAX];
    struct seen *seen; /* a hash table */
    size_t n_seen, seen_size;
    struct step *steps, *found; /* a stack; the new objects in the order of writing */
    size_t n_steps, steps_cap, n_found, found_cap;
    bool refused; /* r->err has the reason of the last failed read */
};

__attribute__((format(printf, 3, 0))) static int fail_as(struct request *r, const char *code,
                                                         const char *fmt, va_list ap)
{
    char what[300];
    vsnprintf(what, sizeof what, fmt, ap);
    return amp_fail_text(r->err, AMP_NOPERM, code, "not taken over: %s", what);
}

int refuse_incoming(struct request *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail_as(r, AMP_CODE(quarantine_refused), fmt, ap);
    va_end(ap);
    return -1;
}

int refuse_limit(struct request *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail_as(r, AMP_CODE(quarantine_limit), fmt, ap);
    va_end(ap);
    return -1;
}

/* ---- loose objects ---- */

static int loose_path(const git_oid *oid, char *out, size_t size)
{
    char hex[GIT_OID_HEXSZ + 1];
    git_oid_tostr(hex, sizeof hex, oid);
    return snprintf(out, size, "objects/%.2s/%s", hex, hex + 2);
}

/* Parses "TYPE SIZE" and NUL; its length, or -1. */
static int header_parse(const char *head, size_t n, git_object_t *type, uint64_t *size)
{
    const char *end = memchr(head, '\0', n), *space = end ? strchr(head, ' ') : NULL;
    char word[16];
    int64_t number;
    if (!space ||
        !amp_span_copy((struct amp_span){head, (size_t)(space - head)}, word, sizeof word) ||
        amp_num_parse(amp_span_str(space + 1), 0, INT64_MAX, &number, NULL) < 0)
        return -1;
    *type = git_object_string2type(word);
    *size = (uint64_t)number;
    return *type == GIT_OBJECT_INVALID ? -1 : (int)(end - head) + 1;
}

/* Inflates the file of a loose object. The caller frees *data. */
static int loose_inflate(struct incoming *in, const struct amp_buf *file, const char *path,
                         void **data, size_t *len, git_object_t *type)
{
    char head[HEADER_MAX + 1] = "";
    unsigned char extra;
    uint64_t size = 0;
    z_stream z = {.next_in = (unsigned char *)file->data, .avail_in = (uInt)file->len};
    if (inflateInit(&z) != Z_OK)
        return amp_fail_memory(in->r->err);
    z.next_out = (unsigned char *)head;
    z.avail_out = HEADER_MAX;
    int rc = inflate(&z, Z_SYNC_FLUSH);
    size_t got = HEADER_MAX - z.avail_out;
    int start = rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR
                    ? header_parse(head, got, type, &size)
                    : -1;
    if (start < 0 || size > (uint64_t)in->limits.object_bytes) {
        inflateEnd(&z);
        return start < 0 ? refuse_incoming(in->r, "%s is damaged", path)
                         : refuse_limit(in->r, "%s is larger than %lld bytes", path,
                                        (long long)in->limits.object_bytes);
    }
    size_t have = got - (size_t)start;
    unsigned char *out = git_odb_backend_data_alloc(&in->loose, size + 1);
    if (!out) {
        inflateEnd(&z);
        return amp_fail_memory(in->r->err);
    }
    if (have <= size) {
        memcpy(out, head + start, have);
        z.next_out = out + have;
        z.avail_out = (uInt)(size - have);
        while (rc == Z_OK && z.avail_out && z.avail_in)
            rc = inflate(&z, Z_FINISH) == Z_STREAM_END ? Z_STREAM_END : Z_OK;
        /* The end of the stream may still be unread. */
        if (rc != Z_STREAM_END) {
            z.next_out = &extra;
            z.avail_out = 1;
            rc = inflate(&z, Z_FINISH);
        }
    }
    bool good = have <= size && rc == Z_STREAM_END && z.avail_in == 0 &&
                z.total_out == size + (uint64_t)start;
    inflateEnd(&z);
    if (!good) {
        git_odb_backend_data_free(&in->loose, out);
        return refuse_incoming(in->r, "%s is damaged", path);
    }
    out[size] = '\0';
    *data = out;
    *len = size;
    return 0;
}

/* 0: read; 1: there is no such file; -1: refused. */
static int loose_load(struct incoming *in, const git_oid *oid, void **data, size_t *len,
                      git_object_t *type)
{
    char path[80];
    struct stat st;
    AMP_BUF struct amp_buf file = {0};
    loose_path(oid, path, sizeof path);
    AMP_CLOSE int fd = amp_open_beneath(in->dir, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, NULL);
    if (fd < 0 && errno == ENOENT)
        return 1;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return refuse_incoming(in->r, "%s is not a regular file", path);
    if (st.st_size > in->limits.object_bytes + COMPRESS_ROOM || st.st_size > INT32_MAX)
        return refuse_limit(in->r, "%s is larger than %lld bytes", path,
                            (long long)in->limits.object_bytes);
    amp_buf_init(&file, (size_t)st.st_size + 1);
    if (amp_buf_reserve(&file, (size_t)st.st_size + 1, in->r->err) < 0)
        return -1;
    for (ssize_t n = 1; n > 0 && file.len <= (size_t)st.st_size; file.len += (size_t)n)
        if ((n = read(fd, file.data + file.len, (size_t)st.st_size + 1 - file.len)) < 0)
            return amp_fail_errno(in->r->err, AMP_IOERR, "%s", path);
    if (loose_inflate(in, &file, path, data, len, type) < 0)
        return -1;
    git_oid is;
    if (git_odb_hash(&is, *data, *len, *type) != 0 || !git_oid_equal(&is, oid)) {
        git_odb_backend_data_free(&in->loose, *data);
        return refuse_incoming(in->r, "the contents of %s have another hash", path);
    }
    return 0;
}

static int backend_read(void **data, size_t *len, git_object_t *type, git_odb_backend *b,
                        const git_oid *oid)
{
    struct incoming *in = (struct incoming *)b;
    int rc = loose_load(in, oid, data, len, type);
    in->refused = in->refused || rc < 0;
    return rc < 0 ? GIT_ERROR : rc ? GIT_ENOTFOUND : 0;
}

static int backend_exists(git_odb_backend *b, const git_oid *oid)
{
    const struct incoming *in = (const struct incoming *)b;
    char path[80];
    loose_path(oid, path, sizeof path);
    AMP_CLOSE int fd = amp_open_beneath(in->dir, path, O_PATH | O_NOFOLLOW, 0, NULL);
    return fd >= 0;
}

static void backend_free(git_odb_backend *b)
{
    (void)b; /* a part of struct incoming */
}

/* ---- packs ---- */

static int scratch_make(struct incoming *in)
{
    uint64_t salt;
    amp_random(&salt, sizeof salt);
    int n = snprintf(in->scratch, sizeof in->scratch, "%sobjects/" SCRATCH_NAME "%016llx",
                     git_repository_commondir(in->r->repo), (unsigned long long)salt);
    if (n < 0 || (size_t)n >= sizeof in->scratch || mkdir(in->scratch, 0700) != 0) {
        amp_fail_errno(in->r->err, AMP_CANTCREAT, "%s", in->scratch);
        in->scratch[0] = '\0';
        return -1;
    }
    return 0;
}

/* Copies a pack to an unnamed file, so that what was checked is what is indexed. */
static int pack_copy(struct incoming *in, int packs, const char *name, int *out)
{
    char buf[COPY_SIZE];
    struct stat st;
    AMP_CLOSE int from = openat(packs, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
        return refuse_incoming(in->r, "objects/pack/%s is not a regular file", name);
    AMP_CLOSE int to = open(in->scratch, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (to < 0)
        return amp_fail_errno(in->r->err, AMP_CANTCREAT, "%s", in->scratch);
    for (int64_t left = in->limits.bytes;;) {
        ssize_t n = read(from, buf, sizeof buf);
        if (n == 0)
            break;
        if (n < 0)
            return amp_fail_errno(in->r->err, AMP_IOERR, "%s", name);
        if ((left -= n) < 0)
            return refuse_limit(in->r, "objects/pack/%s is larger than %lld bytes", name,
                                (long long)in->limits.bytes);
        if (amp_write_all(to, (struct amp_span){buf, (size_t)n}, in->r->err) < 0)
            return -1;
    }
    *out = to;
    to = -1;
    return 0;
}

static int pack_index(struct incoming *in, int fd, const char *name)
{
    char buf[COPY_SIZE], path[PATH_MAX + 64];
    git_indexer *indexer = NULL;
    git_indexer_progress stats = {0};
    git_odb_backend *pack = NULL;
    ssize_t n = 0;
    /* Without an object database: a pack must contain the bases of its deltas. */
    int rc = git_indexer_new(&indexer, in->scratch, 0600, NULL, NULL);
    if (lseek(fd, 0, SEEK_SET) < 0)
        rc = -1;
    while (rc == 0 && (n = read(fd, buf, sizeof buf)) > 0)
        rc = git_indexer_append(indexer, buf, (size_t)n, &stats);
    if (rc == 0 && n == 0)
        rc = git_indexer_commit(indexer, &stats);
    if (rc == 0)
        snprintf(path, sizeof path, "%s/pack-%s.idx", in->scratch, git_indexer_name(indexer));
    git_indexer_free(indexer);
    if (rc || n) {
        const git_error *e = git_error_last();
        return refuse_incoming(in->r, "objects/pack/%s: %s", name, e ? e->message : "unreadable");
    }
    rc = git_odb_backend_one_pack(&pack, path);
    if (rc == 0)
        rc = git_odb_add_alternate(in->all, pack, 1);
    return rc ? fail_git(in->r, rc, AMP_IOERR, AMP_CODE(git_error), name) : 0;
}

static int packs_open(struct incoming *in)
{
    struct incoming_count count = {0};
    int packs = 0;
    AMP_CLOSE int fd = amp_open_beneath(in->dir, "objects/pack", O_RDONLY | O_DIRECTORY, 0, NULL);
    if (fd < 0 && errno == ENOENT)
        return 0;
    AMP_DIR DIR *d = fd < 0 ? NULL : amp_dir_open(fd, ".");
    if (!d)
        return refuse_incoming(in->r, "objects/pack is not a directory");
    for (struct dirent *e; (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        AMP_CLOSE int copy = -1;
        if (n < 6 || strncmp(e->d_name, "pack-", 5) != 0 || strcmp(e->d_name + n - 5, ".pack") != 0)
            continue;
        if (++packs > PACKS_MAX)
            return refuse_limit(in->r, "there are more than %d packs", PACKS_MAX);
        if ((!in->scratch[0] && scratch_make(in) < 0) || pack_copy(in, fd, e->d_name, &copy) < 0)
            return -1;
        if (lseek(copy, 0, SEEK_SET) < 0)
            return amp_fail_errno(in->r->err, AMP_IOERR, "%s", e->d_name);
        if (pack_check(in->r, copy, e->d_name, &in->limits, &count) < 0 ||
            pack_index(in, copy, e->d_name) < 0)
            return -1;
    }
    return 0;
}

/* ---- the walk ---- */

/* The place of an object in the table. */
static struct seen *seen_at(const struct incoming *in, const git_oid *oid)
{
    size_t at;
    memcpy(&at, oid->id, sizeof at);
    for (at &= in->seen_size - 1; in->seen[at].state != SEEN_FREE;
         at = (at + 1) & (in->seen_size - 1))
        if (git_oid_equal(&in->seen[at].oid, oid))
            break;
    return &in->seen[at];
}

static int seen_grow(struct incoming *in)
{
    size_t n = in->seen_size, size = n ? n * 2 : 1024;
    struct seen *old = in->seen;
    if (in->n_seen >= SEEN_MAX)
        return refuse_limit(in->r, "the new trees name more than %u objects", SEEN_MAX);
    struct seen *table = calloc(size, sizeof *table);
    if (!table)
        return amp_fail_memory(in->r->err);
    in->seen = table;
    in->seen_size = size;
    for (size_t i = 0; i < n; i++)
        if (old[i].state != SEEN_FREE)
            *seen_at(in, &old[i].oid) = old[i];
    free(old);
    return 0;
}

static int refuse_read(struct incoming *in, int rc, const git_oid *oid, git_object_t type)
{
    if (in->refused)
        return -1;
    if (rc == GIT_ENOTFOUND)
        return refuse_incoming(in->r, "the %s %s is missing", git_object_type2string(type),
                               git_oid_tostr_s(oid));
    const git_error *e = git_error_last();
    return refuse_incoming(in->r, "the %s %s: %s", git_object_type2string(type),
                           git_oid_tostr_s(oid), e ? e->message : "unreadable");
}

static int step_push(struct incoming *in, struct step **list, size_t *n, size_t *cap,
                     const struct step *s)
{
    if (amp_grow(list, cap, *n, sizeof **list, in->r->err) < 0)
        return -1;
    (*list)[(*n)++] = *s;
    return 0;
}

/* Notes an object that another one names. Objects of the repository are complete. */
static struct seen *object_note(struct incoming *in, const git_oid *oid, git_object_t type)
{
    git_object_t is = type;
    size_t size = 0;
    if (in->n_seen * 2 >= in->seen_size && seen_grow(in) < 0)
        return NULL;
    struct seen *seen = seen_at(in, oid);
    if (seen->state == SEEN_FREE) {
        int rc = git_odb_read_header(&size, &is, in->old, oid);
        if (rc && rc != GIT_ENOTFOUND) {
            fail_git(in->r, rc, AMP_IOERR, AMP_CODE(git_error), git_oid_tostr_s(oid));
            return NULL;
        }
        *seen = (struct seen){
            .oid = *oid, .type = is, .state = rc ? SEEN_WANTED : SEEN_OLD, .size = size};
        in->n_seen++;
    }
    if (seen->type == type)
        return seen;
    refuse_incoming(in->r, "%s is named as a %s and is a %s", git_oid_tostr_s(oid),
                    git_object_type2string(type), git_object_type2string(seen->type));
    return NULL;
}

/* Notes an object in the same way. An object that is wanted again gets another step, so that it is
 * written before each object that names it. */
static int object_want(struct incoming *in, const git_oid *oid, git_object_t type)
{
    const struct step s = {.oid = *oid, .type = type};
    const struct seen *seen = object_note(in, oid, type);
    if (!seen)
        return -1;
    if (seen->state != SEEN_WANTED)
        return 0;
    if (in->n_steps >= SEEN_MAX)
        return refuse_limit(in->r, "the new trees have more than %u entries", SEEN_MAX);
    return step_push(in, &in->steps, &in->n_steps, &in->steps_cap, &s);
}

static int commit_check(struct incoming *in, git_odb_object *object)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    const git_oid *oid = git_odb_object_id(object);
    int rc = git_commit_lookup(&commit, in->view, oid);
    if (rc)
        return refuse_read(in, rc, oid, GIT_OBJECT_COMMIT);
    if (fsck_commit(in->r, object, commit) < 0 ||
        object_want(in, git_commit_tree_id(commit), GIT_OBJECT_TREE) < 0)
        return -1;
    for (unsigned i = 0; i < git_commit_parentcount(commit); i++)
        if (object_want(in, git_commit_parent_id(commit, i), GIT_OBJECT_COMMIT) < 0)
            return -1;
    return 0;
}

static int tree_check(struct incoming *in, const git_oid *oid)
{
    CLEANUP(git_tree_cleanup) git_tree *tree = NULL;
    int rc = git_tree_lookup(&tree, in->view, oid);
    if (rc)
        return refuse_read(in, rc, oid, GIT_OBJECT_TREE);
    if (fsck_tree(in->r, tree) < 0)
        return -1;
    for (size_t i = 0; i < git_tree_entrycount(tree); i++) {
        const git_tree_entry *e = git_tree_entry_byindex(tree, i);
        git_object_t type = git_tree_entry_type(e);
        if (type != GIT_OBJECT_COMMIT && object_want(in, git_tree_entry_id(e), type) < 0)
            return -1;
    }
    return 0;
}

static int tree_limits(struct incoming *in, const struct seen *t)
{
    const char *id = git_oid_tostr_s(&t->oid);
    if (t->paths > (uint64_t)in->limits.tree_paths)
        return refuse_limit(in->r, "the tree %s expands to more than %lld paths (tree_paths)", id,
                            (long long)in->limits.tree_paths);
    if (t->size > (uint64_t)in->limits.tree_bytes)
        return refuse_limit(in->r, "the tree %s expands to more than %lld bytes (tree_bytes)", id,
                            (long long)in->limits.tree_bytes);
    return t->depth <= DEPTH_MAX
               ? 0
               : refuse_limit(in->r, "the tree %s has more than %d levels", id, DEPTH_MAX);
}

/* Counts what a checkout of the tree would write: a few nested trees can expand to any number of
 * paths. Each tree is counted once. Trees of the repository are read for it; new ones below it have
 * been counted before. Both limits are below 2^62, so the sums do not overflow. */
static int tree_count(struct incoming *in, const git_oid *oid, uint32_t level)
{
    CLEANUP(git_tree_cleanup) git_tree *tree = NULL;
    struct seen sum = {.oid = *oid, .depth = level};
    if (tree_limits(in, &sum) < 0)
        return -1;
    int rc = git_tree_lookup(&tree, in->view, oid);
    if (rc)
        return refuse_read(in, rc, oid, GIT_OBJECT_TREE);
    sum.depth = 1;
    for (size_t i = 0; i < git_tree_entrycount(tree); i++) {
        const git_tree_entry *e = git_tree_entry_byindex(tree, i);
        const git_oid *id = git_tree_entry_id(e);
        git_object_t type = git_tree_entry_type(e);
        struct seen *part = type == GIT_OBJECT_COMMIT ? NULL : object_note(in, id, type);
        if (type != GIT_OBJECT_COMMIT && !part)
            return -1;
        if (type == GIT_OBJECT_TREE && !part->counted) {
            if (tree_count(in, id, level + 1) < 0)
                return -1;
            part = seen_at(in, id);
        }
        sum.paths += type == GIT_OBJECT_TREE ? part->paths : 1;
        sum.size += part ? part->size : 0;
        if (type == GIT_OBJECT_TREE && part->depth >= sum.depth)
            sum.depth = part->depth + 1;
        if (tree_limits(in, &sum) < 0)
            return -1;
    }
    struct seen *seen = seen_at(in, oid);
    seen->counted = true;
    seen->paths = sum.paths;
    seen->size = sum.size;
    seen->depth = sum.depth;
    return 0;
}

static int step_check(struct incoming *in, const struct step *s, struct incoming_count *count)
{
    CLEANUP(git_odb_object_cleanup) git_odb_object *object = NULL;
    int rc = git_odb_read(&object, in->all, &s->oid);
    if (rc)
        return refuse_read(in, rc, &s->oid, s->type);
    if (git_odb_object_type(object) != s->type)
        return refuse_incoming(in->r, "%s is a %s, not a %s", git_oid_tostr_s(&s->oid),
                               git_object_type2string(git_odb_object_type(object)),
                               git_object_type2string(s->type));
    count->commits += s->type == GIT_OBJECT_COMMIT;
    count->bytes += (int64_t)git_odb_object_size(object);
    if (++count->objects > in->limits.objects)
        return refuse_limit(in->r, "there are more than %lld new objects",
                            (long long)in->limits.objects);
    seen_at(in, &s->oid)->size = git_odb_object_size(object);
    if (count->bytes > in->limits.bytes)
        return refuse_limit(in->r, "the new objects have more than %lld bytes",
                            (long long)in->limits.bytes);
    if (s->type == GIT_OBJECT_COMMIT)
        return commit_check(in, object);
    return s->type == GIT_OBJECT_TREE ? tree_check(in, &s->oid) : 0;
}

int incoming_check(struct incoming *in, const git_oid *tip, struct incoming_count *count)
{
    *count = (struct incoming_count){0};
    if (object_want(in, tip, GIT_OBJECT_COMMIT) < 0)
        return -1;
    while (in->n_steps) {
        struct step s = in->steps[in->n_steps - 1];
        if (s.expanded) {
            in->n_steps--;
            if (s.type == GIT_OBJECT_TREE && tree_count(in, &s.oid, 1) < 0)
                return -1;
            if (step_push(in, &in->found, &in->n_found, &in->found_cap, &s) < 0)
                return -1;
            continue;
        }
        struct seen *seen = seen_at(in, &s.oid);
        if (seen->state == SEEN_EXPANDED) {
            in->n_steps--;
            continue;
        }
        seen->state = SEEN_EXPANDED;
        in->steps[in->n_steps - 1].expanded = true;
        if (step_check(in, &s, count) < 0)
            return -1;
    }
    return 0;
}

/* Many objects become one pack, which appears complete or not at all. */
static int pack_write(struct incoming *in)
{
    git_packbuilder *pack = NULL;
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%sobjects/pack", git_repository_commondir(in->r->repo));
    int rc = git_packbuilder_new(&pack, in->view);
    for (size_t i = 0; rc == 0 && i < in->n_found; i++)
        rc = git_packbuilder_insert(pack, &in->found[i].oid, NULL);
    if (rc == 0)
        rc = git_packbuilder_write(pack, dir, 0444, NULL, NULL);
    git_packbuilder_free(pack);
    if (rc == 0)
        rc = git_odb_refresh(in->old);
    if (in->refused)
        return -1;
    return rc ? fail_git(in->r, rc, AMP_IOERR, AMP_CODE(git_error), dir) : 0;
}

int incoming_write(struct incoming *in)
{
    if (in->n_found > PACK_FROM)
        return pack_write(in);
    for (size_t i = 0; i < in->n_found; i++) {
        CLEANUP(git_odb_object_cleanup) git_odb_object *object = NULL;
        const struct step *s = &in->found[i];
        git_oid oid;
        int rc = git_odb_read(&object, in->all, &s->oid);
        if (rc)
            return refuse_read(in, rc, &s->oid, s->type);
        rc = git_odb_write(&oid, in->old, git_odb_object_data(object), git_odb_object_size(object),
                           git_odb_object_type(object));
        if (rc)
            return fail_git(in->r, rc, AMP_IOERR, AMP_CODE(git_error),
                            git_repository_commondir(in->r->repo));
        if (!git_oid_equal(&oid, &s->oid))
            return refuse_incoming(in->r, "%s changed meanwhile", git_oid_tostr_s(&s->oid));
    }
    return 0;
}

git_repository *incoming_view(struct incoming *in)
{
    return in->view;
}

static int64_t or_default(int64_t limit, int64_t otherwise)
{
    return limit > 0 ? limit : otherwise;
}

int incoming_open(struct request *r, int dir, const struct incoming_limits *limits,
                  struct incoming **out)
{
    char objects[PATH_MAX];
    struct incoming *in = calloc(1, sizeof *in);
    if (!in)
        return amp_fail_memory(r->err);
    in->r = r;
    in->dir = dir;
    in->limits = (struct incoming_limits){
        .objects = or_default(limits->objects, 200000),
        .bytes = or_default(limits->bytes, 1ll << 30),
        .object_bytes = or_default(limits->object_bytes, AMP_OBJECT_BYTES),
        .tree_paths = or_default(limits->tree_paths, 1000000),
        .tree_bytes = or_default(limits->tree_bytes, 64ll << 30),
    };
    git_odb_init_backend(&in->loose, GIT_ODB_BACKEND_VERSION);
    in->loose.read = backend_read;
    in->loose.exists = backend_exists;
    in->loose.free = backend_free;
    snprintf(objects, sizeof objects, "%sobjects", git_repository_commondir(r->repo));
    int rc = git_repository_odb(&in->old, r->repo);
    if (rc == 0)
        rc = git_odb_new(&in->all);
    if (rc == 0)
        rc = git_odb_add_disk_alternate(in->all, objects);
    if (rc == 0)
        rc = git_odb_add_alternate(in->all, &in->loose, 2);
    if (rc == 0)
        rc = git_repository_wrap_odb(&in->view, in->all);
    if (rc)
        rc = fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), objects);
    if (rc == 0)
        rc = packs_open(in);
    if (rc < 0)
        incoming_close(in);
    else
        *out = in;
    return rc;
}

void incoming_close(struct incoming *in)
{
    struct stat st;
    if (!in)
        return;
    git_repository_free(in->view);
    git_odb_free(in->all);
    git_odb_free(in->old);
    if (in->scratch[0] && lstat(in->scratch, &st) == 0)
        linked_remove_tree(AT_FDCWD, in->scratch, st.st_dev, NULL);
    free(in->seen);
    free(in->steps);
    free(in->found);
    free(in);
}

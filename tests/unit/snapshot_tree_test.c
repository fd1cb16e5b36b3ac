/* Recorded trees: what they contain, and that a restored one is the same, wherever a restore was
 * killed, and whatever else is done to the files. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <amp/base/file.h>

#include "killed.h"
#include "tap.h"
#include "tree.h"
#include "worktree/snapshot/restore.h"

static char dir[256];
static int place, contents, journal;

static void sh(const char *command)
{
    char text[8192];
    snprintf(text, sizeof text, "cd %s && { %s\n} 2>&1", dir, command);
    if (system(text) != 0)
        printf("# failed: %s\n", command);
}

static int sub(const char *name)
{
    mkdirat(AT_FDCWD, dir, 0700);
    AMP_CLOSE int top = open(dir, O_RDONLY | O_DIRECTORY);
    mkdirat(top, name, 0755);
    return openat(top, name, O_RDONLY | O_DIRECTORY);
}

static int take(struct amp_tree *t, const char *const *paths, int into, struct amp_error *err)
{
    struct amp_tree_scan s = {
        .root = place, .contents = into, .files = 1000, .bytes = 1 << 24, .exact = true};
    for (; *paths; paths++)
        if (amp_tree_add(&s, *paths, t, err) < 0)
            return -1;
    amp_tree_sort(t);
    return 0;
}

/* Everything in the place as a text, with modes, numbers of names, and times: of what is not a
 * directory, or of all. */
static void listing_of(char *out, size_t size, bool all_times)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "cd %s/place && { find . -type d -printf '%%y %%m %s %%p\\n' -o -printf "
        "'%%y %%m %%n %%T@ %%l %%p\\n'; find . -type f -exec sha256sum {} +; } | LC_ALL=C sort",
        dir, all_times ? "%T@" : "");
    FILE *f = popen(text, "r");
    size_t n = f ? fread(out, 1, size - 1, f) : 0;
    out[n] = '\0';
    if (f)
        pclose(f);
}

static void listing(char *out, size_t size)
{
    listing_of(out, size, false);
}

static int restore(const struct amp_tree *want, struct amp_error *err)
{
    struct amp_restore_spec spec = {.root = place, .journal = journal};
    struct amp_restore *r = NULL;
    struct amp_error late;
    if (amp_restore_begin(&spec, &r, err) < 0)
        return -1;
    int rc = amp_restore_apply(r, want, contents, err);
    if (amp_restore_end(r, rc == 0, rc ? &late : err) < 0)
        rc = rc ? -2 : -1;
    return rc;
}

static const char make_place[] =
    "chmod -R 700 place; rm -rf place/* place/.[!.]*; mkdir -p place/src/sub place/empty "
    "place/keep; cd place\n"
    "echo one >src/a; printf '\\0\\377bin' >src/b; chmod 755 src/b; ln -s ../gone src/l\n"
    "echo x >src/sub/c; chmod 640 src/sub/c; mkdir -m 700 src/sub/hollow; echo t >top\n"
    "echo 'a b%' >'src/a b%c'; echo i >src-i; echo s >' lead'; mkdir ' dir'; echo s >' dir/ x'; "
    "touch -h -d 2001-02-03T04:05:06.123456789 src/l "
    "src/a\n"
    "for f in 1 2 3 4; do echo h$f >src/h$f; ln src/h$f \" dir/h$f\"; done; ln src/h2 src/sub/h2\n"
    "echo same >src/s1; cp -p src/s1 src/s2; n=$(printf 'n\\nl \\377-%249d' 0); echo "
    "n "
    ">\"src/$n\"; ln -s \"$n\" src/-; ln -s - src/dash\n"
    "touch -d 2002-01-01 src/sub src empty .; mkdir src/d; echo in >src/d/in; chmod 500 src/d";
/* What an agent may leave. */
static const char spoil_place[] =
    "cd place; echo two >src/a; rm src/b; mkdir src/b; echo in >src/b/in; rm src/l; ln -s /etc "
    "src/l\n"
    "rm -rf src/sub; ln -s /etc src/sub; rmdir empty; echo file >empty; echo new >src/new\n"
    "mkdir -p src/more/deep; echo d >src/more/deep/f; chmod 0 src/more/deep; chmod 4711 'src/a "
    "b%c'\n"
    /* A name that is a file of its own, one of three, contents that change under both names, a name
     * more; two files that become one. */
    "rm src/n* src/-*; cp -p src/h1 h; mv h src/h1; rm src/h2; echo new >src/h3; ln src/h4 src/h5; "
    "ln -f src/s1 "
    "src/s2\n"
    "chmod 700 src/d; rm src/d/in; mkfifo src/d/in; chmod 0 src/d; mkdir -p made/way; echo m "
    ">made/way/m\n"
    "rm src-i; echo changed >' lead'; chmod 600 ' lead'; rm ' dir/ x'; mkdir ' dir/ x'; mkdir -p "
    "new/dir; echo n >new/dir/f; echo k >keep/other; mkdir -p part/of; echo p "
    ">part/of/f\n"
    "echo q >part/q";

static const char *const paths[] = {"src",       "empty",     "src-i", "made/way/m", "new",
                                    "part/of/f", "keep/none", " lead", " dir",       NULL};

static void shapes(void)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0}, again = {0}, read = {0};
    AMP_BUF struct amp_buf text = {0};
    struct amp_error err = {0};
    static char before[16384], spoiled[16384], after[16384];
    char one[AMP_TREE_DIGEST_MAX], two[AMP_TREE_DIGEST_MAX];
    amp_buf_init(&text, 1 << 20);
    sh(make_place);
    listing(before, sizeof before);
    struct stat was = {0};
    fstatat(place, "src", &was, 0);
    const time_t src_time = was.st_mtim.tv_sec;
    TAP_OK(take(&t, paths, contents, &err) == 0, "a tree is recorded: %s", err.what);
    amp_tree_digest(&t, one);
    TAP_OK(amp_tree_write(&t, &text, &err) == 0 &&
               amp_tree_read(amp_buf_span(&text), &read, &err) == 0,
           "its text is read: %s", err.what);
    amp_tree_digest(&read, two);
    TAP_STR(two, one, "with the same digest");
    TAP_INT(read.n, t.n, "and all entries");
    const struct amp_tree_entry *e = amp_tree_find(&read, "src/a b%c");
    TAP_OK(e && e->type == AMP_TREE_FILE && e->size == 5, "a name with a space and a percent sign");
    e = amp_tree_find(&read, "src/-"); /* the link to the name of 255 bytes */
    TAP_OK(e && strlen(e->target) == 255 && strncmp(e->target, "n\nl \377- ", 7) == 0 &&
               tree_has(dir, "place/src/-"),
           "a name with a line feed and a byte that is not UTF-8");
    e = amp_tree_find(&read, "src/l");
    TAP_OK(e && e->type == AMP_TREE_LINK && strcmp(e->target, "../gone") == 0 &&
               e->mtime.tv_nsec == 123456789,
           "a link with its target and time");
    e = amp_tree_find(&read, "made");
    TAP_OK(e && e->type == AMP_TREE_NO_WAY, "a missing directory above");
    sh(spoil_place);
    listing(spoiled, sizeof spoiled);
    TAP_OK(restore(&read, &err) == 0, "it is restored: %s", err.what);
    sh("cd place; rm keep/other part/q; rmdir part");
    listing(after, sizeof after);
    TAP_STR(after, before, "with all modes, times, links and contents");
    struct stat st;
    TAP_OK(fstatat(place, "src", &st, 0) == 0 && st.st_mtim.tv_sec == src_time,
           "and a directory's time");
    TAP_OK(take(&again, paths, -1, &err) == 0, "recorded again");
    amp_tree_digest(&again, two);
    TAP_STR(two, one, "the digest is the same");
    TAP_OK(!tree_has(dir, "journal/journal") && !tree_has(dir, "journal/journal.done"),
           "no journal is left");
    TAP_OK(restore(&read, &err) == 0, "restoring what is the same: %s", err.what);

    /* The parent as a link: nothing beyond it is touched. */
    sh("mkdir -p out/sub; echo safe >out/a; rm -rf place/src; ln -s ../out place/src");
    TAP_OK(restore(&read, &err) == 0, "a directory replaced by a link: %s", err.what);
    TAP_OK(tree_has(dir, "out/a") && !tree_has(dir, "out/b") && tree_has(dir, "place/src/b"),
           "the link's target is as it was");
    struct amp_tree_scan s = {.root = place, .contents = -1};
    AMP_CLEANUP(amp_tree_release) struct amp_tree bad = {0};
    static const char *const outside[] = {"/etc", "../out", "src/../..", "a//b", "", "src/l/x"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        TAP_OK(amp_tree_add(&s, outside[i], &bad, &err) == -1 &&
                   (strcmp(err.code, "not_beneath") == 0),
               "refused: '%s' (%s)", outside[i], err.code);
    sh("mkfifo place/fifo");
    TAP_OK(amp_tree_add(&s, "fifo", &bad, &err) == -1 && strcmp(err.code, "special_file") == 0,
           "a FIFO is refused");
    sh("rm place/fifo");
    s.files = 3;
    TAP_OK(amp_tree_add(&s, "src", &bad, &err) == -1 && strcmp(err.code, "tree_limit") == 0,
           "more than the limit of files");
    s.files = 0;
    s.bytes = 6;
    TAP_OK(amp_tree_add(&s, "src", &bad, &err) == -1 && strcmp(err.code, "tree_limit") == 0,
           "more than the limit of bytes");
}

/* A damaged snapshot, and a directory in the way that cannot be moved, change nothing. */
static void failures(void)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    struct amp_error err = {0};
    static char spoiled[16384], after[16384];
    sh(make_place);
    take(&t, paths, contents, &err);
    sh(spoil_place);
    sh("touch -d 2003-03-03 place place/*; cp -a contents saved; for f in contents/*; do : >$f; "
       "done");
    listing_of(spoiled, sizeof spoiled, true);
    TAP_OK(restore(&t, &err) == -1, "damaged contents are refused");
    TAP_STR(err.code, "snapshot_damaged", "their code");
    listing_of(after, sizeof after, true);
    TAP_STR(after, spoiled, "nothing has changed");
    sh("rm -rf contents/* ; cp -a saved/* contents/; rm -rf saved");
    /* The last file of the tree cannot be written. */
    struct amp_tree_entry *last = &t.v[t.n - 1];
    TAP_STR(last->path, "src-i", "the last file");
    char sum[AMP_TREE_SUM_MAX];
    strcpy(sum, last->sum);
    memcpy(last->sum, "0000", 4); /* another file of the contents, of another name */
    char text[400];
    snprintf(text, sizeof text, "cp contents/%s contents/%s", sum, last->sum);
    sh(text);
    TAP_OK(restore(&t, &err) == -1, "what does not give the digest is undone");
    TAP_STR(err.code, "digest_differs", "its code");
    listing_of(after, sizeof after, true);
    TAP_STR(after, spoiled, "everything is as before, also the times of directories");
}

/* Whether the attribute has the value. */
static bool has_attr(const char *path, const char *name, const char *value)
{
    char full[512], is[64] = "";
    snprintf(full, sizeof full, "%s/place/%s", dir, path);
    ssize_t n = getxattr(full, name, is, sizeof is - 1);
    return value ? n >= 0 && strcmp(is, value) == 0 : n < 0;
}

static int set_attr(const char *path, const char *name, const char *value)
{
    char full[512];
    snprintf(full, sizeof full, "%s/place/%s", dir, path);
    return value ? setxattr(full, name, value, strlen(value), 0) : removexattr(full, name);
}

/* The user with the id 1 may do everything; as the kernel stores it. */
static int set_acl(const char *path, const char *name)
{
    static const struct {
        uint32_t version;
        struct {
            uint16_t tag, may;
            uint32_t id;
        } v[5];
    } acl = {2, {{1, 6, ~0u}, {2, 7, 1}, {4, 4, ~0u}, {16, 7, ~0u}, {32, 4, ~0u}}};
    char full[512];
    snprintf(full, sizeof full, "%s/place/%s", dir, path);
    return setxattr(full, name, &acl, sizeof acl, 0);
}

static void access_lists(void)
{
    static const char access[] = "system.posix_acl_access", inherit[] = "system.posix_acl_default";
    static const char *const both[] = {"with", "without", "d", NULL};
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    struct amp_error err = {0};
    struct stat st;
    sh("chmod -R 700 place; rm -rf place/* place/.[!.]*; cd place; mkdir d; echo w >with; echo o "
       ">without; chmod 640 without");
    if (set_acl("with", access) < 0 || set_acl("d", inherit) < 0) {
        printf("# no access control lists here\n");
        return;
    }
    take(&t, both, contents, &err);
    /* What is made at the top has one from now on. */
    set_acl(".", inherit);
    sh("cd place; rm -r with without d; echo x >with; echo x >without; mkdir d; chmod 777 without");
    TAP_OK(restore(&t, &err) == 0, "access control lists are restored: %s", err.what);
    TAP_OK(fstatat(place, "with", &st, 0) == 0 && (st.st_mode & 07777) == 0674 &&
               !has_attr("with", access, NULL) && !has_attr("d", inherit, NULL) &&
               has_attr("d", access, NULL),
           "where they were");
    TAP_OK(fstatat(place, "without", &st, 0) == 0 && (st.st_mode & 07777) == 0640 &&
               has_attr("without", access, NULL),
           "and none is inherited from the directory above");
    char top[512];
    snprintf(top, sizeof top, "%s/place", dir);
    removexattr(top, inherit);
}

static void attributes(void)
{
    static const char *const both[] = {"f", "d", NULL};
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0}, now = {0}, read = {0};
    AMP_BUF struct amp_buf text = {0};
    struct amp_error err = {0};
    struct stat st;
    char one[AMP_TREE_DIGEST_MAX], two[AMP_TREE_DIGEST_MAX];
    sh("chmod -R 700 place; rm -rf place/* place/.[!.]*; cd place; mkdir d; echo f >f; echo g "
       ">d/g; echo k >d/k");
    if (set_attr("f", "user.a", "one") < 0) {
        printf("# no extended attributes here\n");
        return;
    }
    set_attr("f", "user.b=%\n", "x y");
    set_attr("d", "user.d", "two");
    set_attr("d/k", "user.k", "");
    amp_buf_init(&text, 1 << 20);
    TAP_OK(take(&t, both, contents, &err) == 0 && amp_tree_write(&t, &text, &err) == 0 &&
               amp_tree_read(amp_buf_span(&text), &read, &err) == 0,
           "extended attributes are recorded: %s", err.what);
    amp_tree_digest(&t, one);
    amp_tree_digest(&read, two);
    TAP_STR(two, one, "and read again");
    set_attr("f", "user.a", "other");
    TAP_OK(take(&now, both, -1, &err) == 0, "recorded with another value");
    amp_tree_digest(&now, two);
    TAP_OK(strcmp(one, two) != 0, "the digest tells them apart");
    set_attr("f", "user.more", "more");
    set_attr("d", "user.d", NULL);
    set_attr("d", "user.e", "e");
    set_attr("d/g", "user.g", "g");
    set_attr("d/k", "user.k", NULL);
    /* Of others: as root only. */
    if (geteuid() == 0)
        sh("chown 1:2 place/f; chown 3 place/d; chmod 4755 place/d/g; chown 5:6 place/d/g");
    TAP_OK(restore(&read, &err) == 0, "they are restored: %s", err.what);
    TAP_OK(has_attr("f", "user.a", "one") && has_attr("f", "user.b=%\n", "x y") &&
               has_attr("f", "user.more", NULL),
           "those of a file");
    TAP_OK(has_attr("d", "user.d", "two") && has_attr("d", "user.e", NULL), "of a directory");
    TAP_OK(has_attr("d/g", "user.g", NULL) && has_attr("d/k", "user.k", ""), "and below it");
    TAP_OK(fstatat(place, "f", &st, 0) == 0 && st.st_uid == geteuid() &&
               fstatat(place, "d", &st, 0) == 0 && st.st_uid == geteuid() &&
               fstatat(place, "d/g", &st, 0) == 0 && st.st_uid == geteuid() &&
               (st.st_mode & 07777) == 0644,
           "owners, too");
    /* Undone, they are as before the attempt. */
    set_attr("d", "user.e", "e");
    set_attr("d", "user.d", NULL);
    for (size_t i = 0; i < read.n; i++)
        if (strcmp(read.v[i].path, "f") == 0)
            read.v[i].type = AMP_TREE_SPECIAL; /* which nothing becomes */
    TAP_OK(restore(&read, &err) == -1 && strcmp(err.code, "digest_differs") == 0,
           "a restore that fails: %s", err.what);
    TAP_OK(has_attr("d", "user.e", "e") && has_attr("d", "user.d", NULL), "leaves them");
}

/* A directory of 3,000 levels, which is deeper than a path and the limit of open files. Some of
 * them are not writable. */
static void deep_make(const char *name)
{
    int at = openat(place, name, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 3000 && at >= 0; i++) {
        mkdirat(at, "deep", 0700);
        int below = openat(at, "deep", O_RDONLY | O_DIRECTORY);
        if (i > 0 && i % 100 < 50)
            fchmod(at, i % 2 ? 0500 : 0);
        close(at);
        at = below;
    }
    TAP_OK(at >= 0, "a directory of 3,000 levels");
    close(at);
}

/* What an agent may leave so that a rollback fails or does not end. */
static void traps(void)
{
    static const char *const src[] = {"src", NULL};
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0}, again = {0};
    struct amp_error err = {0};
    struct stat st;
    char one[AMP_TREE_DIGEST_MAX], two[AMP_TREE_DIGEST_MAX];
    sh("chmod -R 700 place; rm -rf place/* place/.[!.]*; cd place; mkdir -p src/in; echo a >src/a; "
       "echo b >src/in/b; truncate -s 8M src/hole; echo end >>src/hole");
    TAP_OK(take(&t, src, contents, &err) == 0, "a tree with a file of holes: %s", err.what);
    amp_tree_digest(&t, one);
    sh("cd place; rm src/hole src/a; truncate -s 4T src/a src/more; ln -s /dev/zero src/hole");
    deep_make("src");
    deep_make("src/in");
    TAP_OK(restore(&t, &err) == 0, "it is restored at once: %s", err.what);
    TAP_OK(take(&again, src, -1, &err) == 0, "all is small again: %s", err.what);
    amp_tree_digest(&again, two);
    TAP_STR(two, one, "and as it was");
    TAP_OK(fstatat(place, "src/hole", &st, 0) == 0 && st.st_size == (8 << 20) + 4 &&
               st.st_blocks * 512 < 1 << 20,
           "the holes are holes (%lld blocks)", (long long)st.st_blocks);
    TAP_OK(!tree_has(dir, "journal/journal.done"), "nothing is left to be removed");
}

static bool keep_skip(void *ctx, const char *path, const struct stat *st)
{
    (void)ctx;
    (void)st;
    return strcmp(path, "src/keep") == 0;
}

static const struct amp_tree *closed_tree;
static int closed_restore(void)
{
    struct amp_restore_spec spec = {.root = place, .journal = journal, .skip = keep_skip};
    struct amp_restore *r = NULL;
    struct amp_error err;
    if ((geteuid() == 0 && setresuid(65534, 65534, 65534)) ||
        amp_restore_begin(&spec, &r, &err) < 0)
        return -1;
    int rc = amp_restore_apply(r, closed_tree, contents, &err);
    return amp_restore_end(r, rc == 0, &err) < 0 ? -1 : rc;
}

/* Directories that an agent of the same user made unreadable. */
static void closed(void)
{
    static const char *const paths_of[] = {"src", "way/f", NULL};
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    struct amp_tree_scan s = {
        .root = place, .contents = contents, .skip = keep_skip, .exact = true};
    struct amp_error err = {0};
    static char before[4096], after[4096];
    sh("chmod -R 700 place; rm -rf place/* place/.[!.]*; cd place; mkdir -p src/in way; echo a "
       ">src/a; "
       "echo b >src/in/b; echo k >src/keep; echo f >way/f; chmod 500 src/in; test $(id -u) != 0 || "
       "chown -R 65534 . ../journal ../contents");
    listing(before, sizeof before);
    for (const char *const *p = paths_of; *p; p++)
        amp_tree_add(&s, *p, &t, &err);
    amp_tree_sort(&t);
    sh("cd place; echo x >src/a; echo x >way/f; chmod 0 way src/in src; test $(id -u) != 0 || "
       "chown "
       "-R 65534 . ../contents");
    closed_tree = &t;
    TAP_OK(!killed_at(closed_restore, 100000), "directories that are not readable any more");
    listing(after, sizeof after);
    TAP_STR(after, before, "are as before, with what does not belong to the tree");
    sh("test $(id -u) != 0 || chown -R 0 place journal contents");
}

/* What another process does while the files are looked at: the tool asks for each path whether it
 * is to be skipped. */
static const char *race_path, *race_command;
static bool race_run(void *ctx, const char *path, const struct stat *st)
{
    (void)ctx;
    (void)st;
    if (race_path && strcmp(path, race_path) == 0) {
        race_path = NULL;
        sh(race_command);
    }
    return false;
}

static void races(void)
{
    static const char make[] = "chmod -R 700 place; rm -rf place/* place/.[!.]* out; mkdir -p out; "
                               "echo safe >out/c; cd place; "
                               "mkdir -p src/sub; echo a >src/a; echo c >src/sub/c; echo z >src/z";
    static const struct {
        const char *path, *command, *what;
        bool taken;
    } rows[] = {
        {"src/a", "rm place/src/a", "a file vanishes", true},
        {"src/sub", "rm -r place/src/sub", "a directory vanishes", true},
        {"src/sub", "rm -r place/src/sub; ln -s ../../out place/src/sub",
         "a directory becomes a link", false},
        {"src/a", "rm place/src/a; ln -s ../../out/c place/src/a", "a file becomes a link", false},
        {"src/a", "rm place/src/a; mkfifo place/src/a", "a file becomes a FIFO", false},
    };
    struct amp_error err = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
        struct amp_tree_scan s = {
            .root = place, .contents = contents, .skip = race_run, .exact = true};
        sh(make);
        race_path = rows[i].path;
        race_command = rows[i].command;
        int rc = amp_tree_add(&s, "src", &t, &err);
        amp_tree_sort(&t);
        TAP_OK(rc == (rows[i].taken ? 0 : -1) && !race_path, "while it is recorded, %s: %s",
               rows[i].what, rc ? err.what : "left out");
        TAP_OK(!rows[i].taken || (!amp_tree_find(&t, rows[i].path) && restore(&t, &err) == 0),
               "what was recorded can be restored");
    }
    /* While it is restored: the directory of a file that is to be written becomes a link. */
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    static const char *const src[] = {"src", NULL};
    sh(make);
    take(&t, src, contents, &err);
    sh("echo x >place/src/sub/c");
    race_path = "src/z";
    race_command = "mv place/src/sub place/moved; ln -s ../../out place/src/sub";
    struct amp_restore_spec spec = {.root = place, .journal = journal, .skip = race_run};
    struct amp_restore *r = NULL;
    TAP_OK(amp_restore_begin(&spec, &r, &err) == 0 &&
               amp_restore_apply(r, &t, contents, &err) == -1 && !race_path,
           "while it is restored, a directory becomes a link: %s", err.what);
    TAP_INT(amp_restore_end(r, false, &err), 0, "that is undone");
    char command[600];
    snprintf(command, sizeof command,
             "cd %s && test \"$(ls out)\" = c && grep -qx safe out/c && grep -qx x place/moved/c",
             dir);
    TAP_INT(system(command), 0, "nothing is written through the link, nor left");
    TAP_OK(restore(&t, &err) == 0, "the next one succeeds: %s", err.what);
}

/* As on a file system that can neither exchange two files, nor refuse to replace one. */
static int plain_renames(void)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static bool killed_plain;
static const struct amp_tree *killed_tree;
static int killed_restore(void)
{
    struct amp_error err;
    if (killed_plain && plain_renames())
        return -1;
    return restore(killed_tree, &err);
}

/* The same without special renames, all of it and undone. */
static void plain_restore(const struct amp_tree *t)
{
    static char spoiled[16384], after[16384];
    AMP_CLEANUP(amp_tree_release) struct amp_tree again = {0};
    struct amp_error err = {0};
    char want[AMP_TREE_DIGEST_MAX], now[AMP_TREE_DIGEST_MAX];
    sh("rm -rf place/..?* place/.[!.]* place/*; cp -a spoiled/. place");
    listing_of(spoiled, sizeof spoiled, true);
    killed_plain = true;
    t->v[t->n - 1].type = AMP_TREE_SPECIAL; /* which nothing becomes */
    TAP_OK(!killed_at(killed_restore, 100000), "without special renames, one that fails");
    t->v[t->n - 1].type = AMP_TREE_FILE;
    listing_of(after, sizeof after, true);
    TAP_STR(after, spoiled, "changes nothing");
    killed_at(killed_restore, 100000);
    amp_tree_digest(t, want);
    take(&again, paths, -1, &err);
    amp_tree_digest(&again, now);
    TAP_STR(now, want, "one that succeeds gives the same files");
}

static void kills(void)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    struct amp_error err = {0};
    char want[AMP_TREE_DIGEST_MAX], now[AMP_TREE_DIGEST_MAX];
    const char *all = getenv("AMP_ROUNDS");
    long step = all ? 1 : 149, bad = 0, rounds = 0, left = 0;
    sh(make_place);
    take(&t, paths, contents, &err);
    killed_tree = &t;
    amp_tree_digest(&t, want);
    sh(spoil_place);
    sh("rm place/part/q"); /* so that its directory goes, too */
    sh("rm -rf spoiled; cp -a place spoiled");
    plain_restore(&t);
    for (long n = 3;; n += step) {
        killed_plain = rounds % 3 == 2;
        sh("rm -rf place/..?* place/.[!.]* place/*; cp -a spoiled/. place");
        if (!killed_at(killed_restore, n))
            break;
        rounds++;
        /* The one after it may be killed, too. */
        if (rounds % 2)
            killed_at(killed_restore, n * 7 % 400 + 3);
        AMP_CLEANUP(amp_tree_release) struct amp_tree again = {0};
        if (restore(&t, &err) < 0 || take(&again, paths, -1, &err) < 0) {
            printf("# at %ld: %s: %s\n", n, err.code, err.what);
            bad++;
            continue;
        }
        amp_tree_digest(&again, now);
        bad += strcmp(now, want) != 0;
        AMP_DIR DIR *d = amp_dir_open(place, ".");
        for (const struct dirent *e; d && (e = readdir(d));)
            left += strncmp(e->d_name, ".amp-", 5) == 0;
    }
    printf("# killed %ld times\n", rounds);
    TAP_OK(rounds > 5 || killed_denied, "a restore is killed at its system calls");
    TAP_INT(bad, 0, "the next one completes it each time");
    TAP_INT(left, 0, "and leaves no directory of its own");
}

int main(void)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* most of the time would be syncing */
    tree_temporary(dir, sizeof dir);
    place = sub("place");
    contents = sub("contents");
    journal = sub("journal");
    sh("true");
    shapes();
    /* The place is made again by make_place. */
    failures();
    attributes();
    access_lists();
    traps();
    races();
    closed();
    kills();
    sh("chmod -R u+rwx . ; true");
    tree_remove(dir);
    return tap_done();
}

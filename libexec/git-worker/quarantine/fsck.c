/*
 * Checks of incoming trees and commits that the library's parser does not make: names with which a
 * later checkout would write into a git directory, on this file system or on one that ignores case
 * or some characters; modes that git never writes; entries out of order; NUL in a commit.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "quarantine.h"

#define PARENTS_MAX 1024

/* The length of a character that HFS+ ignores in names; 0: it is not one of them. */
static size_t ignored_by_hfs(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    if (u[0] == 0xe2 && u[1] == 0x80 &&
        ((u[2] >= 0x8c && u[2] <= 0x8f) || (u[2] >= 0xaa && u[2] <= 0xae)))
        return 3;
    if (u[0] == 0xe2 && u[1] == 0x81 && u[2] >= 0xaa && u[2] <= 0xaf)
        return 3;
    return u[0] == 0xef && u[1] == 0xbb && u[2] == 0xbf ? 3 : 0;
}

/* Whether name is `what`, case and the differences of HFS+ and NTFS ignored: NTFS drops spaces and
 * dots at the end and a stream after a colon. */
static bool is_named(const char *name, const char *what)
{
    char plain[64];
    size_t n = 0;
    for (size_t skip; *name && n < sizeof plain - 1; name += skip ? skip : 1)
        if ((skip = ignored_by_hfs(name)) == 0)
            plain[n++] = *name;
    plain[n] = '\0';
    if (*name)
        return false; /* too long for any of them */
    plain[strcspn(plain, ":")] = '\0';
    for (n = strlen(plain); n && (plain[n - 1] == ' ' || plain[n - 1] == '.');)
        plain[--n] = '\0';
    return strcasecmp(plain, what) == 0;
}

static bool is_bad_name(const char *name)
{
    return !*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           is_named(name, ".git") || is_named(name, "git~1");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A file and a directory of the same name are apart in git's order. */
static int check_duplicates(struct request *r, const git_tree *tree)
{
    size_t n = git_tree_entrycount(tree);
    AMP_FREE const char **names = calloc(n + 1, sizeof *names);
    if (!names)
        return amp_fail_memory(r->err);
    for (size_t i = 0; i < n; i++)
        names[i] = git_tree_entry_name(git_tree_entry_byindex(tree, i));
    qsort(names, n, sizeof *names, compare_texts);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return refuse_incoming(r, "the tree %s has the name \"%s\" twice",
                                   git_oid_tostr_s(git_tree_id(tree)), names[i]);
    return 0;
}

int fsck_tree(struct request *r, const git_tree *tree)
{
    const char *id = git_oid_tostr_s(git_tree_id(tree));
    const git_tree_entry *last = NULL;
    for (size_t i = 0; i < git_tree_entrycount(tree); i++) {
        const git_tree_entry *e = git_tree_entry_byindex(tree, i);
        const char *name = git_tree_entry_name(e);
        git_filemode_t mode = git_tree_entry_filemode_raw(e);
        if (is_bad_name(name))
            return refuse_incoming(r, "the tree %s has the name \"%s\"", id, name);
        if (mode != GIT_FILEMODE_TREE && mode != GIT_FILEMODE_BLOB &&
            mode != GIT_FILEMODE_BLOB_EXECUTABLE && mode != GIT_FILEMODE_LINK &&
            mode != GIT_FILEMODE_COMMIT)
            return refuse_incoming(r, "the tree %s has the mode %o", id, (unsigned)mode);
        if (mode == GIT_FILEMODE_LINK && is_named(name, ".gitmodules"))
            return refuse_incoming(r, "the tree %s has a symbolic link .gitmodules", id);
        if (last && git_tree_entry_cmp(last, e) >= 0)
            return refuse_incoming(r, "the tree %s is not sorted", id);
        last = e;
    }
    return check_duplicates(r, tree);
}

int fsck_commit(struct request *r, git_odb_object *object, const git_commit *commit)
{
    const char *id = git_oid_tostr_s(git_odb_object_id(object));
    if (memchr(git_odb_object_data(object), '\0', git_odb_object_size(object)))
        return refuse_incoming(r, "the commit %s contains a NUL byte", id);
    if (git_commit_parentcount(commit) > PARENTS_MAX)
        return refuse_incoming(r, "the commit %s has more than %d parents", id, PARENTS_MAX);
    return 0;
}

/*
 * The extended attributes of a file or directory that belong to its state: those of the namespace
 * user, and the POSIX access control lists. As a text they are a line NAME=HEX each, in the order
 * of their names. Bytes of a name other than those from '!' to '~' without '%' and '=' are "%XX".
 */
#ifndef AMP_WORKTREE_SNAPSHOT_ATTR_H
#define AMP_WORKTREE_SNAPSHOT_ATTR_H

#include <amp/base/buf.h>

#define AMP_ATTRS_MOST 65536 /* bytes of the text */

/* *out: the text, for free(), or NULL if there are none (also on a file system that has none). 0;
 * 1: they are longer than the limit, and *out is NULL; -1 with errno. fd: open for reading. */
int amp_attrs_read(int fd, char **out);
/* Makes them those of the text (NULL: none). -1 with errno. */
int amp_attrs_set(int fd, const char *text);

#endif

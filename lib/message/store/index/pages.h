/*
 * Checksums of the index's pages, in a file beside it (index.db-sums), so that damage is found when
 * a page is read and nobody needs to read the complete file for it.
 *
 * A VFS in front of SQLite's own computes them: a page that goes into the file has its checksum
 * noted, a page that comes from the file is compared. The number of the page is part of the
 * checksum, and the checksum is not in the page. So it finds a changed, zeroed, lost, moved or
 * older page, and a file that another program wrote. A page that does not fit gives
 * SQLITE_IOERR_DATA.
 *
 * The write-ahead log has checksums of its own, which SQLite verifies when the first process opens
 * it: it stops at the first bad frame. That alone would leave a file with newer pages than the rest
 * of the log. So the file of checksums also notes
 * - the floor: the frame of our log that the pages in the file may reach. An index that reaches
 *   less has lost a part of its write-ahead log;
 * - whether pages are being written. Then there must be a write-ahead log.
 *
 * Crash safety. SQLite syncs the write-ahead log before it moves pages into the file, and uses it
 * again only after the file was synced. The checksums are written before SQLite notes that pages
 * were moved, and synced with the file. Until then these pages are read from the write-ahead log,
 * so it does not matter which of them, or of their checksums, a power loss leaves.
 */
#ifndef AMP_MESSAGE_STORE_INDEX_PAGES_H
#define AMP_MESSAGE_STORE_INDEX_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct sqlite3;

enum { AMP_PAGE = 4096 };
#define AMP_PAGES_SUFFIX "-sums"

/* The VFS's name; NULL: it could not be registered. Opening a file that has pages but no checksums
 * (of an earlier build, or they were removed) computes them; it is not trusted until it was
 * checked. */
const char *amp_pages_vfs(void);

/* Whether the pages of an open database's main file are compared, and the file was checked. */
bool amp_pages_trusted(struct sqlite3 *db);
/* Notes that the complete file was checked. */
void amp_pages_note_checked(struct sqlite3 *db);
/* The page that did not fit; 0: none. */
uint32_t amp_pages_bad(struct sqlite3 *db);

/* Notes that the index reaches frame n, after the commit. */
void amp_pages_reached(struct sqlite3 *db, uint64_t n);
/* Before the index is emptied: nothing is known to be reached. */
void amp_pages_restart(struct sqlite3 *db);
/* Before a checkpoint: all that was reached by now may go into the file. */
void amp_pages_checkpoint(struct sqlite3 *db);
/* Whether an index that reaches frame n can be complete, after its first read. */
bool amp_pages_complete(struct sqlite3 *db, uint64_t n);
/* Identifies the write-ahead log and its length. An unchanged value means that no process has
 * committed in between. 0: it is empty, or unknown. */
uint64_t amp_pages_wal(struct sqlite3 *db);

#endif

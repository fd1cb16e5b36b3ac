/*
 * Ports: where messages go. One interface over FIFOs, files, spool directories, commands and
 * standard output; nothing here ever blocks on a reader.
 *
 *   fifo:PATH     a FIFO; opened when a reader comes, opened again when it went away
 *   file:PATH     appended to
 *   spool:DIR     one file a message, in DIR/new
 *   command:ARGV  one long-lived process, NDJSON on its stdin; split into words, no shell
 *   unix:PATH     a listening socket file; connected again when its reader went away
 *   exec-each:ARGV  a process for each message, which is its stdin; its status is the outcome
 *   http(s)://…   a request for each message
 *   stdout        the program's own output
 */
#ifndef AMP_PORT_PORT_H
#define AMP_PORT_PORT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

enum amp_port_trait {
    AMP_PORT_PIPED = 1,   /* lines may lie unread between us and a reader */
    AMP_PORT_PROMPT = 2,  /* what is written there has arrived */
    AMP_PORT_REQUEST = 4, /* a server is asked, for each message */
    AMP_PORT_OUTPUT = 8,  /* the program's own output */
};

struct amp_port_options {
    const char *consumer;            /* part of a spool file's name */
    int64_t open_timeout_ms;         /* how long a message waits for a reader; < 0 for ever */
    size_t max_pending;              /* bytes that wait for this port at most */
    uint32_t jobs;                   /* processes of exec-each at once; 0: 4 */
    uint32_t attempts;               /* of a message that is tried one by one; 0: 5 */
    int64_t attempt_timeout_ms;      /* of one such attempt; 0 none */
    const char *const *http_headers; /* HOST=FILE */
    int n_http_headers;
    const char *http_ca;      /* certificates to trust instead of the system's; NULL none */
    bool unopened;            /* only its name is looked at: for who wants to know what it is */
    bool minds;               /* a reader that goes away is to be asked for: amp_port_lost */
    bool durable;             /* files are synced before a line counts as delivered */
    const char *also;         /* named where a port is unknown: what the caller takes besides */
    volatile const int *stop; /* non-zero: opening a port that takes its time ends; NULL none */
};

struct amp_port;

/* Codes: bad_port (USAGE), not_a_fifo, and what opening or creating says. Does not wait. */
int amp_port_new(const char *spec, const struct amp_port_options *opt, struct amp_port **out,
                 struct amp_error *err);
void amp_port_free(struct amp_port *p); /* drops what is pending; ends a command */
bool amp_port_has(const struct amp_port *p, enum amp_port_trait trait);
/* Whether what goes there leaves this machine. */
bool amp_port_is_network(const struct amp_port *p);

/* Takes one line (without LF) for delivery; `tag` comes back with its outcome. "buffer_full" past
 * the bound: nothing was taken. */
int amp_port_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                   struct amp_error *err);
/* The same for one that waits since a moment of amp_mono_ms already. */
int amp_port_offer_since(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                         int64_t since_ms, struct amp_error *err);
/* Whether it has use for another line now: a little is pending at most, so that who has the lines
 * may still choose among them. With `ahead` at most so many that its reader has not taken. */
bool amp_port_room(const struct amp_port *p, uint32_t ahead);
/* Lines whose reader is not known to have taken them; more where others write there too. */
uint32_t amp_port_untaken(const struct amp_port *p);

/* For the poll loop: the fds are -1 when there is nothing to wait for but the time; *timeout_ms is
 * lowered to what the port needs (-1 is for ever). */
#define AMP_PORT_FDS 2
void amp_port_watch(const struct amp_port *p, struct pollfd fds[AMP_PORT_FDS], int *timeout_ms);

/* Does what can be done without blocking. `done` is called for every line whose fate is known, in
 * the order of the offers (exec-each, http: as they end): why is NULL when it was delivered, else
 * the failure (no reader within the time, a command that keeps dying, an I/O error); its status is
 * NO where sending the same again cannot help. It may offer to other ports. */
typedef void (*amp_port_done_fn)(void *ctx, uint64_t tag, const struct amp_error *why);
void amp_port_step(struct amp_port *p, amp_port_done_fn done, void *ctx);

/* A reader that went away while nothing is written to it is noticed; what it left unread is pending
 * again. */
void amp_port_notice(struct amp_port *p);

/* With `minds`: whether a reader of a FIFO, a socket or a command went away. No other one is given
 * anything until amp_port_again said what it is to have first: lines that were told delivered and
 * are not acknowledged, by their numbers, in order. Those that the queue still has are told again
 * when they were delivered; the others go before all that waits. */
struct amp_port_line {
    uint64_t number, tag;
    struct amp_span line;
};
bool amp_port_lost(const struct amp_port *p);
int amp_port_again(struct amp_port *p, const struct amp_port_line *lines, uint32_t n,
                   struct amp_error *err);
/* During `done` with a failure of a line that was offered under the tag 0: that line. */
struct amp_span amp_port_failed(const struct amp_port *p);
/* During `done`: the number of the line that it is about, among all that were offered. */
uint64_t amp_port_number(const struct amp_port *p);
/* The number of the first line that it still has, or of the next one. */
uint64_t amp_port_first(const struct amp_port *p);

size_t amp_port_pending(const struct amp_port *p); /* bytes */

/* No more offers come. 1: everything is delivered and the port is closed (a reader that waited for
 * a first writer was let go, a command has ended); 0: not yet, watch and step on; -1: closed with
 * a failure that concerns no single line (a command that exited with a failure). */
int amp_port_finish(struct amp_port *p, struct amp_error *err);

/* Splits into words at blanks; '…', "…" and \ quote; nothing is expanded. The words are the
 * caller's: amp_argv_free. */
int amp_argv_split(const char *text, char ***out, struct amp_error *err);
void amp_argv_free(char **argv);

/* A spool file's name for a message: what `spool:` gives it, 32 hex digits and ".json". */
#define AMP_SPOOL_NAME_MAX 40
void amp_spool_name(const char *consumer, struct amp_span id, struct amp_span line,
                    char out[AMP_SPOOL_NAME_MAX]);

#endif

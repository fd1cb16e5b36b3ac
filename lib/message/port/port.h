/*
 * Ports: the destinations of messages. One interface for all kinds; no function waits for a reader.
 *
 *   fifo:PATH     a FIFO, opened when it has a reader, and again for the next reader
 *   file:PATH     lines are appended
 *   spool:DIR     a file for each message, in DIR/new
 *   command:ARGV  one long-lived process, NDJSON on its stdin; split into words, no shell
 *   unix:PATH     a listening socket file, connected again for the next reader
 *   exec-each:ARGV  a process for each message on its stdin; its status is the outcome
 *   http(s)://…   a request for each message
 *   stdout        the program's own output
 */
#ifndef AMP_MESSAGE_PORT_PORT_H
#define AMP_MESSAGE_PORT_PORT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>
#include <amp/base/child.h>

enum amp_port_trait {
    AMP_PORT_PIPED = 1,   /* written lines may be unread */
    AMP_PORT_PROMPT = 2,  /* written lines have arrived */
    AMP_PORT_REQUEST = 4, /* a request to a server for each message */
    AMP_PORT_OUTPUT = 8,  /* the program's own output */
    AMP_PORT_RUNS = 16,   /* a process for each message */
};

struct amp_port_options {
    const char *consumer;            /* part of a spool file's name */
    int64_t open_timeout_ms;         /* how long a message waits for a reader; < 0: no limit */
    size_t max_pending;              /* limit of the bytes that wait for this port */
    uint32_t jobs;                   /* processes of exec-each at the same time; 0: 4 */
    uint32_t attempts;               /* per message, for exec-each and HTTP; 0: 5 */
    int64_t attempt_timeout_ms;      /* of one such attempt; 0: none */
    const char *const *http_headers; /* HOST=FILE */
    int n_http_headers;
    const char *http_ca; /* certificates to trust instead of the system's; or NULL */
    bool unopened;       /* parses the name only */
    bool minds;          /* waits for the caller after a reader was lost: amp_port_lost */
    bool durable;        /* files are synced before a line counts as delivered */
    const char *also;    /* the caller's other names, for the error of an unknown port; or NULL */
    const struct amp_child_wrap *wrap; /* of the commands of exec-each; or NULL */
    volatile const int *stop;          /* non-zero: ends the opening of a port; or NULL */
};

struct amp_port;

/* USAGE bad_port; CANTCREAT not_a_fifo, not_a_file, not_a_socket and system errors. Does not wait.
 */
int amp_port_new(const char *spec, const struct amp_port_options *opt, struct amp_port **out,
                 struct amp_error *err);
void amp_port_free(struct amp_port *p); /* discards pending lines; ends a command */
bool amp_port_has(const struct amp_port *p, enum amp_port_trait trait);
/* Whether its messages leave this machine. */
bool amp_port_is_network(const struct amp_port *p);

/* Accepts one line (without LF) for delivery; `tag` comes back with its outcome. since_ms: since
 * when the line waits (amp_mono_ms). "buffer_full" beyond the limit: the line was not accepted. */
int amp_port_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                   int64_t since_ms, struct amp_error *err);
/* Whether the port should get another line now: little is pending, so the caller can still choose
 * the next line. With `ahead`: whether less than this many lines are unread. */
bool amp_port_room(const struct amp_port *p, uint32_t ahead);
/* The number of lines that no reader is known to have read; too high if others write there too. */
uint32_t amp_port_untaken(const struct amp_port *p);

/* For the poll loop: fills descriptors (-1: none) and lowers *timeout_ms (-1: no limit). */
#define AMP_PORT_FDS 2
void amp_port_watch(const struct amp_port *p, struct pollfd fds[AMP_PORT_FDS], int *timeout_ms);

/* Works without blocking. `done` is called for each line whose outcome is known, in the order of
 * the offers (exec-each, http: as they end): why is NULL for a delivered line, else the failure.
 * The failure's status is NO if sending the line again cannot help; its errno is ETIMEDOUT if the
 * receiver of a request may have the line all the same. `done` may offer to other
 * ports. A port always gets the same `done` and ctx. */
typedef void (*amp_port_done_fn)(void *ctx, uint64_t tag, const struct amp_error *why);
void amp_port_step(struct amp_port *p, amp_port_done_fn done, void *ctx);

/* Takes offered lines back of which nothing is written, and of which no attempt runs. Their outcome
 * is not reported. The command of exec-each that runs for such a line is ended; the line can be
 * taken back after that, and the attempt does not count. */
struct amp_port_recall {
    bool (*wanted)(void *ctx, uint64_t tag); /* in the order of the offers */
    void (*taken)(void *ctx, uint64_t tag);
    void *ctx;
    int64_t grace_ms; /* of a running command, between TERM and KILL */
};
void amp_port_withdraw(struct amp_port *p, const struct amp_port_recall *r);

/* Notices a lost reader while no line is written; the lines that it has not read are pending again.
 */
void amp_port_notice(struct amp_port *p);

/* With `minds`: whether a reader of a FIFO, a socket or a command was lost. The next one gets no
 * line before amp_port_again, which gives the port the delivered and unacknowledged lines, in the
 * order of their numbers. Lines that the queue still has are reported again when they are
 * delivered; the others are written before all waiting lines. */
struct amp_port_line {
    uint64_t number, tag;
    struct amp_span line;
};
bool amp_port_lost(const struct amp_port *p);
int amp_port_again(struct amp_port *p, const struct amp_port_line *lines, uint32_t n,
                   struct amp_error *err);
/* During `done` with the failure of a line of tag 0: the line. */
struct amp_span amp_port_failed(const struct amp_port *p);
/* During `done`: the number of the line among all offered lines. */
uint64_t amp_port_number(const struct amp_port *p);
/* The number of the first line in the queue, or of the next offer. */
uint64_t amp_port_first(const struct amp_port *p);

size_t amp_port_pending(const struct amp_port *p); /* bytes */

/* Called when no more offers come. 1: every line is delivered and the port is closed (a FIFO was
 * opened so that its reader sees end of file, a command has ended); 0: not yet, watch and step; -1:
 * closed with a failure of no single line (the exit status of a command). */
int amp_port_finish(struct amp_port *p, struct amp_error *err);

/* Splits into words at blanks; '…', "…" and \ quote; nothing is expanded. The caller frees the
 * words with amp_argv_free. */
int amp_argv_split(const char *text, char ***out, struct amp_error *err);
void amp_argv_free(char **argv);

/* The name of a message's spool file: 32 hex digits and ".json". */
#define AMP_SPOOL_NAME_MAX 40
void amp_spool_name(const char *consumer, struct amp_span id, struct amp_span line,
                    char out[AMP_SPOOL_NAME_MAX]);

#endif

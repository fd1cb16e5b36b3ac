/*
 * What the agent says leaves through amp-route, with the state directory and the routes of the
 * user, or as lines into --out. Lines of answers come from the outbox, so those of a killed process
 * leave with the next ones; amp-route recognises what it has delivered before.
 */
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>

#include "../mcp.h"
#include "protocol/terms.h"

#define ROUTE_MS   30000
#define GRACE_MS   2000
#define ANSWER_MAX ((size_t)16 << 20)
#define DEFAULT    "* => agents" /* the inbox, or the port, of each recipient */

/* ---- signatures ---- */

/* Who says the line: the agent, or ROLE/AGENT in a protocol whose agents speak as a role. */
static void principal_choose(const struct mcp *m, const struct amp_view *v,
                             char out[AMP_PRINCIPAL_MAX])
{
    bool by_role = v->protocol != AMP_PROTO_NONE && amp_terms_of(v->protocol)->acks_by_role;

    if (by_role && v->from.n && !amp_span_is(v->from, m->agent))
        snprintf(out, AMP_PRINCIPAL_MAX, "%.*s/%s", AMP_CLIP(v->from, 100), m->agent);
    else
        snprintf(out, AMP_PRINCIPAL_MAX, "%s", m->agent);
}

static int line_sign(struct mcp *m, struct amp_reader *reader, struct amp_span line,
                     struct amp_buf *out, struct amp_error *err)
{
    static const struct amp_check_options quick = {.heads = true};
    char principal[AMP_PRINCIPAL_MAX];
    struct amp_identities *ids = NULL;
    struct amp_view v;
    struct amp_identity_tool tool = {
        .state = m->state, .config = m->config, .principal = principal, .quiet = true};

    if (amp_reader_line(reader, line, &quick, &v, NULL, NULL, err) < 0)
        return -1;
    principal_choose(m, &v, principal);
    if (amp_identity_cli_open(m->identity, &tool, &ids, err) < 0)
        return -1;
    int rc = amp_identities_sign(ids, line, out, err) < 0 || amp_buf_str(out, "\n", err) < 0;
    amp_identities_close(ids);
    return rc ? -1 : 0;
}

static int lines_sign(struct mcp *m, struct amp_span lines, struct amp_buf *out,
                      struct amp_error *err)
{
    struct amp_reader *reader = amp_reader_new(NULL, err);
    int rc = reader ? 0 : -1;

    for (size_t at = 0; rc == 0 && at < lines.n;) {
        const char *p = lines.p + at, *end = memchr(p, '\n', lines.n - at);
        size_t n = end ? (size_t)(end - p) : lines.n - at;
        rc = line_sign(m, reader, (struct amp_span){p, n}, out, err);
        at += n + 1;
    }
    amp_reader_free(reader);
    return rc;
}

/* ---- amp-route ---- */

/* amp-route beside this program; else in PATH. */
static void route_find(char out[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    snprintf(out, PATH_MAX, "amp-route");
    if (n <= 0)
        return;
    self[n] = '\0';
    char beside[PATH_MAX + 16];
    snprintf(beside, sizeof beside, "%s/amp-route", dirname(self));
    if (strlen(beside) < PATH_MAX && access(beside, X_OK) == 0)
        memcpy(out, beside, strlen(beside) + 1);
}

/* The refusal in the router's answers. */
static int refusal_read(int fd, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    const struct amp_check_options any = {0};
    char path[48];
    struct amp_view v;

    amp_buf_init(&text, ANSWER_MAX);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct amp_reader *reader = amp_reader_new(NULL, err);
    if (!reader)
        return -1;
    amp_fail(err, AMP_NO, "refused",
             "amp-route refused the message; its dead letter has the reason");
    if (amp_file_read(AT_FDCWD, path, ANSWER_MAX, &text, NULL) == 0)
        for (size_t at = 0; at < text.len;) {
            const char *p = text.data + at, *end = memchr(p, '\n', text.len - at);
            size_t n = end ? (size_t)(end - p) : text.len - at;
            at += n + 1;
            if (amp_reader_line(reader, (struct amp_span){p, n}, &any, &v, NULL, NULL, NULL) <= 0 ||
                (v.kind != AMP_KIND_NACK && v.kind != AMP_KIND_ACK) || !v.body.ack.code.n)
                continue;
            char code[48];
            amp_span_copy(v.body.ack.code, code, sizeof code);
            amp_fail(err, AMP_NO, code, "%.*s", AMP_CLIP(v.body.ack.note, 300));
        }
    amp_reader_free(reader);
    return -1;
}

static int memory_file(struct amp_span text, struct amp_error *err)
{
    int fd = memfd_create("amp-mcp", MFD_CLOEXEC);

    if (fd < 0)
        return amp_fail_errno(err, AMP_TEMPFAIL, "memfd_create");
    if (amp_write_all(fd, text, err) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return amp_fail(err, AMP_TEMPFAIL, "no_memory", "no memory for a message");
}

static int route_run(struct mcp *m, struct amp_span lines, struct amp_error *err)
{
    char program[PATH_MAX], lock[32];
    const char *argv[16 + 2 * 64];
    size_t n = 0;
    struct amp_child child;
    struct amp_child_end end;

    AMP_CLOSE int in = memory_file(lines, err);
    AMP_CLOSE int out = in < 0 ? -1 : memory_file(AMP_SPAN(""), err);
    if (in < 0 || out < 0)
        return -1;
    route_find(program);
    snprintf(lock, sizeof lock, "%lldms", (long long)m->lock_timeout_ms);
    argv[n++] = program;
    argv[n++] = "--state";
    argv[n++] = m->state;
    argv[n++] = "--identity";
    argv[n++] = m->identity->require;
    argv[n++] = "--lock-timeout";
    argv[n++] = lock;
    if (m->config) {
        argv[n++] = "--config";
        argv[n++] = m->config;
    }
    for (int i = 0; i < m->routes->n && i < 64; i++) {
        argv[n++] = "--route";
        argv[n++] = m->routes->v[i];
    }
    if (m->routes->n == 0) {
        argv[n++] = "--route";
        argv[n++] = DEFAULT;
    }
    argv[n] = NULL;
    const struct amp_child_spec spec = {
        .argv = argv, .fd_in = in, .fd_out = out, .fd_err = STDERR_FILENO, .dies_with_us = true};
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, ROUTE_MS, GRACE_MS, &amp_stop, &end, err) < 0)
        return -1;
    if (end.exited && end.exit_code == 0)
        return 0;
    if (end.exited && end.exit_code == AMP_NO)
        return refusal_read(out, err);
    return amp_fail(err, AMP_TEMPFAIL, "route_failed",
                    end.exited ? "amp-route ended with status %d" : "amp-route was ended (%d)",
                    end.exited ? end.exit_code : end.signal);
}

/* ---- --out ---- */

static int file_write(struct mcp *m, struct amp_span lines, struct amp_error *err)
{
    struct amp_outq q = {.fd = -1};
    int fd = -1;

    if (amp_output_open(m->out_path, m->open_timeout_ms, -1, &amp_stop, &fd, err) < 0 ||
        amp_outq_open(&q, fd, true, MCP_TEXT_MAX, err) < 0)
        return -1;
    int rc = amp_outq_add(&q, lines, err) < 0 ||
             amp_outq_drain(&q, m->open_timeout_ms, &amp_stop, err) < 0;
    amp_outq_close(&q);
    return rc ? -1 : 0;
}

int mcp_emit(struct mcp *m, struct amp_span lines, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, MCP_TEXT_MAX);
    if (lines_sign(m, lines, &text, err) < 0)
        return -1;
    return m->out_path ? file_write(m, amp_buf_span(&text), err)
                       : route_run(m, amp_buf_span(&text), err);
}

/* ---- the outbox ---- */

#define ENTRIES_MAX 64

struct gathered {
    struct amp_buf lines;
    struct amp_store_entry_id ids[ENTRIES_MAX];
    uint32_t n;
};

static int entry_gather(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct gathered *g = ctx;

    if (g->n == ENTRIES_MAX)
        return 1;
    if (amp_buf_add(&g->lines, e->line.p, e->line.n, err) < 0 ||
        amp_buf_str(&g->lines, "\n", err) < 0)
        return -1;
    g->ids[g->n++] = (struct amp_store_entry_id){.n = e->n, .index = e->index};
    return 0;
}

static int entries_send(struct mcp *m, struct gathered *g, struct amp_error *err)
{
    struct amp_error why = {0};

    for (;;) {
        g->n = 0;
        amp_buf_reset(&g->lines);
        if (amp_store_outbox(m->store, m->box, entry_gather, g, err) < 0)
            return -1;
        if (g->n == 0)
            break;
        struct amp_error e;
        int rc = mcp_emit(m, amp_buf_span(&g->lines), &e);
        if (rc < 0 && e.status != AMP_NO) {
            *err = e;
            return -1;
        }
        if (rc < 0) /* the router has it as a dead letter */
            why = e;
        if (amp_store_outbox_close(m->store, m->box, g->ids, g->n, err) < 0)
            return -1;
    }
    if (amp_store_sync(m->store, err) < 0)
        return -1;
    if (!why.code[0])
        return 0;
    *err = why;
    return -1;
}

int mcp_emit_outbox(struct mcp *m, struct amp_error *err)
{
    struct gathered g = {.n = 0};

    if (amp_store_sync(m->store, err) < 0)
        return -1;
    amp_buf_init(&g.lines, MCP_TEXT_MAX);
    int rc = entries_send(m, &g, err);
    amp_buf_release(&g.lines);
    return rc;
}

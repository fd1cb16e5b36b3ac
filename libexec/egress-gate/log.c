/* Writes a record for each decision. */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "gate.h"

static int record_write(struct gate_log *log, const struct gate_record *r, struct amp_buf *line,
                        struct amp_error *err)
{
    char time[AMP_TIME_MAX], address[INET6_ADDRSTRLEN];
    struct amp_jw w;
    amp_time_format(amp_now_ms(), time);
    amp_jw_init(&w, line);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "time", time);
    amp_jw_member_text(&w, "tool", "egress-gate");
    amp_jw_some_str(&w, "client", amp_span_str(log->client));
    amp_jw_some_int(&w, "connection", (int64_t)r->connection);
    if (r->host) {
        amp_jw_member_text(&w, "host", r->host->name);
        amp_jw_member_int(&w, "port", r->host->port);
    }
    if (r->address) {
        amp_net_address_text(r->address, address);
        amp_jw_member_text(&w, "address", address);
    }
    amp_jw_some_str(&w, "server_name", amp_span_str(r->server_name));
    amp_jw_member_text(&w, "decision", r->decision);
    amp_jw_some_str(&w, "code", amp_span_str(r->code));
    amp_jw_some_str(&w, "what", amp_span_str(r->why));
    if (strcmp(r->decision, "ended") == 0) {
        amp_jw_member_uint(&w, "bytes_out", r->bytes_out);
        amp_jw_member_uint(&w, "bytes_in", r->bytes_in);
        amp_jw_member_int(&w, "ms", r->ms);
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

int gate_log_add(struct gate_log *log, const struct gate_record *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 8192);
    if (log->full)
        return 0;
    if (record_write(log, r, &line, err) < 0)
        return -1;
    if (log->out.added + line.len > log->most) {
        static const struct gate_record full = {
            .decision = "refused", .code = "log_full", .why = "no further connections are made"};
        amp_buf_reset(&line);
        log->full = true;
        if (record_write(log, &full, &line, err) < 0)
            return -1;
    }
    if (amp_outq_add(&log->out, amp_buf_span(&line), err) < 0)
        return -1;
    return amp_outq_flush(&log->out, err) < 0 ? -1 : 0;
}

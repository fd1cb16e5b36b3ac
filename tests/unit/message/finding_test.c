/* Rejection records: each one that bad lines make fits its published schema, and says where. */
#include <stdlib.h>

#include <amp/protocol/protocol.h>

#include "../tap.h"

static struct amp_schema *schema;
static struct amp_schema_run *run;
static struct amp_buf record;
static int fits, findings;
static char first[128]; /* "code pointer" of the first finding */

static void check(void *ctx, const struct amp_finding *f)
{
    struct amp_line_place at = {"test", 7, 1000, INT64_C(1772116327000)};
    struct amp_error err;
    struct amp_json_fault fault;
    struct amp_tape t;
    if (findings++ == 0)
        snprintf(first, sizeof first, "%s %s", f->code, f->pointer);
    amp_buf_reset(&record);
    amp_tape_init(&t, NULL);
    if (amp_finding_record(f, &at, &record, &err) == 0 && record.data[record.len - 1] == '\n' &&
        amp_tape_scan(&t, record.data, record.len, &fault) == 0 &&
        amp_schema_check(schema, run, &t, 0, &err) == 1)
        fits++;
    else
        printf("# %.*s", (int)record.len, record.data);
    amp_tape_release(&t);
}

#define AMP(rest) "{\"protocol_version\":\"AMP/1.0\",\"task_id\":\"T-2026-044\"," rest "}"

static const struct {
    const char *line, *first;
} cases[] = {
    {"", "invalid_json "},
    {"{", "invalid_json "},
    {"{\"a\":1,\"a\":2}", "duplicate_key "},
    {"\"\x80\"", "invalid_utf8 "},
    {"[]", "unknown_protocol "},
    {"{\"msg_id\":\"x\"}", "missing_field /type"},
    {AMP("\"type\":\"nonsense\\u001b[2J\""), "bad_enum /type"},
    {AMP("\"type\":\"ack\",\"a/b~c\":1"), "missing_field /ref_msg_id"},
    {AMP("\"type\":\"ack\",\"ref_msg_id\":\"m\",\"from\":\"admin\",\"ack_stage\":\"READ\","
         "\"timestamp\":\"2026-02-26T14:32:07Z\",\"a/b~c\":1"),
     "unknown_field /a~1b~0c"},
    {AMP("\"type\":\"ack\",\"ref_msg_id\":5,\"from\":\"admin\",\"ack_stage\":\"READ\","
         "\"timestamp\":\"2026-02-26T14:32:07Z\""),
     "bad_type /ref_msg_id"},
    {"{\"message_id\":\"x\"}", "validation_error /producer_id"},
    {"{\"protocol\":\"aof\"}", "invalid_envelope /version"},
    {"{\"aop_version\":\"3.0\"}", "E_PARSE_FAILURE /aop_version"},
    {"{\"eventId\":\"\"}", "bad_value /seq"},
    {"\"AOF/1 {}\"", "invalid_envelope /protocol"},
};

int main(void)
{
    struct amp_error err;
    const struct amp_schema_file *file = amp_schema_file_find(AMP_SPAN("records/rejection.json"));
    struct amp_schema_options opt = {.formats = true};
    struct amp_reader *reader = amp_reader_new(NULL, &err);
    amp_buf_init(&record, 1 << 20);
    if (!reader || !file || !(run = amp_schema_run_new(&err)) ||
        !(schema = amp_schema_compile(file->text, &opt, &err))) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_view v;
        fits = findings = 0;
        first[0] = '\0';
        TAP_INT(amp_reader_line(reader, amp_span_str(cases[i].line), NULL, &v, check, NULL, &err),
                0, "the line is refused");
        TAP_OK(findings > 0 && fits == findings, "its records fit their schema");
        TAP_STR(first, cases[i].first, "the first says what and where");
    }
    amp_schema_free(schema);
    amp_schema_run_free(run);
    amp_reader_free(reader);
    amp_buf_release(&record);
    return tap_done();
}

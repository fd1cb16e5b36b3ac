/* Prints AMP messages for the benchmarks: corpus KIND MEGABYTES. The kinds: mixed (realistic, about
 * 1 KB a line), invalid (mixed, each line with one fault), strings, numbers, deep. The same
 * arguments always print the same bytes. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;
static char line[1 << 20];
static size_t used;

static unsigned pick(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state % n);
}

__attribute__((format(printf, 1, 2))) static void put(const char *fmt, ...)
{
    __builtin_va_list ap;
    __builtin_va_start(ap, fmt);
    used += (size_t)vsnprintf(line + used, sizeof line - used, fmt, ap);
    __builtin_va_end(ap);
}

static void words(unsigned n)
{
    static const char *const list[] = {
        "the",    "timer",  "drift",  "after",   "sleep",      "rebuild",      "window", "handle",
        "error",  "test",   "passes", "module",  "a",          "of",           "and",    "when",
        "branch", "commit", "review", "restart", "\\\"ok\\\"", "na\xc3\xafve", "retry",  "\\n",
        "queue",  "with",   "state",  "lock",    "file.c",     "agent",        "must",   "not",
    };
    for (unsigned i = 0; i < n; i++)
        put("%s%s", i ? " " : "", list[pick(sizeof list / sizeof *list)]);
}

static void quoted(unsigned n)
{
    put("\"");
    words(n);
    put("\"");
}

static void envelope(const char *type, const char *from, const char *to, const char *kind)
{
    static unsigned long ms = 1772116327001;
    /* A fault that the envelope's schema finds, early or late in the line. */
    const char *version = "AMP/1.0";
    if (!strcmp(kind, "invalid") && pick(2))
        to = "nobody";
    else if (!strcmp(kind, "invalid"))
        version = "AMP/2.0";
    put("{\"msg_id\":\"%s-T-2026-%03u-%lu\",\"protocol_version\":\"%s\",\"type\":\"%s\","
        "\"from\":\"%s\",\"to\":\"%s\",\"task_id\":\"T-2026-%03u\","
        "\"timestamp\":\"2026-02-%02uT14:%02u:07+00:00\",\"requires_ack\":%s,\"payload\":{",
        type, 44u, ms, version, type, from, to, 44u, 1 + pick(28), pick(60),
        strcmp(type, "escalation") ? "true,\"ack_timeout_sec\":300" : "false");
    ms += 1 + pick(9);
}

static void dispatch(const char *kind)
{
    envelope("task_dispatch", "coordinator", "executor", kind);
    put("\"description\":");
    if (!strcmp(kind, "strings")) {
        put("\"");
        for (int i = 0; i < 400; i++) {
            words(30);
            put(" ");
        }
        put("\"");
    } else {
        quoted(20 + pick(30));
    }
    put(",\"repo\":\"/srv/repositories/timer\",\"branch\":\"feature/timer-%u\",\"subtasks\":[",
        pick(1000));
    unsigned n = 1 + pick(3);
    for (unsigned i = 0; i < n; i++) {
        put("%s{\"subtask_id\":\"T-2026-044-S%u\",\"description\":", i ? "," : "", i + 1);
        quoted(5 + pick(10));
        put(",\"estimated_lines\":%u}", 10 + pick(200));
    }
    put("],\"acceptance_criteria\":[");
    n = 2 + pick(4);
    for (unsigned i = 0; i < n; i++) {
        put(i ? "," : "");
        quoted(4 + pick(8));
    }
    put("],\"risk_level\":\"medium\",\"forbidden_actions\":[\"change permissions\",\"force push\"],"
        "\"tech_constraints\":{\"swift\":\"6.0\",\"minimum_os\":14");
    if (!strcmp(kind, "numbers")) {
        put(",\"samples\":[");
        for (int i = 0; i < 2000; i++)
            put("%s%u", i ? "," : "", pick(1000));
        put("]");
    } else if (!strcmp(kind, "deep")) {
        put(",\"tree\":");
        for (int i = 0; i < 100; i++)
            put(i & 1 ? "[" : "{\"a\":");
        put("0");
        for (int i = 99; i >= 0; i--)
            put(i & 1 ? "]" : "}");
    }
    put("}}}");
}

static void result(const char *kind)
{
    envelope("task_result", "executor", "coordinator", kind);
    put("\"subtask_id\":\"T-2026-044-S1\",\"completion_status\":\"complete\",\"diff_summary\":{"
        "\"files_changed\":[\"src/timer.c\",\"src/timer.h\",\"tests/"
        "timer_test.c\"],\"lines_added\":"
        "%u,\"lines_removed\":%u},\"self_assessment\":{\"criteria_met\":[true,null,true],\"notes\":"
        "[",
        pick(300), pick(200));
    quoted(12);
    put("]},\"work_log\":[");
    unsigned n = 3 + pick(4);
    for (unsigned i = 0; i < n; i++) {
        put("%s{\"timestamp\":\"2026-02-26T14:%02u:00Z\",\"action\":\"edit\",\"file\":"
            "\"src/timer.c\",\"detail\":",
            i ? "," : "", 20 + i);
        quoted(6 + pick(10));
        put("}");
    }
    put("],\"commit_hash\":\"a3f8d21\"}}");
}

static void verdict(const char *kind)
{
    envelope("review_verdict", "reviewer", "coordinator", kind);
    put("\"decision\":\"rejected\",\"criteria_results\":[");
    unsigned n = 2 + pick(4);
    for (unsigned i = 0; i < n; i++) {
        put("%s{\"criterion\":", i ? "," : "");
        quoted(5);
        put(",\"passed\":%s,\"evidence\":", pick(3) ? "true" : "null");
        quoted(8 + pick(8));
        put("}");
    }
    put("],\"issues\":[{\"severity\":\"critical\",\"file\":\"src/timer.c\",\"line\":%u,"
        "\"description\":",
        1 + pick(900));
    quoted(15);
    put(",\"suggested_fix\":");
    quoted(10);
    put("}],\"confidence\":0.9%u}}", pick(10));
}

static void request(const char *kind)
{
    envelope("review_request", "coordinator", "reviewer", kind);
    put("\"original_dispatch_ref\":\"task_dispatch-T-2026-044-1772116327001\",\"task_result_ref\":"
        "\"task_result-T-2026-044-1772116328001\",\"review_scope\":\"full\",\"diff_url\":"
        "\"file:///srv/repositories/timer#main...a3f8d21\",\"reject_count\":%u,"
        "\"coordinator_notes\":",
        pick(2));
    quoted(30 + pick(20));
    put(",\"ci_status\":{\"build\":\"passed\",\"lint\":\"passed\",\"tests\":\"running\","
        "\"last_updated\":\"2026-02-26T14:30:00Z\"}}}");
}

static void escalation(const char *kind)
{
    envelope("escalation", "coordinator", "admin", kind);
    put("\"escalation_type\":\"conflict\",\"severity\":\"critical\",\"triggered_by\":"
        "\"coordinator\","
        "\"description\":");
    quoted(25);
    put(",\"affected_msgs\":[\"task_dispatch-T-2026-044-1772116327001\"],\"system_state_snapshot\":"
        "{"
        "\"task_status\":\"locked\",\"reject_count\":%u,\"last_successful_msg_id\":\"\"},"
        "\"suggested_actions\":[",
        pick(4));
    quoted(8);
    put(",");
    quoted(8);
    put("],\"auto_suspended\":true}}");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 64;
    const char *kind = argv[1];
    unsigned long long want = strtoull(argv[2], NULL, 10) << 20, done = 0;
    bool usual = !strcmp(kind, "mixed") || !strcmp(kind, "invalid");
    while (done < want) {
        unsigned type = usual ? pick(10) : 0;
        used = 0;
        if (type < 3)
            dispatch(kind);
        else if (type < 6)
            result(kind);
        else if (type < 8)
            verdict(kind);
        else if (type < 9)
            request(kind);
        else
            escalation(kind);
        line[used++] = '\n';
        if (fwrite(line, 1, used, stdout) != used)
            return 74;
        done += used;
    }
    return fflush(stdout) ? 74 : 0;
}

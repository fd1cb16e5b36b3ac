/* The AMP messages of the corpus. */
#include <string.h>

#include "corpus.h"

static void envelope(const char *type, const char *from, const char *to, const char *kind)
{
    static unsigned long ms = 1772116327001;
    /* A fault that the envelope's schema finds, early or late in the line. */
    const char *version = "AMP/1.0";
    if (!strcmp(kind, "amp-bad") && corpus_pick(2))
        to = "nobody";
    else if (!strcmp(kind, "amp-bad"))
        version = "AMP/2.0";
    corpus_put("{\"msg_id\":\"%s-T-2026-%03u-%lu\",\"protocol_version\":\"%s\",\"type\":\"%s\","
               "\"from\":\"%s\",\"to\":\"%s\",\"task_id\":\"T-2026-%03u\","
               "\"timestamp\":\"2026-02-%02uT14:%02u:07+00:00\",\"requires_ack\":%s,\"payload\":{",
               type, 44u, ms, version, type, from, to, 44u, 1 + corpus_pick(28), corpus_pick(60),
               strcmp(type, "escalation") ? "true,\"ack_timeout_sec\":300" : "false");
    ms += 1 + corpus_pick(9);
}

static void dispatch(const char *kind)
{
    envelope("task_dispatch", "coordinator", "executor", kind);
    corpus_put("\"description\":");
    if (!strcmp(kind, "strings")) {
        corpus_put("\"");
        for (int i = 0; i < 400; i++) {
            corpus_words(30);
            corpus_put(" ");
        }
        corpus_put("\"");
    } else if (!strcmp(kind, "escapes")) {
        corpus_put("\"");
        for (int i = 0; i < 2000; i++)
            corpus_put("%s", corpus_pick(2) ? "\\n\\u00e9" : "a\\\"b\xc3\xa9");
        corpus_put("\"");
    } else if (!strcmp(kind, "long")) {
        corpus_put("\"");
        for (int i = 0; i < 1000; i++) {
            corpus_words(10);
            corpus_put(" ");
        }
        corpus_put("\"");
    } else {
        corpus_text(20 + corpus_pick(30));
    }
    corpus_put(
        ",\"repo\":\"/srv/repositories/timer\",\"branch\":\"feature/timer-%u\",\"subtasks\":[",
        corpus_pick(1000));
    unsigned n = 1 + corpus_pick(3);
    for (unsigned i = 0; i < n; i++) {
        corpus_put("%s{\"subtask_id\":\"T-2026-044-S%u\",\"description\":", i ? "," : "", i + 1);
        corpus_text(5 + corpus_pick(10));
        corpus_put(",\"estimated_lines\":%u}", 10 + corpus_pick(200));
    }
    corpus_put("],\"acceptance_criteria\":[");
    n = 2 + corpus_pick(4);
    for (unsigned i = 0; i < n; i++) {
        corpus_put("%s", i ? "," : "");
        corpus_text(4 + corpus_pick(8));
    }
    corpus_put(
        "],\"risk_level\":\"medium\",\"forbidden_actions\":[\"change permissions\",\"force push\"],"
        "\"tech_constraints\":{\"swift\":\"6.0\",\"minimum_os\":14");
    if (!strcmp(kind, "numbers")) {
        corpus_put(",\"samples\":[");
        for (int i = 0; i < 2000; i++)
            corpus_put("%s%u", i ? "," : "", corpus_pick(1000));
        corpus_put("]");
    } else if (!strcmp(kind, "deep")) {
        corpus_put(",\"tree\":");
        for (int i = 0; i < 100; i++)
            corpus_put("%s", i & 1 ? "[" : "{\"a\":");
        corpus_put("0");
        for (int i = 99; i >= 0; i--)
            corpus_put("%s", i & 1 ? "]" : "}");
    } else if (!strcmp(kind, "keys")) {
        for (int i = 0; i < 300; i++)
            corpus_put(",\"key_%u_%d\":%u", corpus_pick(1000), i, corpus_pick(10));
    }
    corpus_put("}}}");
}

static void result(const char *kind)
{
    envelope("task_result", "executor", "coordinator", kind);
    corpus_put(
        "\"subtask_id\":\"T-2026-044-S1\",\"completion_status\":\"complete\",\"diff_summary\":{"
        "\"files_changed\":[\"src/timer.c\",\"src/timer.h\",\"tests/"
        "timer_test.c\"],\"lines_added\":"
        "%u,\"lines_removed\":%u},\"self_assessment\":{\"criteria_met\":[true,null,true],\"notes\":"
        "[",
        corpus_pick(300), corpus_pick(200));
    corpus_text(12);
    corpus_put("]},\"work_log\":[");
    unsigned n = 3 + corpus_pick(4);
    for (unsigned i = 0; i < n; i++) {
        corpus_put("%s{\"timestamp\":\"2026-02-26T14:%02u:00Z\",\"action\":\"edit\",\"file\":"
                   "\"src/timer.c\",\"detail\":",
                   i ? "," : "", 20 + i);
        corpus_text(6 + corpus_pick(10));
        corpus_put("}");
    }
    corpus_put("],\"commit_hash\":\"a3f8d21\"}}");
}

static void verdict(const char *kind)
{
    envelope("review_verdict", "reviewer", "coordinator", kind);
    corpus_put("\"decision\":\"rejected\",\"criteria_results\":[");
    unsigned n = 2 + corpus_pick(4);
    for (unsigned i = 0; i < n; i++) {
        corpus_put("%s{\"criterion\":", i ? "," : "");
        corpus_text(5);
        corpus_put(",\"passed\":%s,\"evidence\":", corpus_pick(3) ? "true" : "null");
        corpus_text(8 + corpus_pick(8));
        corpus_put("}");
    }
    corpus_put("],\"issues\":[{\"severity\":\"critical\",\"file\":\"src/timer.c\",\"line\":%u,"
               "\"description\":",
               1 + corpus_pick(900));
    corpus_text(15);
    corpus_put(",\"suggested_fix\":");
    corpus_text(10);
    corpus_put("}],\"confidence\":0.9%u}}", corpus_pick(10));
}

static void request(const char *kind)
{
    envelope("review_request", "coordinator", "reviewer", kind);
    corpus_put(
        "\"original_dispatch_ref\":\"task_dispatch-T-2026-044-1772116327001\",\"task_result_ref\":"
        "\"task_result-T-2026-044-1772116328001\",\"review_scope\":\"full\",\"diff_url\":"
        "\"file:///srv/repositories/timer#main...a3f8d21\",\"reject_count\":%u,"
        "\"coordinator_notes\":",
        corpus_pick(2));
    corpus_text(30 + corpus_pick(20));
    corpus_put(",\"ci_status\":{\"build\":\"passed\",\"lint\":\"passed\",\"tests\":\"running\","
               "\"last_updated\":\"2026-02-26T14:30:00Z\"}}}");
}

static void escalation(const char *kind)
{
    envelope("escalation", "coordinator", "admin", kind);
    corpus_put("\"escalation_type\":\"conflict\",\"severity\":\"critical\",\"triggered_by\":"
               "\"coordinator\","
               "\"description\":");
    corpus_text(25);
    corpus_put(
        ",\"affected_msgs\":[\"task_dispatch-T-2026-044-1772116327001\"],\"system_state_snapshot\":"
        "{"
        "\"task_status\":\"locked\",\"reject_count\":%u,\"last_successful_msg_id\":\"\"},"
        "\"suggested_actions\":[",
        corpus_pick(4));
    corpus_text(8);
    corpus_put(",");
    corpus_text(8);
    corpus_put("],\"auto_suspended\":true}}");
}

void corpus_amp(const char *kind, unsigned type)
{
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
}

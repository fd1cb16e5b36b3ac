/* The agent contract: environment, exit statuses, answers, work logs. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../scratch.h"
#include "../tap.h"
#include "work/agent/contract/contract.h"

static const char *get(const struct amp_env *e, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < e->n; i++)
        if (!strncmp(e->v[i], name, n) && e->v[i][n] == '=')
            return e->v[i] + n + 1;
    return "(absent)";
}

static void test_env(const struct amp_contract *c, const struct amp_attempt *a)
{
    static const char *const extra[] = {"GIT_CONFIG_COUNT=1", NULL};
    char path[] = "PATH=/bin", git[] = "GIT_DIR=/x", ssh[] = "GIT_SSH_COMMAND=ssh -i k";
    char amp[] = "AMP_RESULT=/elsewhere", other[] = "AMP_SECRET=1", term[] = "TERM=xterm",
         bad[] = "NOT";
    char *parent[] = {path, git, ssh, amp, other, term, bad, NULL};
    struct amp_contract with = *c;
    struct amp_env e;
    struct amp_error err;

    with.extra = extra;
    TAP_INT(amp_contract_env(&with, a, parent, &e, &err), 0, "an environment is made");
    TAP_STR(get(&e, "PATH"), "/bin", "what is not ours is inherited");
    TAP_STR(get(&e, "GIT_DIR"), "(absent)", "GIT_DIR is not");
    TAP_STR(get(&e, "AMP_SECRET"), "(absent)", "AMP_SECRET is not");
    TAP_STR(get(&e, "GIT_SSH_COMMAND"), "ssh -i k", "how to reach a server is");
    TAP_STR(get(&e, "AMP_RESULT"), a->result, "AMP_RESULT is the attempt's");
    TAP_STR(get(&e, "TERM"), "dumb", "TERM is dumb");
    TAP_STR(get(&e, "AMP_ATTEMPT"), "3", "the attempt's number");
    TAP_STR(get(&e, "AMP_DIFF"), "", "no diff, empty AMP_DIFF");
    TAP_STR(get(&e, "GIT_COMMITTER_EMAIL"), "ada@agents.invalid", "the agent commits");
    TAP_STR(get(&e, "GIT_CONFIG_COUNT"), "1", "extra variables");
    size_t n = 0;
    for (size_t i = 0; i < e.n; i++)
        n += !strncmp(e.v[i], "TERM=", 5);
    TAP_INT(n, 1, "each variable stands once");
    TAP_OK(e.v[e.n] == NULL, "NULL-terminated");
    amp_env_release(&e);
}

static void test_ends(void)
{
    static const struct {
        struct amp_child_end end;
        enum amp_attempt_end want;
        const char *name;
    } cases[] = {
        {{.exited = true, .exit_code = 0}, AMP_END_DONE, "exit 0"},
        {{.exited = true, .exit_code = 75}, AMP_END_REPEAT, "exit 75"},
        {{.exited = true, .exit_code = 1}, AMP_END_FAILED, "exit 1"},
        {{.exited = true, .exit_code = 125}, AMP_END_FAILED, "exit 125"},
        {{.exited = true, .exit_code = 126}, AMP_END_MACHINERY, "exit 126"},
        {{.exited = true, .exit_code = 127}, AMP_END_MACHINERY, "exit 127"},
        {{.exited = true, .exit_code = 128}, AMP_END_FAILED, "exit 128"},
        {{.exited = true, .exit_code = 137}, AMP_END_MACHINERY, "exit 137, a killed child"},
        {{.exited = true, .exit_code = 192}, AMP_END_MACHINERY, "exit 192"},
        {{.exited = true, .exit_code = 193}, AMP_END_FAILED, "exit 193"},
        {{.signaled = true, .signal = SIGSEGV}, AMP_END_MACHINERY, "a crash"},
        {{.exited = true, .exit_code = 0, .timed_out = true}, AMP_END_MACHINERY, "a time limit"},
        {{.signaled = true, .signal = SIGTERM, .stopped_by_us = true}, AMP_END_STOPPED, "stopped"},
    };
    char why[256];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TAP_INT(amp_attempt_read_end(&cases[i].end, why, sizeof why), cases[i].want, cases[i].name);
        TAP_OK(*why, "%s: %s", cases[i].name, why);
    }
}

static void put(const char *path, const char *text)
{
    struct amp_error err;
    if (amp_file_write_atomic(AT_FDCWD, path, 0600, amp_span_str(text), &err))
        abort();
}

static void test_answers(const struct amp_attempt *a)
{
    static const struct {
        const char *schema, *text;
        bool good;
    } cases[] = {
        {"result.json", "{}", true},
        {"result.json", "{\"completion_status\":\"partial\",\"blockers\":[\"b\"]}", true},
        {"result.json", "{\"self_assessment\":{\"criteria_met\":[true,null,false]}}", true},
        {"result.json", "{\"self_assessment\":{\"criteria_met\":[1]}}", false},
        {"result.json", "{\"completion_status\":\"done\"}", false},
        {"result.json", "{\"unknown\":1}", false},
        {"result.json", "[]", false},
        {"result.json", "{\"notes\":", false},
        {"result.json", "", false},
        {"verdict.json", "{\"decision\":\"approved\",\"confidence\":1}", true},
        {"verdict.json", "{\"decision\":\"approved\"}", false},
        {"verdict.json", "{\"confidence\":1}", false},
        {"verdict.json", "{\"decision\":\"approved\",\"confidence\":1.5}", false},
        {NULL, "{\"retry_after_sec\":5}", true},
        {NULL, "7", false},
    };
    json_t *j = NULL;
    struct amp_error err;

    unlink(a->result);
    TAP_INT(amp_answer_read(a, "result.json", &j, &err), 0, "no file is no answer");
    TAP_OK(!j, "and gives none");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put(a->result, cases[i].text);
        int rc = amp_answer_read(a, cases[i].schema, &j, &err);
        TAP_OK((rc == 0) == cases[i].good, "%s: %s", cases[i].text, rc ? err.what : "good");
        if (rc)
            TAP_INT(err.status, AMP_DATAERR, "the status of a bad answer");
        else
            json_decref(j);
    }
    unlink(a->result);
    TAP_INT(symlink("/etc/hostname", a->result), 0, "a link");
    TAP_INT(amp_answer_read(a, "result.json", &j, &err), -1, "is not followed");
    unlink(a->result);
}

static void test_log(const struct amp_attempt *a)
{
    json_t *log = json_array();
    struct amp_error err;

    put(a->work_log,
        "{\"timestamp\":\"2026-02-26T14:28:00Z\",\"action\":\"edit\",\"file\":\"a.c\"}\n"
        "plain\ttext\n\n{\"broken\n\xff\xfe\n{\"timestamp\":\"yesterday\",\"action\":\"x\"}");
    TAP_INT(amp_work_log_read(a, 0, log, &err), 0, "a mixed log is read");
    TAP_INT(json_array_size(log), 4, "what is no text is left out");
    json_t *first = json_array_get(log, 0), *second = json_array_get(log, 1),
           *last = json_array_get(log, 3);
    TAP_STR(json_string_value(json_object_get(first, "timestamp")), "2026-02-26T14:28:00Z",
            "its time");
    TAP_STR(json_string_value(json_object_get(first, "detail")), "", "what is absent is empty");
    TAP_STR(json_string_value(json_object_get(second, "action")), "note", "plain text is a note");
    TAP_STR(json_string_value(json_object_get(second, "detail")), "plain text", "made safe");
    TAP_STR(json_string_value(json_object_get(last, "timestamp")), "1970-01-01T00:00:00.000Z",
            "no time is now");
    json_decref(log);

    char line[16];
    put(a->err, "one\ntwo \x1b[31m red\n\n");
    amp_attempt_last_line(a->err, line, sizeof line);
    TAP_STR(line, "two ?[31m red", "the last line, made safe");
    amp_attempt_last_line("/nowhere", line, sizeof line);
    TAP_STR(line, "", "no file, no last line");
}

int main(void)
{
    const char *dir = scratch();
    struct amp_attempt a;
    struct amp_error err;

    const struct amp_contract c = {
        .role = "executor",
        .agent = "ada",
        .task = "T-2026-001",
        .subtask = "T-2026-001-S1",
        .attempt = 3,
        .state_dir = dir,
        .message = AMP_SPAN("{}"),
        .criteria = AMP_SPAN("[]"),
    };
    TAP_INT(amp_attempt_make(&c, &a, &err), 0, "a directory for the attempt");
    TAP_INT(access(a.message, R_OK), 0, "with the message");
    TAP_INT(access(a.criteria, R_OK), 0, "and the criteria");
    TAP_OK(access(a.diff, F_OK) != 0, "without a diff that nobody gave");
    struct amp_contract evil = c;
    evil.task = "../../etc";
    TAP_INT(amp_attempt_make(&evil, &a, &err), -1, "a task that leads elsewhere is refused");
    test_env(&c, &a);
    test_ends();
    test_answers(&a);
    test_log(&a);
    return tap_done();
}

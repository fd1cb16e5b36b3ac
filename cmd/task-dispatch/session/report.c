/* task-dispatch session report, escalate: the end of a session, and another priority of a TASK. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "../tasks/person.h"
#include "../tasks/tasks.h"
#include "../verbs.h"
#include "base/codes.h"
#include "base/file/repository.h"
#include "cli/config.h"
#include "flow/identity/person.h"
#include "flow/session/account/escalate.h"
#include "flow/session/account/jobs.h"
#include "flow/session/account/report.h"
#include "flow/session/account/trail.h"
#include "protocol/compose/json.h"
#include "session.h"
#include "json/record.h"

static bool interim;
static const char *reason;

const struct amp_opt session_report_opts[] = {
    {0, "interim", AMP_OPT_FLAG, &interim, NULL,
     "also before all TASKs have ended; records nothing"},
    AMP_OPT_END,
};
const struct amp_opt session_escalate_opts[] = {
    {0, "reason", AMP_OPT_STRING, &reason, "TEXT", "why"},
    AMP_OPT_END,
};

/* ---- the report ---- */

int session_state_open(struct amp_store **s, struct amp_error *err)
{
    if (task_state && *task_state && access(task_state, F_OK) != 0)
        return amp_fail(err, AMP_UNAVAILABLE, state_missing, "there is no state directory %s",
                        task_state);
    return task_open(s, err);
}

/* A session of which no TASK began has its trail in the repository of this directory. */
static int place_record(const struct amp_session_voice *v, struct amp_span session,
                        struct amp_error *err)
{
    struct amp_repository repo;
    json_auto_t *config = NULL;
    char here[PATH_MAX];

    if (amp_config_load(task_config, task_state, &config, err) < 0)
        return -1;
    const char *storage = amp_json_str(json_object_get(config, "audit_trail"), "storage_path");
    if (!getcwd(here, sizeof here))
        return amp_fail_errno(err, AMP_IOERR, "the current directory");
    if (amp_repository_find(here, &repo, err) < 0)
        return -1;
    return amp_trail_place(v, session, repo.found && *repo.top ? repo.top : here,
                           *storage ? storage : AMP_TRAIL_DEFAULT, err);
}

static int report_record(struct amp_span session, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};
    struct amp_session_voice v = {NULL, amp_cli_name(), amp_now_ms()};
    struct amp_store *s = NULL;

    if (amp_flow_person_only(task_state, amp_cli_name(), environ, "end a session", err) < 0 ||
        session_state_open(&s, err) < 0)
        return -1;
    v.store = s;
    int rc = place_record(&v, session, err) < 0 || amp_session_reconcile(&v, session, err) < 0 ||
                     amp_session_report(&v, session, &line, err) < 0 ||
                     amp_store_sync(s, err) < 0 || amp_out(amp_buf_span(&line), err) < 0 ||
                     amp_out_flush(err) < 0 || amp_trail_verify(s, session, amp_warn, err) < 0
                 ? -1
                 : 0;
    amp_store_close(s);
    return rc;
}

static int interim_print(struct amp_span session, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};
    struct amp_store *s = NULL;

    int rc = tasks_look(&s, err);
    if (rc == 0)
        rc = amp_session_report_line(s, session, true, amp_now_ms(), &line, err) < 0
                 ? -1
                 : amp_out(amp_buf_span(&line), err);
    amp_store_close(s);
    return rc;
}

int session_report(int argc, char **argv)
{
    struct amp_error err;

    if (argc != 1)
        amp_die_usage("expected one session (task-dispatch session list shows them)");
    const struct amp_span session = amp_span_str(argv[0]);
    int rc = interim ? interim_print(session, &err) : report_record(session, &err);
    if (rc < 0 && amp_code_is(err.code, session_open))
        amp_note("--interim reports what is known now");
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}

/* ---- priorities ---- */

static int priority_set(char **argv, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};
    struct amp_session_voice v = {NULL, amp_cli_name(), amp_now_ms()};
    struct tasks_person person = {0};
    char job[AMP_QUEUE_ID_MAX] = "";
    struct amp_store *s = NULL;
    int rc = -1;

    if (tasks_person_open("change the priority of a TASK", &person, err) == 0 &&
        session_state_open(&s, err) == 0) {
        const struct amp_session_rank r = {
            .session = amp_span_str(argv[0]),
            .task = amp_span_str(argv[1]),
            .priority = amp_span_str(argv[2]),
            .reason = amp_span_str(reason ? reason : "a person changed the priority"),
            .by = amp_span_str(person.name)};
        v.store = s;
        rc = amp_session_escalate(&v, &r, &line, job, err);
        if (rc == AMP_RANK_SAME)
            amp_note("%s has the priority %s", argv[1], argv[2]);
        if (rc >= 0)
            rc = amp_store_sync(s, err) < 0 || amp_out(amp_buf_span(&line), err) < 0 ? -1 : 0;
        if (rc == 0 && *job)
            amp_note("job %s waits with the priority %s", job, argv[2]);
    }
    amp_store_close(s);
    tasks_person_close(&person);
    return rc;
}

int session_escalate(int argc, char **argv)
{
    struct amp_error err;

    if (argc != 3)
        amp_die_usage("expected SESSION TASK PRIORITY (LOW, NORMAL, HIGH or CRITICAL)");
    return priority_set(argv, &err) < 0 ? amp_complain(&err) : AMP_OK;
}

/* aop-session report, escalate: the end of a session, and another priority of a TASK. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "cli/config.h"
#include "message/protocol/compose/json.h"
#include "shared/work/person.h"
#include "work/aop/account/escalate.h"
#include "work/aop/account/jobs.h"
#include "work/aop/account/report.h"
#include "work/aop/account/trail.h"
#include "json/record.h"

static bool interim;
static const char *reason;

static const struct amp_opt session_report_opts[] = {
    {0, "interim", AMP_OPT_FLAG, &interim, NULL,
     "also before all TASKs have ended; records nothing"},
    AMP_OPT_END,
};
static const struct amp_opt session_escalate_opts[] = {
    {0, "reason", AMP_OPT_STRING, &reason, "TEXT", "why"},
    AMP_OPT_END,
};

/* ---- the report ---- */

/* A session of which no TASK began has its trail in the repository of this directory. */
static int place_record(const struct amp_session_voice *v, struct amp_span session,
                        struct amp_error *err)
{
    struct amp_repository repo;
    json_auto_t *config = NULL;
    char here[PATH_MAX];

    if (amp_config_load(amp_tool_config, amp_tool_state, &config, err) < 0)
        return -1;
    const char *storage = amp_json_str(json_object_get(config, "audit_trail"), "storage_path");
    if (!getcwd(here, sizeof here))
        return amp_fail_errno(err, AMP_IOERR, "the current directory");
    if (amp_repository_find(here, &repo, err) < 0)
        return -1;
    return amp_trail_place(v, session, repo.found && *repo.top ? repo.top : here,
                           *storage ? storage : AMP_TRAIL_DEFAULT, err);
}

static int report_record(struct amp_store *s, struct amp_span session, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};
    struct amp_session_voice v = {s, amp_cli_name(), amp_now_ms()};

    return place_record(&v, session, err) < 0 || amp_session_reconcile(&v, session, err) < 0 ||
                   amp_session_report(&v, session, &line, err) < 0 || amp_store_sync(s, err) < 0 ||
                   amp_out(amp_buf_span(&line), err) < 0 || amp_out_flush(err) < 0 ||
                   amp_trail_verify(s, session, amp_warn, err) < 0
               ? -1
               : 0;
}

static int interim_print(struct amp_store *s, struct amp_span session, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};

    return amp_session_report_line(s, session, true, amp_now_ms(), &line, err) < 0
               ? -1
               : amp_out(amp_buf_span(&line), err);
}

static int report_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (interim)
        c->opens = AMP_OPENS_READ;
    else
        c->act = "end a session";
    return 0;
}

static int session_report(struct amp_command *c, struct amp_error *err)
{
    int rc = (interim ? interim_print : report_record)(c->store, amp_span_str(c->argv[0]), err);

    if (rc < 0 && amp_code_is(err->code, session_open))
        amp_note("--interim reports what is known now");
    return rc;
}

/* ---- priorities ---- */

static int session_escalate(struct amp_command *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};
    struct amp_session_voice v = {c->store, amp_cli_name(), amp_now_ms()};
    const struct amp_tool_person *person = c->own;
    const struct amp_session_rank r = {
        .session = amp_span_str(c->argv[0]),
        .task = amp_span_str(c->argv[1]),
        .priority = amp_span_str(c->argv[2]),
        .reason = amp_span_str(reason ? reason : "a person changed the priority"),
        .by = amp_span_str(person->name)};
    char job[AMP_QUEUE_ID_MAX] = "";

    int rc = amp_session_escalate(&v, &r, &line, job, err);
    if (rc == AMP_RANK_SAME)
        amp_note("%s has the priority %s", c->argv[1], c->argv[2]);
    if (rc < 0 || amp_store_sync(c->store, err) < 0 || amp_out(amp_buf_span(&line), err) < 0)
        return -1;
    if (*job)
        amp_note("job %s waits with the priority %s", job, c->argv[2]);
    return AMP_OK;
}

const struct amp_verb session_report_verbs[] = {
    {"report", "SESSION", "print the final report of a session", session_report_opts,
     session_report, .check = report_check, .opens = AMP_OPENS_FOUND, .least = 1, .most = 1,
     .usage = "expected one session (aop-session list shows them)", .finds_state = true,
     .values = "session", .who = AMP_WHO_PERSON},
    {"escalate", "SESSION TASK PRIORITY", "give a TASK another priority", session_escalate_opts,
     session_escalate, .opens = AMP_OPENS_FOUND | AMP_TOOL_OPENS_PERSON,
     .act = "change the priority of a TASK", .least = 3, .most = 3,
     .usage = "expected SESSION TASK PRIORITY (LOW, NORMAL, HIGH or CRITICAL)", .finds_state = true,
     .values = "session", .who = AMP_WHO_PERSON},
    {0},
};

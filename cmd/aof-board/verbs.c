/* aof-board, aof-board end, new: the router of AOF/1 over task files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/json/lines.h>

#include "aof.h"
#include "base/codes.h"
#include "shared/work/tool.h"

enum { LINE_MOST = 32 << 20, BODY_MOST = 2 << 20 };
#define NOTIFY_MS 60000

struct aof_shared aof_shared = {.notify = {.timeout_ms = NOTIFY_MS}};
static struct amp_aof_new fresh;

static const struct amp_opt aof_opts[] = {AOF_ROUTER_ROWS, AMP_OPT_END};
static const struct amp_opt aof_end_opts[] = {AOF_ROUTER_ROWS, AMP_OPT_END};
static const struct amp_opt aof_new_opts[] = {
    AOF_DATA_ROW,
    {0, "title", AMP_OPT_STRING, &fresh.title, "TEXT", .doc = "the title (default: the id)"},
    {0, "agent", AMP_OPT_STRING, &fresh.agent, "NAME", .doc = "the agent that may take the task"},
    {0, "priority", AMP_OPT_CHOICE, &fresh.priority, "WORD",
     .doc = "the priority (default: normal)",
     .choices = (const char *const[]){"critical", "high", "normal", "low", NULL}},
    {0, "parent", AMP_OPT_STRING, &fresh.parent, "TASK", .doc = "make a child of TASK"},
    {0, "backlog", AMP_OPT_FLAG, &fresh.backlog, NULL,
     .doc = "put it into backlog, not into ready"},
    AMP_OPT_END,
};

/* Lines that do not concern the protocol are passed on. 1: a message was handled. */
static int line_take(struct amp_aof_router *r, const struct amp_line *line, struct amp_error *err)
{
    int rc = amp_aof_router_line(r, line->bytes, err);
    if (rc != 0)
        return rc;
    return amp_out(line->bytes, err) < 0 ? -1 : amp_out(AMP_SPAN("\n"), err);
}

static int input_read(struct amp_aof_router *r, struct amp_lines *lines, struct amp_error *err)
{
    struct amp_aof_polled polled;
    bool triggered = false; /* messages were handled: a poll follows them */
    for (;;) {
        struct amp_line line;
        enum amp_read got;
        int rc = 0;
        switch (amp_lines_next(lines, &line)) {
        case AMP_LINE:
            rc = line_take(r, &line, err);
            break;
        case AMP_LINE_TOO_LONG:
            rc = amp_aof_router_too_long(r, err);
            break;
        case AMP_LINE_MORE:
            if ((triggered && amp_aof_poll(r, &polled, err) < 0) || amp_out_flush(err) < 0)
                return -1;
            triggered = false;
            got = amp_lines_fill(lines, STDIN_FILENO, err);
            if (got == AMP_READ_FAILED && !amp_stop)
                return -1;
            break;
        case AMP_LINE_END:
            return triggered ? amp_aof_poll(r, &polled, err) : 0;
        }
        if (rc < 0)
            return -1;
        triggered = triggered || rc > 0;
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    }
}

static int aof_route(struct amp_command *c, struct amp_error *err)
{
    AMP_CLEANUP(amp_lines_release) struct amp_lines lines = {0};
    struct amp_aof_router *r = NULL;
    (void)c;
    amp_lines_init(&lines, LINE_MOST);
    amp_note_terminal(NULL);
    int rc = aof_router_open(true, &r, err);
    if (rc == 0)
        rc = input_read(r, &lines, err);
    aof_router_close(r);
    return rc;
}

static int end_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    for (int i = 0; i < c->argc; i++)
        if (!amp_aof_is_id(amp_span_str(c->argv[i])))
            amp_die_usage("'%s' is not a task id (expected TASK-YYYY-MM-DD-NNN)", c->argv[i]);
    return 0;
}

static int aof_end(struct amp_command *c, struct amp_error *err)
{
    struct amp_aof_router *r = NULL;
    int rc = aof_router_open(false, &r, err), missing = 0;
    for (int i = 0; i < c->argc && rc >= 0; i++) {
        rc = amp_aof_end(r, c->argv[i], err);
        missing += rc == 0;
    }
    aof_router_close(r);
    return rc < 0 ? -1 : missing > 0 ? AMP_NO : AMP_OK;
}

static int aof_new(struct amp_command *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf body = {.max = BODY_MOST + 1};
    struct amp_aof_router *r = NULL;
    char id[AMP_AOF_ID_MAX];
    if (fresh.parent && !amp_aof_is_id(amp_span_str(fresh.parent)))
        amp_die_usage("--parent %s: expected TASK-YYYY-MM-DD-NNN", fresh.parent);
    int rc = c->argc == 1 ? amp_file_read_any(c->argv[0], BODY_MOST, &body, err) : 0;
    fresh.body = amp_buf_span(&body);
    aof_shared.no_messages = true;
    if (rc == 0)
        rc = aof_router_open(true, &r, err);
    if (rc == 0)
        rc = amp_aof_new_task(r, &fresh, id, err);
    aof_router_close(r);
    return rc < 0 ? -1 : AMP_OK;
}

const struct amp_verb aof_verbs[] = {
    {NULL, "", "route messages of AOF/1 on stdin to task files", aof_opts, aof_route,
     .act = "change task files", .signals = true, .who = AMP_WHO_PERSON},
    {"end", "TASK…", "move task files by the results of their runs", aof_end_opts, aof_end,
     .check = end_check, .least = 1, .usage = "no task: give its id", .act = "change task files",
     .signals = true, .who = AMP_WHO_PERSON},
    {"new", "[FILE]", "create a task file", aof_new_opts, aof_new, .most = 1,
     .usage = "new takes one FILE", .act = "change task files", .signals = true,
     .who = AMP_WHO_PERSON},
    {0},
};

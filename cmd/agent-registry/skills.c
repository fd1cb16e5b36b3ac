/* Distributed skills and review items (Runtime Protocol v1 §7, §8). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "agent/approval.h"
#include "agent/review.h"
#include "agent/skill.h"
#include "base/codes.h"
#include "cli/list.h"
#include "flow/reply/reply.h"
#include "message/record/record.h"
#include "registry.h"
#include "json/record.h"

static bool json, all;
static const char *closes, *note, *why;

const struct amp_opt confirm_opts[] = {AMP_OPT_END};
const struct amp_opt approve_opts[] = {
    {0, "why", AMP_OPT_STRING, &why, "TEXT", .doc = "why the task may be carried out"},
    AMP_OPT_END,
};
const struct amp_opt reviews_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print the items as the protocol has them"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "include closed items"},
    {0, "close", AMP_OPT_STRING, &closes, "ID", .doc = "close the open item ID"},
    {0, "note", AMP_OPT_STRING, &note, "TEXT", .doc = "with --close: what was done about it"},
    AMP_OPT_END,
};

/* ---- confirm ---- */

struct asked {
    const char *agent;
    char event[AMP_MSG_ID_MAX];
};

static int on_asked(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_skill *k = rec;
    struct asked *a = ctx;
    (void)err;
    if (!amp_span_is(k->agent, a->agent))
        return 0;
    snprintf(a->event, sizeof a->event, "%s", k->task);
    return 1;
}

static int answer_give(struct registry *r, const char *agent, const char *event,
                       enum amp_reply_act act, const json_t *data, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    struct amp_reply_result out = {.line = {.max = AMP_REPLY_LINE_MAX}};
    const struct amp_reply reply = {.act = act,
                                    .id = event,
                                    .by = agent,
                                    .box = r->name,
                                    .data = data,
                                    .text = act == AMP_REPLY_COMPLETE ? "Installed." : NULL,
                                    .eta_ms = act == AMP_REPLY_ACCEPT ? now + 1000 : 0,
                                    .late = true,
                                    .now_ms = now};
    int rc = amp_reply(r->dir.store, &reply, &out, err);
    amp_buf_release(&out.line);
    return rc;
}

/* Accepts and completes the task that asked for the skill. 1: done; 0: the ledger does not have it
 * open. */
static int task_complete(struct registry *r, const char *agent, const char *event,
                         const char *version, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_message_rec rec;
    struct amp_error e = {0};
    if (!*event || amp_message_find(r->dir.store, amp_span_str(event), &mem, &rec, err) < 0)
        return *event ? -1 : 0;
    if (!rec.found)
        return 0;
    json_auto_t *data = json_pack("{s:s}", "installedVersion", version);
    if (!data)
        return amp_fail_memory(err);
    if (answer_give(r, agent, event, AMP_REPLY_ACCEPT, NULL, &e) < 0 && e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    if (answer_give(r, agent, event, AMP_REPLY_COMPLETE, data, &e) == 0)
        return 1;
    return amp_fail_unless_no(err, &e);
}

static int confirm(struct registry *r, char **argv, struct amp_error *err)
{
    const struct amp_skill_change c = {.capability = amp_span_str(argv[1]),
                                       .agent = amp_span_str(argv[0]),
                                       .version = argv[2],
                                       .actor = r->name,
                                       .now_ms = amp_now_ms()};
    struct asked asked = {.agent = argv[0]};
    struct amp_capability cap;
    if (amp_capability_find(r->dir.store, c.capability, &cap, err) < 0)
        return -1;
    bool known = cap.catalog;
    amp_capability_release(&cap);
    if (!known)
        return amp_fail(err, AMP_NO, capability_unknown, "%s is not published", argv[1]);
    if (amp_skills_each(r->dir.store, c.capability, on_asked, &asked, err) < 0)
        return -1;
    if (amp_skill_confirm(r->dir.store, &c, err) < 0)
        return -1;
    return task_complete(r, argv[0], asked.event, argv[2], err) < 0 ? -1 : 0;
}

int reg_confirm(int argc, char **argv)
{
    struct registry r = {0};
    struct amp_error err = {0};
    if (argc != 3)
        amp_die_usage("AGENT, CAPABILITY and VERSION are required");
    if (strlen(argv[2]) > 64)
        amp_die_usage("VERSION has at most 64 characters");
    if (reg_self_only(argv[0], "confirm that an agent installed a skill", &err) < 0)
        return amp_complain(&err);
    int rc = reg_open(&r, "", true, &err);
    if (rc == 0)
        rc = confirm(&r, argv, &err);
    if (rc == 0)
        rc = reg_finish(&r, &err);
    return reg_close(&r, rc, &err);
}

int reg_approve(int argc, char **argv)
{
    struct registry r = {0};
    struct amp_error err = {0};
    if (argc != 1 || !*argv[0] || strlen(argv[0]) > 256)
        amp_die_usage("one TASK is required");
    if (!why || !*why || strlen(why) > 1000)
        amp_die_usage("why? --why TEXT, at most 1000 bytes");
    if (reg_self_only(NULL, "approve a task", &err) < 0)
        return amp_complain(&err);
    const struct amp_task_approval a = {.task = amp_span_str(argv[0]),
                                        .person = amp_cli_login("operator"),
                                        .why = why,
                                        .now_ms = amp_now_ms()};
    int rc = reg_open(&r, "", true, &err);
    if (rc == 0)
        rc = amp_approval_give(r.dir.store, &a, r.name, &err);
    if (rc == 0)
        rc = amp_store_sync(r.dir.store, &err);
    return reg_close(&r, rc, &err);
}

/* ---- lists ---- */

static const char *skill_word(int state)
{
    return state == AMP_SKILL_CONFIRMED ? "confirmed" : "wanted";
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct amp_skill, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct amp_skill, key, head, member)
static const struct amp_column skill_columns[] = {
    EVER(TEXT, "capabilityId", "CAPABILITY", capability),
    EVER(TEXT, "agentId", "AGENT", agent),
    EVER(CSTR, "wantedVersion", "WANTED", wanted),
    EVER(CSTR, "installedVersion", "INSTALLED", installed),
    EVER(FLAG, "confirmed", NULL, state),
    AMP_COLUMN_WORD(struct amp_skill, NULL, "STATE", state, skill_word),
    SOME(TIME, "requiredBy", "BY", due_ms),
    SOME(TIME, "confirmedAt", "CONFIRMED", confirmed_ms),
};

int reg_installed(struct registry *r, struct amp_span capability, bool as_json,
                  struct amp_error *err)
{
    struct amp_listing list;

    amp_listing_init(&list, skill_columns, sizeof skill_columns / sizeof *skill_columns, as_json,
                     amp_now_ms());
    int rc = amp_skills_each(r->dir.store, capability, amp_listing_row, &list, err);
    if (rc == 0)
        rc = amp_listing_end(&list, err);
    amp_listing_release(&list);
    return rc;
}

static const int review_widths[] = {42, 32, 24, 8, 6, 24};

static int on_review(void *ctx, const struct amp_review *v, struct amp_error *err)
{
    char count[24], last[AMP_TIME_MAX];
    (void)ctx;
    if (!all && strcmp(v->state, "OPEN") != 0)
        return 0;
    if (json)
        return reg_print_json(v->item, err);
    snprintf(count, sizeof count, "%lld", (long long)v->count);
    amp_time_format(v->last_ms, last);
    const char *cells[] = {amp_json_str(v->item, "reviewId"),
                           amp_json_str(v->item, "capabilityId"),
                           amp_json_str(v->item, "failureClass"),
                           v->state,
                           count,
                           last};
    return reg_print_row(cells, review_widths, 6, err);
}

int reg_reviews(int argc, char **argv)
{
    static const char *const head[] = {"review", "capability", "failure", "state", "count", "last"};
    struct registry r = {0};
    struct amp_error err = {0};
    (void)argv;
    if (argc > 0)
        amp_die_usage("reviews takes no operand");
    if (note && !closes)
        amp_die_usage("--note needs --close");
    if (closes && reg_self_only(NULL, "close review items", &err) < 0)
        return amp_complain(&err);
    int rc = reg_open(&r, closes ? "" : NULL, true, &err);
    if (rc == 0 && closes)
        rc = amp_review_close(r.dir.store, closes, note, r.name, &err);
    if (rc == 0 && closes)
        rc = amp_store_sync(r.dir.store, &err);
    if (rc == 0 && !closes && !json)
        rc = reg_print_row(head, review_widths, 6, &err);
    if (rc == 0 && !closes)
        rc = amp_reviews_each(r.dir.store, on_review, NULL, &err);
    return reg_close(&r, rc, &err);
}

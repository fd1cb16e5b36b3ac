/* Distributed skills and review items (Runtime Protocol v1 §7, §8). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/record/record.h"
#include "registry.h"
#include "work/agent/approval.h"
#include "work/agent/review.h"
#include "work/agent/skill.h"
#include "work/attempt/reply/reply.h"
#include "json/record.h"

static bool all;
static const char *closes, *note, *why;

static const struct amp_opt approve_opts[] = {
    {0, "why", AMP_OPT_STRING, &why, "TEXT", .doc = "why the task may be carried out"},
    AMP_OPT_END,
};
static const struct amp_opt reviews_opts[] = {
    AMP_OPT_JSON("print the items as the protocol has them"),
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

static int reg_confirm(struct amp_command *cmd, struct amp_error *err)
{
    struct registry *r = cmd->own;
    char **argv = cmd->argv;
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
    return task_complete(r, argv[0], asked.event, argv[2], err) < 0 ? -1 : reg_finish(r, err);
}

static int confirm_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (strlen(c->argv[2]) > 64)
        amp_die_usage("VERSION has at most 64 characters");
    return 0;
}

static int approve_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (c->argc != 1 || !*c->argv[0] || strlen(c->argv[0]) > 256)
        amp_die_usage("one TASK is required");
    if (!why || !*why || strlen(why) > 1000)
        amp_die_usage("why? --why TEXT, at most 1000 bytes");
    return 0;
}

static int reg_approve(struct amp_command *c, struct amp_error *err)
{
    const struct registry *r = c->own;
    const struct amp_task_approval a = {.task = amp_span_str(c->argv[0]),
                                        .person = amp_cli_login("operator"),
                                        .why = why,
                                        .now_ms = amp_now_ms()};
    return amp_approval_give(c->store, &a, r->name, err) < 0 ? -1 : amp_store_sync(c->store, err);
}

/* ---- lists ---- */

static const char *skill_word(int state)
{
    return state == AMP_SKILL_CONFIRMED ? "confirmed" : "wanted";
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct amp_skill, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct amp_skill, key, head, member)
const struct amp_column reg_skill_columns[] = {
    EVER(TEXT, "capabilityId", "CAPABILITY", capability),
    EVER(TEXT, "agentId", "AGENT", agent),
    EVER(CSTR, "wantedVersion", "WANTED", wanted),
    EVER(CSTR, "installedVersion", "INSTALLED", installed),
    EVER(FLAG, "confirmed", NULL, state),
    AMP_COLUMN_WORD(struct amp_skill, NULL, "STATE", state, skill_word),
    SOME(TIME, "requiredBy", "BY", due_ms),
    SOME(TIME, "confirmedAt", "CONFIRMED", confirmed_ms),
    {0},
};

struct review_row {
    struct amp_review r;
    const char *id, *capability, *failure;
};

/* Programs get the items as the protocol has them. */
#define CELL(form, head, member) AMP_COLUMN_EVER(form, struct review_row, NULL, head, member)
static const struct amp_column review_columns[] = {
    CELL(CSTR, "review", id),
    CELL(CSTR, "capability", capability),
    CELL(CSTR, "failure", failure),
    CELL(CSTR, "state", r.state),
    CELL(INT, "count", r.count),
    CELL(TIME, "last", r.last_ms),
    {0},
};

static int on_review(void *ctx, const struct amp_review *v, struct amp_error *err)
{
    const struct review_row row = {*v, amp_json_str(v->item, "reviewId"),
                                   amp_json_str(v->item, "capabilityId"),
                                   amp_json_str(v->item, "failureClass")};
    if (!all && strcmp(v->state, "OPEN") != 0)
        return 0;
    return amp_listing_json ? reg_print_json(v->item, err) : amp_listing_row(ctx, &row, err);
}

static int reviews_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (note && !closes)
        amp_die_usage("--note needs --close");
    if (closes) {
        c->opens = AMP_OPENS_FOUND | REG_OPENS_OUTBOX;
        c->act = "close review items";
    }
    return 0;
}

static int reg_reviews(struct amp_command *c, struct amp_error *err)
{
    const struct registry *r = c->own;
    if (!closes)
        return amp_reviews_each(c->store, on_review, c->list, err);
    return amp_review_close(c->store, closes, note, r->name, err) < 0
               ? -1
               : amp_store_sync(c->store, err);
}

const struct amp_verb skills_verbs[] = {
    {"confirm", "AGENT CAPABILITY VERSION", "confirm that an agent installed a skill", NULL,
     reg_confirm, .check = confirm_check, .least = 3, .most = 3,
     .usage = "AGENT, CAPABILITY and VERSION are required",
     .opens = AMP_OPENS_FOUND | REG_OPENS_OUTBOX, .act = "confirm that an agent installed a skill",
     .values = "agent", .who = AMP_WHO_SELF},
    {"approve", "TASK", "approve a task that requires a capability of high risk", approve_opts,
     reg_approve, .check = approve_check, .opens = AMP_OPENS_FOUND | REG_OPENS_OUTBOX,
     .act = "approve a task", .values = "task", .who = AMP_WHO_PERSON},
    {"reviews", "", "list or close the review items of skills", reviews_opts, reg_reviews,
     .check = reviews_check, .opens = AMP_OPENS_LOOK, .lists = review_columns,
     .who = AMP_WHO_WITH("--close")},
    {0},
};

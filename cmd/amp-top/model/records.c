/* Rows of tasks, agents, inboxes and lanes, from their records. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/delivery/inbox/inbox.h"
#include "message/delivery/record/record.h"
#include "people/story/story.h"
#include "read.h"
#include "work/agent/work.h"
#include "work/git/binding.h"

/* Ended tasks are listed, too, unless there are more tasks than that. */
#define ENDED_MOST 2000

void top_lower(struct amp_span name, char *to, size_t size)
{
    size_t i = 0;
    for (; i < name.n && i + 1 < size; i++)
        to[i] = (char)(name.p[i] == '_' ? ' ' : tolower((unsigned char)name.p[i]));
    to[i] = '\0';
}

/* ---- tasks ---- */

static enum top_tone task_tone(const struct amp_brief *b)
{
    if (b->paused || b->questions > 0)
        return TOP_WARN;
    if (b->working)
        return TOP_INFO;
    if (!b->ended)
        return TOP_PLAIN;
    return b->state == AMP_TASK_DONE ? TOP_GOOD : TOP_BAD;
}

static int task_put(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    struct top_source *src = ctx;
    struct top_draft d;
    char words[AMP_BRIEF_WORDS_MAX], step[64] = "", question[64];
    uint8_t calm = b->ended ? TOP_DIM : TOP_PLAIN;

    if (b->subtask.n)
        top_lower(amp_span_str(amp_qa_fsm.states[b->subtask_state].name), step, sizeof step);
    snprintf(question, sizeof question, "%.*s", AMP_CLIP(b->question_why, 40));
    top_draft_begin(&d, b->id, b->id);
    top_draft_text(&d, 0, b->ended ? TOP_DIM : TOP_STRONG, b->id);
    top_draft_text(&d, 1, (uint8_t)task_tone(b),
                   amp_span_str(amp_brief_words(b, src->m->now_ms, words)));
    top_draft_number(&d, 2, b->rejections > 1 ? TOP_WARN : calm, TOP_NUMBER, b->attempts, 0);
    top_draft_number(&d, 3, TOP_DIM, TOP_AGE, b->updated_ms, 0);
    top_draft_text(&d, 4, calm, b->description);
    top_draft_text(&d, 5, calm,
                   b->paused && !b->ended ? AMP_SPAN("paused") : amp_span_str(amp_brief_state(b)));
    top_draft_text(&d, 6, calm, amp_span_str(step));
    top_draft_text(&d, 7, calm, b->verdict);
    top_draft_text(&d, 8, calm, b->agent);
    top_draft_text(&d, 9, calm, amp_span_str(question));
    d.rank = b->questions ? 3 : b->working ? 2 : !b->ended;
    d.hidden[0] = b->ended;
    return top_draft_end(&d, &src->m->list[TOP_TASKS], !src->loaded, err);
}

int top_tasks_read(struct top_source *src, struct amp_span id, struct amp_error *err)
{
    struct amp_brief_filter f = {.id = id, .ended = true};
    uint64_t n = 0;
    if (id.n == 0) {
        if (amp_store_count(src->store, AMP_TASK_KIND, &n, err) < 0)
            return -1;
        f.ended = n <= ENDED_MOST;
    }
    return amp_brief_each(src->store, &f, task_put, src, err);
}

/* ---- agents ---- */

static enum top_tone agent_tone(const struct amp_agent_rec *r)
{
    switch (r->work.state) {
    case AMP_AGENT_RUNNING:
    case AMP_AGENT_SCHEDULED:
    case AMP_AGENT_COMPLETED:
    case AMP_AGENT_RESUMED:
        return TOP_INFO;
    case AMP_AGENT_FAILED:
        return TOP_BAD;
    case AMP_AGENT_RUNNABLE:
        return TOP_GOOD;
    case AMP_AGENT_SHUTTING_DOWN:
        return TOP_DIM;
    default:
        return TOP_WARN;
    }
}

static int agent_put(void *ctx, struct amp_span name, const struct amp_agent_rec *r,
                     struct amp_error *err)
{
    struct top_source *src = ctx;
    struct top_draft d;
    AMP_FREE struct amp_binding *b = calloc(1, sizeof *b);
    char agent[AMP_PAUSE_NAME_MAX + 1], state[64] = "", words[64];
    bool work = amp_agent_has_work(r), suspended = amp_agent_is_suspended(r);
    uint8_t tone = work ? (uint8_t)agent_tone(r) : TOP_PLAIN;

    if (!b)
        return amp_fail_memory(err);
    amp_span_copy(name, agent, sizeof agent);
    struct amp_error why;
    if (amp_binding_get(src->store, agent, b, &why) < 0)
        b->rev = false;
    if (work)
        top_lower(amp_span_str(amp_agent_fsm.states[r->work.state].name), state, sizeof state);
    else
        top_lower(amp_span_str(amp_reach_fsm.states[r->reach.state].name), state, sizeof state);
    snprintf(words, sizeof words, "%s", work ? amp_agent_word(&r->work) : state);
    const char *task = r->work.task ? r->work.task : "";
    const struct amp_pause *p = amp_pauses_find(&src->pauses, amp_span_str(task), name);
    if (p || suspended) {
        snprintf(words, sizeof words, "%s", p ? "paused" : "suspended");
        memcpy(state, words, sizeof state);
        tone = TOP_WARN;
    } else if (r->reach.state == AMP_REACH_UNREACHABLE) {
        snprintf(words, sizeof words, "unreachable");
        memcpy(state, words, sizeof state);
        tone = TOP_BAD;
    }
    int64_t seen =
        r->work.last_seen_ms > r->reach.seen_ms ? r->work.last_seen_ms : r->reach.seen_ms;
    const char *role = r->work.role && *r->work.role ? r->work.role : r->reach.role;
    top_draft_begin(&d, name, amp_span_str(task));
    top_draft_text(&d, 0, TOP_STRONG, name);
    top_draft_text(&d, 1, tone, amp_span_str(words));
    top_draft_text(&d, 7, tone, amp_span_str(state));
    top_draft_text(&d, 2, TOP_DIM, amp_span_str(role));
    if (*task)
        top_draft_text(&d, 3, TOP_PLAIN, amp_span_str(task));
    else
        top_draft_text(&d, 3, TOP_DIM, amp_span_str(r->work.last_task));
    top_draft_number(&d, 4, TOP_DIM, TOP_AGE, seen, 0);
    top_draft_text(&d, 5, TOP_PLAIN, amp_span_str(b->rev ? b->branch : ""));
    top_draft_text(&d, 6, TOP_DIM, amp_span_str(!b->rev ? "" : *b->other ? b->other : b->worktree));
    d.hidden[0] = *task && r->work.state != AMP_AGENT_FAILED;
    d.rank = p || suspended ? 2 : d.hidden[0] ? 1 : 0;
    return top_draft_end(&d, &src->m->list[TOP_AGENTS], !src->loaded, err);
}

int top_agents_read(struct top_source *src, struct amp_span name, struct amp_error *err)
{
    struct top_model *m = src->m;
    int rc;
    if (name.n) {
        AMP_BUF struct amp_buf mem = {.max = 1 << 20};
        struct amp_agent_rec rec;
        rc = amp_agent_find(src->store, name, &mem, &rec, err);
        if (rc >= 0)
            rc = agent_put(src, name, &rec, err);
    } else {
        rc = amp_agent_records(src->store, agent_put, src, err);
    }
    m->working = 0;
    for (size_t i = 0; i < m->list[TOP_AGENTS].n; i++)
        m->working += m->list[TOP_AGENTS].v[i].hidden[0] != 0;
    return rc;
}

/* ---- inboxes and lanes ---- */

static int inbox_put(void *ctx, const struct amp_inbox_info *i, struct amp_error *err)
{
    struct top_source *src = ctx;
    struct top_draft d;
    int64_t bound = i->bound ? i->bound : AMP_INBOX_BOUND;
    uint8_t tone = i->waiting >= bound ? TOP_BAD : 2 * i->waiting >= bound ? TOP_WARN : TOP_GOOD;
    const bool any = i->waiting > 0;

    top_draft_begin(&d, i->agent, i->agent);
    top_draft_text(&d, 0, TOP_STRONG, i->agent);
    top_draft_number(&d, 1, any ? tone : TOP_DIM, TOP_GAUGE, i->waiting, bound);
    top_draft_number(&d, 2, TOP_PLAIN, TOP_NUMBER, i->open, 0);
    top_draft_number(&d, 3, TOP_PLAIN, TOP_AGE, i->oldest_ms, 0);
    top_draft_number(&d, 4, TOP_INFO, TOP_AGE, i->busy_ms, 0);
    top_draft_text(&d, 5, TOP_DIM, i->first);
    for (int l = 0; l < AMP_LANE_COUNT; l++) {
        d.hidden[3 * l] = i->lane[l].waiting;
        d.hidden[3 * l + 1] = i->lane[l].bytes;
        d.hidden[3 * l + 2] = i->lane[l].oldest_ms;
    }
    d.rank = any;
    return top_draft_end(&d, &src->m->list[TOP_INBOXES], !src->loaded, err);
}

/* The sums of all inboxes. */
static int lanes_sum(struct top_source *src, struct amp_error *err)
{
    struct top_model *m = src->m;
    struct top_list *l = &m->list[TOP_LANES];
    m->waiting = 0;
    for (int lane = 0; lane < AMP_LANE_COUNT; lane++) {
        int64_t waiting = 0, bytes = 0, oldest = 0, inboxes = 0;
        struct top_draft d;
        char name[32], names[160] = "";
        for (size_t i = 0; i < m->list[TOP_INBOXES].n; i++) {
            const struct top_row *r = &m->list[TOP_INBOXES].v[i];
            const int64_t *h = &r->hidden[3 * lane];
            if (h[0] == 0)
                continue;
            size_t at = strlen(names);
            waiting += h[0];
            bytes += h[1];
            oldest = oldest == 0 || h[2] < oldest ? h[2] : oldest;
            inboxes++;
            snprintf(names + at, sizeof names - at, "%s%.60s", at ? ", " : "", r->key);
        }
        m->waiting += (uint32_t)waiting;
        top_lower(amp_span_str(amp_lane_name((enum amp_lane)lane)), name, sizeof name);
        top_draft_begin(&d, amp_span_str(name), AMP_SPAN(""));
        top_draft_text(&d, 0, TOP_STRONG, amp_span_str(name));
        top_draft_number(&d, 1, waiting ? TOP_INFO : TOP_DIM, TOP_NUMBER, waiting, 0);
        top_draft_number(&d, 2, TOP_PLAIN, TOP_COUNT, bytes, 0);
        top_draft_number(&d, 3, TOP_PLAIN, TOP_AGE, oldest, 0);
        top_draft_text(&d, 4, TOP_DIM, amp_span_str(names));
        if (top_draft_end(&d, l, false, err) < 0)
            return -1;
    }
    return 0;
}

int top_inboxes_read(struct top_source *src, struct amp_span agent, struct amp_error *err)
{
    if (agent.n == 0) {
        if (amp_inbox_infos(src->store, inbox_put, src, err) < 0)
            return -1;
    } else {
        AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
        struct amp_inbox_info info;
        if (amp_inbox_info(src->store, agent, &mem, &info, err) < 0 ||
            (info.found && inbox_put(src, &info, err) < 0))
            return -1;
    }
    return lanes_sum(src, err);
}

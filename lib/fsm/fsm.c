/* The state-machine engine: steps through a table and checks tables. */
#include <string.h>

#include <amp/fsm/fsm.h>

#include "base/codes.h"
#include "base/trace.h"

/* Facts, effects and terminal states are bits. */
#define MAX_BITS 32

static const char *name_of(const struct amp_fsm_name *names, unsigned n, unsigned i)
{
    return i < n && names[i].name ? names[i].name : "?";
}

static void step_trace(const struct amp_fsm *m, uint8_t from, uint8_t event, const char *to,
                       const char *code)
{
    AMP_TRACE(AMP_TRACE_FSM, AMP_TRACE_TEXT("machine", m->name),
              AMP_TRACE_TEXT("from", name_of(m->states, m->n_states, from)),
              AMP_TRACE_TEXT("event", name_of(m->events, m->n_events, event)),
              AMP_TRACE_TEXT("to", to), AMP_TRACE_TEXT("code", code));
}

int amp_fsm_step(const struct amp_fsm *m, uint8_t state, uint8_t event, uint32_t facts,
                 struct amp_fsm_result *out, struct amp_error *err)
{
    for (unsigned i = 0; i < m->n_rows; i++) {
        const struct amp_fsm_row *r = &m->rows[i];
        if (r->from != state || r->event != event || (facts & r->if_all) != r->if_all ||
            (facts & r->if_none))
            continue;
        out->to = r->to;
        out->effects = r->effects;
        out->code = r->code;
        out->row = r;
        step_trace(m, state, event, name_of(m->states, m->n_states, r->to), r->code);
        return 0;
    }
    step_trace(m, state, event, NULL, AMP_CODE(illegal_transition));
    return amp_fail(err, AMP_NO, illegal_transition, "%s: no transition from %s on %s", m->name,
                    name_of(m->states, m->n_states, state), name_of(m->events, m->n_events, event));
}

static int name_find(const struct amp_fsm_name *names, unsigned n, struct amp_span name)
{
    for (unsigned i = 0; i < n; i++)
        if (amp_span_is(name, names[i].name))
            return (int)i;
    return -1;
}

int amp_fsm_state(const struct amp_fsm *m, struct amp_span name)
{
    return name_find(m->states, m->n_states, name);
}

int amp_fsm_event(const struct amp_fsm *m, struct amp_span name)
{
    return name_find(m->events, m->n_events, name);
}

int amp_fsm_fact(const struct amp_fsm *m, struct amp_span name)
{
    return name_find(m->facts, m->n_facts, name);
}

static int fail_unsound(struct amp_error *err, const struct amp_fsm *m, const char *what,
                        const char *which)
{
    return amp_fail(err, AMP_INTERNAL, machine_unsound, "%s: %s: %s", m->name, what, which);
}

static int lint_names(const struct amp_fsm *m, const struct amp_fsm_name *names, unsigned n,
                      const char *what, struct amp_error *err)
{
    for (unsigned i = 0; i < n; i++) {
        if (!names[i].name || !names[i].name[0])
            return fail_unsound(err, m, "a name is missing", what);
        if (!names[i].doc || !names[i].doc[0])
            return fail_unsound(err, m, "no description", names[i].name);
        if (name_find(names, i, amp_span_str(names[i].name)) >= 0)
            return fail_unsound(err, m, "a name is given twice", names[i].name);
    }
    return 0;
}

static uint32_t bit_mask(unsigned n)
{
    return n >= MAX_BITS ? UINT32_MAX : (1u << n) - 1;
}

static int lint_row(const struct amp_fsm *m, unsigned i, struct amp_error *err)
{
    const struct amp_fsm_row *r = &m->rows[i];
    if (r->from >= m->n_states || r->to >= m->n_states || r->event >= m->n_events)
        return amp_fail(err, AMP_INTERNAL, machine_unsound, "%s: row %u: index out of range",
                        m->name, i);
    const char *from = m->states[r->from].name, *event = m->events[r->event].name;
    if (((r->if_all | r->if_none) & ~bit_mask(m->n_facts)) ||
        (r->effects & ~bit_mask(m->n_effects)))
        return amp_fail(err, AMP_INTERNAL, machine_unsound,
                        "%s: %s on %s: a fact or an effect without a name", m->name, from, event);
    if (r->if_all & r->if_none)
        return amp_fail(err, AMP_INTERNAL, machine_unsound,
                        "%s: %s on %s: a fact is both wanted and unwanted", m->name, from, event);
    if ((m->terminal >> r->from & 1) && r->to != r->from && !r->extra)
        return amp_fail(err, AMP_INTERNAL, machine_unsound, "%s: %s is terminal, yet left on %s",
                        m->name, from, event);
    for (unsigned j = 0; j < i; j++) {
        const struct amp_fsm_row *e = &m->rows[j];
        /* An earlier row whose conditions this row includes always matches first. */
        if (e->from == r->from && e->event == r->event && !(e->if_all & ~r->if_all) &&
            !(e->if_none & ~r->if_none))
            return amp_fail(err, AMP_INTERNAL, machine_unsound,
                            "%s: %s on %s: row %u can never match, row %u takes all", m->name, from,
                            event, i, j);
    }
    return 0;
}

int amp_fsm_lint(const struct amp_fsm *m, struct amp_error *err)
{
    if (!m->name || !m->source || !m->doc)
        return amp_fail(err, AMP_INTERNAL, machine_unsound, "a machine without name or source");
    if (!m->n_states || !m->n_events || !m->n_rows || m->n_states > MAX_BITS ||
        m->n_facts > MAX_BITS || m->n_effects > MAX_BITS)
        return fail_unsound(err, m, "counts", "out of range");
    if (m->initial >= m->n_states || (m->terminal & ~bit_mask(m->n_states)))
        return fail_unsound(err, m, "initial or terminal state", "out of range");
    if (lint_names(m, m->states, m->n_states, "state", err) ||
        lint_names(m, m->events, m->n_events, "event", err) ||
        lint_names(m, m->facts, m->n_facts, "fact", err) ||
        lint_names(m, m->effects, m->n_effects, "effect", err))
        return -1;

    uint32_t reached = 1u << m->initial;
    for (unsigned i = 0; i < m->n_rows; i++)
        if (lint_row(m, i, err) < 0)
            return -1;
    for (unsigned round = 0; round < m->n_states; round++)
        for (unsigned i = 0; i < m->n_rows; i++)
            if (reached >> m->rows[i].from & 1)
                reached |= 1u << m->rows[i].to;
    for (unsigned s = 0; s < m->n_states; s++)
        if (!(reached >> s & 1))
            return fail_unsound(err, m, "a state is never reached", m->states[s].name);

    uint64_t used[256 / 64] = {0};
    for (unsigned i = 0; i < m->n_rows; i++)
        used[m->rows[i].event / 64] |= 1ull << (m->rows[i].event % 64);
    for (unsigned e = 0; e < m->n_events; e++)
        if (!(used[e / 64] >> (e % 64) & 1))
            return fail_unsound(err, m, "no row knows the event", m->events[e].name);
    return 0;
}

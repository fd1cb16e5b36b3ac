/* Every machine is sound, every cell of it answers, and every format prints it. */
#include <amp/json/tape.h>
#include <amp/machines.h>

#include "../tap.h"

/* Facts are tried all, up to this many combinations a cell. */
#define FACTS_MAX 4096

static bool has_row(const struct amp_fsm *m, unsigned state, unsigned event)
{
    for (unsigned i = 0; i < m->n_rows; i++)
        if (m->rows[i].from == state && m->rows[i].event == event)
            return true;
    return false;
}

static void walk(const struct amp_fsm *m)
{
    unsigned wrong = 0, legal = 0, illegal = 0;
    uint32_t combinations = m->n_facts < 12 ? 1u << m->n_facts : FACTS_MAX;
    for (unsigned s = 0; s < m->n_states; s++) {
        for (unsigned e = 0; e < m->n_events; e++) {
            bool known = has_row(m, s, e), matched = false;
            for (uint32_t facts = 0; facts < combinations; facts++) {
                struct amp_fsm_result out = {.to = 0xee};
                struct amp_error err = {0};
                int rc = amp_fsm_step(m, (uint8_t)s, (uint8_t)e, facts, &out, &err);
                bool fine = rc == 0 ? known && out.to < m->n_states && out.row && out.row->from == s
                                    : strcmp(err.code, "illegal_transition") == 0 &&
                                          err.status == AMP_NO && out.to == 0xee && !out.row;
                wrong += !fine;
                matched |= rc == 0;
            }
            wrong += known && !matched; /* a row that no facts reach */
            legal += known;
            illegal += !known;
        }
    }
    TAP_OK(wrong == 0, "%s: %u cells with rows, %u without, all answer", m->name, legal, illegal);
}

static void walk_rows(const struct amp_fsm *m)
{
    unsigned hit = 0;
    for (unsigned i = 0; i < m->n_rows; i++) {
        const struct amp_fsm_row *r = &m->rows[i];
        struct amp_fsm_result out;
        hit += amp_fsm_step(m, r->from, r->event, r->if_all, &out, NULL) == 0 && out.row == r;
    }
    TAP_OK(hit == m->n_rows, "%s: each of %u rows is taken on its own facts", m->name, m->n_rows);
}

static void print(const struct amp_fsm *m)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_tape tape;
    struct amp_json_fault fault;
    amp_buf_init(&out, 1 << 20);
    amp_tape_init(&tape, NULL);
    TAP_OK(amp_fsm_print(m, "table", &out, NULL) == 0 && out.len > 0, "%s: prints as a table",
           m->name);
    amp_buf_reset(&out);
    TAP_OK(amp_fsm_print(m, "dot", &out, NULL) == 0 && memcmp(out.data, "digraph ", 8) == 0,
           "%s: prints as DOT", m->name);
    amp_buf_reset(&out);
    int rc = amp_fsm_print(m, "ndjson", &out, NULL);
    unsigned rows = 0, bad = 0;
    for (size_t at = 0; rc == 0 && at < out.len;) {
        const char *lf = memchr(out.data + at, '\n', out.len - at);
        size_t n = lf ? (size_t)(lf - out.data) - at : out.len - at;
        rows++;
        bad += amp_tape_scan(&tape, out.data + at, n, &fault) != 0 || tape.tok[0].count != 8;
        at += n + 1;
    }
    TAP_OK(rc == 0 && rows == m->n_rows && bad == 0, "%s: prints %u rows as NDJSON", m->name, rows);
    amp_tape_release(&tape);
}

int main(void)
{
    for (size_t i = 0; amp_machines[i]; i++) {
        struct amp_error err = {0};
        const struct amp_fsm *m = amp_machines[i];
        if (!TAP_OK(amp_fsm_lint(m, &err) == 0, "%s: the table is sound", m->name))
            printf("# %s\n", err.what);
        walk(m);
        walk_rows(m);
        print(m);
        TAP_OK(amp_machine_find(amp_span_str(m->name)) == m, "%s: found by its name", m->name);
        bool found = true;
        for (int k = 0; k < m->n_facts; k++)
            found &= amp_fsm_fact(m, amp_span_str(m->facts[k].name)) == k;
        TAP_OK(found, "%s: its facts are found by their names", m->name);
    }
    TAP_OK(!amp_machine_find(AMP_SPAN("no such machine")), "no machine of another name");
    return tap_done();
}

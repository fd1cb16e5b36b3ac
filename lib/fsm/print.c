/* Prints machines: a table for people, DOT for drawings, NDJSON for programs. */
#include <string.h>

#include <amp/fsm/fsm.h>

#include "base/codes.h"

/* Enough for any machine; a larger cell is refused, not cut. */
#define CELL_MAX 512

static int json_string(struct amp_buf *out, const char *s, struct amp_error *err)
{
    if (!s)
        return amp_buf_str(out, "null", err);
    if (amp_buf_str(out, "\"", err) < 0)
        return -1;
    for (; *s; s++) {
        if ((*s == '"' || *s == '\\') && amp_buf_str(out, "\\", err) < 0)
            return -1;
        if (amp_buf_add(out, s, 1, err) < 0)
            return -1;
    }
    return amp_buf_str(out, "\"", err);
}

/* Writes the names of the set bits with a prefix and separators; *first: none was written before.
 */
static int bit_names(struct amp_buf *out, const struct amp_fsm_name *names, unsigned n,
                     uint32_t set, const char *prefix, const char *sep, bool quoted, bool *first,
                     struct amp_error *err)
{
    for (unsigned i = 0; i < n; i++) {
        if (!(set >> i & 1))
            continue;
        const char *q = quoted ? "\"" : "";
        if (amp_buf_fmt(out, err, "%s%s%s%s%s", *first ? "" : sep, q, prefix, names[i].name, q) < 0)
            return -1;
        *first = false;
    }
    return 0;
}

static int guard_names(struct amp_buf *out, const struct amp_fsm *m, const struct amp_fsm_row *r,
                       const char *sep, bool quoted, struct amp_error *err)
{
    bool first = true;
    return bit_names(out, m->facts, m->n_facts, r->if_all, "", sep, quoted, &first, err) ||
                   bit_names(out, m->facts, m->n_facts, r->if_none, "!", sep, quoted, &first, err)
               ? -1
               : 0;
}

static int effect_names(struct amp_buf *out, const struct amp_fsm *m, const struct amp_fsm_row *r,
                        const char *sep, bool quoted, struct amp_error *err)
{
    bool first = true;
    return bit_names(out, m->effects, m->n_effects, r->effects, "", sep, quoted, &first, err);
}

static int print_ndjson(const struct amp_fsm *m, struct amp_buf *out, struct amp_error *err)
{
    for (unsigned i = 0; i < m->n_rows; i++) {
        const struct amp_fsm_row *r = &m->rows[i];
        if (amp_buf_str(out, "{\"machine\":", err) < 0 || json_string(out, m->name, err) < 0 ||
            amp_buf_str(out, ",\"from\":", err) < 0 ||
            json_string(out, m->states[r->from].name, err) < 0 ||
            amp_buf_str(out, ",\"event\":", err) < 0 ||
            json_string(out, m->events[r->event].name, err) < 0 ||
            amp_buf_str(out, ",\"to\":", err) < 0 ||
            json_string(out, m->states[r->to].name, err) < 0 ||
            amp_buf_str(out, ",\"code\":", err) < 0 || json_string(out, r->code, err) < 0 ||
            amp_buf_str(out, ",\"effects\":[", err) < 0 ||
            effect_names(out, m, r, ",", true, err) < 0 ||
            amp_buf_str(out, "],\"guard\":[", err) < 0 ||
            guard_names(out, m, r, ",", true, err) < 0 ||
            amp_buf_fmt(out, err, "],\"extra\":%s}\n", r->extra ? "true" : "false") < 0)
            return -1;
    }
    return 0;
}

static int print_dot(const struct amp_fsm *m, struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_fmt(out, err,
                    "digraph %s {\n    rankdir=LR;\n    label=\"%s (%s)\";\n"
                    "    node [shape=box, style=rounded];\n    \"\" [shape=point];\n"
                    "    \"\" -> \"%s\";\n",
                    m->name, m->name, m->source, m->states[m->initial].name) < 0)
        return -1;
    for (unsigned s = 0; s < m->n_states; s++)
        if ((m->terminal >> s & 1) &&
            amp_buf_fmt(out, err, "    \"%s\" [peripheries=2];\n", m->states[s].name) < 0)
            return -1;
    for (unsigned i = 0; i < m->n_rows; i++) {
        const struct amp_fsm_row *r = &m->rows[i];
        bool guarded = r->if_all || r->if_none;
        if (amp_buf_fmt(out, err, "    \"%s\" -> \"%s\" [label=\"%s", m->states[r->from].name,
                        m->states[r->to].name, m->events[r->event].name) < 0 ||
            (guarded &&
             (amp_buf_str(out, "\\n[", err) < 0 || guard_names(out, m, r, ", ", false, err) < 0 ||
              amp_buf_str(out, "]", err) < 0)) ||
            (r->effects && (amp_buf_str(out, "\\n/ ", err) < 0 ||
                            effect_names(out, m, r, ", ", false, err) < 0)) ||
            amp_buf_fmt(out, err, "\"%s];\n", r->extra ? ", style=dashed" : "") < 0)
            return -1;
    }
    return amp_buf_str(out, "}\n", err);
}

enum { COL_FROM, COL_EVENT, COL_GUARD, COL_TO, COL_EFFECTS, COL_CODE, COLS };

static const char *const column_titles[COLS] = {"FROM", "EVENT", "IF", "TO", "EFFECTS", "CODE"};

/* Writes a cell's text into buf, which is emptied first. */
static int cell_write(const struct amp_fsm *m, const struct amp_fsm_row *r, int col,
                      struct amp_buf *buf, struct amp_error *err)
{
    amp_buf_reset(buf);
    switch (col) {
    case COL_FROM:
        return amp_buf_fmt(buf, err, "%s%s", r->extra ? "+ " : "  ", m->states[r->from].name);
    case COL_EVENT:
        return amp_buf_str(buf, m->events[r->event].name, err);
    case COL_GUARD:
        return guard_names(buf, m, r, ",", false, err);
    case COL_TO:
        return amp_buf_str(buf, m->states[r->to].name, err);
    case COL_EFFECTS:
        return effect_names(buf, m, r, ",", false, err);
    default:
        return amp_buf_str(buf, r->code ? r->code : "", err);
    }
}

static int table_row(const char *const text[COLS], const size_t width[COLS], struct amp_buf *out,
                     struct amp_error *err)
{
    int last = COLS - 1;
    while (last > 0 && !text[last][0])
        last--;
    for (int c = 0; c <= last; c++) {
        if (!width[c])
            continue;
        if (c == last ? amp_buf_fmt(out, err, "%s", text[c]) < 0
                      : amp_buf_fmt(out, err, "%-*s  ", (int)width[c], text[c]) < 0)
            return -1;
    }
    return amp_buf_str(out, "\n", err);
}

/* Columns that no row uses are left out. */
static int print_table(const struct amp_fsm *m, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf tmp = {0};
    amp_buf_init(&tmp, CELL_MAX);
    size_t width[COLS] = {0};
    bool extras = false;
    for (unsigned i = 0; i < m->n_rows; i++) {
        extras |= m->rows[i].extra;
        for (int c = 0; c < COLS; c++) {
            if (cell_write(m, &m->rows[i], c, &tmp, err) < 0)
                return -1;
            if (tmp.len > width[c])
                width[c] = tmp.len;
        }
    }
    const char *head[COLS];
    for (int c = 0; c < COLS; c++) {
        head[c] = width[c] ? column_titles[c] : "";
        size_t n = strlen(head[c]);
        if (width[c] && width[c] < n)
            width[c] = n;
    }
    head[COL_FROM] = "  FROM";
    if (amp_buf_fmt(out, err, "%s (%s): %s\n", m->name, m->source, m->doc) < 0 ||
        amp_buf_fmt(out, err, "starts in %s", m->states[m->initial].name) < 0)
        return -1;
    if (m->terminal) {
        bool first = true;
        if (amp_buf_str(out, ", ends in ", err) < 0 ||
            bit_names(out, m->states, m->n_states, m->terminal, "", ", ", false, &first, err))
            return -1;
    }
    if (extras && amp_buf_str(out, "; + marks rows that the source's table lacks", err) < 0)
        return -1;
    if (amp_buf_str(out, "\n", err) < 0 || table_row(head, width, out, err) < 0)
        return -1;
    for (unsigned i = 0; i < m->n_rows; i++) {
        char text[COLS][CELL_MAX];
        const char *line[COLS];
        for (int c = 0; c < COLS; c++) {
            if (cell_write(m, &m->rows[i], c, &tmp, err) < 0)
                return -1;
            amp_span_copy(amp_buf_span(&tmp), text[c], CELL_MAX);
            line[c] = text[c];
        }
        if (table_row(line, width, out, err) < 0)
            return -1;
    }
    return 0;
}

int amp_fsm_print(const struct amp_fsm *m, const char *format, struct amp_buf *out,
                  struct amp_error *err)
{
    size_t mark = out->len;
    int rc;
    if (strcmp(format, "table") == 0)
        rc = print_table(m, out, err);
    else if (strcmp(format, "dot") == 0)
        rc = print_dot(m, out, err);
    else if (strcmp(format, "ndjson") == 0)
        rc = print_ndjson(m, out, err);
    else
        return amp_fail(err, AMP_USAGE, bad_format,
                        "unknown machine format \"%s\" (table, dot or ndjson)", format);
    if (rc)
        out->len = mark;
    return rc;
}

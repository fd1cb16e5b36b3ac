/*
 * The versions of AOP (§1.3). Version 1 is a task as Markdown. The contract does not describe it,
 * so it is recognised by headings and labels, which the prompts made here also have.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "message/protocol/aop/aop.h"
#include "message/protocol/view/fill.h"
#include "message/protocol/view/object.h"
#include "json/text.h"

bool amp_aop_is_2(const struct amp_tape *t)
{
    return t->n > 0 && amp_object_starts(t, 0, "aop_version", "2.");
}

bool amp_aop_is_task(const struct amp_view *v)
{
    if (v->kind == AMP_KIND_DISPATCH)
        return v->tape->n > 0;
    return v->kind == AMP_KIND_OTHER && v->payload != AMP_TOK_NONE && amp_aop_is_2(v->tape) &&
           v->tape->tok[v->payload].type == AMP_JSON_OBJECT && !amp_span_is(v->type, "EVENT");
}

/* Whether a text is safe for an agent or a terminal: UTF-8 without control characters. */
static bool is_clean(struct amp_span s)
{
    for (size_t i = 0; i < s.n;) {
        unsigned char c = (unsigned char)s.p[i];
        size_t n = amp_utf8_length((const unsigned char *)s.p + i, s.n - i);
        if (n == 0 || c == 0x7f || (c < 0x20 && c != '\n' && c != '\t' && c != '\r'))
            return false;
        i += n;
    }
    return true;
}

/* Whether a line is the label of a task: "Task: …", "**Task:** …", "## Task", "# Task: …".
 * `strong`: only with Markdown around it. */
static bool is_label(struct amp_span line, bool strong)
{
    bool heading = false, bold = false;
    while (line.n > 0 && strchr(" \t#*->", line.p[0])) {
        heading = heading || line.p[0] == '#';
        bold = bold || (line.p[0] == '*' && line.n > 1 && line.p[1] == '*');
        line.p++;
        line.n--;
    }
    if (heading && line.n > 4 && strncasecmp(line.p, "AOP ", 4) == 0) {
        line.p += 4;
        line.n -= 4;
    }
    if (line.n < 4 || strncasecmp(line.p, "task", 4) != 0)
        return false;
    line.p += 4;
    line.n -= 4;
    while (line.n > 0 && strchr(" *", line.p[0])) {
        line.p++;
        line.n--;
    }
    bool colon = line.n > 0 && line.p[0] == ':';
    bool end = line.n == 0 || line.p[0] == '\r';
    return strong ? (heading && (colon || end)) || (bold && colon) : colon || (heading && end);
}

const char *amp_aop_text(struct amp_span text, bool pinned)
{
    bool first = true;
    for (size_t i = 0; i < text.n;) {
        const char *lf = memchr(text.p + i, '\n', text.n - i);
        size_t end = lf ? (size_t)(lf - text.p) : text.n;
        struct amp_span line = {text.p + i, end - i};
        i = end + 1;
        /* Unless the protocol is given, only the first line identifies such a document. */
        if ((pinned || first) && is_label(line, !pinned))
            return is_clean(text) ? AMP_AOP_V1 : NULL;
        for (size_t k = 0; first && k < line.n; k++)
            first = isspace((unsigned char)line.p[k]);
        if (!first && !pinned)
            return NULL;
    }
    return NULL;
}

/* A string of the message, without control characters other than LF and tab. */
static int put_text(const struct amp_view *v, uint32_t tok, struct amp_buf *out,
                    struct amp_error *err)
{
    struct amp_span text;
    AMP_BUF struct amp_buf room = {0};
    amp_buf_init(&room, 64 * 1024 * 1024);
    if (v->tape->tok[tok].type != AMP_JSON_STRING)
        text = amp_tok_source(v->tape, tok);
    else if (amp_tok_text(v->tape, tok, &room, &text, err) < 0)
        return -1;
    for (size_t from = 0, i = 0; i <= text.n; i++) {
        unsigned char c = i < text.n ? (unsigned char)text.p[i] : 0;
        if (i < text.n && ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t'))
            continue;
        if (amp_buf_add(out, text.p + from, i - from, err) < 0)
            return -1;
        from = i + 1;
    }
    return 0;
}

static uint32_t value_find(const struct amp_view *v, const char *pointer)
{
    return amp_tape_pointer(v->tape, 0, amp_span_str(pointer));
}

/* "**Label:** value", or nothing without a value. */
static int put_line(const struct amp_view *v, const char *label, const char *pointer,
                    struct amp_buf *out, struct amp_error *err)
{
    uint32_t tok = value_find(v, pointer);
    if (tok == AMP_TOK_NONE || v->tape->tok[tok].type == AMP_JSON_NULL)
        return 0;
    if (amp_buf_fmt(out, err, "**%s:** ", label) < 0 || put_text(v, tok, out, err) < 0)
        return -1;
    return amp_buf_str(out, "\n", err);
}

/* A list of an array's strings, or of its objects' members `key` and `more`. */
static int put_list(const struct amp_view *v, const char *heading, const char *pointer,
                    const char *key, const char *more, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_tape *t = v->tape;
    uint32_t list = value_find(v, pointer);
    if (list == AMP_TOK_NONE || t->tok[list].type != AMP_JSON_ARRAY || t->tok[list].count == 0)
        return 0;
    if (amp_buf_fmt(out, err, "\n## %s\n", heading) < 0)
        return -1;
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next) {
        bool object = t->tok[i].type == AMP_JSON_OBJECT;
        uint32_t first = object ? amp_tape_get(t, i, amp_span_str(key)) : i;
        uint32_t second = object ? amp_tape_get(t, i, amp_span_str(more)) : AMP_TOK_NONE;
        if (first == AMP_TOK_NONE) {
            first = second;
            second = AMP_TOK_NONE;
        }
        if (first == AMP_TOK_NONE)
            continue;
        if (amp_buf_str(out, "- ", err) < 0 || put_text(v, first, out, err) < 0 ||
            (second != AMP_TOK_NONE &&
             (amp_buf_str(out, ": ", err) < 0 || put_text(v, second, out, err) < 0)) ||
            amp_buf_str(out, "\n", err) < 0)
            return -1;
    }
    return 0;
}

int amp_aop_v1_prompt(const struct amp_view *v, struct amp_buf *out, struct amp_error *err)
{
    static const struct {
        const char *label, *pointer;
    } lines[] = {
        {"Session", "/session/session_id"},
        {"Agent", "/target/agent_name"},
        {"Role", "/target/role"},
        {"Category", "/task/category"},
        {"Complexity", "/task/complexity"},
        {"Priority", "/task/priority"},
        {"Workspace", "/task/environment/workspace_root"},
        {"Branch", "/task/environment/git_branch"},
    };
    uint32_t id = value_find(v, "/task/task_id"), objective = value_find(v, "/task/objective");
    if (amp_buf_str(out, "# Task: ", err) < 0 ||
        (id != AMP_TOK_NONE ? put_text(v, id, out, err) : amp_buf_str(out, "(no id)", err)) < 0 ||
        amp_buf_str(out, "\n\n", err) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
        if (put_line(v, lines[i].label, lines[i].pointer, out, err) < 0)
            return -1;
    if (objective != AMP_TOK_NONE &&
        (amp_buf_str(out, "\n## Objective\n", err) < 0 || put_text(v, objective, out, err) < 0 ||
         amp_buf_str(out, "\n", err) < 0))
        return -1;
    if (put_list(v, "Inputs", "/task/inputs", "path", "content", out, err) < 0 ||
        put_list(v, "Expected outputs", "/task/expected_outputs", "path", "description", out, err) <
            0 ||
        put_list(v, "Phases", "/phases", "label", "objective", out, err) < 0)
        return -1;
    return amp_buf_str(out,
                       "\n## Report\nEnd with a status (SUCCESS, PARTIAL_SUCCESS, FAILURE or "
                       "ABORTED), a summary, and the list of your actions.\n",
                       err);
}

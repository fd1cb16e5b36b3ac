/*
 * Task files: JSON, or Markdown:
 *
 *     # Parse durations
 *     Branch: fix/units
 *     Risk: low
 *
 *     Words that describe the task.
 *
 *     ## Subtasks
 *     - Read several units (~40 lines)
 *     ## Acceptance criteria
 *     - 1h30m is 5400 seconds
 *     ## Forbidden actions
 *     - change the tests
 *     ## Constraints
 *     - c_standard: c11
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <amp/base/num.h>
#include <amp/json/tape.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "work/task/new.h"

#define WORDS_MAX ((size_t)8 << 20)

static const struct {
    const char *title, *member;
} sections[] = {
    {"subtasks", "subtasks"},
    {"acceptance criteria", "acceptance_criteria"},
    {"criteria", "acceptance_criteria"},
    {"forbidden actions", "forbidden_actions"},
    {"forbidden", "forbidden_actions"},
    {"constraints", "tech_constraints"},
    {"technical constraints", "tech_constraints"},
};
static const struct {
    const char *word, *member;
} heads[] = {
    {"id", "task_id"}, {"task", "task_id"},    {"repo", "repo"},       {"branch", "branch"},
    {"base", "base"},  {"risk", "risk_level"}, {"type", "agent_type"},
};

struct reading {
    json_t *task;
    const char *section; /* member; NULL: the description */
    struct amp_buf words;
    unsigned line;
    bool in_head;       /* lines like "Branch: x" are still expected */
    const char *wanted; /* the pointer to find, or NULL */
    unsigned *found;    /* its line, or that of the value that contains it; the line of an error */
};

/* The current line has this member, or its element i (-1: the member itself). */
static void note_place(const struct reading *r, const char *member, int64_t i)
{
    char pointer[96];
    if (i < 0)
        snprintf(pointer, sizeof pointer, "/%s", member);
    else
        snprintf(pointer, sizeof pointer, "/%s/%lld", member, (long long)i);
    size_t n = strlen(pointer);
    if (r->wanted && strncmp(r->wanted, pointer, n) == 0 && strchr("/", r->wanted[n]))
        *r->found = r->line;
}

static struct amp_span line_trim(struct amp_span s)
{
    while (s.n && strchr(" \t\r", s.p[s.n - 1]))
        s.n--;
    while (s.n && strchr(" \t", *s.p))
        s.p++, s.n--;
    return s;
}

static bool same_word(struct amp_span s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static int fail_line(const struct reading *r, const char *what, struct amp_error *err)
{
    if (!r->wanted)
        *r->found = r->line;
    return amp_fail(err, AMP_DATAERR, bad_task, "%s", what);
}

static int set_text(json_t *o, const char *key, struct amp_span s)
{
    return json_object_set_new(o, key, json_stringn(s.p, s.n));
}

/* Splits "key: value"; false: there is no colon. */
static bool pair_split(struct amp_span s, struct amp_span *key, struct amp_span *value)
{
    const char *colon = memchr(s.p, ':', s.n);
    if (!colon)
        return false;
    *key = line_trim((struct amp_span){s.p, (size_t)(colon - s.p)});
    *value = line_trim((struct amp_span){colon + 1, (size_t)(s.p + s.n - colon - 1)});
    return true;
}

/* Sets one of the members in heads[]; 1: it is not such a line. */
static int read_head(struct reading *r, struct amp_span s)
{
    struct amp_span key, value;
    if (!pair_split(s, &key, &value))
        return 1;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (same_word(key, heads[i].word)) {
            note_place(r, heads[i].member, -1);
            return set_text(r->task, heads[i].member, value);
        }
    return 1;
}

static int read_section(struct reading *r, struct amp_span title, struct amp_error *err)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (same_word(title, sections[i].title)) {
            r->section = sections[i].member;
            note_place(r, r->section, -1);
            if (json_object_get(r->task, r->section))
                return 0;
            bool object = strcmp(r->section, "tech_constraints") == 0;
            return json_object_set_new(r->task, r->section, object ? json_object() : json_array());
        }
    return fail_line(
        r,
        "unknown section: expected Subtasks, Acceptance criteria, Forbidden actions or "
        "Constraints",
        err);
}

/* "words (~40 lines)" */
static json_t *subtask_read(struct amp_span s)
{
    int64_t lines = 0;
    size_t at = s.n;
    while (at && s.p[at - 1] != '(')
        at--;
    struct amp_span tail = {s.p + at, s.n - at};
    if (at && tail.n > 8 && *tail.p == '~' && memcmp(s.p + s.n - 7, " lines)", 7) == 0 &&
        amp_num_parse((struct amp_span){tail.p + 1, tail.n - 8}, 0, 1000000, &lines, NULL) == 0)
        s = line_trim((struct amp_span){s.p, at - 1});
    return json_pack("{s:s%, s:I}", "description", s.p, s.n, "estimated_lines", (json_int_t)lines);
}

static int read_item(struct reading *r, struct amp_span s, struct amp_error *err)
{
    json_t *place = json_object_get(r->task, r->section);
    if (json_is_array(place))
        note_place(r, r->section, (int64_t)json_array_size(place));
    if (strcmp(r->section, "subtasks") == 0)
        return json_array_append_new(place, subtask_read(s));
    if (json_is_array(place))
        return json_array_append_new(place, json_stringn(s.p, s.n));
    struct amp_span name, value;
    char key[128];
    if (!pair_split(s, &name, &value) || !amp_span_copy(name, key, sizeof key))
        return fail_line(r, "a constraint is malformed: expected \"- name: value\"", err);
    return set_text(place, key, value);
}

static int read_line(struct reading *r, struct amp_span raw, struct amp_error *err)
{
    struct amp_span s = line_trim(raw);
    r->line++;
    if (s.n >= 3 && memcmp(s.p, "## ", 3) == 0)
        return read_section(r, line_trim((struct amp_span){s.p + 3, s.n - 3}), err);
    if (r->section) {
        if (s.n >= 2 && (*s.p == '-' || *s.p == '*') && s.p[1] == ' ')
            return read_item(r, line_trim((struct amp_span){s.p + 2, s.n - 2}), err);
        return s.n ? fail_line(r, "a section holds a list: expected \"- text\"", err) : 0;
    }
    if (!r->words.len && s.n)
        note_place(r, "description", -1);
    if (!r->words.len && s.n >= 2 && memcmp(s.p, "# ", 2) == 0) {
        r->in_head = true;
        return amp_buf_add(&r->words, s.p + 2, s.n - 2, err);
    }
    if (r->in_head && s.n) {
        int rc = read_head(r, s);
        if (rc <= 0)
            return rc;
        r->in_head = false;
    }
    /* Blank lines separate paragraphs; the first words follow the title. */
    if (amp_buf_add(&r->words, "\n", 1, err) < 0)
        return -1;
    return amp_buf_add(&r->words, s.p, s.n, err);
}

/* wanted: NULL, or the pointer whose line is returned in *line. */
static json_t *markdown_read(struct amp_span text, const char *wanted, unsigned *line,
                             struct amp_error *err)
{
    struct reading r = {.task = json_object(), .in_head = true, .wanted = wanted, .found = line};
    int rc = r.task ? 0 : -1;
    amp_buf_init(&r.words, WORDS_MAX);
    if (rc < 0)
        amp_fail_memory(err);
    for (size_t at = 0; rc == 0 && at < text.n;) {
        const char *end = memchr(text.p + at, '\n', text.n - at);
        size_t n = end ? (size_t)(end - text.p) - at : text.n - at;
        struct amp_error why = {0};
        rc = read_line(&r, (struct amp_span){text.p + at, n}, &why);
        if (rc < 0 && !*why.code)
            fail_line(&r, "not UTF-8", &why);
        if (rc < 0 && err)
            *err = why;
        at += n + 1;
    }
    struct amp_span words = amp_buf_span(&r.words);
    while (words.n && strchr(" \n", words.p[words.n - 1]))
        words.n--;
    while (words.n && *words.p == '\n')
        words.p++, words.n--;
    if (rc == 0 && set_text(r.task, "description", words.n ? words : AMP_SPAN("")) < 0)
        rc = fail_line(&r, "not UTF-8", err);
    amp_buf_release(&r.words);
    if (rc < 0) {
        json_decref(r.task);
        return NULL;
    }
    return r.task;
}

static bool is_json(struct amp_span text)
{
    size_t i = 0;
    while (i < text.n && strchr(" \t\r\n", text.p[i]))
        i++;
    return i < text.n && text.p[i] == '{';
}

static unsigned line_at(struct amp_span text, size_t at)
{
    unsigned line = 1;
    for (size_t i = 0; i < at && i < text.n; i++)
        line += text.p[i] == '\n';
    return line;
}

json_t *amp_new_read(struct amp_span text, struct amp_new_fault *at, struct amp_error *err)
{
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape tape = {0};
    *at = (struct amp_new_fault){0};
    if (!is_json(text))
        return markdown_read(text, NULL, &at->line, err);
    amp_tape_init(&tape, NULL);
    if (amp_tape_scan(&tape, text.p, text.n, &fault) == 0)
        return amp_json_load(text, err);
    at->line = line_at(text, fault.offset);
    if (amp_json_fault_is_memory(&fault))
        amp_fail_memory(err);
    else
        amp_fail(err, AMP_DATAERR, bad_task, "%s", fault.what);
    return NULL;
}

static unsigned json_line(struct amp_span text, const char *pointer)
{
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape tape = {0};
    struct amp_span p = amp_span_str(pointer);
    unsigned line = 0;
    amp_tape_init(&tape, NULL);
    if (amp_tape_scan(&tape, text.p, text.n, &fault) == 0)
        while (p.n && !line) {
            uint32_t tok = amp_tape_pointer(&tape, 0, p);
            if (tok != AMP_TOK_NONE)
                line = line_at(text, (size_t)(amp_tok_source(&tape, tok).p - tape.text));
            while (p.n && p.p[--p.n] != '/')
                continue;
        }
    return line;
}

unsigned amp_new_line(struct amp_span text, const char *pointer)
{
    unsigned line = 0;
    if (is_json(text))
        return json_line(text, pointer);
    json_decref(markdown_read(text, pointer, &line, NULL));
    return line;
}

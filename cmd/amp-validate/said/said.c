/*
 * The texts that the assistant said, each once. Events repeat them: as pieces, as the message and
 * as the result; and they have texts that others said: the prompt, the outputs of tools, the
 * messages of subagents.
 */
#include "said.h"

void said_init(struct said *s, enum said_agent agent, const struct amp_json_limits *limits)
{
    *s = (struct said){.agent = agent};
    amp_tape_init(&s->tape, limits);
    amp_buf_init(&s->text, limits->max_bytes);
    amp_buf_init(&s->document, limits->max_bytes);
}

void said_release(struct said *s)
{
    amp_tape_release(&s->tape);
    amp_buf_release(&s->text);
    amp_buf_release(&s->document);
}

static int text_end(struct said *s, struct amp_error *err)
{
    bool open = s->open;
    s->open = false;
    return open ? s->end(s->ctx, AMP_SPAN(""), err) : 0;
}

static uint32_t event_member(const struct said *s, uint32_t event, const char *pointer)
{
    return amp_tape_pointer(&s->tape, event, amp_span_str(pointer));
}

static bool member_has_type(const struct said *s, uint32_t event, const char *pointer,
                            enum amp_json_type type)
{
    uint32_t tok = event_member(s, event, pointer);
    return tok != AMP_TOK_NONE && s->tape.tok[tok].type == type;
}

static bool member_is(const struct said *s, uint32_t event, const char *pointer, const char *value)
{
    return member_has_type(s, event, pointer, AMP_JSON_STRING) &&
           amp_tok_is(&s->tape, event_member(s, event, pointer), amp_span_str(value));
}

/* more: the next event may go on with this text. */
static int text_add(struct said *s, uint32_t event, const char *pointer, bool more,
                    struct amp_error *err)
{
    struct amp_span piece;
    if (!member_has_type(s, event, pointer, AMP_JSON_STRING))
        return 0;
    amp_buf_reset(&s->text);
    if (amp_tok_text(&s->tape, event_member(s, event, pointer), &s->text, &piece, err) < 0)
        return -1;
    s->spoke = s->open = true;
    int rc = s->piece(s->ctx, piece, err);
    return rc || more ? rc : text_end(s, err);
}

/* Calls take for each element of an array. */
static int each_element(struct said *s, uint32_t array,
                        int (*take)(struct said *, uint32_t, struct amp_error *),
                        struct amp_error *err)
{
    int rc = 0;
    uint32_t tok = array + 1;
    for (uint32_t i = 0; rc == 0 && i < s->tape.tok[array].count; i++) {
        rc = take(s, tok, err);
        tok = s->tape.tok[tok].next;
    }
    return rc;
}

static int claude_block(struct said *s, uint32_t block, struct amp_error *err)
{
    return member_is(s, block, "/type", "text") ? text_add(s, block, "/text", false, err) : 0;
}

/* Claude Code and Qwen Code. A line with a parent, or of a sidechain, is that of a subagent. */
static int claude_take(struct said *s, uint32_t event, struct amp_error *err)
{
    if (member_is(s, event, "/type", "result") && !s->spoke &&
        !member_has_type(s, event, "/is_error", AMP_JSON_TRUE))
        return text_add(s, event, "/result", false, err);
    if (!member_is(s, event, "/type", "assistant") ||
        member_has_type(s, event, "/parent_tool_use_id", AMP_JSON_STRING) ||
        member_has_type(s, event, "/isSidechain", AMP_JSON_TRUE) ||
        !member_has_type(s, event, "/message/content", AMP_JSON_ARRAY))
        return 0;
    return each_element(s, event_member(s, event, "/message/content"), claude_block, err);
}

static int codex_take(struct said *s, uint32_t event, struct amp_error *err)
{
    return member_is(s, event, "/type", "item.completed") &&
                   member_is(s, event, "/item/type", "agent_message")
               ? text_add(s, event, "/item/text", false, err)
               : 0;
}

/* A message comes in pieces; with -o json there is one object, without a type. */
static int gemini_take(struct said *s, uint32_t event, struct amp_error *err)
{
    if (member_is(s, event, "/type", "message") && member_is(s, event, "/role", "assistant"))
        return text_add(s, event, "/content", member_has_type(s, event, "/delta", AMP_JSON_TRUE),
                        err);
    int rc = text_end(s, err);
    return rc || event_member(s, event, "/type") != AMP_TOK_NONE
               ? rc
               : text_add(s, event, "/response", false, err);
}

static int opencode_take(struct said *s, uint32_t event, struct amp_error *err)
{
    return member_is(s, event, "/type", "text") ? text_add(s, event, "/part/text", false, err) : 0;
}

/* Takes an event, a list of them, or text that is neither. */
static int json_take(struct said *s, struct amp_span text, struct amp_error *err)
{
    static int (*const take[SAID_COUNT])(struct said *, uint32_t, struct amp_error *) = {
        [SAID_CLAUDE] = claude_take, [SAID_CODEX] = codex_take,       [SAID_GEMINI] = gemini_take,
        [SAID_QWEN] = claude_take,   [SAID_OPENCODE] = opencode_take,
    };
    struct amp_json_fault fault;
    if (text.n == 0 || amp_tape_scan(&s->tape, text.p, text.n, &fault) < 0)
        return text.n && amp_json_fault_is_memory(&fault) ? amp_fail_memory(err) : 0;
    return s->tape.tok[0].type == AMP_JSON_ARRAY ? each_element(s, 0, take[s->agent], err)
                                                 : take[s->agent](s, 0, err);
}

int said_line(struct said *s, struct amp_span line, struct amp_error *err)
{
    while (line.n && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
        line.n--;
    bool begins = amp_span_is(line, "{") || amp_span_is(line, "[");
    bool ends = amp_span_is(line, "}") || amp_span_is(line, "]");
    if (begins)
        amp_buf_reset(&s->document);
    if (!begins && !s->document.len)
        return json_take(s, line, err);
    if (s->document.len + line.n >= s->document.max) {
        amp_buf_reset(&s->document);
        return 0;
    }
    if (amp_buf_add(&s->document, line.p, line.n, err) < 0 ||
        amp_buf_add(&s->document, "\n", 1, err) < 0)
        return -1;
    if (!ends)
        return 0;
    int rc = json_take(s, amp_buf_span(&s->document), err);
    amp_buf_reset(&s->document);
    return rc;
}

int said_end(struct said *s, struct amp_error *err)
{
    return text_end(s, err);
}

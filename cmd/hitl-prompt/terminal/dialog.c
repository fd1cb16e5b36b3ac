/* Asks a person one question. */
#include "dialog.h"

#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "people/answer/payload.h"
#include "people/answer/text/evidence_facts.h"
#include "json/text.h"

#define TEXT_MAX  ((size_t)256 << 20) /* of a page, as of a long diff */
#define PATCH_MAX ((size_t)64 << 20)  /* of a diff that is shown */
#define WIDE      100                 /* columns of a question; a diff uses all */

static const char ask_prompt[] = "> ";
static const char page_keys[DIALOG_PAGES + 1] = "dlts";

void dialog_init(struct dialog *g, bool plain)
{
    *g = (struct dialog){.at = DIALOG_IDLE};
    terminal_init(&g->tty, plain);
    amp_buf_init(&g->payload, AMP_PAYLOAD_MAX);
    amp_buf_init(&g->patch, 2 * AMP_PAYLOAD_MAX);
}

void dialog_release(struct dialog *g)
{
    dialog_close(g, NULL);
    terminal_release(&g->tty);
    amp_buf_release(&g->payload);
    amp_buf_release(&g->patch);
}

static void words_say(struct dialog *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void words_say(struct dialog *g, const char *fmt, ...)
{
    AMP_BUF struct amp_buf safe = {0};
    char text[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    amp_buf_init(&safe, 65536);
    if (amp_buf_str(&safe, "  ", NULL) == 0 &&
        amp_text_safe(amp_span_str(text), 0, &safe, NULL) == 0 &&
        amp_buf_str(&safe, "\n", NULL) == 0)
        terminal_say(&g->tty, amp_buf_span(&safe));
}

static bool is_colored(const struct dialog *g)
{
    return !g->tty.plain && amp_color_of(g->tty.fd);
}

static int wide_of(const struct dialog *g)
{
    return g->tty.width < WIDE ? g->tty.width : WIDE;
}

/* --- showing --- */

static const char keys_text[] =
    "  Keys: d diff, l log, t task, s the agents' own words, p this page, ? help.\n"
    "  An empty line leaves it undecided.";

static int question_text(struct dialog *g, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_page page = {wide_of(g), is_colored(g), out, err, EVIDENCE_MORE};

    return evidence_question(g->q, &g->ev, &page) < 0 || evidence_answers(g->q, &page) < 0 ||
                   amp_page_say(&page, AMP_TINT_NONE, "%s", keys_text) < 0
               ? -1
               : 0;
}

static int help_text(struct dialog *g, const struct amp_page *page)
{
    if (amp_page_say(page, AMP_TINT_HEAD, "-- what you can type") < 0 ||
        evidence_answers(g->q, page) < 0)
        return -1;
    return amp_page_say(
        page, AMP_TINT_NONE, "%s",
        "  Behind the action you may write why; the line goes into the record of the decision.\n"
        "  An answer that ends or resets work is confirmed with \"yes\".\n"
        "  \"redispatch\" and \"modify\" open your editor ($VISUAL, $EDITOR) on the payload. "
        "Leave\n"
        "  it unchanged to send the answer without one.\n"
        "  \"defer 2h WHY\" or \"defer 17:30 WHY\" asks again at that time.\n"
        "  d  the diff of the work, the files first      l  the log of the task or message\n"
        "  t  the task                                   s  everything that agents wrote\n"
        "  p  the question again, page by page           ?  this help\n"
        "  Lines behind a bar were written by others. In a long page: space for more, b back, q\n"
        "  end. ^L shows the question again, ^D ends the program, ^C interrupts it, ^Z stops it.");
}

static int diff_text(struct dialog *g, const struct amp_page *page)
{
    AMP_BUF struct amp_buf patch = {.max = PATCH_MAX};
    struct amp_git_diff diff = {0};
    struct amp_error why;
    bool more = false;

    if (g->ev.why_no_diff)
        return amp_page_say(page, AMP_TINT_NONE, "There is no diff: %s.", g->ev.why_no_diff);
    int rc = amp_evidence_diff(g->d, &g->ev, &diff, &patch, &more, &why);
    rc = rc < 0 ? amp_page_quote(page, "no diff", amp_span_str(why.what), 0)
                : evidence_diff(&g->ev, &diff, amp_buf_span(&patch), page);
    if (rc == 0 && more)
        rc = amp_page_say(page, AMP_TINT_NONE, "… the diff is longer");
    amp_git_diff_release(&diff);
    return rc;
}

static int page_text(struct dialog *g, char key, const struct amp_page *page)
{
    switch (key) {
    case 'd':
        return diff_text(g, page);
    case 'l':
        return evidence_log(g->d->w.store, g->q, page);
    case 't':
        return evidence_task(g->q, &g->ev, page);
    default:
        return evidence_words(g->q, &g->ev, page);
    }
}

static int view_text(struct dialog *g, char key, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_page page = {key == 'd' || key == 'l' ? g->tty.width : wide_of(g),
                                  is_colored(g), out, err, .more = EVIDENCE_MORE};

    return strchr(page_keys, key) ? page_text(g, key, &page)
           : key == '?'           ? help_text(g, &page)
                                  : question_text(g, out, err);
}

/* The digest of a page that is opened, as it is in a window of 80 columns without colours. It goes
 * with those of the question and the other pages into the digest of what was shown. */
static int shown_add(struct dialog *g, char key, struct amp_error *err)
{
    const char *at = strchr(page_keys, key);
    AMP_BUF struct amp_buf text = {0}, all = {0};
    const struct amp_page page = {.width = 80, .out = &text, .err = err, .more = EVIDENCE_MORE};

    if (!at || *g->shown_page[at - page_keys])
        return 0;
    amp_buf_init(&text, TEXT_MAX);
    amp_buf_init(&all, 4096);
    if (page_text(g, key, &page) < 0 ||
        amp_buf_fmt(&all, err, "question %s\n", g->shown_question) < 0)
        return -1;
    amp_shown_digest(amp_buf_span(&text), g->shown_page[at - page_keys]);
    for (int i = 0; i < DIALOG_PAGES; i++)
        if (*g->shown_page[i] &&
            amp_buf_fmt(&all, err, "%c %s\n", page_keys[i], g->shown_page[i]) < 0)
            return -1;
    amp_shown_digest(amp_buf_span(&all), g->shown);
    return 0;
}

static void prompt_show(struct dialog *g)
{
    g->at = DIALOG_ASKS;
    g->view = 0;
    terminal_prompt(&g->tty, ask_prompt);
}

/* A failure to show something is said; the question stays. */
static void view_show(struct dialog *g, char key, bool again)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_error err;

    amp_buf_init(&out, TEXT_MAX);
    if (view_text(g, key, &out, &err) < 0 || shown_add(g, key, &err) < 0) {
        words_say(g, "It cannot be shown: %s: %s", err.code, err.what);
        prompt_show(g);
        return;
    }
    g->view = key;
    if (again)
        terminal_repage(&g->tty, amp_buf_span(&out));
    else
        terminal_page(&g->tty, amp_buf_span(&out));
    if (!g->tty.page.on)
        prompt_show(g);
}

static size_t lines_count(struct amp_span text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

/* Prints the whole question, and a note if it is longer than the window. */
static int question_show(struct dialog *g, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};

    amp_buf_init(&out, TEXT_MAX);
    if (question_text(g, &out, err) < 0)
        return -1;
    size_t lines = lines_count(amp_buf_span(&out));
    const struct amp_page page = {wide_of(g), is_colored(g), &out, err, EVIDENCE_MORE};
    if (lines >= (size_t)g->tty.height &&
        amp_page_say(&page, AMP_TINT_NONE,
                     "  The question has %zu lines, more than the window: p shows it page by page.",
                     lines) < 0)
        return -1;
    g->shown_width = wide_of(g);
    terminal_say(&g->tty, amp_buf_span(&out));
    return 0;
}

int dialog_ask(struct dialog *g, struct amp_decider *d, const struct amp_question *q,
               struct amp_error *err)
{
    g->d = d;
    g->q = q;
    if (amp_evidence_load(d->w.store, q, &g->ev, err) < 0 ||
        evidence_digest(q, &g->ev, g->shown_question, err) < 0 || question_show(g, err) < 0) {
        dialog_close(g, NULL);
        return -1;
    }
    memcpy(g->shown, g->shown_question, sizeof g->shown);
    memset(g->shown_page, 0, sizeof g->shown_page);
    prompt_show(g);
    return 0;
}

void dialog_close(struct dialog *g, const char *why)
{
    char kept[300];

    editor_abandon(&g->editor, &g->tty, kept);
    if (g->tty.fd >= 0)
        terminal_unprompt(&g->tty);
    if (why)
        words_say(g, "%s", why);
    if (*kept)
        words_say(g, "Your changed payload was not sent; it is kept in %s", kept);
    amp_evidence_release(&g->ev);
    g->ev = (struct amp_evidence){0};
    g->at = DIALOG_IDLE;
    g->q = NULL;
    amp_buf_reset(&g->payload);
    amp_buf_reset(&g->patch);
}

void dialog_again(struct dialog *g, const char *why)
{
    editor_end(&g->editor, &g->tty);
    amp_buf_reset(&g->payload);
    amp_buf_reset(&g->patch);
    if (why)
        words_say(g, "%s", why);
    words_say(g, "Please: %s.", amp_answer_words(g->q));
    prompt_show(g);
}

/* --- reading --- */

static void confirm_ask(struct dialog *g, const struct amp_action *action)
{
    words_say(g, "%s: %s. Type yes to confirm.", action->name,
              action->effect ? action->effect : "this cannot be taken back");
    g->at = DIALOG_CONFIRMS;
    terminal_prompt(&g->tty, "yes? ");
}

static void edit_begin(struct dialog *g)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_error err;

    amp_buf_init(&text, AMP_PAYLOAD_MAX);
    if ((!*g->editor.dir && amp_payload_text(g->q, &g->ev, &text, &err) < 0) ||
        editor_start(&g->editor, &g->tty, amp_buf_span(&text), &err) < 0) {
        editor_end(&g->editor, &g->tty);
        dialog_again(g, err.what);
        return;
    }
    g->at = DIALOG_EDITS;
}

/* An answer line. */
static enum dialog_said answer_read(struct dialog *g)
{
    const struct amp_action *action;

    if (!amp_answer_parse(g->q, g->line, &g->answer)) {
        dialog_again(g, NULL);
        return DIALOG_WAITS;
    }
    if (!(action = amp_question_action(g->q, g->answer.action)))
        return DIALOG_ANSWERED;
    bool lacks = action->does == AMP_ACTION_ROLLBACK && (!g->answer.commit || !*g->answer.commit);
    if ((action->is & AMP_ACTION_GRAVE) && !lacks) {
        confirm_ask(g, action);
        return DIALOG_WAITS;
    }
    if ((action->is & AMP_ACTION_EDITS) && g->answer.note[0] != '{' &&
        amp_payload_is_there(g->q, &g->ev)) {
        edit_begin(g);
        return DIALOG_WAITS;
    }
    return DIALOG_ANSWERED;
}

/* The key of a one-letter line, or 0. */
static char key_of(const char *line)
{
    const char *p = line + strspn(line, " \t");

    return *p && !p[1 + strspn(p + 1, " \t\r")] && strchr("dltsp?", *p) ? *p : '\0';
}

/* Terminals in other encodings, and pasted bytes, could not be written into a message. */
static bool is_utf8(const char *text)
{
    size_t left = strlen(text);

    while (left) {
        size_t n = amp_utf8_length((const unsigned char *)text, left);
        if (!n)
            return false;
        text += n;
        left -= n;
    }
    return true;
}

static enum dialog_said line_take(struct dialog *g, char *line)
{
    char key = key_of(line);
    bool yes = !strcasecmp(line, "yes"), empty = !line[strspn(line, " \t\r")];

    if (!is_utf8(line)) {
        dialog_again(g, "The line is not UTF-8 and was dropped.");
        return DIALOG_WAITS;
    }
    switch (g->at) {
    case DIALOG_CONFIRMS:
        if (yes)
            return DIALOG_ANSWERED;
        words_say(g, "Not confirmed.");
        prompt_show(g);
        return DIALOG_WAITS;
    case DIALOG_EDITS_AGAIN:
        if (empty || !strcasecmp(line, "e")) {
            edit_begin(g);
            return DIALOG_WAITS;
        }
        dialog_again(g, "The change is dropped.");
        return DIALOG_WAITS;
    default:
        break;
    }
    if (empty)
        return DIALOG_PASSED;
    if (key) {
        view_show(g, key, false);
        return DIALOG_WAITS;
    }
    snprintf(g->line, sizeof g->line, "%s", line);
    return answer_read(g);
}

/* The changed text in base64, with a NUL, as protocols carry it. */
static int patch_encode(struct dialog *g, struct amp_error *err)
{
    size_t n = sodium_base64_ENCODED_LEN(g->payload.len, sodium_base64_VARIANT_ORIGINAL);

    amp_buf_reset(&g->patch);
    if (amp_buf_add(&g->payload, "", 1, err) < 0 || amp_buf_reserve(&g->patch, n, err) < 0)
        return -1;
    sodium_bin2base64(g->patch.data, n, (const unsigned char *)g->payload.data, g->payload.len - 1,
                      sodium_base64_VARIANT_ORIGINAL);
    return 0;
}

/* The person closed the editor: the payload counts if it fits its schema. */
static enum dialog_said edit_take(struct dialog *g)
{
    AMP_BUF struct amp_buf text = {0}, why = {0};
    struct amp_error err;
    bool changed = false;

    amp_buf_init(&text, AMP_PAYLOAD_MAX);
    amp_buf_init(&why, 65536);
    amp_buf_reset(&g->payload);
    int rc = editor_read(&g->editor, AMP_PAYLOAD_MAX, &text, &err) < 0
                 ? -1
                 : amp_payload_check(g->q, &g->ev, amp_buf_span(&text), &g->payload, &changed, &why,
                                     &err);
    if (rc < 0) {
        dialog_again(g, err.what);
        return DIALOG_WAITS;
    }
    if (rc == 0) {
        const struct amp_page page = {wide_of(g), is_colored(g), &text, &err, EVIDENCE_MORE};
        amp_buf_reset(&text);
        if (amp_page_say(&page, AMP_TINT_NONE, "  The payload is not accepted:") == 0 &&
            amp_page_quote(&page, "", amp_buf_span(&why), 0) == 0)
            terminal_say(&g->tty, amp_buf_span(&text));
        g->at = DIALOG_EDITS_AGAIN;
        terminal_prompt(&g->tty, "Enter: edit again, n: drop the change? ");
        return DIALOG_WAITS;
    }
    editor_end(&g->editor, &g->tty);
    if (!changed)
        words_say(g, "The payload is unchanged.");
    if (changed && patch_encode(g, &err) < 0) {
        dialog_again(g, err.what);
        return DIALOG_WAITS;
    }
    g->answer.payload = changed ? g->payload.data : NULL;
    g->answer.patch = changed ? g->patch.data : NULL;
    return DIALOG_ANSWERED;
}

unsigned dialog_watch(const struct dialog *g, struct pollfd *fds)
{
    unsigned n = terminal_watch(&g->tty, fds);

    if (g->editor.runs)
        fds[n++] = (struct pollfd){.fd = g->editor.child.pidfd, .events = POLLIN};
    return n;
}

/* The window has another size. A question that is now wider than the window is shown again, because
 * the terminal wraps it without bars. */
static int size_follow(struct dialog *g, struct amp_error *err)
{
    if (g->tty.page.on) {
        view_show(g, g->view, true);
        return 0;
    }
    if (g->at != DIALOG_ASKS || wide_of(g) >= g->shown_width)
        return 0;
    return question_show(g, err);
}

enum dialog_said dialog_step(struct dialog *g, struct amp_error *err)
{
    char *line = NULL;

    if (g->editor.runs) {
        int rc = editor_poll(&g->editor, &g->tty, err);
        if (rc < 0)
            dialog_again(g, err->what);
        return rc > 0 ? edit_take(g) : terminal_gone(&g->tty) ? DIALOG_GONE : DIALOG_WAITS;
    }
    switch (terminal_step(&g->tty, &line)) {
    case TERMINAL_LINE:
        return line_take(g, line);
    case TERMINAL_LONG:
        dialog_again(g, "The line is too long for this terminal and was dropped; use a shorter "
                        "note.");
        return DIALOG_WAITS;
    case TERMINAL_END:
        return DIALOG_ENDED;
    case TERMINAL_GONE:
        return DIALOG_GONE;
    case TERMINAL_REFRESH:
        return question_show(g, err) < 0 ? DIALOG_FAILED : DIALOG_WAITS;
    case TERMINAL_RESIZED:
        return size_follow(g, err) < 0 ? DIALOG_FAILED : DIALOG_WAITS;
    case TERMINAL_PAGED:
        prompt_show(g);
        return DIALOG_WAITS;
    case TERMINAL_QUIET:
        break;
    }
    return DIALOG_WAITS;
}

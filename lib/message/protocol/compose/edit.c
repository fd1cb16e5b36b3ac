/* Replacing a few values of a line: see edit.h. */
#include "message/protocol/compose/edit.h"

#include <amp/json/writer.h>

static struct amp_buf *place_add(struct amp_edit *e, size_t at, size_t n)
{
    struct amp_edit_place *d = &e->place[e->n++];
    d->at = at;
    d->n = n;
    amp_buf_init(&d->text, 1 << 20);
    return &d->text;
}

static int text_write(struct amp_buf *out, struct amp_span text, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_str(&w, text);
    return amp_jw_end(&w, err);
}

/* The place of a member's value, or of a new first member. */
static struct amp_buf *member_place(struct amp_edit *e, uint32_t object, const char *key)
{
    const struct amp_tape *t = e->v->tape;
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    if (tok != AMP_TOK_NONE) {
        struct amp_span old = amp_tok_source(t, tok);
        return place_add(e, (size_t)(old.p - e->v->message.p), old.n);
    }
    struct amp_span all = amp_tok_source(t, object);
    struct amp_buf *b = place_add(e, (size_t)(all.p - e->v->message.p) + 1, 0);
    return amp_buf_fmt(b, e->err, "\"%s\":", key) < 0 ? NULL : b;
}

/* Adds a comma after a new first member. */
static int member_close(struct amp_edit *e, uint32_t object)
{
    struct amp_edit_place *d = &e->place[e->n - 1];
    return d->n == 0 && e->v->tape->tok[object].count > 0 ? amp_buf_add(&d->text, ",", 1, e->err)
                                                          : 0;
}

int amp_edit_text(struct amp_edit *e, uint32_t object, const char *key, struct amp_span text)
{
    struct amp_buf *b = member_place(e, object, key);
    return b && text_write(b, text, e->err) == 0 ? member_close(e, object) : -1;
}

int amp_edit_int(struct amp_edit *e, uint32_t object, const char *key, int64_t n)
{
    struct amp_buf *b = member_place(e, object, key);
    return b && amp_buf_fmt(b, e->err, "%lld", (long long)n) == 0 ? member_close(e, object) : -1;
}

static void places_sort(struct amp_edit *e)
{
    for (unsigned i = 1; i < e->n; i++)
        for (unsigned k = i; k > 0 && e->place[k].at < e->place[k - 1].at; k--) {
            struct amp_edit_place d = e->place[k];
            e->place[k] = e->place[k - 1];
            e->place[k - 1] = d;
        }
}

/* Opens the wrapper {"to":…,"msg": of a signed line that has a recipient beside the message; the
 * signature does not fit the edited message. 1: opened. */
static int wrapper_open(const struct amp_edit *e, struct amp_buf *out)
{
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    if (e->v->sig.key.n == 0)
        return 0;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, e->v->line.p, e->v->line.n, &fault) < 0)
        return amp_fail_text(e->err, AMP_DATAERR, fault.code, "%s", fault.what);
    uint32_t to = amp_tape_get(&t, 0, AMP_SPAN("to"));
    if (to == AMP_TOK_NONE)
        return 0;
    struct amp_span text = amp_tok_source(&t, to);
    return amp_buf_str(out, "{\"to\":", e->err) < 0 ||
                   amp_buf_add(out, text.p, text.n, e->err) < 0 ||
                   amp_buf_str(out, ",\"msg\":", e->err) < 0
               ? -1
               : 1;
}

static int message_write(struct amp_edit *e, struct amp_buf *out)
{
    struct amp_span line = e->v->message;
    size_t done = 0;
    places_sort(e);
    for (unsigned i = 0; i < e->n; i++) {
        const struct amp_edit_place *d = &e->place[i];
        if (amp_buf_add(out, line.p + done, d->at - done, e->err) < 0 ||
            amp_buf_add(out, d->text.data, d->text.len, e->err) < 0)
            return -1;
        done = d->at + d->n;
    }
    return amp_buf_add(out, line.p + done, line.n - done, e->err);
}

int amp_edit_line(struct amp_edit *e, struct amp_buf *out)
{
    size_t before = out->len;
    int wrapped = wrapper_open(e, out);
    if (wrapped >= 0 && message_write(e, out) == 0 &&
        (wrapped == 0 || amp_buf_str(out, "}", e->err) == 0))
        return 0;
    out->len = before;
    return -1;
}

void amp_edit_release(struct amp_edit *e)
{
    for (unsigned i = 0; i < e->n; i++)
        amp_buf_release(&e->place[i].text);
    e->n = 0;
}

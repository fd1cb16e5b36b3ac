/*
 * A conversion: read the message, write it in the target, and convert that back for a comparison.
 * The differences are what the target cannot express; they are kept in the origin, or reported as
 * lost. The result is checked like any line of its protocol; an invalid one is not returned.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/protocol/convert/convert.h"
#include "message/protocol/view/object.h"

enum { ARENA_MOST = 256 * 1024 * 1024, EXTRA = 1024 * 1024 };

struct amp_convert {
    struct amp_arena arena;
    struct amp_buf first, restored, back, kept, origin;
    struct amp_tape there, again, from; /* of restored, of back, of the origin in the source */
    struct amp_reader *reader;
    struct amp_check_options check;
};

/* The conversion of one message. */
struct conversion {
    struct amp_convert *c;
    const struct amp_view *v;
    enum amp_protocol to;
    const struct cv_shape *src, *dst;
    struct cv_neutral n;
    struct amp_span came; /* the origin in the source if the target wrote it, else empty */
    amp_finding_fn fn;
    void *ctx;
    bool keeps;              /* the target has room for an origin */
    bool carries[CV_FIELDS]; /* the result itself has the field */
    bool names_to;           /* the payload of the result names the recipient */
    bool is_refused;         /* a reason was reported */
};

struct amp_convert *amp_convert_new(const struct amp_json_limits *limits,
                                    const struct amp_check_options *check, struct amp_error *err)
{
    struct amp_convert *c = calloc(1, sizeof *c);
    if (!c) {
        amp_fail_memory(err);
        return NULL;
    }
    struct amp_json_limits l = limits ? *limits : amp_json_limits_default;
    if (check)
        c->check = *check;
    c->check.bare = c->check.texts = false;
    size_t most = (size_t)l.max_bytes * 8 + EXTRA;
    amp_buf_init(&c->first, most);
    amp_buf_init(&c->restored, most);
    amp_buf_init(&c->back, most);
    amp_buf_init(&c->kept, most);
    amp_buf_init(&c->origin, most);
    amp_arena_init(&c->arena, ARENA_MOST);
    c->reader = amp_reader_new(&l, err);
    l.max_bytes = UINT32_MAX / 2;
    amp_tape_init(&c->there, &l);
    amp_tape_init(&c->again, &l);
    amp_tape_init(&c->from, &l);
    if (!c->reader) {
        amp_convert_free(c);
        return NULL;
    }
    return c;
}

void amp_convert_free(struct amp_convert *c)
{
    if (!c)
        return;
    amp_buf_release(&c->first);
    amp_buf_release(&c->restored);
    amp_buf_release(&c->back);
    amp_buf_release(&c->kept);
    amp_buf_release(&c->origin);
    amp_tape_release(&c->there);
    amp_tape_release(&c->again);
    amp_tape_release(&c->from);
    amp_arena_release(&c->arena);
    amp_reader_free(c->reader);
    free(c);
}

AMP_WORDS(names, CV_FIELD_LIST);

static enum cv_field field_of(const char *pair, const char **value)
{
    const char *eq = strchr(pair, '=');
    for (unsigned i = 1; eq && i < CV_FIELDS; i++)
        if (amp_span_is((struct amp_span){pair, (size_t)(eq - pair)}, names[i]) && i != CV_ORIGIN) {
            *value = eq + 1;
            return (enum cv_field)i;
        }
    return CV_NONE;
}

int amp_convert_fill_check(const char *pair, struct amp_error *err)
{
    const char *value;
    if (field_of(pair, &value))
        return 0;
    return amp_fail(err, AMP_USAGE, usage, "\"%.80s\" is not NAME=VALUE with a name such as repo",
                    pair);
}

/* ---- findings */

/* A copy of up to 300 bytes that lives as long as the findings. */
static char *text_copy(const struct conversion *j, struct amp_span s)
{
    static char none[1];
    size_t size = (s.n < 300 ? s.n : 300) + 1;
    char *p = amp_arena_get(&j->c->arena, size);
    if (!p)
        return none;
    amp_span_copy(s, p, size);
    return p;
}

static void finding_report(const struct conversion *j, enum amp_severity severity, const char *code,
                           struct amp_span pointer, const char *message)
{
    char *at = text_copy(j, pointer);
    char *field =
        text_copy(j, pointer.n ? (struct amp_span){pointer.p + 1, pointer.n - 1} : pointer);
    for (char *p = field; *p; p++)
        *p = *p == '/' ? '.' : *p;
    const struct amp_finding f = {.severity = severity,
                                  .protocol = j->v->protocol,
                                  .type = j->v->type,
                                  .id = j->v->id,
                                  .code = code,
                                  .field = field,
                                  .pointer = at,
                                  .rule = "convert",
                                  .message = text_copy(j, amp_span_str(message)),
                                  .found = "",
                                  .expected = ""};
    j->fn(j->ctx, &f);
}

__attribute__((format(printf, 2, 3))) static enum amp_convert_result refuse(struct conversion *j,
                                                                            const char *fmt, ...)
{
    char why[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    j->is_refused = true;
    finding_report(j, AMP_SEV_ERROR, AMP_CODE(cannot_convert), AMP_SPAN(""), why);
    return AMP_CONVERT_REFUSED;
}

static void note_kept(void *ctx, struct amp_span pointer, bool changed)
{
    const struct conversion *j = ctx;
    char message[120];
    snprintf(message, sizeof message, "%s %s; %s", amp_protocol_name(j->to),
             changed ? "uses another form" : "has no such field",
             j->keeps ? "the original is in x_amp_origin" : "the value is lost");
    finding_report(j, AMP_SEV_WARNING,
                   j->keeps ? AMP_CODE(kept_in_extension) : AMP_CODE(not_carried), pointer,
                   message);
}

/* The name of a field of the target for --fill; NULL: none. */
static const char *fill_name(const struct cv_shape *s, const char *dotted)
{
    for (unsigned i = 0; i < s->n_rows; i++) {
        const struct cv_row *row = &s->rows[i];
        const char *a = row->at[0] ? row->at + 1 : "", *b = dotted;
        while (*a && (*a == *b || (*a == '/' && *b == '.'))) {
            a++;
            b++;
        }
        unsigned f = row->field ? row->field : row->alt[0];
        if ((!*a || *a == '/') && !*b && f && row->as != AS_CONST)
            return names[f];
    }
    return NULL;
}

/* Reports the first reason why the result is invalid in the target. */
static void note_invalid(void *ctx, const struct amp_finding *f)
{
    struct conversion *j = ctx;
    if (f->severity != AMP_SEV_ERROR || j->is_refused)
        return;
    const char *name = fill_name(j->dst, f->field);
    refuse(j, "the result is not valid in %s: %.80s %s%s%.100s%s%s%s", amp_protocol_name(j->to),
           f->field, f->message, f->expected[0] ? "; expected " : "", f->expected,
           name ? " (give it with --fill " : "", name ? name : "", name ? "=...)" : "");
}

/* ---- the steps */

static bool has_row(const struct cv_shape *s, enum cv_field field)
{
    for (unsigned i = 0; i < s->n_rows; i++)
        if (s->rows[i].field == field || s->rows[i].as == AS_NOTE || s->rows[i].as == AS_LOG)
            return true;
    return false;
}

/* The shape that the message had in the target before it was converted to the source, whose origin
 * is then in j->came; NULL: the source has no origin of the target. */
static const struct cv_shape *came_from(struct conversion *j)
{
    struct amp_tape *from = &j->c->from;
    struct amp_json_fault fault;
    const struct cv_value *o = &j->n.v[CV_ORIGIN];
    if (o->is != CV_IS_RAW || amp_tape_scan(from, o->text.p, o->text.n, &fault) < 0 ||
        from->tok[0].type != AMP_JSON_OBJECT ||
        !amp_object_is(from, 0, "protocol", amp_protocol_name(j->to)))
        return NULL;
    const struct cv_shapes *all = amp_cv_shapes_of(j->to);
    for (unsigned i = 0; i < all->n; i++)
        if (amp_object_is(from, 0, "type", all->v[i].type)) {
            j->came = o->text;
            return &all->v[i];
        }
    return NULL;
}

/* A kind without a message of its own in the source was written as another one: reads the message
 * again as the kind that it was. */
static int read_again(struct conversion *j, struct amp_error *err)
{
    if (!j->dst || ((j->src->kind | j->src->kinds) & j->dst->kind))
        return 0;
    const struct cv_shape *s = amp_cv_shape_back(j->v->protocol, j->dst->kind, j->v->tape);
    if (!s) {
        j->dst = NULL;
        j->came.n = 0;
        return 0;
    }
    j->src = s;
    return amp_cv_read(s, j->v->tape, &j->c->arena, &j->n, err);
}

static int add_text(struct amp_buf *b, const struct cv_value *v)
{
    return v->is == CV_IS_TEXT || v->is == CV_IS_RAW ? amp_buf_add(b, v->text.p, v->text.n, NULL)
                                                     : amp_buf_add(b, "|", 1, NULL);
}

/* Adds what every message has: a time, and an id that depends on the contents only. */
static int envelope_complete(struct conversion *j, const struct cv_shape *s, struct cv_neutral *n,
                             struct amp_error *err)
{
    static const enum cv_field parts[] = {CV_FROM,  CV_TO,      CV_TASK,    CV_CORR, CV_TIME,
                                          CV_STAGE, CV_PERCENT, CV_OUTCOME, CV_REF};
    char head[16];
    if (!n->v[CV_TIME].is)
        n->v[CV_TIME] = n->v[CV_DONE_AT];
    if (n->v[CV_ID].is)
        return 0;
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, EXTRA);
    int k = snprintf(head, sizeof head, "%u", s->kind);
    amp_buf_add(&b, head, (size_t)k, NULL);
    for (unsigned i = 0; i < CV_COUNT(parts); i++)
        add_text(&b, &n->v[parts[i]]);
    struct amp_span id = amp_cv_uuid(amp_buf_span(&b), &j->c->arena);
    if (!id.p)
        return amp_fail_memory(err);
    n->v[CV_ID] = (struct cv_value){.is = CV_IS_TEXT, .text = id};
    return 0;
}

static void fields_fill(struct conversion *j, const char *const *pairs)
{
    for (; pairs && *pairs; pairs++) {
        const char *value;
        enum cv_field f = field_of(*pairs, &value);
        if (f && !j->n.v[f].is)
            j->n.v[f] = (struct cv_value){.is = CV_IS_TEXT, .text = amp_span_str(value)};
    }
}

/* Scans a line of this conversion. */
static int scan_own(struct amp_tape *t, const struct amp_buf *text, struct amp_error *err)
{
    struct amp_json_fault fault;
    if (amp_tape_scan(t, text->data, text->len, &fault) == 0)
        return 0;
    return amp_json_fail(err, AMP_INTERNAL, AMP_CODE(bad_conversion),
                         "internal: a conversion did not produce JSON", &fault);
}

/* Writes the target's text to c->restored, with the origin in j->n, and scans it into c->there. */
static int write_there(struct conversion *j, struct amp_error *err)
{
    struct amp_convert *c = j->c;
    amp_buf_reset(&c->first);
    amp_buf_reset(&c->restored);
    if (amp_cv_write(j->dst, &j->n, &c->arena, &c->first, err) < 0 ||
        scan_own(&c->there, &c->first, err) < 0)
        return -1;
    if (!j->came.n)
        return amp_buf_add(&c->restored, c->first.data, c->first.len, err);
    if (amp_cv_restore(&c->there, &c->from, &c->restored, err) < 0)
        return -1;
    return scan_own(&c->there, &c->restored, err);
}

/* Whether the message has several recipients, which only the Runtime Protocol has. */
static bool is_to_several(const struct conversion *j)
{
    return j->v->n_to > 1 || (j->v->n_to == 1 && amp_span_is(j->v->to[0], "all"));
}

/* The recipient for an outer object; empty: none. A message that came from SW4RM returns as it was;
 * "unknown" means that no recipient was named; the type of a question implies the admin. */
static struct amp_span outer_to(const struct conversion *j)
{
    const struct cv_value *to = &j->n.v[CV_TO];
    struct amp_span none = {"", 0};
    bool named = amp_cv_shapes_of(j->to)->outer_to && to->is == CV_IS_TEXT && !is_to_several(j) &&
                 !j->came.n;
    bool asks = (j->src->kind & CVK_ESCALATION) && amp_span_is(to->text, "admin");
    return named && !asks && !amp_span_is(to->text, "unknown") ? to->text : none;
}

/* Converts the result back, for a comparison with the source, and scans it into c->again. */
static int write_back(struct conversion *j, struct amp_error *err)
{
    struct amp_convert *c = j->c;
    struct cv_neutral n;
    if (amp_cv_read(j->dst, &c->there, &c->arena, &n, err) < 0)
        return -1;
    const struct cv_value *to = &n.v[CV_TO];
    j->names_to = to->is == CV_IS_TEXT && amp_span_eq(to->text, j->n.v[CV_TO].text);
    bool listed = amp_cv_shapes_of(j->to)->lists_to && (j->dst->kind & CVK_DISPATCH) &&
                  !is_to_several(j) && to->is == CV_ABSENT && j->n.v[CV_TO].is == CV_IS_TEXT;
    if (outer_to(j).n > 0 || listed) /* see line_wrap; toAgents */
        n.v[CV_TO] = j->n.v[CV_TO];
    for (unsigned i = 0; i < CV_FIELDS; i++)
        j->carries[i] = n.v[i].is != CV_ABSENT;
    if (envelope_complete(j, j->dst, &n, err) < 0)
        return -1;
    n.v[CV_ORIGIN] = (struct cv_value){.is = j->came.n ? CV_IS_RAW : CV_ABSENT, .text = j->came};
    amp_buf_reset(&c->back);
    if (amp_cv_write(j->src, &n, &c->arena, &c->back, err) < 0)
        return -1;
    return scan_own(&c->again, &c->back, err);
}

/* Sets *shows to whether the result alone shows the shape that the source had. */
static int check_shape(struct conversion *j, bool *shows, struct amp_error *err)
{
    struct cv_neutral n;
    const struct cv_shape *seen = amp_cv_shape_of(j->to, &j->c->there);
    *shows = false;
    if (!seen)
        return 0;
    if (amp_cv_read(seen, &j->c->there, &j->c->arena, &n, err) < 0)
        return -1;
    const struct cv_shape *back = amp_cv_shape_for(j->v->protocol, seen->kind, &n);
    *shows = back && back->rows == j->src->rows;
    return 0;
}

/* Whether the way back reads the value at a pointer from the result. */
static bool is_carried(void *ctx, struct amp_span pointer)
{
    const struct conversion *j = ctx;
    for (unsigned i = 0; i < j->src->n_rows; i++) {
        const struct cv_row *row = &j->src->rows[i];
        size_t n = strlen(row->at);
        if (n > 0 && n <= pointer.n && memcmp(row->at, pointer.p, n) == 0 &&
            (n == pointer.n || pointer.p[n] == '/'))
            return row->as == AS_LENGTH || (row->field && j->carries[row->field]);
    }
    return false;
}

/* Compares the way back with the source, and writes the result again with what must be kept. */
static int origin_keep(struct conversion *j, struct amp_error *err)
{
    struct amp_convert *c = j->c;
    bool shows;
    const struct cv_keeping how = {is_carried, NULL, j};
    amp_buf_reset(&c->kept);
    j->keeps = has_row(j->dst, CV_ORIGIN);
    if (amp_cv_keep(j->v->tape, &c->again, &c->kept, &how, err) < 0 ||
        check_shape(j, &shows, err) < 0)
        return -1;
    if ((c->kept.len == 0 && shows) || !j->keeps)
        return 0;
    amp_buf_reset(&c->origin);
    if (amp_buf_fmt(&c->origin, err, "{\"protocol\":\"%s\",\"type\":\"%s\",\"fields\":{%.*s}}",
                    amp_protocol_name(j->v->protocol), j->src->type, (int)c->kept.len,
                    c->kept.data ? c->kept.data : "") < 0)
        return -1;
    j->n.v[CV_ORIGIN] = (struct cv_value){.is = CV_IS_RAW, .text = amp_buf_span(&c->origin)};
    return write_there(j, err);
}

/* Reports what origin_keep found; c->again still has the way back. */
static int report_kept(struct conversion *j, struct amp_error *err)
{
    const struct cv_keeping how = {is_carried, note_kept, j};
    amp_buf_reset(&j->c->kept);
    return amp_cv_keep(j->v->tape, &j->c->again, &j->c->kept, &how, err);
}

/* SW4RM's envelope has no recipient: if its payload has none either, it is put into an outer
 * object. */
static int line_wrap(struct conversion *j, const struct amp_view *made, struct amp_error *err)
{
    struct amp_buf *line = &j->c->restored;
    struct amp_jw w;
    AMP_BUF struct amp_buf b = {0};
    struct amp_span to = outer_to(j);
    if (to.n == 0 || j->names_to || (made->n_to == 1 && amp_span_eq(made->to[0], to)))
        return 0;
    amp_buf_init(&b, line->max);
    amp_jw_init(&w, &b);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "to", to);
    amp_jw_member_raw(&w, "msg", amp_buf_span(line));
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    amp_buf_reset(line);
    return amp_buf_add(line, b.data, b.len, err);
}

/* 1: the result is valid; 0: it is not, which is reported; -1: failure. */
static int result_check(struct conversion *j, struct amp_error *err)
{
    struct amp_view view;
    struct amp_check_options opt = j->c->check;
    opt.only = j->to;
    int good = amp_reader_line(j->c->reader, amp_buf_span(&j->c->restored), &opt, &view,
                               note_invalid, j, err);
    return good > 0 && line_wrap(j, &view, err) < 0 ? -1 : good;
}

static enum amp_convert_result conversion_run(struct conversion *j, const char *const *pairs,
                                              struct amp_buf *out, struct amp_error *err)
{
    struct amp_convert *c = j->c;
    const char *to = amp_protocol_name(j->to);
    if (j->v->tape->n == 0 || j->v->tape->tok[0].type != AMP_JSON_OBJECT)
        return refuse(j, "the message is a text without fields");
    j->src = amp_cv_shape_of(j->v->protocol, j->v->tape);
    if (!j->src)
        return refuse(j, "no other protocol has a message like this one of %.60s",
                      amp_protocol_name(j->v->protocol));
    if (amp_cv_read(j->src, j->v->tape, &c->arena, &j->n, err) < 0)
        return AMP_CONVERT_FAILED;
    /* The one recipient may be in an outer object, or in a list that no row reads. */
    const struct cv_shapes *own = amp_cv_shapes_of(j->v->protocol);
    if ((own->outer_to || own->lists_to) && j->v->n_to == 1 && !j->n.v[CV_TO].is)
        j->n.v[CV_TO] = (struct cv_value){.is = CV_IS_TEXT, .text = j->v->to[0]};
    j->dst = came_from(j);
    if (read_again(j, err) < 0)
        return AMP_CONVERT_FAILED;
    if (!j->dst)
        j->dst = amp_cv_shape_for(j->to, j->src->kind, &j->n);
    if (!j->dst)
        return refuse(j, "%s has no message like %s %.60s", to, amp_protocol_name(j->v->protocol),
                      j->src->type);
    if (is_to_several(j) && !j->came.n)
        return refuse(j, "a message of %s has one recipient; this one has several", to);
    fields_fill(j, pairs);
    j->n.v[CV_ORIGIN] = (struct cv_value){.is = CV_ABSENT};
    if (envelope_complete(j, j->src, &j->n, err) < 0)
        return AMP_CONVERT_FAILED;
    if (write_there(j, err) < 0 || write_back(j, err) < 0 || origin_keep(j, err) < 0)
        return AMP_CONVERT_FAILED;
    int good = result_check(j, err);
    if (good < 0)
        return AMP_CONVERT_FAILED;
    if (good == 0)
        return AMP_CONVERT_REFUSED;
    if (report_kept(j, err) < 0 || amp_buf_add(out, c->restored.data, c->restored.len, err) < 0 ||
        amp_buf_add(out, "\n", 1, err) < 0)
        return AMP_CONVERT_FAILED;
    return AMP_CONVERT_DONE;
}

enum amp_convert_result amp_convert_message(struct amp_convert *c, const struct amp_view *v,
                                            enum amp_protocol to, const char *const *fill_pairs,
                                            struct amp_buf *out, amp_finding_fn fn, void *ctx,
                                            struct amp_error *err)
{
    struct conversion j = {.c = c, .v = v, .to = to, .fn = fn, .ctx = ctx};
    if (v->protocol == to)
        return AMP_CONVERT_SAME;
    amp_arena_reset(&c->arena);
    size_t before = out->len;
    enum amp_convert_result got = conversion_run(&j, fill_pairs, out, err);
    if (got != AMP_CONVERT_DONE)
        out->len = before;
    return got;
}

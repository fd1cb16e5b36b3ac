/* --values: prints the values of some kinds, for completions. */
#include <stdlib.h>
#include <string.h>

#include "base/values.h"
#include "cli/private.h"

struct printing {
    struct amp_buf line;
    struct amp_span prefix;
    int n;
};

/* Whether the text is the same on a terminal, so that it can be offered as it is. */
static bool is_plain(struct amp_span text, struct amp_buf *mem, struct amp_error *err)
{
    mem->len = 0;
    if (text.n == 0 || amp_text_safe(text, 0, mem, err) < 0)
        return false;
    return amp_span_eq(amp_buf_span(mem), text);
}

static int value_print(void *ctx, struct amp_span value, struct amp_span doc, struct amp_error *err)
{
    struct printing *p = ctx;

    if (value.n < p->prefix.n || memcmp(value.p, p->prefix.p, p->prefix.n) != 0 ||
        !is_plain(value, &p->line, err))
        return 0;
    p->line.len = 0;
    if (amp_buf_add(&p->line, value.p, value.n, err) < 0 ||
        (doc.n > 0 &&
         (amp_buf_str(&p->line, "\t", err) < 0 || amp_text_safe(doc, 60, &p->line, err) < 0)) ||
        amp_buf_str(&p->line, "\n", err) < 0 || amp_out(amp_buf_span(&p->line), err) < 0)
        return -1;
    return ++p->n == AMP_VALUES_MOST;
}

/* The option `state` as it is given, or its variable, or the repository's directory. */
static const char *state_directory(const struct cli_parse *p, char *mem, size_t size)
{
    int i = cli_opt_find(p, 0, AMP_SPAN("state"));
    const struct amp_opt *o = i < 0 ? NULL : cli_opt_at(p, i);
    const char *dir = o ? *(const char *const *)o->dest : NULL;

    if (!dir && o && o->env)
        dir = getenv(o->env);
    if (!dir && amp_cli_repository(mem, size) == AMP_REPOSITORY_FOUND)
        dir = mem;
    return dir;
}

int cli_values(const struct cli_parse *p, struct amp_error *err)
{
    char mem[4096];
    struct printing out = {.prefix = amp_span_str(p->operands.n ? p->operands.v[0] : "")};
    struct amp_values_ask ask = {.state = state_directory(p, mem, sizeof mem),
                                 .prefix = out.prefix,
                                 .fn = value_print,
                                 .ctx = &out};
    int rc = 0;

    amp_buf_init(&out.line, 1 << 20);
    for (const char *k = cli_standard.values; *k && rc >= 0; k += strspn(k, " ")) {
        ask.what = (struct amp_span){k, strcspn(k, " ")};
        k += ask.what.n;
        rc = cli_tool->values(&ask, err);
    }
    amp_buf_release(&out.line);
    return rc < 0 ? -1 : 0;
}

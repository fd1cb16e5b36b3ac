/* Where in a text something stands: line and column, and whether a Markdown fence is open. */
#include "protocol/extract/extract.h"

const char *amp_found_name(enum amp_found_in in)
{
    static const char *const names[] = {
#define X(id, name) name,
        AMP_FOUND_LIST(X)
#undef X
    };
    return names[in];
}

void amp_place_init(struct amp_place *p)
{
    *p = (struct amp_place){.line = 1, .clean = true};
}

static void end_line(struct amp_place *p, uint64_t offset)
{
    if (p->closing)
        p->fence = 0;
    p->line++;
    p->line_start = offset + 1;
    p->head = AMP_HEAD_INDENT;
    p->tick = 0;
    p->ticks = 0;
    p->clean = true;
    p->closing = false;
}

/* A run of three ` or ~ has ended: it opens a fence, or closes one of its own kind. */
static void end_ticks(struct amp_place *p)
{
    p->head = AMP_HEAD_PAST;
    if (p->ticks < 3)
        return;
    if (p->fence) {
        p->closing = p->tick == p->fence && p->ticks >= p->fence_ticks;
    } else {
        p->fence = p->tick;
        p->fence_ticks = p->ticks;
    }
}

void amp_place_pass(struct amp_place *p, char c, uint64_t offset)
{
    if (amp_ansi_takes(&p->ansi, c))
        return;
    bool space = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (p->head == AMP_HEAD_TICKS && c != p->tick)
        end_ticks(p);
    if (c == '\n') {
        end_line(p, offset);
        return;
    }
    if (space)
        return;
    p->clean = false;
    if (p->head == AMP_HEAD_INDENT && c != '>') {
        p->head = c == '`' || c == '~' ? AMP_HEAD_TICKS : AMP_HEAD_PAST;
        p->tick = c;
    }
    if (p->head == AMP_HEAD_TICKS)
        p->ticks++;
    else
        p->closing = false;
}

void amp_place_skip(struct amp_place *p, struct amp_span text, uint64_t offset)
{
    bool clean = p->clean;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '\n') {
            bool fenced = p->fence != 0;
            p->closing = false;
            end_line(p, offset + i);
            p->fence = fenced ? p->fence : 0;
        }
    p->head = AMP_HEAD_PAST;
    p->closing = false;
    p->clean = clean;
}

void amp_place_say(const struct amp_place *p, uint64_t offset, struct amp_found *at)
{
    at->line = p->line;
    at->column = offset - p->line_start + 1;
    at->offset = offset;
    at->in = p->fence ? AMP_FOUND_FENCE : p->clean ? AMP_FOUND_LINE : AMP_FOUND_PROSE;
}

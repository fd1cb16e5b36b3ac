/* A place in a text: line and column, and whether a Markdown fence is open. */
#include "base/words.h"
#include "message/protocol/extract/extract.h"

const char *amp_found_name(enum amp_found_in in)
{
    AMP_WORDS(names, AMP_FOUND_LIST);
    return names[in];
}

void amp_place_init(struct amp_scan_place *p)
{
    *p = (struct amp_scan_place){.line = 1, .clean = true};
}

static void end_line(struct amp_scan_place *p, uint64_t offset)
{
    *p = (struct amp_scan_place){.line = p->line + 1,
                                 .line_start = offset + 1,
                                 .fence = p->closing ? 0 : p->fence,
                                 .fence_ticks = p->fence_ticks,
                                 .clean = true,
                                 .ansi = p->ansi};
}

/* A run of ` or ~ has ended: three or more open a fence, or close a fence of the same character. */
static void end_ticks(struct amp_scan_place *p)
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

void amp_place_pass(struct amp_scan_place *p, char c, uint64_t offset)
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

void amp_place_skip(struct amp_scan_place *p, struct amp_span text, uint64_t offset)
{
    bool clean = p->clean;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '\n') {
            p->closing = false;
            end_line(p, offset + i);
        }
    p->head = AMP_HEAD_PAST;
    p->closing = false;
    p->clean = clean;
}

struct amp_found amp_place_found(const struct amp_scan_place *p, uint64_t offset)
{
    return (struct amp_found){
        .line = p->line,
        .column = offset - p->line_start + 1,
        .offset = offset,
        .in = p->fence   ? AMP_FOUND_FENCE
              : p->clean ? AMP_FOUND_LINE
                         : AMP_FOUND_PROSE,
    };
}

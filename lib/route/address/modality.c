/* Content types against what an agent registered. */
#include "route/address/modality.h"

#include <ctype.h>
#include <string.h>

#include "agent/directory.h"

static struct amp_span before(struct amp_span s, char end)
{
    const char *at = s.n > 0 ? memchr(s.p, end, s.n) : NULL;
    if (at)
        s.n = (size_t)(at - s.p);
    return s;
}

static struct amp_span bare(struct amp_span s)
{
    s = before(s, ';');
    while (s.n > 0 && s.p[0] == ' ')
        s.p++, s.n--;
    while (s.n > 0 && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

static bool same(struct amp_span a, struct amp_span b)
{
    if (amp_span_is(a, "*"))
        return true;
    for (size_t i = 0; i < a.n && a.n == b.n; i++)
        if (tolower((unsigned char)a.p[i]) != tolower((unsigned char)b.p[i]))
            return false;
    return a.n == b.n;
}

/* Whether a content type is one of a declared modality, whose type or subtype may be a star;
 * parameters and case do not count. */
static bool modality_matches(struct amp_span declared, struct amp_span content_type)
{
    struct amp_span a = bare(declared), b = bare(content_type);
    struct amp_span at = before(a, '/'), bt = before(b, '/');
    if (at.n == a.n || bt.n == b.n)
        return same(a, b);
    return same(at, bt) && same((struct amp_span){a.p + at.n + 1, a.n - at.n - 1},
                                (struct amp_span){b.p + bt.n + 1, b.n - bt.n - 1});
}

int amp_modality_takes(struct amp_store *s, struct amp_span agent, struct amp_span content_type,
                       struct amp_error *err)
{
    uint8_t state;
    json_t *rec = NULL, *one;
    size_t i;
    if (amp_directory_find(s, agent, &state, &rec, err) < 0)
        return -1;
    const json_t *list = json_object_get(json_object_get(rec, "agent"), "modalities_supported");
    bool takes = json_array_size(list) == 0;
    for (i = 0; i < json_array_size(list) && !takes; i++) {
        one = json_array_get(list, i);
        takes = json_is_string(one) &&
                modality_matches(amp_span_str(json_string_value(one)), content_type);
    }
    json_decref(rec);
    return takes;
}

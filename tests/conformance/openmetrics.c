/*
 * A strict reader of OpenMetrics 1.0 text for the tests: openmetrics FILE prints each sample as
 * NAME{LABELS} VALUE with the labels in order, and ends with 1 and "line N: why" at the first thing
 * that the standard does not allow. It knows the types that we write: counter, gauge, histogram.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 256, SERIES_MAX = 100000, TEXT_MAX = 1 << 20 };

struct label {
    char name[64], value[512];
};
struct sample {
    char name[128];
    struct label label[16];
    int labels;
    double value;
};

static int line;
static char family[128], type[16], unit[32];
static char *seen_family[NAMES_MAX], *seen_series[SERIES_MAX];
static int families, n_series, has_help, has_unit, has_type, samples;
/* The histogram that is being read: its labels without le. */
static char group[8192];
static double last_le, last_count, inf_count;
static int group_open, group_inf, group_count, group_sum;

static void bad(const char *why)
{
    printf("line %d: %s\n", line, why);
    exit(1);
}

static int name_char(char c, int first, int colon)
{
    return isalpha((unsigned char)c) || c == '_' || (colon && c == ':') ||
           (!first && isdigit((unsigned char)c));
}

static size_t name_length(const char *p, int colon)
{
    size_t n = 0;
    while (name_char(p[n], n == 0, colon))
        n++;
    if (n == 0)
        bad("no name");
    if (n > 60 && !colon)
        bad("a label's name is too long for this reader");
    return n;
}

static void utf8(const unsigned char *p)
{
    while (*p) {
        int n = *p < 0x80                 ? 0
                : *p >= 0xc2 && *p < 0xe0 ? 1
                : *p >= 0xe0 && *p < 0xf0 ? 2
                : *p >= 0xf0 && *p < 0xf5 ? 3
                                          : -1;
        if (n < 0)
            bad("not UTF-8");
        for (p++; n > 0; n--, p++)
            if ((*p & 0xc0) != 0x80)
                bad("not UTF-8");
    }
}

/* Reads "…" with its escapes; returns what follows. */
static const char *quoted(const char *p, char *out, size_t size)
{
    size_t n = 0;
    if (*p++ != '"')
        bad("a label's value is not quoted");
    for (; *p != '"'; p++) {
        char c = *p;
        if (!c)
            bad("a quote is not closed");
        if (c == '\\') {
            c = *++p;
            if (c == 'n')
                c = '\n';
            else if (c != '\\' && c != '"')
                bad("an unknown escape");
        }
        if (n + 1 >= size)
            bad("a label's value is too long");
        out[n++] = c;
    }
    out[n] = 0;
    return p + 1;
}

static double number(const char *p)
{
    char *end;
    if (strcmp(p, "+Inf") == 0)
        return INFINITY;
    if (!isdigit((unsigned char)*p) && *p != '-')
        bad("no number");
    double v = strtod(p, &end);
    if (*end)
        bad("something behind the number");
    return v;
}

static void read_sample(const char *p, struct sample *s)
{
    size_t n = name_length(p, 1);
    if (n >= sizeof(s->name))
        bad("the name is too long");
    memcpy(s->name, p, n);
    s->name[n] = 0;
    s->labels = 0;
    p += n;
    if (*p == '{') {
        p++;
        while (*p != '}') {
            struct label *l = &s->label[s->labels];
            if (s->labels == 16)
                bad("too many labels");
            n = name_length(p, 0);
            memcpy(l->name, p, n);
            l->name[n] = 0;
            p += n;
            if (*p++ != '=')
                bad("no = behind a label's name");
            p = quoted(p, l->value, sizeof(l->value));
            for (int i = 0; i < s->labels; i++)
                if (strcmp(s->label[i].name, l->name) == 0)
                    bad("a label stands twice");
            s->labels++;
            if (*p == ',' && p[1] != '}')
                p++;
            else if (*p != '}')
                bad("no comma between labels");
        }
        p++;
    }
    if (*p++ != ' ')
        bad("no space before the value");
    s->value = number(p);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* NAME{LABELS}, the labels sorted, without the one named. */
static void key_of(const struct sample *s, const char *name, const char *without, char *out,
                   size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s{", name);
    for (int i = 0; i < s->labels && n < size; i++)
        if (!without || strcmp(s->label[i].name, without) != 0)
            n += (size_t)snprintf(out + n, size - n, "%s=%s|", s->label[i].name, s->label[i].value);
    if (n < size)
        n += (size_t)snprintf(out + n, size - n, "}");
    if (n >= size)
        bad("a series is too long for this reader");
}

static void end_group(void)
{
    if (!group_open)
        return;
    if (!group_inf)
        bad("a histogram before this has no +Inf bucket");
    if (!group_count || !group_sum)
        bad("a histogram before this has no count or sum");
    group_open = group_inf = group_count = group_sum = 0;
}

static void histogram(const struct sample *s, const char *suffix)
{
    char key[8192];
    key_of(s, family, "le", key, sizeof(key));
    if (!group_open || strcmp(key, group) != 0) {
        end_group();
        strcpy(group, key);
        group_open = 1;
        last_le = -INFINITY;
        last_count = 0;
    }
    if (strcmp(suffix, "_count") == 0) {
        if (!group_inf || s->value != inf_count || group_count++)
            bad("the count is not that of the +Inf bucket");
        return;
    }
    if (strcmp(suffix, "_sum") == 0) {
        if (group_sum++ || s->value < 0)
            bad("the sum stands twice or is negative");
        return;
    }
    const char *le = NULL;
    for (int i = 0; i < s->labels; i++)
        if (strcmp(s->label[i].name, "le") == 0)
            le = s->label[i].value;
    if (strcmp(suffix, "_bucket") != 0 || !le)
        bad("a sample that no histogram has");
    if (strcmp(le, "+Inf") != 0 && !strpbrk(le, ".e"))
        bad("le is not written as a float");
    double at = number(le);
    if (at <= last_le || s->value < last_count)
        bad("buckets out of order");
    last_le = at;
    last_count = s->value;
    if (isinf(at)) {
        group_inf = 1;
        inf_count = s->value;
    }
}

static void take_sample(const char *text)
{
    static struct sample s;
    char key[8192];
    read_sample(text, &s);
    if (!has_type)
        bad("a sample without a TYPE");
    qsort(s.label, (size_t)s.labels, sizeof(s.label[0]), by_name);
    size_t n = strlen(family);
    if (strncmp(s.name, family, n) != 0)
        bad("a sample that is not of its family");
    const char *suffix = s.name + n;
    if (strcmp(type, "counter") == 0) {
        if (strcmp(suffix, "_total") != 0 || s.value < 0)
            bad("a counter's sample must end in _total and not be negative");
    } else if (strcmp(type, "gauge") == 0) {
        if (*suffix)
            bad("a gauge's sample has the family's name");
    } else {
        histogram(&s, suffix);
    }
    key_of(&s, s.name, NULL, key, sizeof(key));
    for (int i = 0; i < n_series; i++)
        if (strcmp(seen_series[i], key) == 0)
            bad("a series stands twice");
    if (n_series == SERIES_MAX)
        bad("too many series for this reader");
    seen_series[n_series++] = strdup(key);
    samples++;
    printf("%s %.9g\n", key, s.value);
}

static void new_family(const char *name, size_t n)
{
    end_group();
    if (n >= sizeof(family))
        bad("the name is too long");
    memcpy(family, name, n);
    family[n] = 0;
    for (int i = 0; i < families; i++)
        if (strcmp(seen_family[i], family) == 0)
            bad("a family stands twice");
    if (families == NAMES_MAX)
        bad("too many families for this reader");
    seen_family[families++] = strdup(family);
    has_help = has_unit = has_type = samples = 0;
}

static void take_meta(const char *p)
{
    int kind = strncmp(p, "TYPE ", 5) == 0   ? 'T'
               : strncmp(p, "UNIT ", 5) == 0 ? 'U'
               : strncmp(p, "HELP ", 5) == 0 ? 'H'
                                             : 0;
    if (!kind)
        bad("neither TYPE nor UNIT nor HELP");
    p += 5;
    size_t n = name_length(p, 1);
    if (strlen(family) != n || strncmp(family, p, n) != 0)
        new_family(p, n);
    if (samples)
        bad("metadata behind a sample");
    p += n;
    if (*p++ != ' ')
        bad("no space behind the name");
    if (kind == 'T') {
        if (has_type++ || (strcmp(p, "counter") && strcmp(p, "gauge") && strcmp(p, "histogram")))
            bad("a second or an unknown TYPE");
        snprintf(type, sizeof(type), "%s", p);
        if (strcmp(type, "counter") == 0 && n > 6 && strcmp(family + n - 6, "_total") == 0)
            bad("a counter's family must not end in _total");
    } else if (kind == 'U') {
        snprintf(unit, sizeof(unit), "_%s", p);
        size_t u = strlen(unit);
        if (has_unit++ || n <= u || strcmp(family + n - u, unit) != 0)
            bad("a second UNIT, or the name does not end in it");
    } else if (has_help++ || !*p) {
        bad("a second HELP, or an empty one");
    }
}

int main(int argc, char **argv)
{
    static char text[TEXT_MAX];
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    int ended = 0;
    if (!f || !feof(f) || memchr(text, 0, n))
        bad("cannot be read, is too long or has a NUL");
    fclose(f);
    line = 1;
    for (char *p = text; p < text + n; line++) {
        char *end = strchr(p, '\n');
        if (!end)
            bad("the last line has no line feed");
        *end = 0;
        if (ended)
            bad("something behind # EOF");
        if (!*p || strchr(p, '\r'))
            bad("an empty line or a carriage return");
        utf8((const unsigned char *)p);
        if (strcmp(p, "# EOF") == 0)
            ended = 1;
        else if (strncmp(p, "# ", 2) == 0)
            take_meta(p + 2);
        else
            take_sample(p);
        p = end + 1;
    }
    end_group();
    if (!ended)
        bad("no # EOF");
    return 0;
}

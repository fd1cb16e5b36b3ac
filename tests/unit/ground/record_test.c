/* Records by their tables: what is written is read back; lists; what is refused. */
#include "json/record.h"

#include <stdlib.h>
#include <string.h>

#include "../tap.h"

struct place {
    struct amp_span id;
    int64_t at_ms;
};
static const struct amp_rec_field place_fields[] = {
    AMP_REC(TEXT, struct place, "id", id),
    AMP_REC(INT, struct place, "at_ms", at_ms),
};
AMP_REC_TABLE(place_rec, "a place", struct place, place_fields);

enum color { NONE, RED, GREEN };
static const char *const colors[] = {"none", "red", "green", NULL};
static const struct amp_rec_words color_words = {.list = colors};

struct all {
    struct amp_span text, raw, line;
    const char *cstr;
    char *string;
    char chars[8];
    int64_t n, ms;
    bool yes;
    enum color color;
    struct amp_span *names;
    struct place *places;
    uint32_t n_names, n_places;
    struct place in;
};
#define MEMBER(as, key, member) AMP_REC(as, struct all, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(TEXT, "txt", text),
    MEMBER(CSTR, "cstr", cstr),
    MEMBER(STRING, "string", string),
    MEMBER(CHARS, "chars", chars),
    MEMBER(INT, "n", n),
    MEMBER(TIME, "at", ms),
    MEMBER(BOOL, "yes", yes),
    AMP_REC_ENUM(struct all, "color", color, &color_words),
    AMP_REC_WORDS(struct all, "names", names, false),
    AMP_REC_MANY(struct all, "places", places, &place_rec, true),
    AMP_REC_IN(struct all, "in", in, &place_rec, true),
    MEMBER(RAW, "raw", raw),
    MEMBER(LINE, "msg", line),
};
AMP_REC_TABLE(all_rec, "a record of all", struct all, fields);

static struct amp_buf mem, out;
static struct all rec;
static struct amp_error err;

/* The record read and written again. */
static const char *again(const char *json)
{
    amp_buf_reset(&out);
    if (amp_rec_parse(&all_rec, amp_span_str(json), &mem, &rec, &err) < 0)
        return err.code;
    int rc = amp_rec_write(&all_rec, &rec, &out, &err);
    amp_rec_free(&all_rec, &rec);
    return rc < 0 ? err.code : out.data;
}

static void round_trips(void)
{
    static const char full[] =
        "{\"txt\":\"a\\\"b\",\"cstr\":\"c\",\"string\":\"s\",\"chars\":\"1234567\",\"n\":-7,"
        "\"at\":\"2026-02-26T14:32:07.123Z\",\"yes\":true,\"color\":\"green\","
        "\"names\":[\"x\",\"\",\"z\\n\"],\"places\":[{\"id\":\"p\",\"at_ms\":1},{}],"
        "\"in\":{\"id\":\"q\"},\"raw\":[1,{\"a\":null}],\"msg\":{\"k\":  1}}";
    static const char empty[] = "{\"color\":\"none\",\"places\":[],\"in\":null}";
    TAP_STR(again(full), full, "what is written is read back");
    TAP_STR(again("{}"), empty, "what is empty is left out, unless it is always written");
    TAP_STR(again("{\"n\":null,\"unknown\":3}"), empty,
            "null is absent, unknown members are skipped");
    TAP_STR(again("{\"txt\":\"\\u0000\"}"),
            "{\"txt\":\"\\u0000\",\"color\":\"none\",\"places\":[],\"in\":null}",
            "a text may hold a NUL");
    TAP_STR(again("{\"txt\":\"[not an object\",\"color\":\"none\"}"),
            "{\"txt\":\"[not an object\",\"color\":\"none\",\"places\":[],\"in\":null}",
            "a text that looks like JSON stays a text");
}

static void lists(void)
{
    bool ok = amp_rec_parse(&all_rec, AMP_SPAN("{\"places\":[{\"id\":\"a\"},{\"id\":\"b\"}]}"),
                            &mem, &rec, &err) == 0;
    rec.places[rec.n_places++] = (struct place){AMP_SPAN("c"), 3};
    rec.names[rec.n_names++] = AMP_SPAN("n");
    amp_buf_reset(&out);
    ok = ok && amp_rec_write(&all_rec, &rec, &out, &err) == 0;
    amp_rec_free(&all_rec, &rec);
    TAP_OK(ok &&
               strcmp(out.data, "{\"color\":\"none\",\"names\":[\"n\"],\"places\":[{\"id\":\"a\"},"
                                "{\"id\":\"b\"},{\"id\":\"c\",\"at_ms\":3}],\"in\":null}") == 0,
           "each list has room for one more, also an absent one");
    struct amp_buf json = {0};
    amp_buf_init(&json, 1 << 20);
    amp_buf_str(&json, "{\"names\":[\"0\"", NULL);
    for (int i = 1; i < 5000; i++)
        amp_buf_fmt(&json, NULL, ",\"%d\\t\"", i);
    amp_buf_str(&json, "]}", NULL);
    ok = amp_rec_parse(&all_rec, amp_buf_span(&json), &mem, &rec, &err) == 0 && rec.n_names == 5000;
    for (uint32_t i = 1; ok && i < rec.n_names; i++)
        ok = strtol(rec.names[i].p, NULL, 10) == (long)i && rec.names[i].p[rec.names[i].n] == '\0';
    TAP_OK(ok, "a long list of texts stays where it was read");
    amp_rec_free(&all_rec, &rec);
    amp_buf_release(&json);
}

static void refusals(void)
{
    static const char *const bad[] = {
        "{\"txt\":1}",
        "{\"n\":\"1\"}",
        "{\"n\":1.5}",
        "{\"yes\":1}",
        "{\"color\":\"blue\"}",
        "{\"at\":\"yesterday\"}",
        "{\"chars\":\"12345678\"}",
        "{\"cstr\":\"a\\u0000b\"}",
        "{\"names\":[1]}",
        "{\"names\":{}}",
        "{\"places\":[1]}",
        "{\"places\":[{\"id\":2}]}",
        "{\"in\":[]}",
        "{\"msg\":1}",
        "[]",
        "{\"n\":",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        TAP_OK(strcmp(again(bad[i]), "bad_record") == 0, "refused: %s", bad[i]);
    TAP_STR(again("{\"txt\":{}}"), "bad_record", "refused: an object for a text");
    TAP_OK(strstr(err.what, "a record of all") && strstr(err.what, "txt"),
           "the refusal names the record and the member");
}

static void overlays(void)
{
    struct all over;
    amp_rec_init(&all_rec, &over, &err);
    amp_rec_parse(&all_rec, AMP_SPAN("{\"txt\":\"old\",\"n\":1,\"cstr\":\"stays\"}"), &mem, &rec,
                  &err);
    over.text = AMP_SPAN("new");
    over.ms = 1000;
    amp_rec_overlay(&all_rec, &over, &rec);
    TAP_SPAN(rec.text, "new", "what is set is laid over");
    TAP_OK(rec.n == 1 && rec.ms == 1000 && strcmp(rec.cstr, "stays") == 0, "the rest stays");
    amp_rec_free(&all_rec, &rec);
    amp_rec_free(&all_rec, &over);
}

int main(void)
{
    amp_buf_init(&mem, AMP_REC_MAX);
    amp_buf_init(&out, AMP_REC_MAX);
    round_trips();
    lists();
    refusals();
    overlays();
    amp_buf_release(&mem);
    amp_buf_release(&out);
    return tap_done();
}

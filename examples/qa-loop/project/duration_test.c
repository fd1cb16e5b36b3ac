#include <stdio.h>

#include "duration.h"

static int failed;

static void expect(const char *what, const char *text, long want)
{
    long got = duration_parse(text);
    if (got == want) {
        printf("ok - %s\n", what);
    } else {
        printf("not ok - %s (\"%s\" gave %ld, wanted %ld)\n", what, text, got, want);
        failed = 1;
    }
}

int main(void)
{
    expect("a single unit still works", "90s", 90);
    expect("1h30m is 5400 seconds", "1h30m", 5400);
    expect("5x is refused", "5x", -1);
    expect("an empty text is refused", "", -1);
    expect("1.5h is 5400 seconds", "1.5h", 5400);
    expect("0.25m is 15 seconds", "0.25m", 15);
    return failed;
}

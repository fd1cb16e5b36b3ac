#include "duration.h"

#include <stdlib.h>

static long unit(char c)
{
    switch (c) {
    case 's':
        return 1;
    case 'm':
        return 60;
    case 'h':
        return 3600;
    }
    return -1;
}

long duration_parse(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    return n * unit(*end);
}

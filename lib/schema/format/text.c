/* UUIDs and JSON Pointers. */
#include "schema/format/format.h"

bool amp_format_uuid(const char *p, size_t n)
{
    if (n != 36)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? p[i] != '-' : !amp_is_hex(p[i]))
            return false;
    }
    return true;
}

bool amp_format_json_pointer(const char *p, size_t n)
{
    if (n > 0 && p[0] != '/')
        return false;
    for (size_t i = 0; i < n; i++)
        if (p[i] == '~' && (i + 1 == n || (p[i + 1] != '0' && p[i + 1] != '1')))
            return false;
    return true;
}

bool amp_format_relative_json_pointer(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && amp_is_digit(p[i]))
        i++;
    if (i == 0 || (p[0] == '0' && i > 1))
        return false;
    if (i + 1 == n && p[i] == '#')
        return true;
    return amp_format_json_pointer(p + i, n - i);
}

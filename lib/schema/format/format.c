/* The table of formats, and those of UUIDs and JSON Pointers. A format that is not in the table
 * asserts nothing. */
#include "schema/format/format.h"

static bool is_uuid(const char *p, size_t n)
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

static bool is_json_pointer(const char *p, size_t n)
{
    if (n > 0 && p[0] != '/')
        return false;
    for (size_t i = 0; i < n; i++)
        if (p[i] == '~' && (i + 1 == n || (p[i + 1] != '0' && p[i + 1] != '1')))
            return false;
    return true;
}

static bool is_relative_json_pointer(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && amp_is_digit(p[i]))
        i++;
    if (i == 0 || (p[0] == '0' && i > 1))
        return false;
    if (i + 1 == n && p[i] == '#')
        return true;
    return is_json_pointer(p + i, n - i);
}

static const struct amp_format formats[] = {
    {"date-time", amp_format_date_time, "a date and time with an offset (RFC 3339)"},
    {"date", amp_format_date, "a date (YYYY-MM-DD)"},
    {"time", amp_format_time, "a time with an offset (RFC 3339)"},
    {"duration", amp_format_duration, "a duration (ISO 8601, such as P1DT2H)"},
    {"email", amp_format_email, "a mail address"},
    {"hostname", amp_format_hostname, "a host name"},
    {"idn-email", amp_format_idn_email, "a mail address, also beyond ASCII"},
    {"idn-hostname", amp_format_idn_hostname, "a host name, also beyond ASCII"},
    {"ipv4", amp_format_ipv4, "an IPv4 address"},
    {"ipv6", amp_format_ipv6, "an IPv6 address"},
    {"uri", amp_format_uri, "a URI with a scheme"},
    {"uri-reference", amp_format_uri_reference, "a URI reference"},
    {"iri", amp_format_iri, "an IRI with a scheme"},
    {"iri-reference", amp_format_iri_reference, "an IRI reference"},
    {"uri-template", amp_format_uri_template, "a URI template (RFC 6570)"},
    {"json-pointer", is_json_pointer, "a JSON Pointer"},
    {"relative-json-pointer", is_relative_json_pointer, "a relative JSON Pointer"},
    {"regex", amp_format_regex, "a regular expression (ECMA-262)"},
    {"uuid", is_uuid, "a UUID"},
};

const struct amp_format *amp_format_find(struct amp_span name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (amp_span_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}

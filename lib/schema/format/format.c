/* The table of formats. A format that is not in it asserts nothing. */
#include "schema/format/format.h"

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
    {"json-pointer", amp_format_json_pointer, "a JSON Pointer"},
    {"relative-json-pointer", amp_format_relative_json_pointer, "a relative JSON Pointer"},
    {"regex", amp_format_regex, "a regular expression (ECMA-262)"},
    {"uuid", amp_format_uuid, "a UUID"},
};

const struct amp_format *amp_format_find(struct amp_span name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (amp_span_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}

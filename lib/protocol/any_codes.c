/* The codes of any protocol: see meaning.h. */
#include <stddef.h>

#include "protocol/meanings.h"

const struct amp_meaning amp_meanings_any[] = {
    {"invalid_json", AMP_SEV_ERROR, "The line is not JSON (RFC 8259).", "", ""},
    {"invalid_utf8", AMP_SEV_ERROR, "The line is not UTF-8, or a string holds half a character.",
     "", ""},
    {"line_too_long", AMP_SEV_ERROR, "The line passes --max-line.", "", ""},
    {"too_deep", AMP_SEV_ERROR, "The nesting passes --max-depth.", "", ""},
    {"too_many_tokens", AMP_SEV_ERROR, "The line holds more than 1,000,000 values and keys.", "",
     ""},
    {"duplicate_key", AMP_SEV_ERROR, "An object names a member twice, so readers would disagree.",
     "", ""},
    {"unknown_protocol", AMP_SEV_ERROR, "The line belongs to none of the five protocols.", "", ""},
    {"undecided", AMP_SEV_ERROR,
     "The state could not be asked about this line in time; send it again.", "", ""},
    {"schema_violation", AMP_SEV_ERROR,
     "The text does not fit the schema that was given with --schema; the rule is the keyword.",
     "JSON Schema", "Mend the value at the field, or the schema at schema_pointer."},
    {"pattern_limit", AMP_SEV_ERROR,
     "A pattern of the schema needs more steps on this text than the limit allows; whether it "
     "matches is not known.",
     "", "Write the pattern without repetitions inside repetitions."},
    {"schema_limit", AMP_SEV_ERROR,
     "The schema needs more steps on this text than the limit allows; whether it fits is not "
     "known.",
     "", "Let allOf, anyOf and references not double the work at each level."},
    {"schema_too_deep", AMP_SEV_ERROR,
     "The schema applies itself on this text more often in a row than the limit allows.", "", ""},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};

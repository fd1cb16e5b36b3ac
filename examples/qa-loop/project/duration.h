/* Seconds in a duration such as "90s", "5m" or "2h"; -1 when the text is not one. */
long duration_parse(const char *text);

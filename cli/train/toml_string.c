/* Strings, and the bytes that a file may hold. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/toml_reader.h"

#include <stdint.h>
#include <string.h>

/* --- UTF-8 ----------------------------------------------------------------- */

static bool is_follower(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* The bytes of the character at s, of which left are there; 0 if it is none.
 * Surrogates, and what could be shorter, are none. */
static size_t character_bytes(const unsigned char *s, size_t left)
{
    size_t bytes = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (bytes == 1)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < bytes)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if (!is_follower(s[i]))
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return bytes;
}

static bool is_control(const char *at, const char *end)
{
    unsigned char c = (unsigned char)*at;

    if (c == '\r')
        return at + 1 == end || at[1] != '\n';
    return (c < ' ' && c != '\t' && c != '\n') || c == 0x7f;
}

bool toml_check_bytes(toml_reader *r)
{
    static const char mark[] =
        "\xef\xbb\xbf"; /* that some editors put in front */
    const char *start = r->at;

    if (r->end - r->at >= 3 && memcmp(r->at, mark, 3) == 0)
        start = r->at += 3;
    while (r->at < r->end) {
        size_t bytes = character_bytes((const unsigned char *)r->at,
                                       (size_t)(r->end - r->at));

        if (bytes == 0)
            return toml_wrong(r, "0x%02x begins no character of UTF-8",
                              (unsigned char)*r->at);
        if (is_control(r->at, r->end))
            return toml_wrong(r, "the control character 0x%02x stands here",
                              (unsigned char)*r->at);
        r->line += *r->at == '\n';
        r->at += bytes;
    }
    r->at = start;
    r->line = 1;
    return true;
}

static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* --- escapes --------------------------------------------------------------- */

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The digits behind \u or \U. */
static bool read_code(toml_reader *r, int digits, text *out)
{
    char bytes[4];
    uint32_t c = 0;

    for (int i = 0; i < digits; i++, r->at++) {
        int value = r->at < r->end ? digit_value(*r->at) : -1;

        if (value < 0)
            return toml_wrong(r,
                              "\\%c wants %d hexadecimal digits, and here is "
                              "%s",
                              digits == 4 ? 'u' : 'U', digits,
                              toml_show(r).text);
        c = c << 4 | (uint32_t)value;
    }
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return toml_wrong(r, "0x%x is no character that a string may hold", c);
    return text_add(out, bytes, encode(c, bytes)) || trouble_memory(r->t);
}

/* What follows a backslash. */
static bool read_escape(toml_reader *r, text *out)
{
    static const char letters[] = "btnfr\"\\", means[] = "\b\t\n\f\r\"\\";
    char c = r->at < r->end ? *r->at : '\n';
    const char *found = strchr(letters, c);

    if (c == 'u' || c == 'U') {
        r->at++;
        return read_code(r, c == 'u' ? 4 : 8, out);
    }
    if (found == NULL)
        return toml_wrong(r,
                          "a backslash in a string is followed by one of "
                          "%suU, and here is %s; '...' takes backslashes as "
                          "they are",
                          letters, toml_show(r).text);
    r->at++;
    return text_add(out, &means[found - letters], 1) || trouble_memory(r->t);
}

/* --- strings --------------------------------------------------------------- */

/* As far as nothing is special. */
static bool read_plain(toml_reader *r, char quote, text *out)
{
    const char *from = r->at;

    while (r->at < r->end && *r->at != quote && *r->at != '\n' &&
           *r->at != '\r' && (quote == '\'' || *r->at != '\\'))
        r->at++;
    return text_add(out, from, (size_t)(r->at - from)) || trouble_memory(r->t);
}

bool toml_read_string(toml_reader *r, text *out)
{
    char quote = *r->at;

    if (r->end - r->at >= 3 && r->at[1] == quote && r->at[2] == quote)
        return toml_wrong(r,
                          "strings over several lines (%c%c%c) are not read "
                          "here",
                          quote, quote, quote);
    r->at++;
    for (;;) {
        if (!read_plain(r, quote, out))
            return false;
        if (r->at == r->end || *r->at == '\n' || *r->at == '\r')
            return toml_wrong(r, "a string ends with %c, and here is %s", quote,
                              toml_show(r).text);
        if (*r->at++ == quote)
            return true;
        if (!read_escape(r, out))
            return false;
    }
}

/* Text of vx's own that people and programs read: one door to the terminal, one spelling in JSON.
 *
 * Whatever comes from a file, a name, a configuration, the environment, git or a command may hold
 * bytes that a terminal obeys, and values that are secret. Every line of vx's own is made by
 * vx_text_* or vx_say, which mask the secrets of the process (secret.h) and then escape: a control
 * character (also DEL, C1 and a bare CR or newline) becomes \n, \r, \x1b or \u009b, so does what
 * turns the direction of text, is invisible or breaks a line, and a byte that is not UTF-8 becomes
 * \xff. A tab becomes a blank. A backslash stays as it is: this is for reading, not for parsing.
 * What a task prints is not text of vx's own and goes through the report untouched.
 *
 * In a format the newlines at its very beginning and end are ours and stay; every other one came
 * in with an argument and is escaped, so that one call is one line whatever its arguments hold.
 *
 * Where the locale says that the terminal does not read UTF-8 (vx_text_locale), every byte above
 * 0x7f is escaped too: to such a terminal some of them are control characters. */
#ifndef VX_TEXT_H
#define VX_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct vx_buf;

void vx_text_add(struct vx_buf *b, const char *s, size_t n);
void vx_text_printf(struct vx_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void vx_text_vprintf(struct vx_buf *b, const char *fmt, va_list ap);

/* Formatted text to a descriptor (1 or 2), written at once. A reader that went away changes
 * nothing. */
void vx_say(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Reads LC_ALL, LC_CTYPE and LANG of "NAME=value" entries; C and POSIX count as UTF-8. Once, by
 * main. true: UTF-8. */
bool vx_text_locale(const char *const *env);

/* A JSON string with its quotes, for a document that leaves the process: secrets masked, valid
 * UTF-8 whatever the bytes are, nothing in it that a terminal obeys. A byte that is not UTF-8 is
 * written as U+FFFD and two hexadecimal digits; so is each byte of a U+FFFD that was there, which
 * makes the spelling unambiguous. `html` also escapes `<`, so that no text ends a script
 * element. */
void vx_text_json(struct vx_buf *b, const char *s, size_t n, bool html);

/* Length of the UTF-8 character at p (RFC 3629: shortest form, no surrogates, up to U+10FFFF), 0
 * when there is none. n > 0. */
size_t vx_utf8_len(const unsigned char *p, size_t n);

#endif

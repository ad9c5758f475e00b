/* JSON and JSONC, by json-c. The only file that includes json-c is shm/base/json.c.
 *
 * Values are reference-free trees: a parsed or built root is owned by its maker and freed with
 * vx_json_free, children are borrowed from it. Parsing is strict RFC 8259 for JSON;
 * VX_JSON_COMMENTS also takes comments and trailing commas (JSONC). A byte order mark and CRLF are
 * fine. Depth is bounded by VX_MAX_JSON_DEPTH; of duplicate keys the last is kept, or with
 * VX_JSON_UNIQUE the second is an error. Errors name line and column (in characters, from 1), what
 * was expected and what was found: -EINVAL; -E2BIG too deep; -EFBIG above VX_MAX_CONFIG_BYTES.
 * Strings may hold bytes that are not UTF-8, and NUL (\u0000), names may not hold NUL. Integers
 * beyond 64 bits are doubles that keep their digits when written. Asking a value for what it is not
 * gives 0, false, NULL. One thread per tree at a time. */
#ifndef VX_JSON_H
#define VX_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_buf;
struct vx_err;
struct vx_json; /* opaque; NULL stands for JSON null and for "absent" */

enum vx_json_type {
	VX_JSON_NULL,
	VX_JSON_BOOL,
	VX_JSON_INT,
	VX_JSON_DOUBLE,
	VX_JSON_STRING,
	VX_JSON_ARRAY,
	VX_JSON_OBJECT
};
enum { VX_JSON_COMMENTS = 1, VX_JSON_UNIQUE = 2 };

/* `where` names the file in errors ("packages/a/package.json"). */
int vx_json_parse(const char *text, size_t n, int flags, const char *where, struct vx_json **ret,
	struct vx_err *err);
void vx_json_free(struct vx_json *v);

enum vx_json_type vx_json_type(const struct vx_json *v);
bool vx_json_bool(const struct vx_json *v);
int64_t vx_json_int(const struct vx_json *v);
double vx_json_double(const struct vx_json *v);
const char *vx_json_str(const struct vx_json *v); /* NULL when it is not a string; borrowed */
size_t vx_json_str_len(const struct vx_json *v);
size_t vx_json_len(const struct vx_json *v); /* of an array or object */
struct vx_json *vx_json_at(const struct vx_json *v, size_t i);
/* NULL when absent (or null: see has) */
struct vx_json *vx_json_get(const struct vx_json *v, const char *key);
bool vx_json_has(const struct vx_json *v, const char *key);

/* for (struct vx_json_iter it = vx_json_iter(obj); vx_json_next(&it);) uses it.key and it.val;
 * members in file order. */
struct vx_json_iter {
	const struct vx_json *obj;
	void *pos;
	const char *key;
	struct vx_json *val;
};
struct vx_json_iter vx_json_iter(const struct vx_json *obj);
bool vx_json_next(struct vx_json_iter *it);

/* Building. vx_json_set and vx_json_add take ownership of `val`. */
struct vx_json *vx_json_object(void);
struct vx_json *vx_json_array(void);
struct vx_json *vx_json_new_bool(bool b);
struct vx_json *vx_json_new_int(int64_t i);
struct vx_json *vx_json_new_double(double d);   /* NULL (null) for infinities and NaN */
struct vx_json *vx_json_new_str(const char *s); /* the bytes as they are */
void vx_json_set(struct vx_json *obj, const char *key, struct vx_json *val);
void vx_json_add(struct vx_json *arr, struct vx_json *val);

/* Compact text; with `sorted` the members of every object in bytewise order: the canonical form
 * that keys are made of. */
void vx_json_write(const struct vx_json *v, bool sorted, struct vx_buf *out);
void vx_json_write_pretty(const struct vx_json *v, struct vx_buf *out);
/* For whoever reads vx's documents (text.h): valid UTF-8 whatever bytes the strings and names hold,
 * secrets masked, nothing that a terminal obeys. */
void vx_json_write_shown(const struct vx_json *v, bool pretty, struct vx_buf *out);

#endif

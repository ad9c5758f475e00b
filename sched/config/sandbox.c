/* exec.sandbox. docs/config.md and docs/sandbox.md. */
#include "cfg.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/protect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static const char *const sandbox_keys[] = {"allow", "deny", "ignore", "weakerWhenNested", NULL};
static const char *const allow_keys[] = {"read", "write", "network", "unixSockets", "localBinding",
	"pty", "gitConfig", "devices", "protected", NULL};
static const char *const deny_keys[] = {"network", NULL};
static const char *const ignore_keys[] = {"read", "write", "network", NULL};

#define MAX_ANY_DEPTH 2U /* "**" in one entry: each multiplies the ways to match */

/* `true`, `false` or a list of strings. */
static int true_or_list(const struct cfg *c, const struct vx_json *v, const char *field,
	bool *ret_all, struct vx_strs *ret)
{
	if (!v)
		return 0;
	if (vx_json_type(v) == VX_JSON_BOOL) {
		*ret_all = vx_json_bool(v);
		return 0;
	}
	if (vx_json_type(v) != VX_JSON_ARRAY)
		return cfg_fail(c, field, "must be true, false or a list");
	return cfg_strs(c, v, field, ret);
}

static bool good_port(const char *s)
{
	uint64_t port;

	return vx_parse_u64(s, 65535, &port) == 0 && port > 0;
}

static bool is_ip(const char *host)
{
	unsigned char bytes[16];

	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Splits "host", "host:port", "[v6]", "[v6]:port", or a bare IPv6 literal. */
static const char *split_host(
	const char *entry, struct vx_arena *a, char **ret_host, const char **ret_port)
{
	const char *colon = strrchr(entry, ':');

	*ret_port = NULL;
	if (*entry == '[') {
		const char *close = strchr(entry, ']');
		if (!close || (close[1] && close[1] != ':'))
			return "has an unclosed '['";
		*ret_host = vx_arena_strndup(a, entry + 1, (size_t)(close - entry - 1));
		if (close[1])
			*ret_port = close + 2;
		return is_ip(*ret_host) ? NULL : "has something that is no address in '[ ]'";
	}
	if (!colon || is_ip(entry)) {
		*ret_host = vx_arena_strdup(a, entry);
		return NULL;
	}
	*ret_host = vx_arena_strndup(a, entry, (size_t)(colon - entry));
	*ret_port = colon + 1;
	return NULL;
}

static const char *bad_name(const char *host, bool deny)
{
	size_t n = strlen(host);

	if (n == 0)
		return "has no host";
	if (is_ip(host))
		return NULL;
	if (host[n - 1] == '.')
		n--;
	if (strcmp(host, "*") == 0)
		return deny ? NULL : "is too broad a wildcard: write `true` for every host";
	const char *rest = vx_starts_with(host, "*.") ? host + 2 : host;
	if (strchr(rest, '*'))
		return "may have a wildcard only as a leading \"*.\"";
	if (!memchr(rest, '.', n - (size_t)(rest - host)))
		return rest == host ? "is a bare name without a dot" : "is too broad a wildcard";
	for (const char *p = rest; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			    (*p >= '0' && *p <= '9') || strchr(".-_", *p)))
			return "holds a byte that no host name has";
	if (*rest == '.' || strstr(rest, ".."))
		return "has an empty label";
	return NULL;
}

static int check_hosts(const struct cfg *c, const char *field, struct vx_strs hosts, bool deny)
{
	for (uint32_t i = 0; i < hosts.n; i++) {
		const char *entry = hosts.v[i], *port = NULL, *why = NULL;
		char *host;
		if (strstr(entry, "://"))
			why = "has a scheme: write the host alone";
		else if (strchr(entry, '/'))
			why = "has a path: write the host alone";
		else
			why = split_host(entry, c->a, &host, &port);
		if (!why && port && !good_port(port))
			why = "has a bad port";
		if (!why)
			why = bad_name(host, deny);
		if (why)
			return cfg_fail(c, field, "entry \"%.100s\" %s", entry, why);
	}
	return 0;
}

static int take_ports(const struct cfg *c, const struct vx_json *v, struct vx_sbx_decl *s)
{
	static const char field[] = "exec.sandbox.allow.localBinding";

	if (!v)
		return 0;
	if (vx_json_type(v) == VX_JSON_BOOL) {
		s->bind_all = vx_json_bool(v);
		return 0;
	}
	if (vx_json_type(v) != VX_JSON_ARRAY)
		return cfg_fail(c, field, "must be true, false or a list of ports");
	size_t n = vx_json_len(v);
	uint16_t *ports = vx_arena_array(c->a, n ? n : 1, sizeof *ports);
	for (size_t i = 0; i < n; i++) {
		int64_t port = -1;
		const struct vx_json *e = vx_json_at(v, i);
		if (!e)
			return cfg_fail(c, field, "must be a list of ports from 1 to 65535");
		int r = cfg_int(c, e, field, 1, 65535, &port);
		if (r < 0)
			return r;
		ports[i] = (uint16_t)port;
	}
	s->bind_ports = ports;
	s->n_bind_ports = (uint32_t)n;
	return 0;
}

/* Each names something that is protected: what allows nothing is a mistake. */
static int check_protected(const struct cfg *c, struct vx_strs v)
{
	static const char field[] = "exec.sandbox.allow.protected";

	for (uint32_t i = 0; i < v.n; i++) {
		unsigned any_depth = 0;
		for (const char *p = v.v[i]; (p = strstr(p, "**")); p += 2)
			any_depth++;
		if (any_depth > MAX_ANY_DEPTH)
			return cfg_fail(c, field, "entry \"%.100s\" has more than %u \"**\"",
				v.v[i], MAX_ANY_DEPTH);
		if (!vx_protect_path(v.v[i]))
			return cfg_fail(c, field,
				"entry \"%.100s\" must end with a name that tasks may not write, like \"dist/.vscode/\" (docs/sandbox.md lists them)",
				v.v[i]);
	}
	return 0;
}

static int take_allow(const struct cfg *c, const struct vx_json *v, struct vx_sbx_decl *s)
{
	if (!v)
		return 0;
	int r = cfg_object(c, v, "exec.sandbox.allow", allow_keys);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "read"), "exec.sandbox.allow.read", &s->read);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "write"), "exec.sandbox.allow.write", &s->write);
	if (r == 0)
		r = true_or_list(c, vx_json_get(v, "network"), "exec.sandbox.allow.network",
			&s->net_all, &s->net_allow);
	if (r == 0)
		r = check_hosts(c, "exec.sandbox.allow.network", s->net_allow, false);
	if (r == 0)
		r = true_or_list(c, vx_json_get(v, "unixSockets"), "exec.sandbox.allow.unixSockets",
			&s->unix_all, &s->unix_paths);
	if (r == 0)
		r = take_ports(c, vx_json_get(v, "localBinding"), s);
	if (r == 0)
		r = cfg_bool(c, vx_json_get(v, "pty"), "exec.sandbox.allow.pty", &s->pty);
	if (r == 0)
		r = cfg_bool(c, vx_json_get(v, "gitConfig"), "exec.sandbox.allow.gitConfig",
			&s->git_config);
	if (r == 0)
		r = cfg_strs(
			c, vx_json_get(v, "devices"), "exec.sandbox.allow.devices", &s->devices);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "protected"), "exec.sandbox.allow.protected",
			&s->protect);
	if (r == 0)
		r = check_protected(c, s->protect);
	for (uint32_t i = 0; r == 0 && i < s->devices.n; i++)
		if (!vx_starts_with(s->devices.v[i], "/dev/"))
			r = cfg_fail(c, "exec.sandbox.allow.devices",
				"entry \"%.100s\" must be a path below /dev", s->devices.v[i]);
	return r;
}

static int take_ignore(const struct cfg *c, const struct vx_json *v, struct vx_sbx_decl *s)
{
	if (!v)
		return 0;
	int r = cfg_object(c, v, "exec.sandbox.ignore", ignore_keys);
	if (r == 0)
		r = cfg_strs(
			c, vx_json_get(v, "read"), "exec.sandbox.ignore.read", &s->ignore_read);
	if (r == 0)
		r = cfg_strs(
			c, vx_json_get(v, "write"), "exec.sandbox.ignore.write", &s->ignore_write);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "network"), "exec.sandbox.ignore.network",
			&s->ignore_net);
	return r;
}

int cfg_sandbox(const struct cfg *c, const struct vx_json *v, struct vx_exec_decl *e)
{
	struct vx_sbx_decl *s = &e->sandbox;

	if (!v)
		return 0;
	if (vx_json_type(v) == VX_JSON_BOOL) { /* true: the baseline; false never comes here */
		e->sandboxed = true;
		return 0;
	}
	int r = cfg_object(c, v, "exec.sandbox", sandbox_keys);
	if (r == 0)
		r = take_allow(c, vx_json_get(v, "allow"), s);
	const struct vx_json *deny = vx_json_get(v, "deny");
	if (r == 0 && deny)
		r = cfg_object(c, deny, "exec.sandbox.deny", deny_keys);
	if (r == 0 && deny)
		r = cfg_strs(
			c, vx_json_get(deny, "network"), "exec.sandbox.deny.network", &s->net_deny);
	if (r == 0)
		r = check_hosts(c, "exec.sandbox.deny.network", s->net_deny, true);
	if (r == 0)
		r = take_ignore(c, vx_json_get(v, "ignore"), s);
	if (r == 0)
		r = cfg_bool(c, vx_json_get(v, "weakerWhenNested"), "exec.sandbox.weakerWhenNested",
			&s->weaker_when_nested);
	e->sandboxed = r == 0;
	return r;
}

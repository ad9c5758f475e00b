/* The network, and sockets that are none. */
#include "attempt.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static int unix_socket(void)
{
	return must_be(socket(AF_UNIX, SOCK_STREAM, 0), EPERM) |
	       must_be(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), EPERM) |
	       must_fail(syscall(SYS_socket, 0xffffffff00000001UL, SOCK_STREAM, 0));
}
static int socket_pair_stays(void)
{
	int v[2];

	/* not an escape: it must work */
	return socketpair(AF_UNIX, SOCK_STREAM, 0, v) == 0 ? HELD : ESCAPED;
}
/* A socketpair's end is an AF_UNIX socket all the same. */
static int connect_pair_end(const char *path, bool abstract)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int v[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, v) < 0)
		/* refused: there is no end to connect */
		return errno == EPERM ? HELD : cannot_call("socketpair");
	size_t n = strlen(path);
	if (n >= sizeof a.sun_path - 1)
		return cannot("the path is too long for a socket");
	memcpy(a.sun_path + abstract, path, n);
	return must_fail(connect(v[0], (struct sockaddr *)&a,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + n + !abstract)));
}
static int reconnect_pair_to_path(void)
{
	return connect_pair_end(env("T_DGRAM"), false);
}
static int reconnect_pair_to_abstract(void)
{
	return connect_pair_end(env("T_ABSTRACT"), true);
}
static int host_loopback(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(env("T_PORT"))),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0);

	return s < 0 ? HELD : must_fail(connect(s, (struct sockaddr *)&a, sizeof a));
}
static int far_address(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons(53),
		.sin_addr.s_addr = inet_addr("192.0.2.1")};
	int s = socket(AF_INET, SOCK_STREAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0);

	return must_be(connect(s, (struct sockaddr *)&a, sizeof a), ENETUNREACH) |
	       must_be(sendto(u, "x", 1, 0, (struct sockaddr *)&a, sizeof a), ENETUNREACH);
}
static int raw_socket(void)
{
	return must_fail(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)) |
	       must_fail(socket(AF_PACKET, SOCK_RAW, 0)) |
	       must_fail(socket(AF_INET6, SOCK_RAW, 58));
}
static int vsock(void)
{
	return must_be(socket(40, SOCK_STREAM, 0), EPERM) |
	       must_fail(socket(31 /* bluetooth */, SOCK_RAW, 0)) |
	       must_fail(socket(42 /* qipcrtr */, SOCK_DGRAM, 0));
}
static int interfaces(void)
{
	struct if_nameindex *i = if_nameindex();
	int r = HELD;

	for (struct if_nameindex *p = i; p && p->if_index; p++)
		if (strcmp(p->if_name, "lo") != 0 && strcmp(p->if_name, "tunl0") != 0 &&
			strcmp(p->if_name, "sit0") != 0 && strncmp(p->if_name, "gre", 3) != 0 &&
			strncmp(p->if_name, "erspan", 6) != 0 &&
			strncmp(p->if_name, "ip", 2) != 0) {
			printf("interface %s\n", p->if_name);
			r = ESCAPED;
		}
	return r;
}
static int netlink_change(void)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
	} q = {.h = {.nlmsg_len = sizeof q,
		       .nlmsg_type = RTM_NEWLINK,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.i = {.ifi_index = 1, .ifi_change = IFF_UP}};
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char room[256];
	} a;
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	if (s < 0 || send(s, &q, sizeof q, 0) < 0 || recv(s, &a, sizeof a, 0) < (ssize_t)sizeof a.h)
		return HELD;
	return a.h.nlmsg_type == NLMSG_ERROR && a.e.error < 0 ? HELD : ESCAPED;
}
static int own_loopback_works(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int s = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(s, (struct sockaddr *)&a, sizeof a) < 0 || listen(s, 1) < 0 ||
		getsockname(s, (struct sockaddr *)&a, &n) < 0)
		return ESCAPED;
	return connect(c, (struct sockaddr *)&a, sizeof a) == 0 ? HELD : ESCAPED;
}

const struct attempt net_attempts[] = {{"unix-socket", unix_socket},
	{"socket-pair-stays", socket_pair_stays},
	{"reconnect-pair-to-path", reconnect_pair_to_path},
	{"reconnect-pair-to-abstract", reconnect_pair_to_abstract},
	{"host-loopback", host_loopback}, {"far-address", far_address}, {"raw-socket", raw_socket},
	{"vsock", vsock}, {"interfaces", interfaces}, {"netlink-change", netlink_change},
	{"own-loopback-works", own_loopback_works}, {NULL, NULL}};

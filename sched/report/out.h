/* stdout as the report uses it: whole pieces, buffered, never waited for without end. Inside
 * sched/report only.
 *
 * A piece (a row, a frame, a chunk of a stream) is begun with out_begin, which makes room, and
 * appended to o->buf. What the reader does not take at once stays in the buffer and is offered
 * again at every flush; only when OUT_MAX_BYTES are waiting does out_begin wait for the reader, so
 * that it slows the run down as a pipe does. It stops waiting as soon as a signal is pending (the
 * loop blocks and reads them, it must get to it); then what does not fit is left out, and named. A
 * descriptor that is closed, broken or full takes everything and keeps nothing: what a run does
 * never depends on who reads it. SIGPIPE is ignored by the caller. */
#ifndef VX_SCHED_REPORT_OUT_H
#define VX_SCHED_REPORT_OUT_H

#include "vx/buf.h"

#define OUT_MAX_BYTES (64U << 20)
/* of what was written, for a later run that would write the same */
#define OUT_KEPT_BYTES (1U << 20)

struct out {
	int fd;
	struct vx_buf buf;
	size_t done; /* leading bytes of buf that are written */
	bool keep;   /* a copy of what is written goes to `kept`, as far as it holds it */
	struct vx_buf kept;
	bool dead;       /* nobody reads */
	bool plain_file; /* never makes anyone wait */
	bool hasty;      /* a signal came while it waited: waits no more */
	uint64_t left_out_bytes;
};

void out_init(struct out *o, int fd);
bool out_begin(struct out *o, size_t bytes); /* false: leave this piece out */
void out_flush(struct out *o);               /* what can be written at once */
/* at the end: waits for the reader, but for no longer than till a signal */
void out_drain(struct out *o);
bool out_pending(const struct out *o);
void out_free(struct out *o);

#endif

/* Compression by libzstd: see zstd.h. */
#include "zstd.h"

#include "vx/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#define PIECE (256U << 10)

struct vx_zip {
	ZSTD_CCtx *c;
	uint8_t *out; /* PIECE bytes, made on first use */
};

struct vx_unzip {
	ZSTD_DCtx *d;
	uint8_t *out;
	bool done;
};

static void *need(void *p)
{
	if (!p)
		abort(); /* as vx_xmalloc does */
	return p;
}

struct vx_zip *vx_zip_new(void)
{
	struct vx_zip *z = vx_xcalloc(1, sizeof *z);
	z->c = need(ZSTD_createCCtx());
	ZSTD_CCtx_setParameter(z->c, ZSTD_c_compressionLevel, VX_ZIP_LEVEL);
	return z;
}

void vx_zip_free(struct vx_zip *z)
{
	if (!z)
		return;
	ZSTD_freeCCtx(z->c);
	free(z->out);
	free(z);
}

size_t vx_zip_bound(size_t n)
{
	return ZSTD_compressBound(n);
}

int vx_zip_all(struct vx_zip *z, const void *p, size_t n, void *dst, size_t cap, size_t *ret)
{
	ZSTD_CCtx_reset(z->c, ZSTD_reset_session_only);
	ZSTD_CCtx_setParameter(z->c, ZSTD_c_nbWorkers, 0);
	size_t r = ZSTD_compress2(z->c, dst, cap, p, n);
	if (ZSTD_isError(r))
		return -EIO;
	*ret = r;
	return 0;
}

int vx_zip_begin(struct vx_zip *z, uint64_t total)
{
	ZSTD_CCtx_reset(z->c, ZSTD_reset_session_only);
	/* A libzstd without threads refuses the parameter and compresses in line. */
	ZSTD_CCtx_setParameter(z->c, ZSTD_c_nbWorkers, total >= VX_ZIP_THREADED_BYTES);
	size_t r = ZSTD_CCtx_setPledgedSrcSize(z->c, total);
	if (!z->out)
		z->out = vx_xmalloc(PIECE);
	return ZSTD_isError(r) ? -EIO : 0;
}

int vx_zip_feed(struct vx_zip *z, const void *p, size_t n, bool end, int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	ZSTD_inBuffer in = {p, n, 0};
	for (;;) {
		ZSTD_outBuffer out = {z->out, PIECE, 0};
		size_t left = ZSTD_compressStream2(z->c, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return -EIO;
		int r = out.pos ? sink(arg, z->out, out.pos) : 0;
		if (r < 0)
			return r;
		if (end ? left == 0 : in.pos == in.size)
			return 0;
	}
}

struct vx_unzip *vx_unzip_new(void)
{
	struct vx_unzip *z = vx_xcalloc(1, sizeof *z);
	z->d = need(ZSTD_createDCtx());
	ZSTD_DCtx_setParameter(z->d, ZSTD_d_windowLogMax, VX_UNZIP_MAX_WINDOW_LOG);
	return z;
}

void vx_unzip_free(struct vx_unzip *z)
{
	if (!z)
		return;
	ZSTD_freeDCtx(z->d);
	free(z->out);
	free(z);
}

int vx_unzip_all(struct vx_unzip *z, const void *p, size_t n, void *dst, size_t cap, size_t *ret)
{
	ZSTD_DCtx_reset(z->d, ZSTD_reset_session_only);
	size_t r = ZSTD_decompressDCtx(z->d, dst, cap, p, n);
	if (ZSTD_isError(r))
		return -EBADMSG;
	*ret = r;
	return 0;
}

void vx_unzip_begin(struct vx_unzip *z)
{
	ZSTD_DCtx_reset(z->d, ZSTD_reset_session_only);
	z->done = false;
	if (!z->out)
		z->out = vx_xmalloc(PIECE);
}

int vx_unzip_feed(struct vx_unzip *z, const void *p, size_t n, bool *ret_done, int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	ZSTD_inBuffer in = {p, n, 0};
	bool full = true;
	while (in.pos < in.size || full) {
		if (z->done && in.pos < in.size)
			return -EBADMSG;
		if (z->done)
			break;
		ZSTD_outBuffer out = {z->out, PIECE, 0};
		size_t r = ZSTD_decompressStream(z->d, &out, &in);
		if (ZSTD_isError(r))
			return -EBADMSG;
		z->done = r == 0;
		full = out.pos == out.size; /* there may be more inside */
		int k = out.pos ? sink(arg, z->out, out.pos) : 0;
		if (k < 0)
			return k;
	}
	*ret_done = z->done;
	return 0;
}

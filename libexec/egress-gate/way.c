/* Copies bytes from one socket to another, without waiting. */
#include <errno.h>
#include <sys/socket.h>

#include "gate.h"

#define WAY_BYTES (64u << 10)

void way_init(struct way *w)
{
    *w = (struct way){.left = UINT64_MAX};
    amp_buf_init(&w->buf, WAY_BYTES);
}

size_t way_pending(const struct way *w)
{
    return w->buf.len - w->at;
}

bool way_has_room(const struct way *w)
{
    return !w->ended && w->left && way_pending(w) < w->buf.max;
}

bool way_read(struct way *w, int fd)
{
    if (w->at == w->buf.len) {
        amp_buf_reset(&w->buf);
        w->at = 0;
    } else if (w->at && w->buf.len == w->buf.max) {
        amp_buf_drop(&w->buf, w->at);
        w->at = 0;
    }
    size_t room = w->buf.max - w->buf.len;
    if (room > w->left)
        room = (size_t)w->left;
    if (w->ended || room == 0)
        return true;
    if (amp_buf_reserve(&w->buf, room, NULL) < 0)
        return false;
    ssize_t n = recv(fd, w->buf.data + w->buf.len, room, MSG_DONTWAIT);
    if (n > 0) {
        w->buf.len += (size_t)n;
        if (w->left != UINT64_MAX)
            w->left -= (uint64_t)n;
    }
    if (n == 0)
        w->ended = true;
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

bool way_write(struct way *w, int fd)
{
    if (way_pending(w)) {
        ssize_t n = send(fd, w->buf.data + w->at, way_pending(w), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        w->at += (size_t)n;
        w->bytes += (uint64_t)n;
    }
    if (w->ended && !way_pending(w) && !w->shut) {
        shutdown(fd, SHUT_WR);
        w->shut = true;
    }
    return true;
}

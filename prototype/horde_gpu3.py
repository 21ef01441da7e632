from horde_gpu import *
import horde_gpu as hg
from horde_gpu2 import rate


@triton.jit
def gather(slots, X, XN, Xg, XNg, Xt, D: tl.constexpr, R: tl.constexpr, BD: tl.constexpr):
    p, d0 = tl.program_id(0).to(tl.int64), tl.program_id(1) * BD
    r, d = tl.arange(0, R), d0 + tl.arange(0, BD)
    slot = tl.load(slots + p * R + r)
    x = tl.load(X + slot[:, None] * D + d[None, :])
    tl.store(Xg + p * R * D + r[:, None] * D + d[None, :], x)
    tl.store(Xt + p * R * D + d[:, None] * R + r[None, :], tl.trans(x))
    xn = tl.load(XN + slot[:, None] * D + d[None, :])
    tl.store(XNg + p * R * D + r[:, None] * D + d[None, :], xn)


@triton.jit
def halves(slots, Xg, XNg, alive, gammas, out, alpha, Z, D: tl.constexpr, H: tl.constexpr, K: tl.constexpr, BD: tl.constexpr, LOGB: tl.constexpr, PREC: tl.constexpr):
    """out[pz] = T1, T2, L21: inverses of the two halves, and the effect of the first on the second."""
    pz, which = tl.program_id(0).to(tl.int64), tl.program_id(1)
    p, z = pz // Z, pz % Z
    i = tl.arange(0, H)
    row0 = tl.where(which == 0, 0, H)      # which: 0 T1, 1 T2, 2 L21
    col0 = tl.where(which == 1, H, 0)
    slot = tl.load(slots + p * 2 * H + row0 + i)
    g = tl.load(gammas + z) * tl.load(alive + slot)
    acc = tl.zeros((H, H), tl.float32)
    base = p * 2 * H * D
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        x = tl.load(Xg + base + (row0 + i)[:, None] * D + d[None, :])
        xn = tl.load(XNg + base + (row0 + i)[:, None] * D + d[None, :])
        y = tl.load(Xg + base + (col0 + i)[:, None] * D + d[None, :])
        acc += tl.dot(x - g[:, None] * xn, tl.trans(y), input_precision=PREC)
    acc = -alpha * acc
    at = out + (pz * 3 + which) * H * H + i[:, None] * H + i[None, :]
    if which == 2:
        tl.store(at, acc)
    else:
        N = tl.where(i[:, None] // K > i[None, :] // K, acc, 0.0)
        T = tl.where(i[:, None] == i[None, :], 1.0, 0.0) + N
        for _ in range(LOGB - 1):
            N = tl.dot(N, N, input_precision=PREC)
            T = T + tl.dot(T, N, input_precision=PREC)
        tl.store(at, T)


@triton.jit
def learn3(slots, Xg, XNg, Xt, alive, C, gammas, inv, W, alpha, Z, NC, D: tl.constexpr, H: tl.constexpr, TQ: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr, PREC: tl.constexpr):
    pz, tile = tl.program_id(1).to(tl.int64), tl.program_id(0)
    p, z = pz // Z, pz % Z
    i, q = tl.arange(0, H), tile * TQ + tl.arange(0, TQ)
    ok = q < NC
    s1, s2 = tl.load(slots + p * 2 * H + i), tl.load(slots + p * 2 * H + H + i)
    g = tl.load(gammas + z)
    g1, g2 = g * tl.load(alive + s1), g * tl.load(alive + s2)
    acc1 = tl.zeros((TQ, H), tl.float32)
    acc2 = tl.zeros((TQ, H), tl.float32)
    base = p * 2 * H * D
    wbase = W + pz * NC * D
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        w = tl.load(wbase + q[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        x1 = tl.load(Xg + base + i[:, None] * D + d[None, :])
        n1 = tl.load(XNg + base + i[:, None] * D + d[None, :])
        acc1 = tl.dot(w, tl.trans(x1 - g1[:, None] * n1), acc1, input_precision=PREC)
        x2 = tl.load(Xg + base + (H + i)[:, None] * D + d[None, :])
        n2 = tl.load(XNg + base + (H + i)[:, None] * D + d[None, :])
        acc2 = tl.dot(w, tl.trans(x2 - g2[:, None] * n2), acc2, input_precision=PREC)
    c1 = tl.load(C + s1[None, :] * NC + q[:, None], mask=ok[:, None], other=0.0)
    c2 = tl.load(C + s2[None, :] * NC + q[:, None], mask=ok[:, None], other=0.0)
    ib = inv + pz * 3 * H * H + i[:, None] * H + i[None, :]
    d1 = tl.dot(c1 - acc1, tl.trans(tl.load(ib)), input_precision=PREC)
    e2 = c2 - acc2 + tl.dot(d1, tl.trans(tl.load(ib + 2 * H * H)), input_precision=PREC)
    d2 = tl.dot(e2, tl.trans(tl.load(ib + H * H)), input_precision=PREC)
    d1, d2 = alpha * d1, alpha * d2
    for d0 in range(0, D, BE):
        d = d0 + tl.arange(0, BE)
        at = wbase + q[:, None] * D + d[None, :]
        w = tl.load(at, mask=ok[:, None], other=0.0)
        t1 = tl.load(Xt + base + d[:, None] * (2 * H) + i[None, :])
        t2 = tl.load(Xt + base + d[:, None] * (2 * H) + (H + i)[None, :])
        w = tl.dot(d1, tl.trans(t1), w, input_precision=PREC)
        w = tl.dot(d2, tl.trans(t2), w, input_precision=PREC)
        tl.store(at, w, mask=ok[:, None])


class V3(Horde):
    def update(self):
        P, Z, D, NC, K, R = self.P, self.Z, self.D, self.NC, self.K, self.B * self.K
        if not hasattr(self, "Xg"):
            self.Xg, self.XNg, self.Xt = (torch.empty(P, R, D, device=dev) for _ in range(3))
            self.inv = torch.empty(P * Z, 3, R // 2, R // 2, device=dev)
        o = self.opt
        a = self.alpha / K
        self.parts = dict(
            gather=lambda: gather[(P, D // 64)](self.slots, self.X, self.XN, self.Xg, self.XNg, self.Xt, D, R, 64, num_warps=8),
            halves=lambda: halves[(P * Z, 3)](self.slots, self.Xg, self.XNg, self.alive, self.gammas, self.inv, a, Z, D, R // 2, K, o["HD"], (self.B // 2).bit_length() - 1, o["hprec"], num_warps=o["hw"], num_stages=o["hs"]),
            learn=lambda: learn3[(triton.cdiv(NC, o["TQ"]), P * Z)](self.slots, self.Xg, self.XNg, self.Xt, self.alive, self.C, self.gammas, self.inv, self.W, a, Z, NC, D, R // 2, o["TQ"], o["BD"], o["BE"], self.prec, num_warps=o["w"], num_stages=o["s"]),
        )
        for part in self.parts.values(): part()


def make(P, prec, opt, n=100_000, NC=250, alpha=0.1, B=8):
    h = V3(P, 4, NC, 256, n, B, 16, alpha, prec)
    h.W = torch.zeros(P, 4, NC, 256, device=dev)
    h.opt = dict(TQ=128, BD=32, BE=32, w=8, s=3, HD=32, hw=4, hs=3, hprec=prec) | opt
    return h


def check3(prec, opt, B=8):
    torch.manual_seed(0)
    h = make(3, prec, opt, 400, alpha=0.5, B=B)
    h.W.normal_(); worst = 0.0
    for i in range(60):
        h.feed(); before = h.W.clone(); h.step()
        old, new = before.transpose(2, 3), h.W.transpose(2, 3)
        ref = reference(h, h.slots, old)
        worst = max(worst, float((new - ref).norm() / (ref - old).norm()))
    return worst


def part(f):
    for _ in range(3): f()
    e0, e1 = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    e0.record(); [f() for _ in range(10)]; e1.record(); torch.cuda.synchronize(); return e0.elapsed_time(e1) / 10


if __name__ == "__main__":
    opts = [("tf32", {}), ("tf32", dict(hprec="tf32x3")), ("tf32", dict(BD=64, s=2)), ("tf32", dict(BD=64, s=3)), ("tf32", dict(BE=64)), ("tf32", dict(TQ=64, w=4)), ("tf32", dict(s=2)), ("tf32", dict(s=4)), ("tf32", dict(hw=8, HD=64)), ("tf32", dict(BD=64, BE=64, s=2)),
            ("tf32", dict(TQ=256, w=8, s=2)), ("tf32x3", {}), ("tf32x3", dict(TQ=64, w=4)), ("tf32x3", dict(BD=64, s=2)), ("tf32x3", dict(s=2, BE=64)), ("ieee", dict(TQ=64, w=8)), ("tf32x3", dict(B=4)), ("tf32", dict(B=4)), ("tf32", dict(B=16, TQ=64, w=8))]
    for prec, opt in opts:
        B = opt.pop("B", 8)
        h = None; torch.cuda.empty_cache()
        try:
            err = check3(prec, opt, B)
            h = make(1000, prec, opt, B=B)
            hz, ms, fin = rate(h, 0.7)
            times = ", ".join(f"{k} {part(f):.3f}" for k, f in h.parts.items())
            print(f"{prec:7} B={B} {opt}: {hz:6.0f} Hz, chunk {ms:.3f} ms ({times}), error {err:.1e}, finite {fin}", flush=True)
        except Exception as e:
            print(prec, B, opt, "FAILED", repr(e)[:160], flush=True)

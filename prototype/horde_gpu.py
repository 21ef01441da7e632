"""Prototype: a million linear GVFs on one GPU, exact chunks, fused."""
import sys, time, torch, triton, triton.language as tl

dev = "cuda"


@triton.jit
def insert_and_draw(sums, ratios, head, seed, slots, P, N, n, B: tl.constexpr, K: tl.constexpr, LOG: tl.constexpr):
    p = tl.program_id(0).to(tl.int64)
    h = tl.load(head)
    row = sums + p * N
    b = tl.arange(0, B)
    rho = tl.load(ratios + b * P + p).to(tl.float64)
    carry = tl.load(row + tl.maximum(h - 1, 0))
    carry = tl.where(h == 0, 0.0, carry)
    tl.store(row + h + b, carry + tl.cumsum(rho, 0))
    tl.debug_barrier()
    lane = tl.arange(0, B * K)
    after = h + lane // K + 1            # the head after this step's row
    start = after - n
    start = tl.where(start < 0, start + N, start)
    wrapped = start >= after             # the window has an old part [start, N)
    last = tl.load(row + N - 1)
    before = tl.load(row + tl.maximum(start - 1, 0), mask=start > 0, other=0.0)
    old = tl.where(wrapped, last - before, 0.0)
    base = tl.where(wrapped, 0.0, before)
    new = tl.load(row + after - 1) - base
    s = tl.load(seed)
    u = tl.rand(s, (p * B * K + lane).to(tl.int32)).to(tl.float64)
    x = u * (old + new)
    inold = x < old
    target = tl.where(inold, before + x, base + x - old)
    lo = tl.where(inold | (wrapped == 0), start, 0)
    hi = tl.where(inold, N, after) - 1   # the first sum > target lies in [lo, hi]
    for _ in range(LOG):
        mid = (lo + hi) // 2
        v = tl.load(row + mid)
        go = (v <= target) & (lo < hi)
        lo = tl.where(go, mid + 1, lo)
        hi = tl.where(go | (lo >= hi), hi, mid)
    tl.store(slots + p * B * K + lane, lo)


@triton.jit
def inverse(slots, X, XN, alive, gammas, out, alpha, Z, D: tl.constexpr, R: tl.constexpr, K: tl.constexpr, BD: tl.constexpr, LOGB: tl.constexpr, PREC: tl.constexpr):
    pz = tl.program_id(0).to(tl.int64)
    p, z = pz // Z, pz % Z
    r = tl.arange(0, R)
    slot = tl.load(slots + p * R + r)
    g = tl.load(gammas + z) * tl.load(alive + slot)
    acc = tl.zeros((R, R), tl.float32)
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        x = tl.load(X + slot[:, None] * D + d[None, :])
        xn = tl.load(XN + slot[:, None] * D + d[None, :])
        acc += tl.dot(x - g[:, None] * xn, tl.trans(x), input_precision=PREC)
    N = tl.where(r[:, None] // K > r[None, :] // K, -alpha * acc, 0.0)
    eye = tl.where(r[:, None] == r[None, :], 1.0, 0.0)
    T = eye + N
    for _ in range(LOGB - 1):
        N = tl.dot(N, N, input_precision=PREC)
        T += tl.dot(T, N, input_precision=PREC)
    tl.store(out + pz * R * R + r[:, None] * R + r[None, :], T)


@triton.jit
def learn(slots, X, XN, alive, C, gammas, tinv, W, alpha, Z, NC, D: tl.constexpr, R: tl.constexpr, TQ: tl.constexpr, BD: tl.constexpr, PREC: tl.constexpr):
    pz, tile = tl.program_id(1).to(tl.int64), tl.program_id(0)
    p, z = pz // Z, pz % Z
    r = tl.arange(0, R)
    q = tile * TQ + tl.arange(0, TQ)
    ok = q < NC
    slot = tl.load(slots + p * R + r)
    g = tl.load(gammas + z) * tl.load(alive + slot)
    acc = tl.load(C + slot[:, None] * NC + q[None, :], mask=ok[None, :], other=0.0)
    base = W + pz * D * NC
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        x = tl.load(X + slot[:, None] * D + d[None, :])
        xn = tl.load(XN + slot[:, None] * D + d[None, :])
        w = tl.load(base + d[:, None] * NC + q[None, :], mask=ok[None, :], other=0.0)
        acc -= tl.dot(x - g[:, None] * xn, w, input_precision=PREC)
    T = tl.load(tinv + pz * R * R + r[:, None] * R + r[None, :])
    delta = alpha * tl.dot(T, acc, input_precision=PREC)
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        xt = tl.load(X + slot[None, :] * D + d[:, None])
        at = base + d[:, None] * NC + q[None, :]
        w = tl.load(at, mask=ok[None, :], other=0.0)
        tl.store(at, w + tl.dot(xt, delta, input_precision=PREC), mask=ok[None, :])


class Horde:
    def __init__(self, P, Z, NC, D, n, B, K, alpha, prec, TQ=128, BD=32, warps=8, stages=3, iwarps=8):
        self.__dict__.update(P=P, Z=Z, NC=NC, D=D, n=n, B=B, K=K, alpha=alpha, prec=prec, TQ=TQ, BD=BD, warps=warps, stages=stages, iwarps=iwarps)
        self.N = n + B
        assert n % B == 0
        R = B * K
        f = dict(device=dev, dtype=torch.float32)
        self.X, self.XN, self.C = (torch.zeros(self.N, m, **f) for m in (D, D, NC))
        self.alive = torch.ones(self.N, **f)
        self.W = torch.zeros(P, Z, D, NC, **f)
        self.sums = torch.zeros(P, self.N, device=dev, dtype=torch.float64)
        self.slots = torch.zeros(P, R, device=dev, dtype=torch.int64)
        self.tinv = torch.empty(P, Z, R, R, **f)
        self.gammas = torch.tensor([0.5, 0.9, 0.97, 0.99][:Z], **f)
        self.head = torch.zeros(1, device=dev, dtype=torch.int64)
        self.seed = torch.ones(1, device=dev, dtype=torch.int64)
        self.means = torch.randn(P, 17, **f) * 0.1
        self.x, self.xn, self.c = torch.zeros(B, D, **f), torch.zeros(B, D, **f), torch.zeros(B, NC, **f)
        self.al, self.a = torch.ones(B, **f), torch.zeros(B, 17, **f)
        self.ratios = torch.zeros(B, P, **f)

    def step(self):
        P, B, K, R = self.P, self.B, self.K, self.B * self.K
        rows = self.head + torch.arange(B, device=dev)
        self.X.index_copy_(0, rows, self.x); self.XN.index_copy_(0, rows, self.xn)
        self.C.index_copy_(0, rows, self.c); self.alive.index_copy_(0, rows, self.al)
        self.ratios.copy_(torch.exp(self.a @ self.means.T - 0.5 * (self.means ** 2).sum(1)))
        insert_and_draw[(P,)](self.sums, self.ratios, self.head, self.seed, self.slots, P, self.N, self.n, B, K, 18, num_warps=4)
        self.update()
        self.head.add_(B).remainder_(self.N); self.seed.add_(1)

    def update(self):
        R, D = self.B * self.K, self.D
        inverse[(self.P * self.Z,)](self.slots, self.X, self.XN, self.alive, self.gammas, self.tinv, self.alpha / self.K, self.Z, D, R, self.K, self.BD, self.B.bit_length() - 1, "tf32x3", num_warps=self.iwarps, num_stages=2)
        learn[(triton.cdiv(self.NC, self.TQ), self.P * self.Z)](self.slots, self.X, self.XN, self.alive, self.C, self.gammas, self.tinv, self.W, self.alpha / self.K, self.Z, self.NC, D, R, self.TQ, self.BD, self.prec, num_warps=self.warps, num_stages=self.stages)

    def feed(self):
        B, D = self.B, self.D
        self.x.copy_(torch.randn(B, D, device=dev) / D ** 0.5); self.xn.copy_(torch.randn(B, D, device=dev) / D ** 0.5)
        self.c.copy_(torch.randn(B, self.NC, device=dev)); self.a.copy_(torch.randn(B, 17, device=dev))
        self.al.copy_((torch.rand(B, device=dev) > 0.02).float())


def reference(h, slots, W):
    """Step by step in float64."""
    W = W.double().clone()
    X, XN, C, al = h.X.double(), h.XN.double(), h.C.double(), h.alive.double()
    g = h.gammas.double()
    for b in range(h.B):
        s = slots[:, b * h.K:(b + 1) * h.K]
        x, xn, c = X[s], XN[s], C[s]
        v, vn = torch.einsum("pkd,pzdq->pzkq", x, W), torch.einsum("pkd,pzdq->pzkq", xn, W)
        delta = c[:, None] + (g[None, :, None] * al[s][:, None])[..., None] * vn - v
        W += h.alpha / h.K * torch.einsum("pkd,pzkq->pzdq", x, delta)
    return W


def check(prec):
    torch.manual_seed(0)
    h = Horde(3, 4, 250, 256, 400, 8, 16, 0.5, prec)
    h.W.normal_()
    worst = 0.0
    for i in range(120):
        h.feed()
        before = h.W.clone()
        h.step()
        ref = reference(h, h.slots, before)
        worst = max(worst, float((h.W - ref).norm() / ref.norm()), float((h.W - ref).norm() / (ref - before).norm()) * 1e-9)
        rel = float((h.W - ref).norm() / (ref - before).norm())
    # draws: distribution of slots against ratios of the window
    head = int(h.head)
    return worst, rel


def check_draws():
    torch.manual_seed(1)
    h = Horde(2000, 1, 8, 32, 48, 8, 16, 0.0, "tf32")
    count = torch.zeros(h.N)
    h.means[:] = h.means[0]
    allr = torch.zeros(h.N)
    chi = 0.0; cells = 0
    for i in range(40):
        h.feed(); head = int(h.head); h.step()
        allr[head:head + 8] = h.ratios[:, 0].cpu()
        if i < 8: continue
        for b in (0, 3, 7):
            after = head + b + 1
            window = [(after - 48 + j) % h.N for j in range(48)]
            got = torch.bincount(h.slots[:, b * 16:(b + 1) * 16].flatten().cpu(), minlength=h.N).double()
            p = torch.zeros(h.N).double(); p[window] = allr[window].double(); p /= p.sum()
            # rows of this chunk after step b are new already in allr: their old ones are outside the window
            e = p * got.sum(); ok = e > 0
            assert got[~ok].sum() == 0, (i, b, got[~ok])
            chi += float(((got - e)[ok] ** 2 / e[ok]).sum()); cells += int(ok.sum()) - 1
    return chi, cells


def timeit(h, seconds=2.0):
    h.feed(); h.step(); torch.cuda.synchronize()
    for i in range(h.N // h.B if h.N // h.B < 50 else 50): h.feed(); h.step()
    # fill the window
    h.sums.copy_(torch.cumsum(torch.rand(h.P, h.N, device=dev, dtype=torch.float64), 1)); h.X.normal_().div_(16); h.XN.normal_().div_(16); h.C.normal_()
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        h.step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): h.step()
    host = [t.cpu().pin_memory() for t in (h.x, h.xn, h.c, h.al, h.a)]
    def go():
        for t, u in zip((h.x, h.xn, h.c, h.al, h.a), host): t.copy_(u, non_blocking=True)
        graph.replay()
    for _ in range(5): go()
    torch.cuda.synchronize(); t0 = time.perf_counter(); m = 0
    while time.perf_counter() - t0 < seconds:
        for _ in range(20): go()
        torch.cuda.synchronize(); m += 20
    dt = (time.perf_counter() - t0) / m
    finite = bool(torch.isfinite(h.W).all())
    def part(f):
        for _ in range(3): f()
        e0, e1 = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        e0.record(); [f() for _ in range(10)]; e1.record(); torch.cuda.synchronize(); return e0.elapsed_time(e1) / 10
    R = h.B * h.K
    inv = part(lambda: inverse[(h.P * h.Z,)](h.slots, h.X, h.XN, h.alive, h.gammas, h.tinv, h.alpha / h.K, h.Z, h.D, R, h.K, h.BD, h.B.bit_length() - 1, "tf32x3", num_warps=h.iwarps, num_stages=2))
    lea = part(lambda: learn[(triton.cdiv(h.NC, h.TQ), h.P * h.Z)](h.slots, h.X, h.XN, h.alive, h.C, h.gammas, h.tinv, h.W, h.alpha / h.K, h.Z, h.NC, h.D, R, h.TQ, h.BD, h.prec, num_warps=h.warps, num_stages=h.stages))
    return h.B / dt, dt * 1e3, inv, lea, finite


def plain(P, Q, D, K, n, tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    W = torch.zeros(P, D, Q, device=dev); X = torch.randn(n, D, device=dev) / 16; XN = torch.randn(n, D, device=dev) / 16; C = torch.randn(n, Q, device=dev); g = torch.rand(Q, device=dev)
    slots = torch.randint(n, (P, K), device=dev)
    def f():
        x, xn = X[slots], XN[slots]
        delta = C[slots] + g * torch.bmm(xn, W) - torch.bmm(x, W)
        W.baddbmm_(x.transpose(1, 2), delta, alpha=0.1 / K)
    for _ in range(3): f()
    torch.cuda.synchronize(); t0 = time.perf_counter(); [f() for _ in range(50)]; torch.cuda.synchronize()
    r = 50 / (time.perf_counter() - t0)
    del W, X, XN, C
    torch.cuda.empty_cache()
    return r


if __name__ == "__main__":
    print(torch.cuda.get_device_name(), torch.__version__, triton.__version__)
    for prec in ("tf32", "tf32x3", "ieee"):
        try: print("check", prec, check(prec), flush=True)
        except Exception as e: print("check", prec, "FAILED", str(e)[:400], flush=True)
    try: print("draws chi2, cells", check_draws(), flush=True)
    except Exception as e: print("draws FAILED", repr(e)[:400], flush=True)
    for tf in (True, False): print("plain torch, static slots", "tf32" if tf else "float32", f"{plain(1000, 1000, 256, 16, 100_000, tf):.0f} Hz", flush=True)
    cases = []
    for prec in ("tf32", "tf32x3"):
        for B in (8, 4):
            for TQ, BD, warps, stages in ((128, 32, 8, 3), (64, 32, 4, 3), (64, 32, 8, 3), (128, 64, 8, 2), (256, 32, 8, 2)):
                cases.append((prec, B, TQ, BD, warps, stages))
    for prec, B, TQ, BD, warps, stages in cases:
        try:
            h = Horde(1000, 4, 250, 256, 100_000, B, 16, 0.1, prec, TQ, BD, warps, stages)
            hz, ms, inv, lea, fin = timeit(h, 1.0)
            print(f"{prec:7} B={B} TQ={TQ} BD={BD} warps={warps} stages={stages}: {hz:6.0f} Hz, chunk {ms:.3f} ms (inverse {inv:.3f}, learn {lea:.3f}) finite {fin}", flush=True)
        except Exception as e:
            print(prec, B, TQ, BD, warps, stages, "FAILED", str(e)[:200], flush=True)
        h = None; torch.cuda.empty_cache()

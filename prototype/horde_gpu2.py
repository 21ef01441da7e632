from horde_gpu import *
import horde_gpu as hg


class Blas(Horde):
    """The same, by batched matrix products of the library."""
    inv_tf32 = True

    def setup(self):
        R = self.B * self.K
        step = torch.arange(R, device=dev) // self.K
        self.mask = (step[:, None] > step[None, :]).float() * (-self.alpha / self.K)
        self.eye = torch.eye(R, device=dev)
        return self

    def update(self):
        P, Z, D, NC, B, K = self.P, self.Z, self.D, self.NC, self.B, self.K
        R = B * K
        if not hasattr(self, "mask"): self.setup()
        X, XN = self.X[self.slots], self.XN[self.slots]
        g = self.gammas[None, :, None] * self.alive[self.slots][:, None]          # P Z R
        Dz = torch.addcmul(X[:, None], g[..., None], XN[:, None], value=-1.0)      # P Z R D
        if self.method == "materialise":
            A = torch.bmm(X, X.transpose(1, 2)); A1 = torch.bmm(XN, X.transpose(1, 2))
            N = torch.addcmul(A[:, None], g[..., None], A1[:, None], value=-1.0).mul_(self.mask).view(P * Z, R, R)
        T = self.eye + N
        for _ in range(B.bit_length() - 2):
            N = torch.bmm(N, N)
            T = torch.baddbmm(T, T, N)
        Dz, W = Dz.view(P * Z, R, D), self.W.view(P * Z, D, NC)
        C = self.C[self.slots]
        acc = torch.baddbmm(C[:, None].expand(P, Z, R, NC).reshape(P * Z, R, NC), Dz, W, alpha=-1.0)
        delta = torch.bmm(T, acc)
        XT = X.transpose(1, 2)[:, None].expand(P, Z, D, R)
        if self.joined:   # one product a policy needs W as [P, D, Z * NC]
            pass
        W.baddbmm_(XT.reshape(P * Z, D, R), delta, alpha=self.alpha / K)


class Joined(Blas):
    """Weights [P, D, Z, NC]: one update product for each policy, values by horizon."""

    def update(self):
        P, Z, D, NC, B, K = self.P, self.Z, self.D, self.NC, self.B, self.K
        R = B * K
        if not hasattr(self, "mask"): self.setup(); self.W = self.W.view(P, D, Z * NC)
        XX = torch.empty(P, 2 * R, D, device=dev)
        torch.index_select(self.X, 0, self.slots.view(-1), out=XX.view(P, 2, R, D)[:, 0].reshape(-1, D)) if False else None
        s = self.slots
        XX = torch.cat((self.X[s], self.XN[s]), 1)
        X = XX[:, :R]
        A = torch.bmm(XX, X.transpose(1, 2)).view(P, 2, R, R)
        VV = torch.bmm(XX, self.W).view(P, 2, R, Z, NC)
        g = self.gammas[None, :, None] * self.alive[s][:, None]
        N = torch.addcmul(A[:, 0][:, None], g[..., None], A[:, 1][:, None], value=-1.0).mul_(self.mask).view(P * Z, R, R)
        T = self.eye + N
        for _ in range(B.bit_length() - 2):
            N = torch.bmm(N, N)
            T = torch.baddbmm(T, T, N)
        T = T.view(P, Z, R, R)
        delta = torch.empty(P, R, Z, NC, device=dev)
        errors(VV, self.C, s, g, delta, P, Z, R, NC)
        for z in range(Z):
            delta[:, :, z] = torch.bmm(T[:, z], delta[:, :, z])
        self.W.baddbmm_(X.transpose(1, 2), delta.view(P, R, Z * NC), alpha=self.alpha / K)


@triton.jit
def errors_kernel(V, C, slots, g, out, Z, R, NC, BQ: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)   # p, r
    z = tl.program_id(1)
    p, r = i // R, i % R
    q = tl.arange(0, BQ)
    ok = q < NC
    slot = tl.load(slots + i)
    c = tl.load(C + slot * NC + q, mask=ok)
    v = tl.load(V + ((p * 2 * R + r) * Z + z) * NC + q, mask=ok)
    vn = tl.load(V + ((p * 2 * R + R + r) * Z + z) * NC + q, mask=ok)
    gg = tl.load(g + (p * Z + z) * R + r)
    tl.store(out + (i * Z + z) * NC + q, c + gg * vn - v, mask=ok)


def errors(V, C, slots, g, out, P, Z, R, NC):
    errors_kernel[(P * R, Z)](V, C, slots, g.contiguous(), out, Z, R, NC, triton.next_power_of_2(NC), num_warps=2)


def make(cls, prec, B, **kw):
    torch.backends.cuda.matmul.allow_tf32 = prec == "tf32"
    h = cls(1000, 4, 250, 256, 100_000, B, 16, 0.1, prec, **kw)
    h.method, h.joined = "materialise", False
    return h


def check2(cls, prec):
    torch.backends.cuda.matmul.allow_tf32 = prec == "tf32"
    torch.manual_seed(0)
    h = cls(3, 4, 250, 256, 400, 8, 16, 0.5, prec); h.method, h.joined = "materialise", False
    h.W.normal_(); worst = 0.0
    for i in range(60):
        h.feed(); before = h.W.clone(); h.step()
        f = (lambda w: w.view(3, 256, 4, 250).permute(0, 2, 1, 3)) if cls is Joined else (lambda w: w)
        old, new = f(before.reshape(h.W.shape)), f(h.W)
        ref = reference(h, h.slots, old)
        worst = max(worst, float((new - ref).norm() / (ref - old).norm()))
    return worst


def rate(h, seconds=1.0):
    for i in range(3): h.feed(); h.step()
    h.sums.copy_(torch.cumsum(torch.rand(h.P, h.N, device=dev, dtype=torch.float64), 1)); h.X.normal_().div_(16); h.XN.normal_().div_(16); h.C.normal_()
    torch.cuda.synchronize()
    s = torch.cuda.Stream()
    with torch.cuda.stream(s): h.step()
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
    return h.B / dt, dt * 1e3, bool(torch.isfinite(h.W).all())


class Mixed(Horde):
    """Fused learning with the inverse in the same precision."""

    def update(self):
        R, D = self.B * self.K, self.D
        inverse[(self.P * self.Z,)](self.slots, self.X, self.XN, self.alive, self.gammas, self.tinv, self.alpha / self.K, self.Z, D, R, self.K, self.BD, self.B.bit_length() - 1, self.prec, num_warps=self.iwarps, num_stages=2)
        learn[(triton.cdiv(self.NC, self.TQ), self.P * self.Z)](self.slots, self.X, self.XN, self.alive, self.C, self.gammas, self.tinv, self.W, self.alpha / self.K, self.Z, self.NC, D, R, self.TQ, self.BD, self.prec, num_warps=self.warps, num_stages=self.stages)


if __name__ == "__main__":
    for cls in (Blas, Joined, Mixed):
        for prec in ("tf32", "ieee"):
            try: print("check", cls.__name__, prec, check2(cls, prec), flush=True)
            except Exception as e: print("check", cls.__name__, prec, "FAILED", repr(e)[:300], flush=True)
    for prec in ("tf32", "ieee"):
        for cls, kw in ((Blas, {}), (Joined, {}), (Mixed, dict(TQ=128, BD=32, warps=8, stages=3, iwarps=8)), (Mixed, dict(TQ=128, BD=32, warps=8, stages=3, iwarps=4)), (Mixed, dict(TQ=128, BD=32, warps=8, stages=4, iwarps=8)), (Mixed, dict(TQ=256, BD=32, warps=16, stages=3, iwarps=8)), (Mixed, dict(TQ=128, BD=32, warps=4, stages=3, iwarps=8))):
            for B in (8, 16) if cls in (Blas, Joined) else (8,):
                if prec == "ieee" and cls is Mixed: continue
                h = None; torch.cuda.empty_cache()
                try:
                    h = make(cls, prec, B, **kw)
                    if B == 16: h.N  # n % B == 0 holds for 100,000
                    hz, ms, fin = rate(h)
                    print(f"{prec:5} {cls.__name__:7} B={B:2} {kw}: {hz:6.0f} Hz, chunk {ms:.3f} ms, finite {fin}", flush=True)
                except Exception as e:
                    print(prec, cls.__name__, B, kw, "FAILED", repr(e)[:300], flush=True)
    # where the time of the library version goes
    h = None; torch.cuda.empty_cache()
    for cls in (Blas, Joined):
        h = make(cls, "tf32", 8); h.feed(); h.step(); torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
            for _ in range(5): h.step()
            torch.cuda.synchronize()
        print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=14, max_name_column_width=60))
        h = None; torch.cuda.empty_cache()

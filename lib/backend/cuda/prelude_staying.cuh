// What blocks stand on that stay and have the next row on its way: shared memory as it is launched with, and gates.
#ifdef __CUDA_ARCH__
DEVICE char* dynamic_shared()
{
    extern __shared__ __align__(16) char room[];
    return room;
}
// A vector's words asked for here, wherever they are wanted: compilers would ask for them there. Of elements that are less than a
// word each would take a register.
template <i32 N>
DEVICE Vector<u32, N> early_words(const void* from)
{
    Vector<u32, N> w;
    if constexpr (N == 4) asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w.e[0]), "=r"(w.e[1]), "=r"(w.e[2]), "=r"(w.e[3]) : "l"(from));
    else if constexpr (N == 2) asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(w.e[0]), "=r"(w.e[1]) : "l"(from));
    else asm volatile("ld.global.b32 %0, [%1];" : "=r"(w.e[0]) : "l"(from));
    return w;
}
#else
template <i32 N>
DEVICE Vector<u32, N> early_words(const void* from) { return *(const Vector<u32, N>*)from; }
#endif
// The same address in memory, of which compilers do not know what it was the sum of: else they add up a row's place and a point's
// before they make bytes of it, five instructions an access in place of one, and keep sums in registers from walk to walk.
template <class T>
DEVICE T* hidden(T* p)
{
#ifdef __CUDA_ARCH__
    u64 at = __cvta_generic_to_global(p);
    asm("" : "+l"(at));
    return (T*)__cvta_global_to_generic(at);
#else
    return p;
#endif
}
// What comes of x is computed once more: kept from one row to the next it would take the registers that loads are on their way
// to, and these, spilled, be waited for.
DEVICE void forget(i32& x)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(x));
#endif
}
template <class V, i32 N>
DEVICE V vector_of(Vector<u32, N> words)
{
    union {
        Vector<u32, N> words;
        V              all;
    } r;
    r.words = words;
    return r.all;
}

// Blocks of a cluster tell each other numbers: a gate is open when as many bytes have come as its block expects. Gates and places for
// numbers are used by turns, so that nobody writes where somebody still reads. What a block has stored to memory before is not waited for, as a
// barrier of the cluster would.
#if __CUDA_ARCH__ >= 900
template <i32 N>
DEVICE void set_gates(u64* gates)
{
    if (threadIdx.x < N) asm volatile("mbarrier.init.shared.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"((u32)__cvta_generic_to_shared(gates + threadIdx.x)) : "memory");
    meet_cluster();
}
// x to where `to` is in the shared memory of the cluster's block of this rank, and to its gate that it came.
template <class T>
DEVICE void tell(T* to, T x, u64* gate, i32 rank)
{
    union {
        T   all;
        u32 words[sizeof(T) / 4];
    } r = {x};
    u32 at, its_gate;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((u32)__cvta_generic_to_shared(to)), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(its_gate) : "r"((u32)__cvta_generic_to_shared(gate)), "r"(rank));
#pragma unroll
    for (i32 k = 0; k < (i32)(sizeof(T) / 4); k++)
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(at + 4 * k), "r"(r.words[k]), "r"(its_gate) : "memory");
}
// One thread expects; all wait. `turn`: how often the gate was used before.
DEVICE void expect(u64* gate, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"((u32)__cvta_generic_to_shared(gate)), "r"(bytes) : "memory"); }
DEVICE void await_told(u64* gate, u32 turn)
{
    u32 is_open = 0;
    while (!is_open)
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(is_open) : "r"((u32)__cvta_generic_to_shared(gate)), "r"(turn & 1) : "memory");
}
#elif !defined(__CUDA_ARCH__)
template <i32 N>
DEVICE void set_gates(u64*) {}
template <class T>
DEVICE void tell(T* to, T x, u64*, i32) { *to = x; }
DEVICE void expect(u64*, u32) {}
DEVICE void await_told(u64*, u32) { meet_cluster(); }
#endif

// Points of a part of a row, of which parts take this many each by turns.
template <i32 PARTS>
DEVICE i32 points_of(i32 part, i32 at_once, i32 points)
{
    const i32 turns = points / (at_once * PARTS), rest = points - (turns * PARTS + part) * at_once;
    return turns * at_once + (rest < 0 ? 0 : rest < at_once ? rest : at_once);
}
// sum((x - m)^2) of a part of a row about its mean, and that about any m; sum: of its x.
template <class T>
DEVICE T about_mean(T square, T sum, T m, i32 count)
{
    const T apart = sum / (T)count - m, less = square - (T)count * (apart * apart);
    return less >= 0 || less != less ? less : 0;
}
template <class T>
DEVICE T about(T square, T sum, T m, i32 count)
{
    const T apart = sum / (T)count - m;
    return square + (T)count * (apart * apart);
}
// sum(exp(x - top)) of a part as sum(exp(x - m)), of which nothing stays nothing.
DEVICE f32 scaled_to(f32 sum, f32 top, f32 m) { return sum == 0 ? 0 : sum * exp_f32(top - m); }
DEVICE f64 scaled_to(f64 sum, f64 top, f64 m) { return sum == 0 ? 0 : sum * exp_f64(top - m); }
template <class T>
DEVICE T finite(T x) { return x - x == 0 ? x : 0; }

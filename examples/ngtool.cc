// The command-line tool of libng: lists devices, evaluates expressions on .npy files, shows programs, measures.
#include "ngtool.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

namespace ngtool {
namespace {

const char HELP[] =
    "ngtool - libng from the command line\n"
    "\n"
    "  ngtool devices                          what programs can run on\n"
    "  ngtool eval EXPR [NAME=VALUE ..]        the value of an expression\n"
    "  ngtool explain EXPR [NAME=VALUE ..]     how it would be computed: kernels, buffers, bytes\n"
    "  ngtool dot EXPR [NAME=VALUE ..]         the same as a picture, for Graphviz\n"
    "  ngtool bench SUITE ..                   times; suites: ew chains gemm epilogue prologue conv dw pool small cpu\n"
    "  ngtool tune EXPR [NAME=TYPE[SHAPE] ..]  measures which kernels are fastest for these shapes, and remembers it\n"
    "  ngtool version | help\n"
    "\n"
    "EXPR is what ng_parse reads: Python's operators and slices, words such as exp, where, softmax, sum(x, 1).\n"
    "VALUE is a number, true, false, a FILE.npy, or a type and shape: f32[64,128] (eval: random numbers in [0, 1);\n"
    "explain and dot: an argument; a length of -1, -2 .. is known when run).\n"
    "\n"
    "  -o FILE.npy        eval: write the result there instead of showing it\n"
    "  --json             explain: the JSON as it comes from the library\n"
    "  --source           explain: with the texts that kernels are compiled from\n"
    "  --length N         explain, dot: the largest value of every unknown length (4096)\n"
    "  --csv FILE         bench: write section,case,peer,us,rate,unit\n"
    "  --only TEXT        bench: the cases whose name has TEXT in it\n"
    "  --quick            bench: fewer repetitions, small cases only\n"
    "  --all              bench: also cases that take long on a CPU\n"
    "  --interim          nothing is compiled: bench times the kernels that run until it is, explain tells of them\n"
    "  --backend NAME     cpu, cuda (the best there is)\n"
    "  --threads N        of the CPU (all cores)\n"
    "\n"
    "  ngtool eval \"softmax(x, 1)\" x=f32[2,5]\n"
    "  ngtool eval \"(x - mean(x, 0)) / (std(x, 0) + eps)\" x=data.npy eps=1e-6 -o normal.npy\n"
    "  ngtool dot \"relu(x @ w + b)\" x=f32[32,64] w=f32[64,10] b=f32[10] | dot -Tsvg > net.svg\n";

int run_devices()
{
    const uint32_t count = ng_device_count();
    for (uint32_t i = 0; i < count; i++) {
        ng_device_info info = sized<ng_device_info>();
        if (ng_device_get(i, &info) < 0) continue;
        printf("%-5s %d  %s, %s, %" PRIu32 " %s, %.1f GiB", info.backend, info.ordinal, info.name, info.arch, info.units,
               strcmp(info.backend, "cpu") == 0 ? "cores" : "multiprocessors", double(info.memory_bytes) / (1 << 30));
        if (info.l2_bytes) printf(", L2 %.1f MiB", double(info.l2_bytes) / (1 << 20));
        if (info.pci[0]) printf(", %s", info.pci);
        putchar('\n');
    }
    return count ? 0 : 1;
}

int run_version()
{
    const uint32_t runs = ng_version(), built = NG_VERSION;
    printf("libng %u.%u.%u", runs >> 16, runs >> 8 & 0xff, runs & 0xff);
    if (runs != built) printf(" (ngtool was built for %u.%u.%u)", built >> 16, built >> 8 & 0xff, built & 0xff);
    putchar('\n');
    return 0;
}

int dispatch(int argc, char** argv)
{
    const std::string command = argc > 1 ? argv[1] : "help";
    if (command == "help" || command == "--help" || command == "-h") return fputs(HELP, stdout), 0;
    if (command == "version" || command == "--version") return run_version();
    const Arguments arguments = read_arguments(argc - 2, argv + 2);
    if (arguments.has("--help")) return fputs(HELP, stdout), 0;
    if (command == "devices") return run_devices();
    if (command == "eval") return run_eval(arguments);
    if (command == "explain") return run_explain(arguments);
    if (command == "dot") return run_dot(arguments);
    if (command == "bench") return run_bench(arguments);
    if (command == "tune") return run_tune(arguments);
    throw Failure("there is no command \"" + command + "\"; ngtool help lists them", 2);
}

}
}

int main(int argc, char** argv)
{
    try {
        const int status = ngtool::dispatch(argc, argv);
        if (fflush(stdout) == 0) return status;
        fprintf(stderr, "ngtool: the output could not be written\n");
    }
    catch (const ngtool::Failure& failure) {
        fflush(stdout);
        fprintf(stderr, "ngtool: %s\n", failure.what());
        return failure.status;
    }
    catch (const std::bad_alloc&) {
        fprintf(stderr, "ngtool: out of memory\n");
    }
    catch (const std::exception& failure) {
        fprintf(stderr, "ngtool: %s\n", failure.what());
    }
    return 1;
}

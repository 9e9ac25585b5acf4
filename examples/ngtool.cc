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
    "explain and dot: an argument, as a file is of its type and shape; a length of -1, -2 .. is known when run).\n"
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

int run_devices(const Arguments&)
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

int run_version(const Arguments&)
{
    const uint32_t runs = ng_version(), built = NG_VERSION;
    printf("libng %u.%u.%u", runs >> 16, runs >> 8 & 0xff, runs & 0xff);
    if (runs != built) printf(" (ngtool was built for %u.%u.%u)", built >> 16, built >> 8 & 0xff, built & 0xff);
    putchar('\n');
    return 0;
}

// options: all that the command looks at, each between blanks; only commands with some take words.
struct Command {
    const char *name, *options;
    int (*run)(const Arguments&);
};
const Command COMMANDS[] = {
    { "devices", "", run_devices },
    { "version", "", run_version },
    { "--version", "", run_version },
    { "eval", " -o --interim --backend --threads ", run_eval },
    { "explain", " --json --source --length --interim --backend --threads ", run_explain },
    { "dot", " --length --interim --backend --threads ", run_dot },
    { "bench", " --csv --only --quick --all --interim --backend --threads ", run_bench },
    { "tune", " --backend --threads ", run_tune },
};

int run_command(const Command& command, const Arguments& arguments)
{
    const std::string known = command.options, name = command.name;
    for (const auto& [option, value] : arguments.options)
        if (known.find(" " + option + " ") == known.npos) throw Failure(name + " has no option " + option + "; ngtool help tells which commands do", 2);
    if (known.empty() && !arguments.words.empty()) throw Failure(name + " takes no words, and was given \"" + arguments.words[0] + "\"", 2);
    return command.run(arguments);
}

int dispatch(int argc, char** argv)
{
    const std::string name = argc > 1 ? argv[1] : "help";
    if (name == "help" || name == "--help" || name == "-h") return fputs(HELP, stdout), 0;
    for (const Command& command : COMMANDS) {
        if (name != command.name) continue;
        const Arguments arguments = read_arguments(argc - 2, argv + 2);
        return arguments.has("--help") ? fputs(HELP, stdout), 0 : run_command(command, arguments);
    }
    throw Failure("there is no command \"" + name + "\"; ngtool help lists them", 2);
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

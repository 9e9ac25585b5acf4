"""libng never ends, prints in, or reconfigures its host: what it imports could not do so."""
import re
import sys

from house import Verdict, output

REFUSED = {
    "ends the process": "abort exit _exit _Exit quick_exit __assert_fail __assert raise kill pthread_kill",
    "prints": "printf fprintf vprintf vfprintf puts putchar putc fputs fputc perror psignal __printf_chk __fprintf_chk __vfprintf_chk "
              "_ZSt4cout _ZSt4cerr _ZSt4clog stdout stderr",
    "runs at exit": "atexit at_quick_exit on_exit __cxa_thread_atexit __cxa_thread_atexit_impl",
    # __cxa_atexit is lib/backend/cuda/ending.cc's, which keeps exit() from pulling a compiler away under a thread; statics.py finds
    # objects that would want it.
    "needs a constructor": "__cxa_guard_acquire _ZNSt8ios_base4InitC1Ev",
    "is thread-local": "__tls_get_addr",
    "reads or sets the host's environment": "getenv setenv putenv unsetenv clearenv",
    "follows or sets the host's locale": "setlocale strtod strtof strtold atof sprintf vsprintf scanf sscanf __isoc99_sscanf",
    "changes the host's signals": "signal sigaction sigprocmask",
    "shares the host's random numbers": "rand srand random srandom drand48",
    "starts a program": "system popen execv execve execvp posix_spawn posix_spawnp",
}

verdict = Verdict()
undefined = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--undefined-only", sys.argv[1]).splitlines()}
for why, names in REFUSED.items():
    found = sorted(undefined & set(names.split()))
    verdict.check(not found, f"{', '.join(found)}: {why}")
verdict.check(any(re.match(r"malloc|_Znwm", name) for name in undefined), "no import was read: is this the library?")
verdict.close()

// The stand-in of the CUDA driver in a test's hands: found by the path that the build gives, told what to do.
#pragma once
#include "lib/backend/cuda/driver.h"
#include "tests/backend/fake_driver/fake_control.h"

#include <doctest/doctest.h>

#include <dlfcn.h>

#include <cstdlib>

namespace ng {

// Where the stand-in lies: NG_FAKE_DRIVER, which only tests read.
inline const char* stand_in_path()
{
    const char* path = std::getenv("NG_FAKE_DRIVER");
    REQUIRE_MESSAGE(path != nullptr, "NG_FAKE_DRIVER is the path of the stand-in that the build made");
    return path;
}

inline const fake::Control& stand_in()
{
    void* library = dlopen(stand_in_path(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library != nullptr, dlerror());
    const auto control = reinterpret_cast<const fake::Control* (*)()>(dlsym(library, "ng_fake_control"));
    const bool is_here = control != nullptr;
    REQUIRE(is_here);
    return *control();
}

// The process's driver, which is the stand-in; as new.
inline const cuda::Driver& fresh_driver()
{
    const cuda::Driver& driver = cuda::Driver::need("test", stand_in_path());
    stand_in().reset();
    return driver;
}

// What body throws; a status of NG_OK: nothing.
template <class Body>
Error thrown_by(Body body)
{
    try {
        body();
    } catch (const Error& error) {
        return error;
    }
    return Error(NG_OK, "");
}

inline bool holds(const std::string& all, const std::string& part) { return all.find(part) != all.npos; }

// Code that the stand-in takes as a text for the driver's compiler, with kernels of these names.
inline constexpr const char* STAND_IN_CODE = ".version 8.0 // twice nothing";

// Whether it ended something: such a function does so even when it is made to fail, and nobody hears of it.
inline bool ends_something(std::string_view name)
{
    for (const char* word : {"Destroy", "MemFree", "Unload", "Release", "PopCurrent", "Unregister"})
        if (name.find(word) != name.npos) return true;
    return false;
}

}  // namespace ng

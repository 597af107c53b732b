#include <stdio.h>

#include "compat.h"
#include "engine.h"
#include "json.h"

struct feature {
    const char *name;
    int word, bit;
};

/* The features for which these libraries have assembly code, by register and bit of CPUID. */
static const struct feature FEATURES[] = {
    {"pclmulqdq", 1, 1}, {"ssse3", 1, 9}, {"aes", 1, 25}, {"avx", 1, 28},
    {"bmi1", 2, 3}, {"avx2", 2, 5}, {"bmi2", 2, 8}, {"avx512f", 2, 16}, {"avx512dq", 2, 17}, {"adx", 2, 19},
    {"avx512ifma", 2, 21}, {"sha_ni", 2, 29}, {"avx512bw", 2, 30}, {"avx512vl", 2, 31},
    {"vaes", 3, 9}, {"vpclmulqdq", 3, 10},
};
enum { FEATURE_COUNT = sizeof FEATURES / sizeof FEATURES[0] };

#if defined(__clang__)
#define COMPILER "clang"
#define COMPILER_VERSION __clang_version__
#else
#define COMPILER "gcc"
#define COMPILER_VERSION __VERSION__
#endif

#if defined(__OPTIMIZE__)
#define BUILD "release"
#else
#define BUILD "debug"
#endif

void report_facts(void) {
    char version[32], tls[64], compiler[64];
    compat_version(version, sizeof version);
    snprintf(tls, sizeof tls, "%s %s", WEIR_STACK, version);
    /* Clang's version string continues with its builder. */
    sscanf(COMPILER_VERSION, "%31s", version);
    snprintf(compiler, sizeof compiler, "%s %s", COMPILER, version);

    uint32_t words[4];
    const char *features[FEATURE_COUNT];
    size_t count = 0;
    if (compat_cpuid(words))
        for (size_t i = 0; i < FEATURE_COUNT; i++)
            if (words[FEATURES[i].word] >> FEATURES[i].bit & 1)
                features[count++] = FEATURES[i].name;

    json_open("facts");
    json_text("stack", WEIR_STACK);
    json_text("tls", tls);
    json_text("crypto", tls);
    json_text("compiler", compiler);
    json_text("allocator", "system");
    json_text("build", BUILD);
    json_texts("features", features, count);
    json_close();
}

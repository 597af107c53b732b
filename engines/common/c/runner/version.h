/* Read by the build, which runs it through the preprocessor to learn which version the headers are of. */
#include <openssl/opensslv.h>
#if defined(AWSLC_VERSION_NUMBER_STRING)
weir_version AWSLC_VERSION_NUMBER_STRING
#else
weir_version OPENSSL_VERSION_TEXT
#endif

/* The build runs it through the preprocessor to get the version of the headers. */
#include <openssl/opensslv.h>
#if defined(AWSLC_VERSION_NUMBER_STRING)
weir_version AWSLC_VERSION_NUMBER_STRING
#else
weir_version OPENSSL_VERSION_TEXT
#endif

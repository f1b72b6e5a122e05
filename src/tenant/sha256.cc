#include "tenant/sha256.h"

#include <openssl/evp.h>

#include "base/assert.h"

namespace trellis {

Bytes sha256(ByteView bytes) {
  // Looked up once: each lookup costs more than a digest of a short text.
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  Bytes digest(32, '\0');
  unsigned size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                 algorithm, nullptr);
  ASSERT(done == 1 && size == digest.size());
  return digest;
}

}  // namespace trellis

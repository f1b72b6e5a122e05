#include "rest/sealed_text.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <memory>

namespace trellis {
namespace {

// | nonce | the text, 0x80 and zeros up to a whole block, encrypted | tag |
constexpr size_t nonce_bytes = 12;
constexpr size_t tag_bytes = 16;
constexpr size_t block_bytes = 64;
constexpr char end_of_text = '\x80';
using SealKey = std::array<unsigned char, 32>;
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

struct KeyOfProcess {
  SealKey bytes{};
  bool is_made = RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1;
};

const KeyOfProcess& key_of_process() {
  static const KeyOfProcess key;
  return key;
}

unsigned char* raw(Bytes& bytes, size_t at = 0) {
  return reinterpret_cast<unsigned char*>(bytes.data() + at);
}

}  // namespace

Result<std::string> seal_text(ByteView text) {
  const Error failed{Code::unavailable, "no page token could be made: try again"};
  Bytes plain(text);
  plain += end_of_text;
  plain.resize((plain.size() + block_bytes - 1) / block_bytes * block_bytes);
  Bytes sealed(nonce_bytes + plain.size() + tag_bytes, '\0');
  const CipherContext context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const KeyOfProcess& key = key_of_process();
  int size = 0;
  if (!key.is_made || context == nullptr || RAND_bytes(raw(sealed), nonce_bytes) != 1 ||
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.bytes.data(),
                         raw(sealed)) != 1 ||
      EVP_EncryptUpdate(context.get(), raw(sealed, nonce_bytes), &size, raw(plain),
                        static_cast<int>(plain.size())) != 1 ||
      EVP_EncryptFinal_ex(context.get(), raw(sealed, sealed.size() - tag_bytes), &size) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, tag_bytes,
                          raw(sealed, sealed.size() - tag_bytes)) != 1)
    return failed;
  return to_hex(sealed);
}

std::optional<Bytes> open_sealed(std::string_view text) {
  auto sealed = from_hex(text);
  if (!sealed || sealed->size() < nonce_bytes + block_bytes + tag_bytes) return std::nullopt;
  Bytes plain(sealed->size() - nonce_bytes - tag_bytes, '\0');
  const CipherContext context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const KeyOfProcess& key = key_of_process();
  int size = 0;
  if (!key.is_made || context == nullptr ||
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.bytes.data(),
                         raw(*sealed)) != 1 ||
      EVP_DecryptUpdate(context.get(), raw(plain), &size, raw(*sealed, nonce_bytes),
                        static_cast<int>(plain.size())) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, tag_bytes,
                          raw(*sealed, sealed->size() - tag_bytes)) != 1 ||
      EVP_DecryptFinal_ex(context.get(), raw(*sealed), &size) != 1)
    return std::nullopt;
  plain.resize(plain.rfind(end_of_text));
  return plain;
}

}  // namespace trellis

// A self-signed certificate for localhost, made anew for each test.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "base/assert.h"

namespace trellis {

// Removed with what is in it.
class TempFolder {
 public:
  TempFolder() {
    std::string name = std::filesystem::temp_directory_path() / "trellis-net-XXXXXX";
    ASSERT(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Writes a new key and a certificate of it, both in PEM form, each under its final name at once.
inline void write_certificate(const std::string& cert_file, const std::string& key_file,
                              long serial) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> cert(X509_new(), X509_free);
  ASSERT(key != nullptr && cert != nullptr);
  X509_set_version(cert.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), -86'400);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), 86'400);
  X509_NAME* name = X509_get_subject_name(cert.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(cert.get(), name);
  X509_set_pubkey(cert.get(), key.get());
  for (const auto& [kind, value] : {std::pair(NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1"),
                                    std::pair(NID_basic_constraints, "critical,CA:TRUE")}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    ASSERT(extension != nullptr);
    X509_add_ext(cert.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  ASSERT(X509_sign(cert.get(), key.get(), EVP_sha256()) > 0);

  const auto write = [](const std::string& path, auto&& put) {
    const std::string draft = path + ".new";
    FILE* file = std::fopen(draft.c_str(), "w");
    ASSERT(file != nullptr && put(file) == 1);
    std::fclose(file);
    std::filesystem::rename(draft, path);
  };
  write(cert_file, [&cert](FILE* file) { return PEM_write_X509(file, cert.get()); });
  write(key_file, [&key](FILE* file) {
    return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace trellis

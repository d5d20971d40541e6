// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/tls.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <cerrno>

#include "dlock/spi/error.hpp"

namespace dlock::redis {

namespace {

/// More than the system's authorities need.
constexpr std::size_t kLongestFile = std::size_t{16} << 20U;

/// Reads the file without OpenSSL, which opens it so that child processes inherit the descriptor.
/// One of the files has a private key.
std::string read_file(const std::string& path, error_code& ec) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    ec.assign(errno, boost::system::system_category());
    return {};
  }
  std::string text;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while ((got = ::read(file, part.data(), part.size())) > 0 && text.size() <= kLongestFile) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  if (got < 0) ec.assign(errno, boost::system::system_category());
  ::close(file);
  return text;
}

class Maker {
 public:
  explicit Maker(const DialSettings& settings) : settings_(settings) {}

  TlsContext make() {
    made_.context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(made_.context->native_handle(), TLS1_2_VERSION);
    if (trust() && show_certificate()) verify();
    return std::move(made_);
  }

 private:
  bool good(const char* option, const std::string& file) {
    if (!ec_) return true;
    made_ = {nullptr, fmt::format("{} '{}': {}", option, file, ec_.message()), true};
    // This passes when other parts of the process close descriptors.
    if (ec_ == boost::system::errc::too_many_files_open ||
        ec_ == boost::system::errc::too_many_files_open_in_system) {
      made_ = {nullptr, fmt::format("{} '{}': {}", option, file, system_text(ec_.value())), false};
    }
    return false;
  }
  bool trust() {
    if (settings_.tls_ca.empty()) {
      made_.context->set_default_verify_paths(ec_);
      return good("the system's authorities", "");
    }
    const auto text = read_file(settings_.tls_ca, ec_);
    if (!ec_) made_.context->add_certificate_authority(asio::buffer(text), ec_);
    return good("tls_ca", settings_.tls_ca);
  }
  bool show_certificate() {
    if (settings_.tls_cert.empty()) return true;
    auto text = read_file(settings_.tls_cert, ec_);
    if (!ec_) made_.context->use_certificate_chain(asio::buffer(text), ec_);
    if (!good("tls_cert", settings_.tls_cert)) return false;
    text = read_file(settings_.tls_key, ec_);
    if (!ec_) made_.context->use_private_key(asio::buffer(text), asio::ssl::context::pem, ec_);
    ::OPENSSL_cleanse(text.data(), text.size());
    return good("tls_key", settings_.tls_key);
  }
  void verify() {
    made_.context->set_verify_mode(
        settings_.tls_verify ? asio::ssl::verify_peer : asio::ssl::verify_none, ec_);
    good("tls_verify", "");
  }

  const DialSettings& settings_;
  TlsContext made_;
  error_code ec_;
};

}  // namespace

TlsContext make_tls_context(const DialSettings& settings) { return Maker(settings).make(); }

error_code expect_server(asio::ssl::stream<asio::ip::tcp::socket>& stream,
                         const DialSettings& settings) {
  error_code ec;
  const auto& name = settings.tls_server_name;
  error_code not_an_address;
  asio::ip::make_address(name, not_an_address);
  // An address is not a server name (RFC 6066).
  if (not_an_address) {
    SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(name.c_str()));
  }
  if (settings.tls_verify) {
    stream.set_verify_callback(asio::ssl::host_name_verification(name), ec);
  }
  return ec;
}

bool is_not_tls(error_code ec) {
  if (ec.category() != asio::error::get_ssl_category()) return false;
  const auto text = ec.message();
  return text.find("wrong version number") != std::string::npos ||
         text.find("packet length") != std::string::npos ||
         text.find("record layer") != std::string::npos;
}

std::string handshake_error(asio::ssl::stream<asio::ip::tcp::socket>& stream, error_code ec) {
  constexpr const char* kOtherName =
      "the server's certificate is refused: it does not carry the server's name; see "
      "tls_server_name";
  const auto verified = SSL_get_verify_result(stream.native_handle());
  // The chain is good, and our own check of the name said no.
  if (verified == X509_V_ERR_UNSPECIFIED || verified == X509_V_ERR_APPLICATION_VERIFICATION ||
      verified == X509_V_ERR_HOSTNAME_MISMATCH) {
    return kOtherName;
  }
  if (verified != X509_V_OK) {
    return fmt::format("the server's certificate is refused: {}",
                       X509_verify_cert_error_string(verified));
  }
  auto text = ec.message();
  if (text.find("certificate verify failed") != std::string::npos) return kOtherName;
  if (is_not_tls(ec)) {
    return fmt::format("the port does not speak TLS ({}); write redis:// instead of rediss://",
                       text);
  }
  return text;
}

}  // namespace dlock::redis

// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/tls.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/host_name_verification.hpp>

namespace dlock::redis {

TlsContext make_tls_context(const DialSettings& settings) {
  TlsContext made;
  made.context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  auto& context = *made.context;
  error_code ec;
  const auto failed = [&](const char* option, const std::string& file) {
    if (!ec) return false;
    made = {nullptr, fmt::format("{} '{}': {}", option, file, ec.message())};
    return true;
  };
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  if (settings.tls_ca.empty()) {
    context.set_default_verify_paths(ec);
    if (failed("the system's authorities", "")) return made;
  } else {
    context.load_verify_file(settings.tls_ca, ec);
    if (failed("tls_ca", settings.tls_ca)) return made;
  }
  if (!settings.tls_cert.empty()) {
    context.use_certificate_chain_file(settings.tls_cert, ec);
    if (failed("tls_cert", settings.tls_cert)) return made;
    context.use_private_key_file(settings.tls_key, asio::ssl::context::pem, ec);
    if (failed("tls_key", settings.tls_key)) return made;
  }
  context.set_verify_mode(settings.tls_verify ? asio::ssl::verify_peer : asio::ssl::verify_none,
                          ec);
  if (failed("tls_verify", "")) return made;
  return made;
}

error_code expect_server(asio::ssl::stream<asio::ip::tcp::socket>& stream,
                         const DialSettings& settings) {
  error_code ec;
  const auto& name = settings.tls_server_name;
  error_code not_an_address;
  asio::ip::make_address(name, not_an_address);
  // An address is no server name (RFC 6066).
  if (not_an_address) {
    SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(name.c_str()));
  }
  if (settings.tls_verify) {
    stream.set_verify_callback(asio::ssl::host_name_verification(name), ec);
  }
  return ec;
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
  if (ec.category() == asio::error::get_ssl_category() &&
      (text.find("wrong version number") != std::string::npos ||
       text.find("packet length") != std::string::npos ||
       text.find("record layer") != std::string::npos)) {
    return fmt::format("the port does not speak TLS ({}); write redis:// instead of rediss://",
                       text);
  }
  return text;
}

}  // namespace dlock::redis

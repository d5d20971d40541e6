// SPDX-License-Identifier: Apache-2.0
//
// The TLS side of a connection: certificates in, reasons out.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "backends/redis/wire/dial.hpp"

namespace dlock::redis {

struct TlsContext {
  std::shared_ptr<asio::ssl::context> context;  ///< null on failure
  std::string error;                            ///< which file, and what OpenSSL says
  bool permanent = false;                       ///< trying again will not help
};

/// Reads the files: blocks.
TlsContext make_tls_context(const DialSettings& settings);

/// Server name indication, and which name the certificate must carry.
error_code expect_server(asio::ssl::stream<asio::ip::tcp::socket>& stream,
                         const DialSettings& settings);

/// Returns whether the peer answered the handshake with something that is not TLS.
bool is_not_tls(error_code ec);

/// Why the handshake failed.
std::string handshake_error(asio::ssl::stream<asio::ip::tcp::socket>& stream, error_code ec);

}  // namespace dlock::redis

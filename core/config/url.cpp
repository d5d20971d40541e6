// SPDX-License-Identifier: Apache-2.0
//
// Boost.URL does the parsing. It does not know a list of hosts in one authority (RFC 3986 has one
// host), so the authority is cut out first and parsed host by host.
#include "core/config/url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/url/authority_view.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>

namespace dlock::core {

namespace {

namespace urls = boost::urls;

/// Where the parts of a URL begin and end, as far as can be said without reading them.
struct Cut {
  std::string_view scheme;
  std::string_view user_info;  ///< without the `@`
  bool has_user_info = false;
  std::string_view hosts;
  std::string_view rest;  ///< path, query and fragment
};

std::optional<Cut> cut(std::string_view url) {
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  Cut parts;
  parts.scheme = url.substr(0, colon);
  const std::string_view after = url.substr(colon + 3);
  // A raw `/`, `?` or `#` in a password would end the authority here: it must be escaped.
  const std::size_t end = std::min(after.find_first_of("/?#"), after.size());
  parts.rest = after.substr(end);
  parts.hosts = after.substr(0, end);
  const std::size_t at = parts.hosts.rfind('@');
  if (at != std::string_view::npos) {
    parts.has_user_info = true;
    parts.user_info = parts.hosts.substr(0, at);
    parts.hosts.remove_prefix(at + 1);
  }
  return parts;
}

/// `host:secret`, when `@host` was forgotten: what no port is may be a password.
std::string without_odd_port(std::string_view host) {
  const auto colon = host.find(':');
  const auto port = host.substr(std::min(colon, host.size() - 1) + 1);
  // `file:locks` has a scheme there, and no store of files has a password.
  const auto head = host.substr(0, colon);
  const bool harmless = head == "file" || head == "local" || head == "memory";
  const bool odd = colon != std::string_view::npos && colon == host.rfind(':') && !harmless &&
                   port.find_first_not_of("0123456789") != std::string_view::npos;
  return odd ? fmt::format("{}:***", host.substr(0, colon)) : std::string(host);
}

/// Suggests the URL that a text may have been meant to be; shows at most its first word.
std::string meant(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPorts{
      {{"6379", "redis"}, {"6380", "rediss"}, {"2181", "zookeeper"}, {"11211", "memcached"}}};
  const auto ask = [](const std::string& url) { return fmt::format("; did you mean {}?", url); };
  if (text.find('@') != std::string_view::npos) return {};
  if (text.starts_with('/')) return ask(fmt::format("file://{}", text));
  if (text.starts_with("file:/")) return ask(fmt::format("file://{}", text.substr(5)));
  if (text.starts_with("./") || text.starts_with("../") || text.starts_with("~/")) {
    return "; a folder is written as file:// and an absolute path";
  }
  const auto first = text.substr(0, text.find_first_of(",/?"));
  const auto colon = first.rfind(':');
  if (colon == std::string_view::npos) return {};
  for (const auto& [port, scheme] : kPorts) {
    if (first.substr(colon + 1) == port) return ask(fmt::format("{}://{}", scheme, text));
  }
  return {};
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

Parsed<ParsedUrl::Host> parse_host(std::string_view text, bool behind_user) {
  if (text.empty()) return {{}, "a host in its list is empty; write host1,host2"};
  const auto authority = urls::parse_authority(urls::string_view(text.data(), text.size()));
  if (authority.has_error()) {
    const bool colons = std::count(text.begin(), text.end(), ':') > 1;
    return {{},
            fmt::format("'{}' is not a host or host:port{}",
                        behind_user ? std::string(text) : without_odd_port(text),
                        colons ? "; an IPv6 address stands in brackets: [::1]:2181" : "")};
  }
  ParsedUrl::Host host;
  host.name = authority->host_address();
  if (host.name.empty()) return {{}, fmt::format("'{}' has no host", text)};
  if (authority->has_port() && !authority->port().empty()) {
    // Not Boost's number: of 99999 it keeps what 16 bits can hold.
    const std::string_view digits(authority->port().data(), authority->port().size());
    std::uint16_t port = 0;
    const auto [stop, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (failed != std::errc() || stop != digits.data() + digits.size() || port == 0) {
      return {{}, fmt::format("the port of '{}' is not within 1 to 65535", text)};
    }
    host.port = port;
  }
  return {host, {}};
}

std::string parse_hosts(std::string_view list, bool behind_user, ParsedUrl& url) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const auto host = parse_host(list.substr(0, comma), behind_user);
    if (!host) return host.error;
    url.hosts.push_back(*host.value);
    if (comma == list.size()) break;
    list.remove_prefix(comma + 1);
    if (list.empty()) return "its list of hosts ends with a comma";
  }
  return {};
}

}  // namespace

Parsed<ParsedUrl> parse_url(std::string_view text) {
  const auto parts = cut(text);
  // Otherwise `://` is somewhere later in the text, and the parts are wrong.
  const bool scheme = parts && std::all_of(parts->scheme.begin(), parts->scheme.end(), [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
                      });
  if (!scheme) {
    const auto guess = meant(text);
    return {{},
            "it is not a URL" + (guess.empty() ? std::string("; write for example "
                                                             "zookeeper://host1,host2/root, "
                                                             "redis://host or file:///folder")
                                               : guess)};
  }

  // `redis://:pa/ss@host` would be a host `:pa`: say nothing that shows a part of a password.
  const std::string_view path = parts->rest.substr(0, parts->rest.find('?'));
  if (path.find('@') != std::string_view::npos) {
    return {{}, "it has an '@' behind a '/'; in a password write / as %2F, in a path @ as %40"};
  }

  if (parts->user_info.find('@') != std::string_view::npos) {
    return {{}, "it has an '@' in its user or password; write it as %40"};
  }
  // `redis://user:12?34@host` would also be read as the host `user`.
  if (!parts->has_user_info && parts->hosts.find(':') != std::string_view::npos &&
      parts->rest.find('@') != std::string_view::npos) {
    return {{}, "it has an '@' in its query; in a password write ? as %3F, in a query @ as %40"};
  }

  // Everything but the hosts goes through Boost.URL with one host that is surely right.
  std::string one_host = fmt::format("{}://", parts->scheme);
  if (parts->has_user_info) one_host += fmt::format("{}@", parts->user_info);
  one_host += fmt::format("h{}", parts->rest);
  const auto parsed = urls::parse_uri(one_host);
  if (parsed.has_error()) {
    return {{},
            fmt::format("it is not a URL ({}); percent-escape special characters, in a password "
                        "also / as %2F, @ as %40 and : as %3A",
                        parsed.error().message())};
  }
  // `[::1]name@` is a host to it, and what follows a path.
  if (!parsed->path().empty() && parsed->path().front() != '/') {
    return {{}, "it is not a URL; percent-escape special characters in user and password"};
  }
  if (parsed->has_fragment()) return {{}, "it has a '#'; write it as %23"};

  ParsedUrl url;
  url.scheme = lower(parts->scheme);
  if (auto error = parse_hosts(parts->hosts, parts->has_user_info, url); !error.empty()) {
    if (parts->rest.find('@') == std::string_view::npos) return {{}, std::move(error)};
    return {{}, "it has an '@' in its query, but no host before; in a password write ? as %3F"};
  }
  url.path = parsed->path();
  if (parts->has_user_info) {
    url.username = parsed->user();
    if (parsed->has_password()) url.password = parsed->password();
  }
  for (const auto& parameter : parsed->params()) {
    if (!parameter.has_value) {
      // An '@' behind: perhaps this is a part of a password.
      if (parts->rest.find('@') != std::string_view::npos) {
        return {{}, "a parameter in its query has no value; write key=value"};
      }
      return {{}, fmt::format("'{0}' in its query has no value; write {0}=...", parameter.key)};
    }
    url.query.emplace_back(parameter.key, parameter.value);
  }
  return {std::move(url), {}};
}

std::string redacted_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t start = scheme == std::string_view::npos ? 0 : scheme + 3;
  // The last @ of the whole text, not of the authority: an unescaped `/` in a password must not
  // make its second half visible.
  const std::size_t at = url.rfind('@');
  std::string shown(url.substr(0, start));
  if (at != std::string_view::npos && at >= start) {
    const std::string_view user = url.substr(start, at - start);
    const std::size_t colon = user.find(':');
    shown += colon == std::string_view::npos ? std::string(user)
                                             : fmt::format("{}:***", user.substr(0, colon));
    shown += url.substr(at);
  } else {
    const auto end = std::min(url.find_first_of("/?#", start), url.size());
    if (end > start) shown += without_odd_port(url.substr(start, end - start));
    shown += url.substr(end);
  }
  // Any parameter may be a password.
  if (const std::size_t query = shown.find('?'); query != std::string::npos) {
    for (const std::string_view word : {"password=", "secret="}) {
      std::size_t found = query;
      while ((found = shown.find(word, found)) != std::string::npos) {
        found += word.size();
        const std::size_t end = std::min(shown.find('&', found), shown.size());
        shown.replace(found, end - found, "***");
      }
    }
  }
  return shown;
}

std::string without_credentials(std::string_view url) {
  const auto parts = cut(url);
  if (!parts) return {};
  return fmt::format("{}://{}{}", parts->scheme, parts->hosts, parts->rest);
}

std::string without_parameter(std::string_view url, std::string_view key) {
  const std::size_t question = url.find('?');
  if (question == std::string_view::npos) return std::string(url);
  std::string result(url.substr(0, question));
  std::string_view query = url.substr(question + 1);
  char separator = '?';
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view parameter = query.substr(0, end);
    if (parameter.substr(0, parameter.find('=')) != key) {
      result += separator;
      result += parameter;
      separator = '&';
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return result;
}

}  // namespace dlock::core

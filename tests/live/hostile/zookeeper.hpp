// SPDX-License-Identifier: Apache-2.0
//
// Numbers as ZooKeeper's protocol has them, for servers that lie.
#pragma once

#include <boost/endian/conversion.hpp>
#include <cstdint>
#include <string>

namespace dlock::hostile {

inline std::string number(std::int32_t value) {
  std::string bytes(4, '\0');
  // NOLINTNEXTLINE(*-reinterpret-cast): Boost.Endian takes unsigned bytes, a frame is a string
  boost::endian::store_big_s32(reinterpret_cast<unsigned char*>(bytes.data()), value);
  return bytes;
}

inline std::int32_t number_at(const std::string& bytes, std::size_t at) {
  // NOLINTNEXTLINE(*-reinterpret-cast): as above
  return boost::endian::load_big_s32(reinterpret_cast<const unsigned char*>(bytes.data() + at));
}

}  // namespace dlock::hostile

# cmake -DOUT=file.cpp -DNAMES=name;... -DFILES=file;... -P embed.cmake
#
# Writes a source with the bytes of each file under its name. Numbers, not a string: compilers limit
# the length of a string, and the files hold anything.
set(arrays "")
set(entries "")
set(index 0)
foreach(name file IN ZIP_LISTS NAMES FILES)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char file_${index}[] = {${bytes}0};\n")
  string(APPEND entries "      {\"${name}\", {reinterpret_cast<const char*>(file_${index}), sizeof file_${index} - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "// Written by compare/embed.cmake.
#include \"compare/embedded.hpp\"

#include <map>

namespace dlock::compare {
namespace {
${arrays}}  // namespace

std::string_view embedded(std::string_view name) {
  static const std::map<std::string_view, std::string_view> files{
${entries}  };
  return files.at(name);
}

}  // namespace dlock::compare
")

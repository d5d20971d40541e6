// SPDX-License-Identifier: Apache-2.0
#include "core/manager/function_name.hpp"

#include <gtest/gtest.h>

#include <version>
#if defined(__cpp_lib_source_location)
#include <source_location>
#endif

#include "dlock/error.hpp"
#include "dlock/synchronized.hpp"

namespace dlock::core {
namespace {

TEST(FunctionName, ReadsBothCompilersSpellings) {
  struct Row {
    const char* gcc;
    const char* clang;
    const char* name;
  };
  const Row table[] = {
      {"void a::B::m(int) const", "void a::B::m(int) const", "a::B::m"},
      {"static int a::B::s()", "static int a::B::s()", "a::B::s"},
      {"virtual void a::B::v() &", "virtual void a::B::v() &", "a::B::v"},
      {"a::B::B()", "a::B::B()", "a::B::B"},
      {"a::B::~B()", "a::B::~B()", "a::B::~B"},
      {"a::B& a::B::operator=(int)", "a::B &a::B::operator=(int)", "a::B::operator="},
      {"bool a::B::operator()(int)", "bool a::B::operator()(int)", "a::B::operator()"},
      {"int a::B::operator[](int)", "int a::B::operator[](int)", "a::B::operator[]"},
      {"a::B* a::B::operator->()", "a::B *a::B::operator->()", "a::B::operator->"},
      {"bool a::B::operator<(const a::B&) const", "bool a::B::operator<(const a::B &) const",
       "a::B::operator<"},
      {"bool a::B::operator>>(int)", "bool a::B::operator>>(int)", "a::B::operator>>"},
      {"auto a::B::operator<=>(int) const", "auto a::B::operator<=>(int) const",
       "a::B::operator<=>"},
      {"void a::B::operator,(int)", "void a::B::operator,(int)", "a::B::operator,"},
      {"static void* a::B::operator new(size_t)", "static void *a::B::operator new(size_t)",
       "a::B::operator new"},
      {"int a::operator\"\"_lit(long long unsigned int)",
       "int a::operator\"\"_lit(unsigned long long)", "a::operator\"\"_lit"},
      {"std::map<std::__cxx11::basic_string<char>, std::function<void(int)> > "
       "a::B::N::f(std::string, void (*)(int))",
       "std::map<std::string, std::function<void (int)>> a::B::N::f(std::string, void (*)(int))",
       "a::B::N::f"},
      {"void (* a::g(int))(double)", "void (*a::g(int))(double)", "a::g"},
      {"int (& a::arr())[3]", "int (&a::arr())[3]", "a::arr"},
      {"void (a::B::* a::pm())(int) const", "void (a::B::*a::pm())(int) const", "a::pm"},
      {"decltype(auto) a::da()", "decltype(auto) a::da()", "a::da"},
      {"int* a::ptr()", "int *a::ptr()", "a::ptr"},
      {"a::C<int> a::retc(C<int>)", "C<int> a::retc(C<int>)", "a::retc"},
      {"void takes({anonymous}::X)", "void takes((anonymous namespace)::X)", "takes"},
      {"{anonymous}::X ret()", "(anonymous namespace)::X ret()", "ret"},
      {"void vari(int, ...)", "void vari(int, ...)", "vari"},
      {"long long unsigned int ull()", "unsigned long long ull()", "ull"},
      {"int my_operator::operators()", "int my_operator::operators()", "my_operator::operators"},
      {"int main()", "int main()", "main"},
  };
  for (const auto& [gcc, clang, name] : table) {
    EXPECT_EQ(function_name(gcc).name, name) << gcc << ": " << function_name(gcc).problem;
    EXPECT_EQ(function_name(clang).name, name) << clang << ": " << function_name(clang).problem;
  }
}

TEST(FunctionName, RefusesWhatHasNoStableName) {
  const std::pair<const char*, const char*> table[] = {
      {"void a::t(T) [with T = int]", "template"},
      {"void a::t(T) [T = int]", "template"},
      {"void a::C<T>::f() [with T = int]", "template"},
      {"void a::C<char>::f()", "template"},
      {"void a::aut(auto:11) [with auto:11 = int]", "template"},
      {"void {anonymous}::anon()", "anonymous"},
      {"void (anonymous namespace)::anon()", "anonymous"},
      {"void local()::L::f()", "lambda or a local"},
      {"local()::L::g(int)::<lambda(int)>", "lambda"},
      {"local()::<lambda()> mutable", "lambda"},
      {"a::B::m(int) const::<lambda()>", "lambda"},
      {"auto local()::(anonymous class)::operator()()", "lambda"},
      {"a::B::operator bool() const", "conversion"},
      {"std::vector<int> a::B::operator vector() const", "conversion"},
      {"", "this function"},
      {"???", "this function"},
      {"operator", "this function"},
      {"int operator<", "this function"},
      {"void f<", "this function"},
      {"((((", "this function"},
  };
  for (const auto& [pretty, complaint] : table) {
    const auto parsed = function_name(pretty);
    EXPECT_EQ(parsed.name, "") << pretty;
    EXPECT_NE(parsed.problem.find(complaint), std::string::npos)
        << pretty << ": " << parsed.problem;
  }
}

}  // namespace

#if defined(__cpp_lib_source_location)  // clang 14 has none
struct Billing {
  static std::string close_month(const std::string&) {
    return dlock::detail::lock_name_of(std::source_location::current().function_name());
  }
};

namespace {

TEST(FunctionName, OfARealFunction) {
  EXPECT_EQ(Billing::close_month(""), "dlock::core::Billing::close_month");
  const auto lambda = [] {
    return dlock::detail::lock_name_of(std::source_location::current().function_name());
  };
  try {
    lambda();
    FAIL() << "a lambda has no stable name";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::invalid_name);
    EXPECT_NE(error.server_text().find("pass a lock name"), std::string::npos);
  }
}

}  // namespace
#endif
}  // namespace dlock::core

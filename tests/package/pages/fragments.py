# SPDX-License-Identifier: Apache-2.0
"""The C++ fragments of all pages as one program.

All fragments of a page are blocks of one function, in the page's order. A fragment that ends in `}`
at a line's beginning is a definition and stands before the function. `#include`s go to the top.
What a page takes for granted is in table.GIVEN.
"""

import re

import table

BEGINNING = """\
#include <dlock/dlock.hpp>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#define expect(what) \\
  (what) ? void() : (std::cerr << "not so: " #what "\\n", std::exit(1))
"""

END = """
}} catch (const std::exception& error) {{
  std::cerr << error.what() << '\\n';
  return 1;
}}
"""


def is_definition(block):
    return block.text.endswith("\n}\n")


def text_of(page, block):
    """Its lines have the page's numbers in what the compiler says."""
    text = f'#line {block.line} "{block.page}"\n{page.fill_in(block.text)}'
    return text if is_definition(block) else f"{{\n{text}}}\n"


def function(number, page, fragments):
    given = {part: page.fill_in(text) for part, text in table.GIVEN[page.name].items()}
    outside = [text_of(page, block) for block in fragments if is_definition(block)]
    inside = [text_of(page, block) for block in fragments if not is_definition(block)]
    return "".join(
        [
            f"namespace page_{number} {{\n",
            given["outside"],
            *outside,
            "void run() {\n",
            given["before"],
            *inside,
            given["after"],
            "}\n}\n",
        ]
    )


def program(pages):
    """`pages`: pages with their fragments."""
    text = "".join(function(n, page, found) for n, (page, found) in enumerate(pages))
    includes = re.findall(r"^#include.*\n", text, re.MULTILINE)
    text = re.sub(r"^#include.*$", "", text, flags=re.MULTILINE)
    calls = "".join(f"  page_{n}::run();\n" for n in range(len(pages)))
    return "".join([*includes, BEGINNING, text, "int main() try {\n", calls, END.format()])

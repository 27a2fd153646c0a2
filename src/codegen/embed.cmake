# Writes OUTPUT: the text of FILES (below ROOT) as C++ raw strings, which FUNCTION returns. Literals of
# string views: the compiler knows their lengths, and would not count a megabyte in an expression.
set(text "#include \"codegen/embedded.hpp\"\n\nnamespace kiln {\n\nstd::span<const EmbeddedFile> ${FUNCTION}();\n\nstd::span<const EmbeddedFile> ${FUNCTION}() {\n  using std::string_view_literals::operator\"\"sv;\n  static constexpr EmbeddedFile files[] = {\n")
foreach(file IN LISTS FILES)
  file(READ ${ROOT}/${file} content)
  string(APPEND text "{\"${file}\", R\"KILN_FILE(${content})KILN_FILE\"sv},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n\n}  // namespace kiln\n")
file(WRITE ${OUTPUT} "${text}")

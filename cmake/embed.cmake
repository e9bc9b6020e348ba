# Writes ${OUT}: the files ${IN} (a pattern) as a table of name and text, which
# ${FUNCTION} of ${NAMESPACE}, declared in ${HEADER}, returns as a vector of
# ${TYPE}.
file(GLOB files ${IN})
list(SORT files)
set(text "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
string(APPEND text "const std::vector<${TYPE}>& ${FUNCTION}() {\n")
string(APPEND text "  static const std::vector<${TYPE}> table = {\n")
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} body)
  string(APPEND text "      {\"${name}\", R\"UNISONO(${body})UNISONO\"},\n")
endforeach()
string(APPEND text "  };\n  return table;\n}\n}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUT} "${text}")

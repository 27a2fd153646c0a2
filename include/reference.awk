# Makes Doxygen's comments of the headers' own, for the HTML reference (Doxyfile.in): a comment before
# functions that follow each other without an empty line is each one's, and a comment behind a value
# or a field is its own.
function tell(text) { for (i = 1; i <= lines; ++i) print text[i] }

in_comment {
  if (is_doc) comment[++lines] = $0
  print
  if (/\*\//) in_comment = 0
  next
}
/^\/\* / {
  is_doc = !/^\/\* ----/
  if (is_doc) { lines = 0; sub(/^\/\*/, "/**"); comment[++lines] = $0 }
  in_comment = !/\*\//
  follows = 0
  print
  next
}
/^$/ { lines = 0; follows = 0; print; next }
/^KILN_API/ {
  if (follows) tell(comment)
  in_prototype = 1
}
/[,;0-9] +\/\* / { sub(/\/\* /, "/**< ") }
{
  print
  if (in_prototype && /;/) { in_prototype = 0; follows = lines > 0 }
}

# Writes OUTPUT, which says from which commit of the git repository SOURCE Kiln is built. Run at every
# build; the file changes only when the commit does. An archive that git made has the commit in place of
# the format below (.gitattributes); one that was made otherwise has none, even inside somebody else's
# repository.
set(commit "$Format:%H$")
if(commit MATCHES "Format")
  set(commit "")
endif()
string(SUBSTRING "${commit}" 0 12 commit)
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=* WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE commit ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    set(commit "")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "namespace kiln::cli {
extern const char* const built_from_commit;
const char* const built_from_commit = \"${commit}\";
}  // namespace kiln::cli
")

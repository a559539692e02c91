# SPDX-License-Identifier: BSD-3-Clause

# Appends to out what ctest reads of one test. Not add_test, so that RADDLE_SOAK
# can change the timeout when ctest runs.
function(raddle_append_test out name properties environment)
    set(words "")
    foreach(word IN LISTS ARGN)
        string(APPEND words " [[${word}]]")
    endforeach()
    set(pairs "")
    foreach(word IN LISTS properties)
        string(APPEND pairs " [[${word}]]")
    endforeach()
    set(${out} "${${out}}add_test([[${name}]]${words})
set_tests_properties([[${name}]] PROPERTIES${pairs} ENVIRONMENT [[${environment}]])
if(\"\$ENV{RADDLE_SOAK}\" STREQUAL 1)
    set_tests_properties([[${name}]] PROPERTIES TIMEOUT 3600)
endif()
" PARENT_SCOPE)
endfunction()

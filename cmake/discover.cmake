# Runs a test program with --list and writes one CTest test for each body.
# Given: NAME, OUT, PROGRAM, EMULATOR, PROPERTIES, ENVIRONMENT.
# SPDX-License-Identifier: BSD-3-Clause
set(command ${EMULATOR} ${PROGRAM})
execute_process(COMMAND ${command} --list OUTPUT_VARIABLE bodies
    COMMAND_ERROR_IS_FATAL ANY TIMEOUT 60)
string(REGEX MATCHALL "[^\n]+" bodies "${bodies}")

set(words "")
foreach(word IN LISTS command)
    string(APPEND words " [[${word}]]")
endforeach()
set(properties "")
foreach(word IN LISTS PROPERTIES)
    string(APPEND properties " [[${word}]]")
endforeach()

set(lines "")
foreach(body IN LISTS bodies)
    string(APPEND lines "add_test([[${NAME}.${body}]]${words} ${body})\n"
        "set_tests_properties([[${NAME}.${body}]] PROPERTIES${properties}\n"
        "    ENVIRONMENT [[${ENVIRONMENT}]])\n")
endforeach()
file(WRITE ${OUT} "${lines}")

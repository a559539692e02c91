# Runs a test program with --list and writes one CTest test for each body.
# Given: NAME, OUT, PROGRAM, EMULATOR, PROPERTIES, ENVIRONMENT.
# SPDX-License-Identifier: BSD-3-Clause
include(${CMAKE_CURRENT_LIST_DIR}/lines.cmake)

set(command ${EMULATOR} ${PROGRAM})
execute_process(COMMAND ${command} --list OUTPUT_VARIABLE bodies
    COMMAND_ERROR_IS_FATAL ANY TIMEOUT 60)
string(REGEX MATCHALL "[^\n]+" bodies "${bodies}")

set(lines "")
foreach(body IN LISTS bodies)
    raddle_append_test(lines ${NAME}.${body} "${PROPERTIES}" "${ENVIRONMENT}"
        ${command} ${body})
endforeach()
file(WRITE ${OUT} "${lines}")

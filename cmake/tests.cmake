# Finds the tests. src/base/time_test.c is the program tests/base/time, and each
# of its bodies the CTest test base/time.BODY with the label base; tests/cli/x.sh
# is the test cli/x with the label cli.
# SPDX-License-Identifier: BSD-3-Clause
enable_testing()
include(cmake/lines.cmake)

raddle_files(sources tests/support "[.]c$")
list(REMOVE_ITEM sources tests/support/fuzz.c)
add_library(raddle_test_support OBJECT ${sources})
target_link_libraries(raddle_test_support PUBLIC raddle_llama raddle_internal)

# Seconds that a test may take: 60, more where the code runs slower.
set(timeout 60)
if(RADDLE_SANITIZE MATCHES thread)
    set(timeout 300)
elseif(RADDLE_SANITIZE OR CMAKE_CROSSCOMPILING)
    set(timeout 180)
endif()
set(environment
    RADDLE_BUILD=${CMAKE_BINARY_DIR}
    ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
    UBSAN_OPTIONS=print_stacktrace=1
    TSAN_OPTIONS=second_deadlock_stack=1:atexit_sleep_ms=100)
if(CMAKE_CROSSCOMPILING_EMULATOR)
    list(APPEND environment RADDLE_EMULATED=1)
endif()

# Sets out to the properties of the tests with this name. Those of parity train
# the debug model, several times.
function(raddle_test_properties out name)
    string(REGEX REPLACE "/.*" "" label ${name})
    if(label STREQUAL parity)
        set(timeout 900)
    endif()
    set(${out} TIMEOUT ${timeout} SKIP_RETURN_CODE 77 LABELS ${label} PARENT_SCOPE)
endfunction()

# Like gtest_discover_tests: after linking, the program lists its bodies into a
# file of add_test lines, which ctest includes.
function(raddle_test_program name target)
    set(list ${CMAKE_CURRENT_BINARY_DIR}/tests/${name}.bodies.cmake)
    raddle_test_properties(properties ${name})
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM BYPRODUCTS ${list}
        COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D OUT=${list}
            -D PROGRAM=$<TARGET_FILE:${target}>
            -D "EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}"
            -D "PROPERTIES=${properties}" -D "ENVIRONMENT=${environment}"
            -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/discover.cmake)
    set(gate ${CMAKE_CURRENT_BINARY_DIR}/tests/${name}.cmake)
    file(WRITE ${gate} "if(EXISTS [[${list}]])\n    include([[${list}]])\nelse()\n"
        "    add_test([[${name}.is_built]] [[${name}]])\nendif()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${gate})
endfunction()

raddle_files(sources src "_test[.]c$")
raddle_files(more tests "_test[.]c$")
foreach(source IN LISTS sources more)
    string(REGEX REPLACE "^[^/]*/(.*)_test[.]c$" "\\1" name ${source})
    string(REPLACE / - target test-${name})
    cmake_path(GET name PARENT_PATH folder)
    cmake_path(GET name FILENAME file)
    add_executable(${target} ${source})
    if(name MATCHES "^cli/")
        target_link_libraries(${target} PRIVATE raddle_parts)
        target_compile_definitions(${target} PRIVATE
            RDL_SOURCE="${CMAKE_CURRENT_SOURCE_DIR}")
    endif()
    target_link_libraries(${target} PRIVATE raddle_test_support)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file}
        RUNTIME_OUTPUT_DIRECTORY tests/${folder})
    raddle_test_program(${name} ${target})
endforeach()

set(lines "")
raddle_files(sources tests "^tests/[^/]*/[^/]*[.]sh$")
list(FILTER sources EXCLUDE REGEX "^tests/support/")
foreach(source IN LISTS sources)
    string(REGEX REPLACE "^tests/(.*)[.]sh$" "\\1" name ${source})
    raddle_test_properties(properties ${name})
    raddle_append_test(lines ${name} "${properties}" "${environment}" bash
        ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/script.sh
        ${CMAKE_CURRENT_SOURCE_DIR}/${source})
endforeach()

raddle_files(sources tests/fuzz "_fuzz[.]c$")
foreach(source IN LISTS sources)
    string(REGEX REPLACE "^tests/fuzz/(.*)_fuzz[.]c$" "\\1" name ${source})
    add_executable(fuzz-${name} ${source})
    target_link_libraries(fuzz-${name} PRIVATE raddle_parts raddle_internal)
    set_target_properties(fuzz-${name} PROPERTIES OUTPUT_NAME ${name}
        RUNTIME_OUTPUT_DIRECTORY fuzz)
    if(RADDLE_FUZZ)
        target_link_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
        continue()
    endif()
    target_sources(fuzz-${name} PRIVATE tests/support/fuzz.c)
    raddle_test_properties(properties fuzz/${name})
    raddle_append_test(lines fuzz/${name}.corpus "${properties}" "${environment}"
        ${CMAKE_CROSSCOMPILING_EMULATOR} ${CMAKE_CURRENT_BINARY_DIR}/fuzz/${name}
        ${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/${name}.corpus)
endforeach()

file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tests/files.cmake "${lines}")
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
    ${CMAKE_CURRENT_BINARY_DIR}/tests/files.cmake)

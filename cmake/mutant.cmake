# Compiles the weakening RADDLE_MUTANT in: where only .c files name it, only they
# are compiled anew, so that a series of mutants costs little.
# SPDX-License-Identifier: BSD-3-Clause

# Sets out to those of the files that name the mutant.
function(raddle_files_with_mutant out)
    set(found "")
    foreach(file IN LISTS ARGN)
        file(STRINGS ${file} hit REGEX "${RADDLE_MUTANT}([^A-Z0-9_]|$)" LIMIT_COUNT 1)
        if(NOT "${hit}" STREQUAL "")
            list(APPEND found ${file})
        endif()
    endforeach()
    set(${out} ${found} PARENT_SCOPE)
endfunction()

raddle_files(headers src "[.]h$")
raddle_files_with_mutant(headers ${headers})
raddle_files_with_mutant(weakened ${sources})
if(headers)
    target_compile_definitions(raddle_needs INTERFACE ${RADDLE_MUTANT})
elseif(weakened)
    set_source_files_properties(${weakened} PROPERTIES
        COMPILE_DEFINITIONS ${RADDLE_MUTANT})
else()
    message(FATAL_ERROR "no file below src names ${RADDLE_MUTANT}")
endif()

# What `cmake --install` copies: headers, library, command with the benchmarks that
# it knows, man pages if they were rendered, and how other builds find them.
# SPDX-License-Identifier: BSD-3-Clause
include(CMakePackageConfigHelpers)

install(TARGETS raddle EXPORT raddle-targets)
install(DIRECTORY include/raddle TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
if(TARGET raddle_command)
    install(TARGETS raddle_command)
    foreach(name IN ITEMS race deaths faults recorder fence speed)
        if(TARGET bench-${name})
            # cli/bench.c looks for them there.
            install(TARGETS bench-${name} RUNTIME DESTINATION libexec/raddle)
        endif()
    endforeach()
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/raddle)
install(EXPORT raddle-targets NAMESPACE raddle:: DESTINATION ${package}
    FILE raddle-config.cmake)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/raddle-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/raddle-config-version.cmake
    DESTINATION ${package})

configure_file(cmake/raddle.pc.in raddle.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/raddle.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# ./dev docs renders them; a build without it has none.
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/build/man/
    DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)

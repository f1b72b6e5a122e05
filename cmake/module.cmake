# module(NAME DEPS modules and libraries whose headers ours may name
#             LIBS libraries used in .cc files only)
#
# Makes the library NAME of src/NAME/*.cc and the test NAME_test of src/NAME/*_test.cc. The only
# include folder that others get is build/include/NAME, which holds one symlink NAME -> src/NAME.
# So "engine/engine.h" is found by a module that declares engine, and by no other.
function(module name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  set(include_dir ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${include_dir})
  file(CREATE_LINK ${dir} ${include_dir}/${name} SYMBOLIC)

  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${include_dir})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_LIBS})
  self_contained_headers(${name} ${dir})

  if(tests AND NOT TRELLIS_FUZZ)
    module_test(${name}_test SOURCES ${tests} DEPS ${name})
  endif()
endfunction()

# A test program; tests find golden files under TRELLIS_SOURCE_DIR and the built server at
# TRELLIS_BINARY.
function(module_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE TRELLIS_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             TRELLIS_BINARY="$<TARGET_FILE:trellis>")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

# Every header compiles alone: one generated .cc per header that includes only it.
function(self_contained_headers name dir)
  file(GLOB headers CONFIGURE_DEPENDS ${dir}/*.h)
  set(sources "")
  foreach(header ${headers})
    get_filename_component(file ${header} NAME)
    set(source ${CMAKE_BINARY_DIR}/headers/${name}/${file}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${name}/${file}\"\n")
    list(APPEND sources ${source})
  endforeach()
  if(sources)
    add_library(${name}_headers OBJECT ${sources})
    target_link_libraries(${name}_headers PRIVATE ${name})
  endif()
endfunction()

# module(NAME DEPS modules and libraries whose headers it may name
#             LIBS libraries used in .cc files only)
#
# Makes the library NAME of src/NAME/*.cc and the test NAME_test of src/NAME/*_test.cc.
#
# The rule: a module sees the headers of the modules in its DEPS and of no other. The folder
# build/include/NAME holds one symlink, NAME -> src/NAME, and is put on the include path of those
# that declare NAME, never passed on. So "engine/engine.h" is found where engine is declared, and is
# a compile error everywhere else, also behind somebody else's back.
function(module name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include/${name})
  file(CREATE_LINK ${dir} ${CMAKE_BINARY_DIR}/include/${name}/${name} SYMBOLIC)

  add_library(${name} STATIC ${sources})
  set_property(TARGET ${name} PROPERTY TRELLIS_MODULE TRUE)
  see_modules(${name} ${name} ${ARG_DEPS})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_LIBS})

  if(NOT TRELLIS_SANITIZER AND NOT TRELLIS_FUZZ)  # once is enough
    self_contained_headers(${name} ${ARG_DEPS})
    links_alone(${name})
  endif()
  if(tests AND NOT TRELLIS_FUZZ)
    module_test(${name}_test SOURCES ${tests} DEPS ${name} ${ARG_DEPS} ${ARG_LIBS})
  endif()
endfunction()

# Adds the messages of src/MODULE/NAME.proto, whose header "NAME.pb.h" only MODULE's .cc files see;
# with PUBLIC also whoever links MODULE: its own headers name them.
function(protobuf_messages module name)
  cmake_parse_arguments(ARG "PUBLIC" "" "" ${ARGN})
  set(folder ${CMAKE_BINARY_DIR}/messages/${module})
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${folder}/${name}.pb.cc ${folder}/${name}.pb.h
    COMMAND protobuf::protoc --cpp_out ${folder} -I ${CMAKE_SOURCE_DIR}/src/${module} ${name}.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/src/${module}/${name}.proto VERBATIM)
  target_sources(${module} PRIVATE ${folder}/${name}.pb.cc)
  target_include_directories(${module} SYSTEM PRIVATE ${folder})
  if(ARG_PUBLIC)
    target_include_directories(${module} SYSTEM INTERFACE ${folder})
    # Whoever compiles with it waits until it is made.
    add_custom_target(${module}_${name}_messages DEPENDS ${folder}/${name}.pb.h)
    add_dependencies(${module} ${module}_${name}_messages)
  endif()
endfunction()

# Makes the text of src/MODULE/FILE a part of the program: MODULE's .cc files include "FILE.inc",
# which is a string literal.
function(embed_text module file)
  set(source ${CMAKE_SOURCE_DIR}/src/${module}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/embedded/${module}/${file}.inc
       CONTENT "R\"embedded(@text@)embedded\"\n" @ONLY)
  target_include_directories(${module} PRIVATE ${CMAKE_BINARY_DIR}/embedded/${module})
endfunction()

# Puts the headers of modules on the include path of one target.
function(see_modules target)
  foreach(module ${ARGN})
    if(TARGET ${module})
      get_target_property(is_module ${module} TRELLIS_MODULE)
      if(is_module)
        target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/include/${module})
      endif()
    endif()
  endforeach()
endfunction()

# A program or test library of ours that uses modules.
function(use_modules target)
  see_modules(${target} ${ARGN})
  target_link_libraries(${target} PUBLIC ${ARGN})
endfunction()

# A test program; tests find golden files under TRELLIS_SOURCE_DIR.
function(module_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  use_modules(${name} ${ARG_DEPS})
  target_link_libraries(${name} PUBLIC GTest::gtest_main)
  target_compile_options(${name} PRIVATE -Og)  # much faster to build, hardly slower to run
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TRELLIS_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

# Every header compiles alone: it is the first that its .cc includes, or else a generated .cc
# includes only it.
function(self_contained_headers name)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.h)
  set(sources "")
  foreach(header ${headers})
    get_filename_component(file ${header} NAME)
    string(REGEX REPLACE "h$" "cc" own_source ${header})
    if(EXISTS ${own_source})
      file(STRINGS ${own_source} first_include REGEX "^#include" LIMIT_COUNT 1)
      if(first_include STREQUAL "#include \"${name}/${file}\"")
        continue()
      endif()
    endif()
    set(source ${CMAKE_BINARY_DIR}/headers/${name}/${file}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${name}/${file}\"\n")
    list(APPEND sources ${source})
  endforeach()
  if(sources)
    add_library(${name}_headers OBJECT ${sources})
    set_target_properties(${name}_headers PROPERTIES UNITY_BUILD OFF)
    see_modules(${name}_headers ${name} ${ARGN})
    target_link_libraries(${name}_headers PRIVATE ${name}
                          $<TARGET_PROPERTY:${name},LINK_LIBRARIES>)
  endif()
endfunction()

# Every object of a module finds what it calls in the module and its DEPS.
function(links_alone name)
  set(source ${CMAKE_BINARY_DIR}/links/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
  add_executable(${name}_links ${source})
  target_link_libraries(${name}_links PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${name}>)
  set_target_properties(${name}_links PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/links)
endfunction()

# That the rule holds is tested: a module that names a header it does not declare fails to compile.
function(test_module_rule)
  set(source ${CMAKE_BINARY_DIR}/module_rule.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"engine/engine.h\"\n")
  set(folders "$<TARGET_PROPERTY:codec,INCLUDE_DIRECTORIES>")
  add_test(NAME module_rule_test
           COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only
                   "-I$<JOIN:${folders},;-I>" ${source}
           COMMAND_EXPAND_LISTS)
  set_tests_properties(module_rule_test PROPERTIES
                       PASS_REGULAR_EXPRESSION "engine/engine.h: No such file or directory")
endfunction()

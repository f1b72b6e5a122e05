// Golden vectors: tests/vectors/*.txt, lines of "left -> right", '#' starts a comment. The tests
// read them and docs/key_layout.md includes them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace trellis {

struct VectorLine {
  std::string where;  // file:line
  std::string left;
  std::string right;
};

inline std::vector<VectorLine> read_vectors(const std::string& name) {
  const std::string path = std::string(TRELLIS_SOURCE_DIR) + "/tests/vectors/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::vector<VectorLine> lines;
  std::string line;
  for (size_t number = 1; std::getline(file, line); number++) {
    if (line.empty() || line[0] == '#') continue;
    const size_t arrow = line.find(" -> ");
    EXPECT_NE(arrow, std::string::npos) << name << ':' << number;
    if (arrow == std::string::npos) continue;
    lines.push_back(
        {name + ':' + std::to_string(number), line.substr(0, arrow), line.substr(arrow + 4)});
  }
  EXPECT_FALSE(lines.empty()) << path << " has no vectors";
  return lines;
}

}  // namespace trellis

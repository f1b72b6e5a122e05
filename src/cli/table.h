// Aligned columns under a header line, for answers of any length.
//
//   Table table({{"ID", Align::right}, {"NAME"}});
//   table.add({"1", "shop"});
//   TRY(out.write(table.take()));      // the header and what was added
//   ...                                // more rows, later
//
// Rows that were taken cannot move any more: later ones are put under them, in columns that only
// grow.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trellis {

enum class Align : unsigned char { left, right };

struct TableColumn {
  std::string_view name;  // static text
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<TableColumn> columns);

  // REQUIRES: one cell for each column, fit for a terminal (terminal_text).
  void add(std::vector<std::string> cells);
  // The rows since the last take; the first one has the header in front, also if there are no rows.
  std::string take();

 private:
  std::vector<TableColumn> columns_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

// Names and what they are, one below the other: the names as wide as the widest.
std::string name_value_lines(const std::vector<std::pair<std::string, std::string>>& lines);

}  // namespace trellis

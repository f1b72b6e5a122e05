#include "cli/table.h"

#include <algorithm>

#include "base/assert.h"
#include "cli/human.h"

namespace trellis {
namespace {

constexpr std::string_view gap = "  ";

void append_padding(std::string& out, size_t columns, size_t width) {
  if (columns < width) out.append(width - columns, ' ');
}

}  // namespace

Table::Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {
  std::vector<std::string> header;
  for (const TableColumn& column : columns_) header.emplace_back(column.name);
  widths_.resize(columns_.size());
  add(std::move(header));
}

void Table::add(std::vector<std::string> cells) {
  ASSERT(cells.size() == columns_.size());
  for (size_t i = 0; i < cells.size(); i++)
    widths_[i] = std::max(widths_[i], text_columns(cells[i]));
  rows_.push_back(std::move(cells));
}

std::string Table::take() {
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); i++) {
      if (i > 0) line += gap;
      const size_t columns = text_columns(row[i]);
      if (columns_[i].align == Align::right) append_padding(line, columns, widths_[i]);
      line += row[i];
      if (columns_[i].align == Align::left) append_padding(line, columns, widths_[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  rows_.clear();
  return out;
}

std::string name_value_lines(const std::vector<std::pair<std::string, std::string>>& lines) {
  size_t width = 0;
  for (const auto& [name, value] : lines) width = std::max(width, text_columns(name));
  std::string out;
  for (const auto& [name, value] : lines) {
    std::string line = name;
    append_padding(line, text_columns(name), width);
    line += std::string(gap) + value;
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace trellis

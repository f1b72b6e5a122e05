#include "cli/table.h"

#include <gtest/gtest.h>

namespace trellis {
namespace {

TEST(Table, ColumnsAreAligned) {
  Table table({{"ID", Align::right}, {"NAME"}, {"STATE"}});
  table.add({"1",
             "stra\xc3\x9f"
             "e",
             "ENABLED"});
  table.add({"1234", "b", ""});
  EXPECT_EQ(table.take(),
            "  ID  NAME    STATE\n"
            "   1  stra\xc3\x9f"
            "e  ENABLED\n"
            "1234  b\n");
}

TEST(Table, LaterRowsGoUnderTheFirst) {
  Table table({{"A"}, {"B"}});
  EXPECT_EQ(table.take(), "A  B\n");
  table.add({"long", "x"});
  EXPECT_EQ(table.take(), "long  x\n");
  table.add({"y", "z"});
  EXPECT_EQ(table.take(), "y     z\n");
  EXPECT_EQ(table.take(), "");
}

TEST(Table, NamesAndValues) {
  EXPECT_EQ(name_value_lines({{"id", "7"}, {"state", "ENABLED"}, {"gc", ""}}),
            "id     7\n"
            "state  ENABLED\n"
            "gc\n");
}

}  // namespace
}  // namespace trellis

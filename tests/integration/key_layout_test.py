"""docs/key_layout.md is what the code and the vectors say."""

import sys
import unittest

from trellis_command import BINARY, SOURCE

sys.path.insert(0, str(SOURCE / "tools"))
import key_layout


class KeyLayout(unittest.TestCase):
    def test_page_is_up_to_date(self):
        self.assertEqual(key_layout.PAGE.read_text(), key_layout.page(BINARY),
                         "run tools/key_layout.py build/trellis --write")


if __name__ == "__main__":
    unittest.main()

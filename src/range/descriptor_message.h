// Descriptors inside of other stored messages.
#pragma once

#include "range/descriptor.h"

namespace trellis {

namespace stored {
class RangeDescriptor;
}

void fill_message(const RangeDescriptor& range, stored::RangeDescriptor& message);
Result<RangeDescriptor> descriptor_of(const stored::RangeDescriptor& message);

}  // namespace trellis

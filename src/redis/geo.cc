#include "redis/geo.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace trellis {
namespace {

constexpr unsigned steps_max = 26;  // bits of either coordinate
constexpr double degree = M_PI / 180.0;
constexpr double earth_radius_m = 6372797.560856;
constexpr double half_equator_m = 20037726.37;

double radians(double degrees) { return degrees * degree; }
double degrees(double radians) { return radians / degree; }

struct GeoRange {
  double min;
  double max;
  double size() const { return max - min; }
};
constexpr GeoRange all_longitudes{-longitude_max, longitude_max};
constexpr GeoRange all_latitudes{-latitude_max, latitude_max};

// A cell of the grid that halves both ranges so many times.
struct Cell {
  uint32_t x = 0;  // of longitude
  uint32_t y = 0;
  unsigned steps = 0;
  bool operator==(const Cell&) const = default;
};

// Every second bit, from the lowest on.
uint64_t spread(uint32_t number) {
  uint64_t bits = number;
  bits = (bits | bits << 16) & 0x0000'ffff'0000'ffff;
  bits = (bits | bits << 8) & 0x00ff'00ff'00ff'00ff;
  bits = (bits | bits << 4) & 0x0f0f'0f0f'0f0f'0f0f;
  bits = (bits | bits << 2) & 0x3333'3333'3333'3333;
  return (bits | bits << 1) & 0x5555'5555'5555'5555;
}
uint32_t gather(uint64_t bits) {
  bits &= 0x5555'5555'5555'5555;
  bits = (bits | bits >> 1) & 0x3333'3333'3333'3333;
  bits = (bits | bits >> 2) & 0x0f0f'0f0f'0f0f'0f0f;
  bits = (bits | bits >> 4) & 0x00ff'00ff'00ff'00ff;
  bits = (bits | bits >> 8) & 0x0000'ffff'0000'ffff;
  return static_cast<uint32_t>(bits | bits >> 16);
}

uint64_t bits_of(const Cell& cell) { return spread(cell.y) | spread(cell.x) << 1; }

// Which of the 2^steps parts of a range. At its end it is one more, as Redis has it.
uint32_t part_of(double value, const GeoRange& range, unsigned steps) {
  const double offset = (value - range.min) / range.size();
  return static_cast<uint32_t>(offset * static_cast<double>(uint64_t{1} << steps));
}

GeoRange part_range(uint32_t part, const GeoRange& range, unsigned steps) {
  const auto parts = static_cast<double>(uint64_t{1} << steps);
  const uint32_t next = part + 1;
  return {range.min + (part * 1.0 / parts) * range.size(),
          range.min + (next * 1.0 / parts) * range.size()};
}

Cell cell_of(GeoPoint point, unsigned steps) {
  return {part_of(point.longitude, all_longitudes, steps),
          part_of(point.latitude, all_latitudes, steps), steps};
}
GeoRange longitudes_of(const Cell& cell) { return part_range(cell.x, all_longitudes, cell.steps); }
GeoRange latitudes_of(const Cell& cell) { return part_range(cell.y, all_latitudes, cell.steps); }

// Across the borders of the map it is the cell on the other side. One that is not moved stays what
// it is, also at the end of a range (see part_of).
Cell moved(Cell cell, int east, int north) {
  const uint32_t mask = (uint32_t{1} << cell.steps) - 1;
  if (east != 0) cell.x = (cell.x + static_cast<uint32_t>(east)) & mask;
  if (north != 0) cell.y = (cell.y + static_cast<uint32_t>(north)) & mask;
  return cell;
}

// What a conversion to a whole number gives on the machines that Redis runs on, for any score.
uint64_t whole_part(double score) {
  constexpr double two_63 = 9223372036854775808.0;
  if (score >= -two_63 && score < two_63) return static_cast<uint64_t>(static_cast<int64_t>(score));
  if (score >= two_63 && score < 2 * two_63) return static_cast<uint64_t>(score);
  return score < 0 ? uint64_t{1} << 63 : 0;
}

// The corners of what encloses a shape. Meridians are nearer to each other towards the poles.
struct Bounds {
  GeoRange longitudes;
  GeoRange latitudes;
};
Bounds bounds_of(const GeoShape& shape) {
  const auto [longitude, latitude] = shape.center;
  const double height_m = shape.unit_m * (shape.is_box ? shape.height / 2 : shape.radius);
  const double width_m = shape.unit_m * (shape.is_box ? shape.width / 2 : shape.radius);
  const double up = degrees(height_m / earth_radius_m);
  const double side_latitude = latitude < 0 ? latitude - up : latitude + up;
  const double aside = degrees(width_m / earth_radius_m / std::cos(radians(side_latitude)));
  return {{longitude - aside, longitude + aside}, {latitude - up, latitude + up}};
}

// So that nine cells cover the shape, in most cases.
unsigned estimate_steps(double radius_m, double latitude) {
  if (radius_m == 0) return steps_max;
  int steps = -1;
  for (; radius_m < half_equator_m; radius_m *= 2) steps++;
  if (std::abs(latitude) > 66) steps--;
  if (std::abs(latitude) > 80) steps--;
  return static_cast<unsigned>(std::clamp<int>(steps, 1, steps_max));
}

bool cover(const Cell& cell, const Bounds& bounds) {
  const bool is_short = latitudes_of(moved(cell, 0, 1)).max < bounds.latitudes.max ||
                        latitudes_of(moved(cell, 0, -1)).min > bounds.latitudes.min ||
                        longitudes_of(moved(cell, 1, 0)).max < bounds.longitudes.max ||
                        longitudes_of(moved(cell, -1, 0)).min > bounds.longitudes.min;
  return !is_short;
}

}  // namespace

double geo_score(GeoPoint point) { return static_cast<double>(bits_of(cell_of(point, steps_max))); }

GeoPoint geo_point(double score) {
  const uint64_t bits = whole_part(score);
  const Cell cell{gather(bits >> 1), gather(bits), steps_max};
  const GeoRange longitudes = longitudes_of(cell);
  const GeoRange latitudes = latitudes_of(cell);
  return {std::clamp((longitudes.min + longitudes.max) / 2, -longitude_max, longitude_max),
          std::clamp((latitudes.min + latitudes.max) / 2, -latitude_max, latitude_max)};
}

std::string geo_hash(GeoPoint point) {
  constexpr char letters[] = "0123456789bcdefghjkmnpqrstuvwxyz";
  constexpr unsigned letter_bits = 5;
  constexpr GeoRange usual_latitudes{-90, 90};
  const uint64_t bits = bits_of({part_of(point.longitude, all_longitudes, steps_max),
                                 part_of(point.latitude, usual_latitudes, steps_max), steps_max});
  std::string text;
  for (unsigned shift = 2 * steps_max; shift >= letter_bits;) {
    shift -= letter_bits;
    text += letters[bits >> shift & 0x1f];
  }
  return text + '0';  // two bits are left, which Redis does not show
}

double geo_distance_m(GeoPoint a, GeoPoint b) {
  const double a_latitude = radians(a.latitude);
  const double b_latitude = radians(b.latitude);
  const double u = std::sin((b_latitude - a_latitude) / 2);
  const double v = std::sin((radians(b.longitude) - radians(a.longitude)) / 2);
  return 2.0 * earth_radius_m *
         std::asin(std::sqrt(u * u + std::cos(a_latitude) * std::cos(b_latitude) * v * v));
}

bool is_inside(const GeoShape& shape, GeoPoint point, double& distance_m) {
  const GeoPoint& center = shape.center;
  if (shape.is_box) {
    const GeoPoint aside{center.longitude, point.latitude};
    const GeoPoint above{point.longitude, center.latitude};
    if (geo_distance_m(point, aside) > shape.width * shape.unit_m / 2 ||
        geo_distance_m(point, above) > shape.height * shape.unit_m / 2)
      return false;
  }
  distance_m = geo_distance_m(center, point);
  return shape.is_box || !(distance_m > shape.radius * shape.unit_m);
}

std::vector<GeoInterval> geo_intervals(const GeoShape& shape) {
  const double half_width = shape.width / 2, half_height = shape.height / 2;
  double radius_m =
      shape.is_box ? std::sqrt(half_width * half_width + half_height * half_height) : shape.radius;
  radius_m *= shape.unit_m;
  const Bounds bounds = bounds_of(shape);
  unsigned steps = estimate_steps(radius_m, shape.center.latitude);
  if (steps > 1 && !cover(cell_of(shape.center, steps), bounds)) steps--;
  const Cell middle = cell_of(shape.center, steps);
  // A side that the shape does not reach.
  const bool skips = steps >= 2;
  const bool no_south = skips && latitudes_of(middle).min < bounds.latitudes.min;
  const bool no_north = skips && latitudes_of(middle).max > bounds.latitudes.max;
  const bool no_west = skips && longitudes_of(middle).min < bounds.longitudes.min;
  const bool no_east = skips && longitudes_of(middle).max > bounds.longitudes.max;
  constexpr struct {
    int east;
    int north;
  } directions[] = {{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
  std::vector<GeoInterval> intervals;
  Cell last;
  for (const auto& [east, north] : directions) {
    if ((no_south && north < 0) || (no_north && north > 0) || (no_west && east < 0) ||
        (no_east && east > 0))
      continue;
    const Cell cell = moved(middle, east, north);
    if (cell == last) continue;  // of so few cells both neighbours may be one
    if (east != 0 || north != 0) last = cell;
    const unsigned shift = 2 * (steps_max - steps);
    intervals.push_back({static_cast<double>(bits_of(cell) << shift),
                         static_cast<double>((bits_of(cell) + 1) << shift)});
  }
  return intervals;
}

}  // namespace trellis

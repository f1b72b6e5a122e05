// Places on the earth as scores of sorted sets: 52 bits, those of latitude and longitude by turns,
// so that places of one area are an interval of the order.
//
// All arithmetic is in Redis's order of operations: replies must have its digits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trellis {

constexpr double longitude_max = 180;
constexpr double latitude_max = 85.05112878;

struct GeoPoint {
  double longitude = 0;
  double latitude = 0;
};

// REQUIRES: within the limits above.
double geo_score(GeoPoint point);
// The middle of the place that a score stands for; any score does.
GeoPoint geo_point(double score);
// The name that others have for it: 11 letters and digits, the last one always 0.
std::string geo_hash(GeoPoint point);
double geo_distance_m(GeoPoint a, GeoPoint b);

// What is looked for: a circle, or a box whose sides are half of its width and height away.
struct GeoShape {
  GeoPoint center;
  bool is_box = false;
  double radius = 0;
  double width = 0;
  double height = 0;
  double unit_m = 1;  // of the above
};
// Says whether the point is inside, and how far from the center then.
bool is_inside(const GeoShape& shape, GeoPoint point, double& distance_m);

// Scores from `begin` to before `end`.
struct GeoInterval {
  double begin;
  double end;
};
// Of up to nine areas that cover the shape, in the order in which Redis looks at them.
std::vector<GeoInterval> geo_intervals(const GeoShape& shape);

}  // namespace trellis

// Backups, for the server's admin: jobs that make, check and restore them, and streams of them.
#include <fmt/format.h>

#include <algorithm>

#include "backup/backups.h"
#include "backup/stream.h"
#include "json/json_body.h"
#include "rest/answers.h"
#include "rest/gate.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

constexpr size_t stream_body_bytes_max = size_t{1} << 50;  // whatever a disk can hold
// How much is read behind a bad part before the connection is broken off. Many clients look for the
// answer only when they have sent all.
constexpr size_t stream_swallowed_bytes_max = 16 * 1024 * 1024;
constexpr unsigned status_accepted = 202;

json::object job_json(const JobStatus& job) {
  json::object out{{"id", job.id},
                   {"kind", to_string(job.kind)},
                   {"state", to_string(job.state)},
                   {"phase", job.progress.phase},
                   {"repository", job.repository},
                   {"backup", job.backup},
                   {"keyspace", job.keyspace},
                   {"bytes_done", job.progress.bytes_done},
                   {"bytes_total", job.progress.bytes_total},
                   {"bytes_per_second", job.progress.bytes_per_second},
                   {"started_ms", job.started_ms}};
  if (job.finished_ms != 0) out["finished_ms"] = job.finished_ms;
  if (job.state == JobState::done) {
    out["entries"] = job.entries;
    out["bytes"] = job.bytes;
    if (job.kind == JobKind::create) out["added_bytes"] = job.added_bytes;
  }
  if (job.copy_bytes != 0) out["copy_bytes"] = job.copy_bytes;
  if (!job.damage.empty()) out["damage"] = json::array(job.damage.begin(), job.damage.end());
  if (!job.warnings.empty())
    out["warnings"] = json::array(job.warnings.begin(), job.warnings.end());
  if (job.error)
    out["error"] = {
        {"code", job.error->reason.empty() ? to_string(job.error->code) : job.error->reason},
        {"message", job.error->message}};
  return out;
}

json::object backup_json(const Manifest& manifest) {
  json::array keyspaces;
  for (const Keyspace& keyspace : manifest.keyspaces) keyspaces.emplace_back(keyspace.name);
  return {{"id", manifest.id},
          {"created_ms", manifest.created_ms},
          {"whole", manifest.whole},
          {"keyspaces", std::move(keyspaces)},
          {"entries", manifest.entries()},
          {"bytes", manifest.bytes()},
          {"chunks", manifest.chunks.size()},
          {"added_bytes", manifest.added_bytes}};
}

// What the requests for jobs have in common.
struct JobRequest {
  std::string repository;
  std::string backup;
  std::string keyspace;
  std::string name;
  uint64_t bytes_per_second = 0;
  unsigned threads = 0;
};

Result<JobRequest> read_job_request(const HttpRequest& request,
                                    std::initializer_list<std::string_view> texts) {
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  JobRequest out;
  const std::pair<std::string_view, std::string*> known[] = {{"repository", &out.repository},
                                                             {"backup", &out.backup},
                                                             {"keyspace", &out.keyspace},
                                                             {"name", &out.name}};
  for (const auto& [name, value] : known) {
    if (std::ranges::find(texts, name) == texts.end()) continue;
    TRY_ASSIGN(const auto text, members.text(name));
    *value = text.value_or("");
  }
  TRY_ASSIGN(const auto bytes_per_second, members.number("bytes_per_second"));
  TRY_ASSIGN(const auto threads, members.number("threads"));
  TRY(members.finish());
  if (out.repository.empty()) return bad_body("it needs a repository: the path of a folder");
  out.bytes_per_second = bytes_per_second.value_or(0);
  out.threads = static_cast<unsigned>(std::min<uint64_t>(threads.value_or(0), UINT32_MAX));
  return out;
}

Result<HttpResponse> accepted(const Result<JobStatus>& job) {
  if (!job) return job.error();
  return json_answer(job_json(*job), status_accepted);
}

// For the log of administrative actions: who has a copy of a tenant's data, and who had one
// removed. A restore is in it as the keyspaces that it makes.
Status log_action(const RestContext& context, const Caller& caller, std::string action,
                  std::string_view keyspace, std::string detail) {
  Change change{.actor = caller.name,
                .action = std::move(action),
                .keyspace = {},
                .name = {},
                .detail = std::move(detail),
                .after = std::nullopt};
  if (!keyspace.empty()) {
    TRY_ASSIGN(const Keyspace found, context.keyspaces.load(keyspace));
    change.keyspace = found.id;
    change.name = found.name;
  }
  return context.keyspaces.changes().record(std::move(change));
}

Result<HttpResponse> create_backup(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const JobRequest asked, read_job_request(request, {"repository", "keyspace"}));
  const auto job = context.backups.create({.repository = asked.repository,
                                           .keyspace = asked.keyspace,
                                           .bytes_per_second = asked.bytes_per_second,
                                           .threads = asked.threads});
  if (job)
    TRY(log_action(context, caller, "backup.create", asked.keyspace,
                   fmt::format("to {}, job {}", asked.repository, job->id)));
  return accepted(job);
}

Result<HttpResponse> restore_backup(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const JobRequest asked,
             read_job_request(request, {"repository", "backup", "keyspace", "name"}));
  return accepted(context.backups.restore({.repository = asked.repository,
                                           .backup = asked.backup,
                                           .keyspace = asked.keyspace,
                                           .name = asked.name,
                                           .bytes_per_second = asked.bytes_per_second,
                                           .threads = asked.threads},
                                          caller));
}

Result<HttpResponse> verify_backups(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const JobRequest asked, read_job_request(request, {"repository", "backup"}));
  return accepted(context.backups.verify({.repository = asked.repository,
                                          .backup = asked.backup,
                                          .bytes_per_second = asked.bytes_per_second,
                                          .threads = asked.threads}));
}

Result<std::string> repository_of(const HttpRequest& request) {
  TRY(check_query(request, {"repository"}));
  TRY_ASSIGN(auto repository, query_text(request, "repository"));
  if (!repository) return bad_query("say which backups: repository=PATH");
  return std::move(*repository);
}

Result<HttpResponse> list_backups(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY_ASSIGN(const std::string path, repository_of(request));
  TRY_ASSIGN(const Repository repository, Repository::open(path));
  TRY_ASSIGN(const auto ids, repository.ids());
  json::array backups;
  for (const std::string& id : ids) {
    const auto manifest = repository.get_manifest(id);
    // One that is damaged must not hide the others.
    backups.push_back(manifest ? backup_json(*manifest)
                               : json::object{{"id", id}, {"damage", manifest.error().message}});
  }
  return json_answer(json::object{{"backups", std::move(backups)}});
}

Result<HttpResponse> delete_backup(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY_ASSIGN(const std::string path, repository_of(request));
  TRY_ASSIGN(const uint64_t freed, context.backups.remove(path, request.captures[0]));
  TRY(log_action(context, caller, "backup.delete", {},
                 fmt::format("{} of {}", request.captures[0], path)));
  return json_answer(json::object{{"freed_bytes", freed}});
}

// --- jobs ---

Result<HttpResponse> list_jobs(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  json::array jobs;
  for (const JobStatus& job : context.backups.jobs()) jobs.emplace_back(job_json(job));
  return json_answer(json::object{{"jobs", std::move(jobs)}});
}

Result<HttpResponse> show_job(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const JobStatus job, context.backups.job(request.captures[0]));
  return json_answer(job_json(job));
}

template <Result<JobStatus> (Backups::*change)(std::string_view)>
Result<HttpResponse> change_job(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const JobStatus job, (context.backups.*change)(request.captures[0]));
  return json_answer(job_json(job));
}

// --- streams ---

class BackupDownload final : public BodySource {
 public:
  BackupDownload(const RestContext& context, Backups::Source source, uint64_t bytes_per_second,
                 std::string authorization)
      : context_(context),
        writer_(std::move(source), bytes_per_second),
        authorization_(std::move(authorization)) {}

  Result<Chunk> next() override {
    TRY(check_still_valid(context_, authorization_));
    if (const uint64_t wait_us = writer_.next_in_us(); wait_us > 0) {
      constexpr uint64_t wait_ms_max = 1'000;
      return Chunk{
          .bytes = {},
          .then = Chunk::Then::pause,
          .wait_ms = static_cast<uint32_t>(std::min(wait_us / us_per_ms + 1, wait_ms_max))};
    }
    TRY_ASSIGN(auto bytes, writer_.next());
    if (!bytes) return Chunk{};
    return Chunk{.bytes = std::move(*bytes), .then = Chunk::Then::more};
  }

 private:
  const RestContext& context_;
  BackupStreamWriter writer_;
  const std::string authorization_;
};

Result<HttpResponse> download_backup(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {"keyspace", "bytes_per_second"}));
  TRY_ASSIGN(const auto keyspace, query_text(request, "keyspace"));
  TRY_ASSIGN(const auto bytes_per_second, query_number(request, "bytes_per_second"));
  TRY_ASSIGN(Backups::Source source, context.backups.open_source(keyspace.value_or("")));
  TRY(log_action(context, caller, "backup.stream", keyspace.value_or(""), {}));
  HttpResponse response;
  response.content_type = "application/octet-stream";
  response.stream =
      std::make_unique<BackupDownload>(context, std::move(source), bytes_per_second.value_or(0),
                                       std::string(request.header("Authorization")));
  return response;
}

// Everything is on the disk and checked before the restore begins.
class BackupUpload final : public BodySink {
 public:
  BackupUpload(const RestContext& context, Caller caller, Backups::RestoreRequest asked,
               Repository spool)
      : context_(context),
        caller_(std::move(caller)),
        asked_(std::move(asked)),
        reader_(std::move(spool)) {}
  ~BackupUpload() override {
    std::error_code ignored;  // the next start removes it
    if (!is_taken_) std::filesystem::remove_all(asked_.repository, ignored);
  }

  Status write(ByteView piece) override {
    if (!failed_) {
      // It is kept on the disk of the store.
      Status taken = context_.keyspaces.map().engine.room();
      if (taken) taken = reader_.write(piece);
      if (!taken) failed_ = taken.error();
    } else {
      swallowed_bytes_ += piece.size();
    }
    if (swallowed_bytes_ > stream_swallowed_bytes_max) return *failed_;
    return {};
  }

  HttpResponse finish() override {
    if (failed_) return v1_error(*failed_);
    auto id = reader_.finish();
    if (!id) return v1_error(id.error());
    asked_.backup = std::move(*id);
    const auto job = context_.backups.restore(asked_, caller_);
    if (!job) return v1_error(job.error());
    is_taken_ = true;
    return json_answer(job_json(*job), status_accepted);
  }

 private:
  const RestContext& context_;
  const Caller caller_;
  Backups::RestoreRequest asked_;
  BackupStreamReader reader_;
  std::optional<Error> failed_;
  size_t swallowed_bytes_ = 0;
  bool is_taken_ = false;
};

Result<std::unique_ptr<BodySink>> open_upload(const RestContext& context,
                                              const HttpRequest& request) {
  TRY_ASSIGN(Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {"keyspace", "name", "bytes_per_second"}));
  TRY_ASSIGN(const auto keyspace, query_text(request, "keyspace"));
  TRY_ASSIGN(const auto name, query_text(request, "name"));
  TRY_ASSIGN(const auto bytes_per_second, query_number(request, "bytes_per_second"));
  TRY_ASSIGN(std::filesystem::path folder, context.backups.make_spool());
  TRY_ASSIGN(Repository spool, Repository::open_or_make(folder));
  Backups::RestoreRequest asked{.repository = std::move(folder),
                                .keyspace = keyspace.value_or(""),
                                .name = name.value_or(""),
                                .bytes_per_second = bytes_per_second.value_or(0),
                                .is_spool = true};
  return std::make_unique<BackupUpload>(context, std::move(caller), std::move(asked),
                                        std::move(spool));
}

}  // namespace

void add_backup_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  const RouteSpec specs[] = {
      {get, "/v1/backups", list_backups},
      {post, "/v1/backups", create_backup, small_body_bytes_max},
      {del, "/v1/backups/{backup}", delete_backup},
      {get, "/v1/backups/stream", download_backup},
      {post, "/v1/backups/restores", restore_backup, small_body_bytes_max},
      {post, "/v1/backups/verifications", verify_backups, small_body_bytes_max},
      {get, "/v1/backups/jobs", list_jobs},
      {get, "/v1/backups/jobs/{job}", show_job},
      {post, "/v1/backups/jobs/{job}/pause", change_job<&Backups::pause>},
      {post, "/v1/backups/jobs/{job}/resume", change_job<&Backups::resume>},
      {post, "/v1/backups/jobs/{job}/cancel", change_job<&Backups::cancel>},
  };
  for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
  Route upload;
  upload.method = post;
  upload.pattern = "/v1/backups/stream";
  upload.body = Route::Body::streamed;
  upload.body_bytes_max = stream_body_bytes_max;
  upload.runs = Route::Runs::worker;
  upload.open = [&context](const HttpRequest& request) { return open_upload(context, request); };
  routes.push_back(std::move(upload));
}

}  // namespace trellis

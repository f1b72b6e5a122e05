// Clients, and the files that they hold (`6 session inode`): who removes the last name of a file
// leaves it to them.
#pragma once

#include <optional>

#include "fs/change.h"

namespace trellis {

constexpr size_t session_client_bytes_max = 255;

// In a transaction that shares it: whether the session lives. Reason: session_gone.
Status check_session(CountedView& view, KeyspaceId keyspace, SessionId session, uint64_t now_ms);
// In a transaction that has it alone: whether the session is over, and from now on that is for
// ever, whatever clocks say.
Result<bool> bury_session(CountedView& view, KeyspaceId keyspace, SessionId session,
                          uint64_t now_ms, bool must_end);

// For who takes the last name of an inode. Sessions of this process that have it open keep it;
// whether there are any. On a shared engine those of others have said so before.
void plan_holders(FsPlan& plan, const OpenFiles& open_files, InodeId inode);
Result<bool> keep_for_holders(FsChange& change, const OpenFiles& open_files, InodeId inode);

// For who collects an inode without names, which gets no new holders: one of those that it has.
// Reads now, without locks. If there is one the note for the inode may go, in a transaction that
// finds `6 session inode` still there: with the last holder another note comes.
Result<std::optional<SessionId>> holder_of(Engine& engine, KeyspaceId keyspace, InodeId inode);

}  // namespace trellis

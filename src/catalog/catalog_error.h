// What can go wrong in the catalog, by reason (Error::reason), as Gravitino names it: rest makes
// its codes and types of these. `Code` is what others need.
//
//   reason                     Code       Gravitino's code, type
//   illegal_argument           invalid    1001 IllegalArgumentException
//   illegal_name               invalid    1001 IllegalNameIdentifierException
//   illegal_privilege          invalid    1001 IllegalPrivilegeException
//   illegal_role               invalid    1001 IllegalRoleException
//   illegal_metadata_object    invalid    1001 IllegalMetadataObjectException
//   illegal_statistic_name     invalid    1001 IllegalStatisticNameException
//   no_such_<type>             not_found  1003 NoSuch<Type>Exception
//   <type>_exists              exists     1004 <Type>AlreadyExistsException
//   tag_associated             exists     1004 TagAlreadyAssociatedException
//   policy_associated          exists     1004 PolicyAlreadyAssociatedException
//   non_empty_<type>           refused    1005 NonEmpty<Type>Exception
//   unsupported                unsupported 1006 UnsupportedOperationException
//   forbidden                  denied     1008 ForbiddenException
//   <type>_not_in_use          refused    1009 <Type>NotInUseException
//   <type>_in_use              refused    1010 <Type>InUseException
//   version_changed            conflict   1012 OptimisticLockException
//
// <type> is the word of codec/catalog_ref.h (metalake, catalog, schema, table, ...), and also
// partition, model_version, metadata_object, statistic.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/catalog_ref.h"

namespace trellis {

Error illegal_argument(std::string message);
Error illegal_name(std::string message);
Error no_such(CatalogType type, std::string_view name);
Error already_exists(CatalogType type, std::string_view name);
Error non_empty(CatalogType type, std::string_view name);   // metalakes, catalogs, schemas
Error not_in_use(CatalogType type, std::string_view name);  // metalakes, catalogs
Error in_use(CatalogType type, std::string_view name);      // metalakes, catalogs
Error version_changed(CatalogType type, std::string_view name);
// A catalog of this kind has nothing of the type.
Error does_not_support(CatalogType type);
Error illegal_privilege(std::string message);
Error forbidden(std::string message);
// Of something that tags, grants or owners are about: what is missing is an object, whatever its
// type, unless it is the metalake.
Status as_object(Status status);

}  // namespace trellis

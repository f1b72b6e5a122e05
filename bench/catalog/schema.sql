-- What a user of PostgreSQL would make: ids, parents by id, names unique in their parent, and
-- columns as rows of their own that can be searched. What stands below goes with its parent.
CREATE TABLE metalakes (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL UNIQUE, comment text, properties jsonb NOT NULL DEFAULT '{}',
  creator text NOT NULL DEFAULT 'bench', created timestamptz NOT NULL DEFAULT now(),
  modifier text, modified timestamptz, version bigint NOT NULL DEFAULT 1);
CREATE TABLE catalogs (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  metalake bigint NOT NULL REFERENCES metalakes ON DELETE CASCADE,
  name text NOT NULL, type text NOT NULL, provider text, comment text,
  properties jsonb NOT NULL DEFAULT '{}',
  creator text NOT NULL DEFAULT 'bench', created timestamptz NOT NULL DEFAULT now(),
  modifier text, modified timestamptz, version bigint NOT NULL DEFAULT 1,
  UNIQUE (metalake, name));
CREATE TABLE schemas (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  catalog bigint NOT NULL REFERENCES catalogs ON DELETE CASCADE,
  name text NOT NULL, comment text, properties jsonb NOT NULL DEFAULT '{}',
  creator text NOT NULL DEFAULT 'bench', created timestamptz NOT NULL DEFAULT now(),
  modifier text, modified timestamptz, version bigint NOT NULL DEFAULT 1,
  UNIQUE (catalog, name));
CREATE TABLE tables (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  schema bigint NOT NULL REFERENCES schemas ON DELETE CASCADE,
  name text NOT NULL, comment text, properties jsonb NOT NULL DEFAULT '{}',
  partitioning jsonb NOT NULL DEFAULT '[]',
  creator text NOT NULL DEFAULT 'bench', created timestamptz NOT NULL DEFAULT now(),
  modifier text, modified timestamptz, version bigint NOT NULL DEFAULT 1,
  UNIQUE (schema, name));
CREATE TABLE columns (
  "table" bigint NOT NULL REFERENCES tables ON DELETE CASCADE,
  position int NOT NULL, name text NOT NULL, type text NOT NULL, comment text,
  nullable boolean NOT NULL DEFAULT true,
  PRIMARY KEY ("table", position));
CREATE INDEX columns_by_name ON columns (name);
CREATE SEQUENCE fresh;

// ioredis and node-redis, unmodified: node clients.mjs URL, a URL of redis:// that may name a
// keyspace, its token and a database.
import assert from "node:assert/strict";
import Redis from "ioredis";
import { createClient } from "redis";

const url = process.argv[2];

async function tryIoredis(options) {
  const client = new Redis(url, { maxRetriesPerRequest: 1, retryStrategy: () => null, ...options });
  await client.flushdb();
  assert.equal(await client.set("s", "1", "EX", 100), "OK");
  assert.equal(await client.incr("s"), 2);
  assert.ok((await client.ttl("s")) > 90);
  await client.hset("h", { a: 1, b: "two words" });
  assert.deepEqual(await client.hgetall("h"), { a: "1", b: "two words" });
  await client.rpush("l", ...Array(100).keys());
  assert.deepEqual(await client.lrange("l", 0, 2), ["0", "1", "2"]);
  await client.sadd("t", "a", "b");
  assert.deepEqual((await client.smembers("t")).sort(), ["a", "b"]);
  await client.zadd("z", 1, "a", 2.5, "b");
  assert.deepEqual(await client.zrange("z", 0, -1, "WITHSCORES"), ["a", "1", "b", "2.5"]);
  const binary = Buffer.from([0, 255, 13, 10, 36]);
  await client.set("binary", binary);
  assert.deepEqual(await client.getBuffer("binary"), binary);
  const pipeline = client.pipeline();
  for (let i = 0; i < 5000; i++) pipeline.set(`p${i}`, i);
  assert.ok((await pipeline.exec()).every(([error, reply]) => error === null && reply === "OK"));
  const all = await Promise.all(Array.from({ length: 5000 }, (_, i) => client.get(`p${i}`)));
  assert.deepEqual(all, Array.from({ length: 5000 }, (_, i) => `${i}`));
  assert.deepEqual(await client.multi().incr("n").incr("n").exec(), [[null, 1], [null, 2]]);
  await assert.rejects(client.incr("h"), /WRONGTYPE/);
  let seen = 0;
  for await (const page of client.scanStream({ match: "p*", count: 500 })) seen += page.length;
  assert.equal(seen, 5000);
  const large = "x".repeat(5_000_000);
  await client.set("large", large);
  assert.ok((await client.get("large")) === large);
  await client.quit();
}

async function tryNodeRedis() {
  const client = createClient({ url, socket: { reconnectStrategy: false } });
  client.on("error", (error) => { throw error; });
  await client.connect();
  await client.flushDb();
  assert.equal(await client.set("s", "1", { EX: 100 }), "OK");
  assert.equal(await client.incr("s"), 2);
  await client.hSet("h", { a: 1, b: "two words" });
  assert.deepEqual({ ...(await client.hGetAll("h")) }, { a: "1", b: "two words" });
  await client.rPush("l", ["0", "1", "2"]);
  assert.deepEqual(await client.lRange("l", 0, -1), ["0", "1", "2"]);
  await client.sAdd("t", ["a", "b"]);
  assert.deepEqual((await client.sMembers("t")).sort(), ["a", "b"]);
  await client.zAdd("z", [{ score: 1, value: "a" }, { score: 2.5, value: "b" }]);
  assert.deepEqual(await client.zRangeWithScores("z", 0, -1),
                   [{ value: "a", score: 1 }, { value: "b", score: 2.5 }]);
  const all = await Promise.all(
      Array.from({ length: 5000 }, (_, i) => client.set(`p${i}`, `${i}`).then(() => client.get(`p${i}`))));
  assert.deepEqual(all, Array.from({ length: 5000 }, (_, i) => `${i}`));
  assert.deepEqual(await client.multi().incr("n").get("n").exec(), [1, "1"]);
  await client.watch("s");
  await client.executeIsolated(async (other) => other.set("s", "changed"));
  await assert.rejects(client.multi().get("s").exec(), /watch/i);
  await assert.rejects(client.incr("h"), /WRONGTYPE/);
  let seen = 0;
  for await (const key of client.scanIterator({ MATCH: "p*", COUNT: 500 })) seen += key ? 1 : 0;
  assert.equal(seen, 5000);
  await client.quit();
}

for (const [name, attempt] of [["ioredis", () => tryIoredis({})],
                               ["ioredis, pipelining by itself", () => tryIoredis({ enableAutoPipelining: true })],
                               ["node-redis", tryNodeRedis]]) {
  await attempt();
  console.log(`${name}: ok`);
}

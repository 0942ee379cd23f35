import { createHash } from 'node:crypto'
import type { Argument, Connection } from './connection.ts'
import { ReplyError } from './reply-errors.ts'

/** A Lua script: one atomic, idempotent step on one master. */
export interface Script {
  readonly text: string
  readonly sha: string
}

const script = (text: string): Script => ({ text, sha: createHash('sha1').update(text).digest('hex') })

/**
 * Runs a script by its digest, or with its text if unknown to the server (`SCRIPT LOAD` needs an additional
 * permission).
 */
export async function runScript(
  connection: Pick<Connection, 'call'>,
  { text, sha }: Script,
  keys: readonly string[],
  args: readonly Argument[],
): Promise<unknown> {
  try {
    return await connection.call(['evalsha', sha, keys.length, ...keys, ...args])
  } catch (error) {
    if (!(error instanceof ReplyError) || error.code !== 'NOSCRIPT') throw error
    return await connection.call(['eval', text, keys.length, ...keys, ...args])
  }
}

/** Reads a key; a key of a different type counts as missing and is overwritten. */
const READ = `
local function read(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.find(reply.err, 'WRONGTYPE', 1, true) then return false end
  return redis.call(command, ...)
end
`

/**
 * KEYS: record. ARGV: expected version ('' for none), new version, fence ('' for none), value, time to live in ms.
 * Returns 1 if the record now is as requested, else 0. A record is 12 bytes of version, 16 digits of fence, the value;
 * a shorter one counts as missing.
 */
export const COMPARE_AND_SET = script(`${READ}
local head = read('GETRANGE', KEYS[1], 0, 27) or ''
if #head < 28 then head = '' end
local version, fence = string.sub(head, 1, 12), string.sub(head, 13, 28)
if version == ARGV[2] then return 1 end
if version ~= ARGV[1] then return 0 end
if not string.match(fence, '^%d+$') then fence = '0000000000000000' end
if ARGV[3] ~= '' then
  if tonumber(ARGV[3]) < tonumber(fence) then return 0 end
  fence = ARGV[3]
end
redis.call('SET', KEYS[1], ARGV[2] .. fence .. ARGV[4], 'PX', ARGV[5])
return 1
`)

/**
 * KEYS: lock. ARGV: owner, time to live in ms. Returns the fence, or 0 if another owner holds the lock. The fence is
 * the time in microseconds, or the last plus one if the clock was set back; a free lock keeps its last fence for a
 * while. Invalid locks and locks without a time to live are free: they would never expire. 2^53 - 2 is the last fence
 * with a successor.
 */
const TAKE_LOCK = `
local fence, owner = 0, ''
local number, holder = string.match(read('GET', KEYS[1]) or '', '^(%d+):(.*)$')
if number and tonumber(number) <= 9007199254740990 then
  fence = tonumber(number)
  if redis.call('PTTL', KEYS[1]) > 0 then owner = holder end
end
if owner == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return fence
end
if owner ~= '' then return 0 end
local time = redis.call('TIME')
fence = math.max(time[1] * 1000000 + time[2], fence + 1)
redis.call('SET', KEYS[1], string.format('%.0f:%s', fence, ARGV[1]), 'PX', ARGV[2])
return fence
`
export const LOCK = script(READ + TAKE_LOCK)

/**
 * KEYS: lock, record. ARGV: owner, time to live of the lock in ms, version ('' for none). Returns a newer record with
 * its time to live in ms, or as above.
 */
export const GET_OR_LOCK = script(`${READ}
local record = read('GET', KEYS[2])
if record and #record >= 28 and string.sub(record, 1, 12) ~= ARGV[3] then
  return { record, redis.call('PTTL', KEYS[2]) }
end
${TAKE_LOCK}`)

/** KEYS: lock. ARGV: value of the holder, time to live in ms. Returns 1 if the holder still has it. */
export const RENEW = script(`${READ}
if read('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

/** KEYS: lock. ARGV: value of the holder, remaining value, its time to live in ms. */
export const RELEASE = script(`${READ}
if read('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
`)

/**
 * KEYS: lock, record. ARGV: as above, then record and time to live in ms. Writes, and releases the lock if still held.
 */
export const PUT_AND_RELEASE = script(`${READ}
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
if read('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
`)

/**
 * Sizes of members in bytes are a sorted set; its member without a name is their sum. All sets expire with the last
 * member, so that no sizes remain. Keys of other types are deleted.
 */
const SIZES = `${READ}
for set = 2, 4 do
  if read('ZCARD', KEYS[set]) == false then redis.call('DEL', KEYS[set]) end
end
local function sum() return tonumber(redis.call('ZSCORE', KEYS[4], '') or 0) end
local function leave(member)
  local size = redis.call('ZSCORE', KEYS[4], member)
  if not size then return end
  redis.call('ZREM', KEYS[4], member)
  redis.call('ZADD', KEYS[4], sum() - size, '')
end
local function last(ms)
  local longest = tonumber(ms)
  for set = 2, 4 do longest = math.max(longest, redis.call('PTTL', KEYS[set])) end
  for set = 2, 4 do redis.call('PEXPIRE', KEYS[set], longest) end
end
`

/** Removes expired members, and defines the time in ms. */
const SWEEP = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, set in ipairs({KEYS[2], KEYS[3]}) do
  repeat
    local ended = redis.call('ZRANGE', set, '-inf', now, 'BYSCORE', 'LIMIT', 0, 1000)
    for _, member in ipairs(ended) do
      redis.call('ZREM', set, member)
      leave(member)
    end
  until #ended == 0
end
`

/**
 * KEYS: member, unused members, used members, sizes. ARGV: record, time to live in ms, limit of members, limit of
 * bytes, bytes of the value, 1 to evict unused members. Returns 1 if added or 0 if the others are in use, the number of
 * evicted members, and the new numbers of members and bytes. Both sets are ordered by expiry in ms.
 */
export const ADMIT = script(`${SIZES}${SWEEP}
local used = redis.call('ZSCORE', KEYS[3], KEYS[1])
local isNew = not used and not redis.call('ZSCORE', KEYS[2], KEYS[1])
local old = tonumber(redis.call('ZSCORE', KEYS[4], KEYS[1]) or 0)
local evicted = 0
local function members() return redis.call('ZCARD', KEYS[2]) + redis.call('ZCARD', KEYS[3]) end
local function full() return {0, evicted, members(), sum()} end
if tonumber(ARGV[5]) > tonumber(ARGV[4]) or tonumber(ARGV[3]) < 1 then return full() end
while members() + (isNew and 1 or 0) > tonumber(ARGV[3]) or sum() - old + ARGV[5] > tonumber(ARGV[4]) do
  if ARGV[6] ~= '1' then return full() end
  local first = redis.call('ZRANGE', KEYS[2], 0, 1)
  if first[1] == KEYS[1] then table.remove(first, 1) end
  if not first[1] then return full() end
  redis.call('ZREM', KEYS[2], first[1])
  leave(first[1])
  redis.call('DEL', first[1])
  evicted = evicted + 1
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local set = used and KEYS[3] or KEYS[2]
redis.call('ZADD', set, now + ARGV[2], KEYS[1])
redis.call('ZADD', KEYS[4], ARGV[5], KEYS[1], sum() - old + ARGV[5], '')
last(ARGV[2])
return {1, evicted, members(), sum()}
`)

/** KEYS as above. ARGV: time to live in ms. */
export const TOUCH = script(`${SIZES}
redis.call('ZREM', KEYS[2], KEYS[1])
if redis.call('PEXPIRE', KEYS[1], ARGV[1]) == 0 then
  redis.call('ZREM', KEYS[3], KEYS[1])
  leave(KEYS[1])
  return 0
end
local time = redis.call('TIME')
redis.call('ZADD', KEYS[3], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1], KEYS[1])
last(ARGV[1])
return 1
`)

/** KEYS as above. */
export const REMOVE = script(`${SIZES}
redis.call('ZREM', KEYS[2], KEYS[1])
redis.call('ZREM', KEYS[3], KEYS[1])
leave(KEYS[1])
return redis.call('DEL', KEYS[1])
`)

/** KEYS as above; the first is not read. ARGV: offset, limit. Returns members, those that expire first first. */
export const MEMBERS = script(`${SIZES}${SWEEP}
local from, limit, found = tonumber(ARGV[1]), tonumber(ARGV[2]), {}
for _, set in ipairs({KEYS[2], KEYS[3]}) do
  local left = limit - #found
  if left > 0 then
    for _, member in ipairs(redis.call('ZRANGE', set, from, from + left - 1)) do found[#found + 1] = member end
  end
  from = math.max(0, from - redis.call('ZCARD', set))
end
return found
`)

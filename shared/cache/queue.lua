-- Steps that the scripts of the work queues share; they are put in front of each. memory_queues.py keeps the same
-- rules in Python, and a test compares the two step by step.
--
-- KEYS[1] names the queue, in braces, so that a cluster keeps all its keys in one place. ARGV[1] is the time in
-- microseconds, empty for the server's own. Every number is an integer below 2^53, where Lua's are exact.

local queue = KEYS[1]
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local CLAIMS = queue .. ':claims'      -- sorted set: id -> when its claim expires
local FINISHED = queue .. ':finished'  -- sorted set: id -> when it was finished
local LOST = queue .. ':lost'          -- hash: finished id -> the workers that it lost, where it lost any
local NEXT = queue .. ':next'          -- sorted set of equal scores: places of the flows with waiting work, in order
local VIRTUAL = queue .. ':virtual'    -- hash: lane (priority and flow) with work -> its virtual time
local LANES = queue .. ':lanes'        -- hash: lane -> how much work it has, waiting and claimed
local LEVELS = queue .. ':levels'      -- hash: priority -> how much work it has, waiting and claimed
local FLOORS = queue .. ':floors'      -- hash: priority -> virtual time of its flow served last
local NUMBERS = queue .. ':numbers'    -- hash: work (how much), order (given last), token (given last), mean (cost)
local BELLS = queue .. ':bells'        -- list: what waiting claimers block on; empty when no work waits

local FIRST_ESTIMATE = 1000000
local SMOOTHING = 8
local FINISHED_MAX = 100000
local FINISHED_FOR = 3600 * 1000000

local function int(value)
  return string.format('%.0f', value)
end

local function number(hash, field)
  return tonumber(redis.call('HGET', hash, field)) or 0
end

local function work_key(id)
  return queue .. ':work:' .. id
end

local function idle_key(item)  -- sorted set: flow without work -> its virtual time, when above the floor
  return queue .. ':idle:' .. item.priority
end

local function located(flow, priority)
  local lane = priority .. ':' .. flow
  return {flow = flow, priority = priority, lane = lane, waiting = queue .. ':lane:' .. lane}
end

local function read(id)
  local found = redis.call('HMGET', work_key(id), 'flow', 'priority', 'order', 'token', 'charged', 'worker',
                           'deliveries', 'lost', 'body')
  if not found[1] then return nil end
  local item = located(found[1], found[2])
  item.order, item.token, item.charged = found[3], found[4], tonumber(found[5])
  item.worker, item.deliveries, item.lost, item.body = found[6], tonumber(found[7]), found[8], found[9]
  return item
end

-- Sorts by priority downwards, then virtual time, then flow.
local function place(item, virtual)
  return string.format('%010.0f%016.0f', 2147483648 - item.priority, virtual) .. item.flow
end

local function set_virtual(item, virtual)
  if redis.call('ZREM', NEXT, place(item, number(VIRTUAL, item.lane))) == 1 then
    redis.call('ZADD', NEXT, 0, place(item, virtual))
  end
  redis.call('HSET', VIRTUAL, item.lane, int(virtual))
end

local function wait(id, item)
  if redis.call('EXISTS', item.waiting) == 0 then
    local virtual = math.max(number(VIRTUAL, item.lane), number(FLOORS, item.priority))
    redis.call('HSET', VIRTUAL, item.lane, int(virtual))
    redis.call('ZADD', NEXT, 0, place(item, virtual))
  end
  redis.call('ZADD', item.waiting, item.order, id)
end

local function withdraw(id, item)
  redis.call('ZREM', item.waiting, id)
  if redis.call('EXISTS', item.waiting) == 0 then
    redis.call('ZREM', NEXT, place(item, number(VIRTUAL, item.lane)))
  end
end

local function join(item)
  redis.call('HINCRBY', NUMBERS, 'work', 1)
  redis.call('HINCRBY', LEVELS, item.priority, 1)
  if redis.call('HINCRBY', LANES, item.lane, 1) == 1 then
    local owed = tonumber(redis.call('ZSCORE', idle_key(item), item.flow)) or 0
    redis.call('ZREM', idle_key(item), item.flow)
    redis.call('HSET', VIRTUAL, item.lane, int(math.max(owed, number(FLOORS, item.priority))))
  end
end

local function leave(item)
  redis.call('HINCRBY', NUMBERS, 'work', -1)
  if redis.call('HINCRBY', LANES, item.lane, -1) == 0 then
    local virtual = number(VIRTUAL, item.lane)
    if virtual > number(FLOORS, item.priority) then
      redis.call('ZADD', idle_key(item), int(virtual), item.flow)
    end
    redis.call('HDEL', VIRTUAL, item.lane)
    redis.call('HDEL', LANES, item.lane)
  end
  if redis.call('HINCRBY', LEVELS, item.priority, -1) == 0 then
    redis.call('HDEL', LEVELS, item.priority)
    redis.call('HDEL', FLOORS, item.priority)
    redis.call('DEL', idle_key(item))
  end
end

-- One bell per piece of added work at most; at least one while work waits, so that whoever takes it wakes the next.
local function ring(added)
  local waiting = number(NUMBERS, 'work') - redis.call('ZCARD', CLAIMS)
  local bells = redis.call('LLEN', BELLS)
  if waiting == 0 then
    redis.call('DEL', BELLS)
  elseif bells == 0 or (added and bells < waiting) then
    redis.call('RPUSH', BELLS, '')
  end
end

local function set_lost(id, item, lost)
  item.lost = #lost > 0 and cjson.encode(lost) or ''
  redis.call('HSET', work_key(id), 'lost', item.lost)
end

local function lost_by(item)
  return item.lost ~= '' and cjson.decode(item.lost) or {}
end

-- Work whose claim expired waits again, in its old place. The claim holds until somebody else takes the work.
local function expire()
  local expired = redis.call('ZRANGEBYSCORE', CLAIMS, '-inf', int(now))
  for _, id in ipairs(expired) do
    local item = read(id)
    local lost = lost_by(item)
    lost[#lost + 1] = item.worker
    set_lost(id, item, lost)
    redis.call('ZREM', CLAIMS, id)
    wait(id, item)
  end
  if #expired > 0 then ring(false) end
end

local function held(id, token)
  local item = read(id)
  return item and item.token == token and item or nil
end

-- Take the work out of the claims; of an expired claim nobody took up, undo that it was lost.
local function resume(id, item)
  if redis.call('ZREM', CLAIMS, id) == 0 then
    withdraw(id, item)
    local lost = lost_by(item)
    lost[#lost] = nil
    set_lost(id, item, lost)
  end
end

local function charge_instead(item, cost)
  set_virtual(item, number(VIRTUAL, item.lane) + cost - item.charged)
end

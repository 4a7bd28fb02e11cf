-- ARGV: now, worker, time to live. The work and its claim; or, when none waits, the microseconds until the next claim
-- expires, -1 when there is none.
expire()
local first = redis.call('ZRANGE', NEXT, 0, 0)[1]
if not first then
  ring(false)
  local expires = redis.call('ZRANGE', CLAIMS, 0, 0, 'WITHSCORES')[2]
  return expires and int(expires - now) or '-1'
end

local item = located(first:sub(27), int(2147483648 - tonumber(first:sub(1, 10))))
local id = redis.call('ZRANGE', item.waiting, 0, 0)[1]
item = read(id)
withdraw(id, item)
local virtual = number(VIRTUAL, item.lane)
redis.call('HSET', FLOORS, item.priority, int(virtual))
redis.call('ZREMRANGEBYSCORE', idle_key(item), '-inf', int(virtual))
local estimate = tonumber(redis.call('HGET', NUMBERS, 'mean')) or FIRST_ESTIMATE
set_virtual(item, virtual + estimate)

local token = int(math.max(number(NUMBERS, 'token') + 1, now))
redis.call('HSET', NUMBERS, 'token', token)
redis.call('HSET', work_key(id), 'worker', ARGV[2], 'token', token, 'deliveries', item.deliveries + 1, 'charged',
           int(estimate))
redis.call('ZADD', CLAIMS, int(now + tonumber(ARGV[3])), id)
ring(false)
return {id, item.flow, item.priority, item.body, token, int(item.deliveries + 1), item.lost}

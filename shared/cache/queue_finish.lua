-- ARGV: now, id, token, cost. 1 when the claim was held.
local id, cost = ARGV[2], tonumber(ARGV[4])
expire()
local item = held(id, ARGV[3])
if not item then return 0 end
resume(id, item)
charge_instead(item, cost)
local mean = tonumber(redis.call('HGET', NUMBERS, 'mean')) or FIRST_ESTIMATE
redis.call('HSET', NUMBERS, 'mean', int(mean + math.floor((cost - mean) / SMOOTHING)))
redis.call('DEL', work_key(id))
leave(item)
redis.call('ZADD', FINISHED, int(now), id)
if item.lost ~= '' then redis.call('HSET', LOST, id, item.lost) end
local old = redis.call('ZRANGEBYSCORE', FINISHED, '-inf', int(now - FINISHED_FOR))
if #old == 0 then old = redis.call('ZRANGE', FINISHED, 0, -FINISHED_MAX - 1) end
for _, each in ipairs(old) do
  redis.call('ZREM', FINISHED, each)
  redis.call('HDEL', LOST, each)
end
ring(false)
return 1

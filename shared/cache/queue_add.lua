-- ARGV: now, id, flow, priority, body. 1 when it was added, 0 when it is there.
local id = ARGV[2]
expire()
if redis.call('EXISTS', work_key(id)) == 1 then return 0 end
local item = located(ARGV[3], ARGV[4])
local finished = tonumber(redis.call('ZSCORE', FINISHED, id))
item.lost = finished and finished > now - FINISHED_FOR and redis.call('HGET', LOST, id) or ''
item.order = redis.call('HINCRBY', NUMBERS, 'order', 1)
redis.call('HSET', work_key(id), 'flow', ARGV[3], 'priority', ARGV[4], 'body', ARGV[5], 'order', item.order,
           'deliveries', #lost_by(item), 'lost', item.lost, 'worker', '', 'token', '', 'charged', 0)
redis.call('ZREM', FINISHED, id)
redis.call('HDEL', LOST, id)
join(item)
wait(id, item)
ring(true)
return 1

-- ARGV: now, id, token. 1 when the claim was held.
local id = ARGV[2]
expire()
local item = held(id, ARGV[3])
if not item then return 0 end
resume(id, item)
charge_instead(item, 0)
redis.call('HSET', work_key(id), 'token', '', 'worker', '', 'charged', 0, 'deliveries', item.deliveries - 1)
wait(id, item)
ring(true)
return 1

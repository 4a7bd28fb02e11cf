-- ARGV: now, id, token, time to live. 1 when the claim was held.
local id = ARGV[2]
expire()
local item = held(id, ARGV[3])
if not item then return 0 end
resume(id, item)
redis.call('ZADD', CLAIMS, int(now + tonumber(ARGV[4])), id)
ring(false)
return 1

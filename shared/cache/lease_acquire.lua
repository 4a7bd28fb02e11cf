-- KEYS: lease, its last token. ARGV: owner, time to live in milliseconds. A token; nothing while another owner holds it.
-- Tokens follow the server's clock in microseconds, so that they grow also when the last one was forgotten.
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then return false end
local time = redis.call('TIME')
local token = math.max((tonumber(redis.call('GET', KEYS[2])) or 0) + 1, time[1] * 1000000 + time[2])
token = string.format('%.0f', token)
redis.call('SET', KEYS[2], token, 'EX', 86400)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'token', token)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return token

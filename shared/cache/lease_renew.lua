-- KEYS: lease. ARGV: token, time to live in milliseconds. 1 when the token holds it.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])

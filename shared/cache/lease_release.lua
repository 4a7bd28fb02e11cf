-- KEYS: lease. ARGV: token. 1 when the token held it.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])

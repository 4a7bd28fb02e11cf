-- ARGV: now. How much waits and how much is claimed.
expire()
local claimed = redis.call('ZCARD', CLAIMS)
return {number(NUMBERS, 'work') - claimed, claimed}

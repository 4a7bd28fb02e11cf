-- ARGV: now, ids. Their states, in order.
expire()
local states = {}
for index = 2, #ARGV do
  local id = ARGV[index]
  local finished = tonumber(redis.call('ZSCORE', FINISHED, id))
  if redis.call('ZSCORE', CLAIMS, id) then
    states[index - 1] = 'claimed'
  elseif redis.call('EXISTS', work_key(id)) == 1 then
    states[index - 1] = 'waiting'
  elseif finished and finished > now - FINISHED_FOR then
    states[index - 1] = 'finished'
  else
    states[index - 1] = 'unknown'
  end
end
return states

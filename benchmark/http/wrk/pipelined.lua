-- Sixteen requests in one write; wrk counts every answer.
local requests

function init(_)
  local one = wrk.format()
  requests = string.rep(one, 16)
end

function request()
  return requests
end

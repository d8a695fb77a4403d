-- Counts the answers by status, those of a server that has no time for a request apart.
local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  unavailable, failed = 0, 0
end

function response(status)
  if status == 503 then
    unavailable = unavailable + 1
  elseif status >= 400 then
    failed = failed + 1
  end
end

function done()
  local sums = { unavailable = 0, failed = 0 }
  for _, thread in ipairs(threads) do
    for name, sum in pairs(sums) do
      sums[name] = sum + thread:get(name)
    end
  end
  for name, sum in pairs(sums) do
    io.write(("Answers %s: %d\n"):format(name, sum))
  end
end

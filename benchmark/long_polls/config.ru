# frozen_string_literal: true

# What bin/bench long_polls asks: GET /wait?NUMBER is answered when somebody has asked for /publish; /waiting says how
# many wait.

release = Thread::Queue.new
waiting = 0

run(lambda do |env|
  case env["PATH_INFO"]
  when "/wait"
    waiting += 1
    release.pop
    [200, { "content-type" => "text/plain" }, ["message for #{env["QUERY_STRING"]}"]]
  when "/publish"
    release.close
    [204, {}, []]
  else
    [200, { "content-type" => "text/plain" }, [waiting.to_s]]
  end
end)

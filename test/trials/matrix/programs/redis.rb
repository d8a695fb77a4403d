# frozen_string_literal: true

require "redis"

connect = -> { Redis.new(path: ENV.fetch("MATRIX_REDIS")) }
proves_blocked_pops(connect) { |redis, key| redis.blpop(key, timeout: 30).last }
shared = connect.call
got = clients { |number| Array.new(50) { |index| shared.echo("#{number}-#{index}") } }
proves("one Redis object answers 8 tasks, each with its own",
       got == Array.new(CLIENTS) { |number| Array.new(50) { |index| "#{number}-#{index}" } })

# A task that subscribes, beside others that publish.
heard = Heddle.run do
  messages = []
  listening = Heddle::Promise.new
  listener = Heddle.async do
    redis = connect.call
    redis.subscribe("news") do |on|
      on.subscribe { listening.resolve }
      on.message { |_, text| (messages << text).size == CLIENTS && redis.unsubscribe }
    end
  end
  listening.wait
  Heddle.map(0...CLIENTS) { |number| connect.call.publish("news", number.to_s) }
  listener.wait
  messages
end
proves("a task that subscribes receives what 8 others publish", heard.sort == Array.new(CLIENTS, &:to_s))

# An abandoned command leaves no answer for the next one.
got = Heddle.run do
  redis = connect.call
  begin
    Heddle.timeout(0.05) { redis.blpop("nothing", timeout: 30) }
  rescue Heddle::TimeoutError
    redis.echo("mine")
  end
end
proves("after an abandoned command the next one gets its own answer", got == "mine")

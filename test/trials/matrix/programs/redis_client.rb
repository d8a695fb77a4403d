# frozen_string_literal: true

require "redis-client"

config = RedisClient.config(path: ENV.fetch("MATRIX_REDIS"))
proves_blocked_pops(-> { config.new_client }) { |client, key| client.blocking_call(30, "BLPOP", key, 30).last }
shared = config.new_pool(timeout: 10, size: 3)
got = clients { |number| Array.new(50) { |index| shared.call("ECHO", "#{number}-#{index}") } }
proves("a pool of 3 answers 8 tasks, each with its own",
       got == Array.new(CLIENTS) { |number| Array.new(50) { |index| "#{number}-#{index}" } })

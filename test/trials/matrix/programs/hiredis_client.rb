# frozen_string_literal: true

require "hiredis-client"

config = RedisClient.config(driver: :hiredis, path: ENV.fetch("MATRIX_REDIS"))
shared = config.new_pool(timeout: 10, size: 3)
got = clients { |number| Array.new(50) { |index| shared.call("ECHO", "#{number}-#{index}") } }
proves("a pool of 3 answers 8 tasks, each with its own",
       got == Array.new(CLIENTS) { |number| Array.new(50) { |index| "#{number}-#{index}" } })

puts "noted: a blocking command blocks the loop: its driver polls while it has Ruby's lock"

# frozen_string_literal: true

require "redis"

connect = -> { Redis.new(path: ENV.fetch("MATRIX_REDIS")) }
proves_blocked_pops(connect) { |redis, key| redis.blpop(key, timeout: 30).last }
shared = connect.call
got = clients { |number| Array.new(50) { |index| shared.echo("#{number}-#{index}") } }
proves("one Redis object answers 8 tasks, each with its own",
       got == Array.new(CLIENTS) { |number| Array.new(50) { |index| "#{number}-#{index}" } })

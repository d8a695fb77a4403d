# frozen_string_literal: true

# Cancels queries at random moments, while others that are not cancelled use the same connections. HEDDLE_CANCELS: how
# many; the seed repeats the moments, but not what the server makes of them. Prints as JSON what went wrong.

require_relative "support/access"
require "json"

CANCELS = Integer(ENV.fetch("HEDDLE_CANCELS", "1000"))
SEED = Integer(ENV.fetch("HEDDLE_SEED", Random.new_seed.to_s)) % (1 << 32)
TASKS = 8
random = Random.new(SEED)

cancelled = 0
answered = 0
number = 0
wrong = []

ask = lambda do |limit|
  mine = number += 1
  sql = random.rand < 0.5 ? "SELECT #{mine}" : "SELECT #{mine} + 0 * #{SLEEP}(0.003) AS mark_stress"
  sql = "SELECT #{mine} AS mark_stress FROM pg_sleep(0.003)" if DRIVER == "pg" && sql.include?("mark")
  answer = limit ? Heddle.timeout(limit) { ACCESS.value(sql) } : ACCESS.value(sql)
  answered += 1
  wrong << "asked for #{mine}, got #{answer.inspect}" unless answer.to_i == mine
rescue Heddle::TimeoutError
  cancelled += 1
  wrong << "cancelled without being told to" unless limit
rescue StandardError => e
  wrong << "#{e.class}: #{e.message}"
end

Heddle.run do
  Heddle.map(1..TASKS) do |task|
    ask.call(task.even? ? random.rand * 0.004 : nil) until cancelled >= CANCELS || wrong.any?
  end
  began = now
  sleep 0.002 while Observer.running("mark_stress").positive?
  puts JSON.generate(seed: SEED, cancelled:, answered:, wrong: wrong.first(5), gone: (now - began).round(3))
end

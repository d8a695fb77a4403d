# frozen_string_literal: true

# Tasks ask for a number each, again and again, while the database crashes and starts again. The file HEDDLE_RESTARTED
# says that it accepts connections again, HEDDLE_RUNNING that the tasks run. Prints as JSON what they met.

require_relative "support/access"
require "json"

TASKS = 12
wrong = []
errors = Hash.new(0)
late = Array.new(TASKS, 0)

# @return [Boolean] whether it was answered
ask = lambda do |number|
  answer = ACCESS.value("SELECT #{number} FROM pg_sleep(0.001)").to_i
  wrong << "asked for #{number}, got #{answer}" unless answer == number
  true
rescue StandardError => e
  errors[e.class.name] += 1
  false
end

running = 0
Heddle.run do
  Heddle.map(1..TASKS) do |number|
    restarted = false
    until restarted && ask.call(number)
      late[number - 1] += 1 if restarted
      restarted = File.exist?(ENV.fetch("HEDDLE_RESTARTED"))
      next if restarted

      # Where nobody listens, errors come at once.
      ask.call(number) ? running += 1 : sleep(0.01)
      File.write(ENV.fetch("HEDDLE_RUNNING"), "") if running == 10 * TASKS
    end
  end
  busy = Heddle::Databases::Pools.all.first.fetch(:busy)
  puts JSON.generate(wrong:, errors:, late:, busy:)
end

# frozen_string_literal: true

# Cancels queries at random moments and in each way that there is, while others that are not cancelled use the same
# connections. Prints as JSON what went wrong.

require_relative "support/stress"
require_relative "../support/fiber_of"

TASKS = 8
WAYS = {
  "timeout" => ->(limit, query) { Heddle.timeout(limit) { query.call } },
  "plain_timeout" => ->(limit, query) { Timeout.timeout(limit) { query.call } },
  "race" => ->(limit, query) { Heddle.race([query, -> { sleep limit }]) },
  "cancel" => lambda do |limit, query|
    task = Heddle.async { query.call }
    sleep limit
    task.cancel
    task.wait
  end,
  "kill" => lambda do |limit, query|
    task = Heddle.async { query.call }
    sleep limit
    fiber_of(task)&.kill
    task.wait
  end,
  "scope" => lambda do |limit, query|
    Heddle.scope do |scope|
      scope.async { query.call }
      sleep limit
      scope.cancel
    end
  end
}.freeze

cancelled = Hash.new(0)
abandon = lambda do |way, abandoning|
  before = Stress.cancelled
  Stress.ask(given_up: true) { |query| abandoning.call(Stress.moment, query) }
  cancelled[way] += Stress.cancelled - before
end

Heddle.run do
  Heddle.map(1..TASKS) do |task|
    until Stress.done?
      task.even? ? abandon.call(*WAYS.to_a.sample(random: Stress::RANDOM)) : Stress.ask(&:call)
    end
  end
  puts JSON.generate(seed: Stress::SEED, cancelled: Stress.cancelled, ways: cancelled.keys.sort,
                     answered: Stress.answered, wrong: Stress.wrong.first(5), gone: Stress.await_end)
end

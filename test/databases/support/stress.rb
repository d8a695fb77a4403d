# frozen_string_literal: true

require_relative "access"
require "json"

# Queries that are cancelled at random moments, beside others on the same connections. HEDDLE_CANCELS: how many; the
# seed repeats the moments, but not what the server makes of them.
module Stress
  CANCELS = Integer(ENV.fetch("HEDDLE_CANCELS", "1000"))
  SEED = Integer(ENV.fetch("HEDDLE_SEED", Random.new_seed.to_s)) % (1 << 32)
  RANDOM = Random.new(SEED)
  # Seconds until a query is given up, at most.
  LONGEST = 0.004

  class << self
    # `wrong`: what must not happen, in words.
    attr_reader :answered, :cancelled, :wrong

    # @return [Boolean] whether enough queries were cancelled, or something went wrong
    def done? = cancelled >= CANCELS || wrong.any?

    # @return [Float] seconds
    def moment = RANDOM.rand * LONGEST

    # @return [String] a query whose answer is the number: at once, or after 3 ms
    def sql(number)
      return "SELECT #{number}" if RANDOM.rand < 0.5
      return "SELECT #{number} AS mark_stress FROM pg_sleep(0.003)" if DRIVER == "pg"

      "SELECT #{number} + 0 * SLEEP(0.003) AS mark_stress"
    end

    # Asks for a number that nobody else asks for, in the block, which may be left without the answer.
    # @param given_up [Boolean] whether a time limit may end it
    # @yield [query] calls `query` in its way
    def ask(given_up: false)
      mine = @number += 1
      answer = nil
      yield -> { answer = ACCESS.value(sql(mine)) }
    rescue StandardError => e
      wrong << "#{e.class}: #{e.message} at #{e.backtrace&.first}" unless given_up && e.is_a?(Timeout::Error)
    ensure
      answer ? note_answer(mine, answer) : @cancelled += 1
    end

    # @return [Float] seconds until the server runs none of the cancelled queries
    def await_end
      began = now
      sleep 0.002 while Observer.running("mark_stress").positive?
      (now - began).round(3)
    end

    private

    def note_answer(number, answer)
      @answered += 1
      wrong << "asked for #{number}, got #{answer.inspect}" unless answer.to_i == number
    end
  end
  @number = @answered = @cancelled = 0
  @wrong = []
end

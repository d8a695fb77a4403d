# frozen_string_literal: true

# A query of half a minute is abandoned in each way that there is. Prints as JSON, for each way: what it raised, seconds
# from then until the next query was answered, its answer, and seconds until the server ran the abandoned one no more.

require_relative "support/access"
require "json"

def slow(way) = "SELECT #{SLEEP}(30) AS mark_#{way}"

# Returns when the server runs it, and notes the time: the query is abandoned now.
def await_running(way)
  sleep 0.001 until Observer.running("mark_#{way}").positive?
  @abandoned = now
end

def limited(limit)
  @abandoned = now + limit
  yield limit
end

# Waits until the server runs it, then has it abandoned by the block.
def cancelled_task(way, &query)
  task = Heddle.async(&query)
  await_running(way)
  task.cancel
  task.wait
end

WAYS = {
  "timeout" => -> { limited(0.1) { |limit| Heddle.timeout(limit) { ACCESS.value(slow("timeout")) } } },
  "plain_timeout" => -> { limited(0.1) { |limit| Timeout.timeout(limit) { ACCESS.value(slow("plain_timeout")) } } },
  "own_error" => -> { limited(0.1) { |limit| Timeout.timeout(limit, KeyError) { ACCESS.value(slow("own_error")) } } },
  "cancel" => -> { cancelled_task("cancel") { ACCESS.value(slow("cancel")) } },
  "race" => -> { Heddle.race([-> { ACCESS.value(slow("race")) }, -> { await_running("race") }]) },
  "scope" => lambda do
    Heddle.scope do |scope|
      scope.async { ACCESS.value(slow("scope")) }
      await_running("scope")
      scope.cancel
    end
  end,
  "failing_sibling" => lambda do
    Heddle.scope do |scope|
      scope.async { ACCESS.value(slow("failing_sibling")) }
      await_running("failing_sibling")
      raise KeyError
    end
  end,
  "transaction" => lambda do
    cancelled_task("transaction") { ACCESS.transaction { |ask| ask.call(slow("transaction")) } }
  end
}.freeze

seen = {}
Heddle.run do
  ACCESS.value("SELECT 1")
  WAYS.each do |way, abandon|
    error = begin
      Heddle.scope { abandon.call }
      nil
    rescue StandardError => e
      e.class.name
    end
    answer = ACCESS.value("SELECT 42")
    answered = now - @abandoned
    sleep 0.002 while Observer.running("mark_#{way}").positive?
    seen[way] = { error:, answer: answer.to_i, next: answered.round(4), gone: (now - @abandoned).round(4) }
  end
end
puts JSON.generate(seen)

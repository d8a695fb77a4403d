# frozen_string_literal: true

# A fiber is killed while the server runs its query of ten seconds. Prints as JSON the next query's answer, or error,
# and seconds from the kill until then.

require_relative "support/access"
require "json"

seen = Heddle.run do
  ACCESS.value("SELECT 1")
  task = Heddle.async { ACCESS.value("SELECT #{SLEEP}(10) AS mark_killed") }
  sleep 0.001 until Observer.running("mark_killed").positive?
  killed = now
  task.fiber.kill
  answer = begin
    ACCESS.value("SELECT 42").to_i
  rescue StandardError => e
    e.inspect
  end
  { answer:, next: (now - killed).round(4) }
end
puts JSON.generate(seen)

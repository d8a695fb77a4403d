# frozen_string_literal: true

# A connection of pg is left in pipeline mode: without a query, and by an error amid the results. Prints as JSON what
# the next query was answered each time, or its error.

require_relative "support/access"
require "json"

def next_answer
  ACCESS.value("SELECT 42").to_i
rescue StandardError => e
  e.message
end

def amid_results
  ACCESS.raw do |connection|
    connection.enter_pipeline_mode
    2.times { |number| connection.send_query_params("SELECT #{number}", []) }
    connection.pipeline_sync
    connection.get_result
    raise IndexError
  end
rescue IndexError
  next_answer
end

seen = Heddle.run do
  ACCESS.raw(&:enter_pipeline_mode)
  { empty: next_answer, amid: amid_results }
end
puts JSON.generate(seen)

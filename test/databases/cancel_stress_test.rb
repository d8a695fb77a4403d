# frozen_string_literal: true

require_relative "support/database_programs"

# Queries cancelled at random moments, beside others on the same connections. HEDDLE_CANCELS=10000 for more.
class CancelStressTest < Minitest::Test
  include DatabasePrograms

  DatabasePrograms.each_access(self, "cancels_never_strike_or_answer_another_request") do |library, driver|
    cancels = ENV.fetch("HEDDLE_CANCELS", "1000")
    seen = database_program("cancel_stress_program", library, driver, limit: 3, env: { "HEDDLE_CANCELS" => cancels })

    assert_empty seen["wrong"], "seed #{seen["seed"]}"
    assert_operator seen["cancelled"], :>=, Integer(cancels)
    assert_operator seen["answered"], :>, 0
  end
end

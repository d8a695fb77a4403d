# frozen_string_literal: true

# test: long
# test: one version

require_relative "support/database_programs"

# Queries cancelled at random moments, beside others on the same connections. The nightly run repeats them more often,
# HEDDLE_CANCELS=10000 for hours.
class CancelStressTest < Minitest::Test
  include DatabasePrograms

  DatabasePrograms.each_access(self, "cancels_never_strike_or_answer_another_request") do |library, driver|
    seen = stress("cancel_stress_program", library, driver, 200)

    assert_equal %w[cancel kill plain_timeout race scope timeout], seen["ways"]
  end

  DatabasePrograms.each_access(self, "clients_that_leave_never_disturb_another_request") do |library, driver|
    stress("disconnect_stress_program", library, driver, 50)
  end

  private

  def stress(program, library, driver, cancels)
    cancels = ENV.fetch("HEDDLE_CANCELS") { repetitions(cancels).to_s }
    seen = database_program(program, library, driver, limit: 3, env: { "HEDDLE_CANCELS" => cancels })

    assert_empty seen["wrong"], "seed #{seen["seed"]}"
    assert_operator seen["cancelled"], :>=, Integer(cancels)
    assert_operator seen["answered"], :>, 0
    seen
  end
end

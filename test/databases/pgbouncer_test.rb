# frozen_string_literal: true

# test: one version

require_relative "support/database_programs"
require "support/private_pgbouncer"

# PgBouncer between the application and PostgreSQL: one connection of the client uses another one of the database in
# each transaction. So a cancel request goes to the connection that runs the client's query now.
class PgbouncerTest < Minitest::Test
  include DatabasePrograms

  # More than PgBouncer has of the database: some wait there.
  CONNECTIONS = 6
  # The promise is 0.1 s and 0.5 s; the abandoned query takes 10 s. Other tests run at the same time.
  SECONDS = 10

  DatabasePrograms::LIBRARIES.each_key do |library|
    define_method("test_#{library}_cancels_never_strike_or_answer_another_request") do
      cancels = ENV.fetch("HEDDLE_CANCELS", "1000")
      seen = program("cancel_stress_program", library, CONNECTIONS, env: { "HEDDLE_CANCELS" => cancels })

      assert_empty seen["wrong"], "seed #{seen["seed"]}"
      assert_operator seen["cancelled"], :>=, Integer(cancels)
      assert_operator seen["answered"], :>, 0
    end

    define_method("test_#{library}_the_next_query_does_not_wait_for_an_abandoned_one") do
      program("abandoned_program", library, 1).each do |way, result|
        assert_equal 42, result["answer"], way
        assert_operator result["next"], :<, SECONDS, "#{way}: the next query"
        assert_operator result["gone"], :<, SECONDS, "#{way}: the abandoned one on the server"
      end
    end
  end

  private

  # PgBouncer before 1.21 knows no prepared statements.
  def program(name, library, limit, env: {})
    need_program("postgres") unless PrivatePostgresql.programs
    need_program("pgbouncer") unless PrivatePgbouncer.program
    need_gem "pg"
    require "pg"
    env = { "HEDDLE_RECORD_OPTIONS" => "&prepared_statements=false", **env }
    database_program(name, library, "pg", limit:, env:, server: PrivatePgbouncer.shared.url)
  end
end

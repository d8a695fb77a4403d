# frozen_string_literal: true

# test: one version

require_relative "support/database_programs"
require "tmpdir"

# The database crashes under load and starts again: each error concerns one request, no request hangs, and no request
# gets a broken connection of the pool.
class RestartTest < Minitest::Test
  include DatabasePrograms

  DatabasePrograms::LIBRARIES.each_key do |library|
    define_method("test_#{library}_serves_again_with_an_error_for_each_task_at_most") do
      seen = Dir.mktmpdir do |folder|
        running, restarted = %w[running restarted].map { |name| File.join(folder, name) }
        restarting = Thread.new do
          sleep 0.01 until File.exist?(running)
          PrivatePostgresql.shared.restart
          File.write(restarted, "")
        end
        env = { "HEDDLE_RUNNING" => running, "HEDDLE_RESTARTED" => restarted }
        database_program("restart_program", library, "pg", limit: 6, env:)
      ensure
        restarting&.kill&.join
      end

      assert_empty seen["wrong"]
      assert_equal 0, seen["busy"]
      refute_empty seen["errors"]
      assert_operator seen["late"].max, :<=, 1, "once it accepts again: #{seen}"
    end
  end

  DatabasePrograms::DRIVERS.each do |driver|
    define_method("test_sequel_hands_out_no_connection_of_#{driver}_that_was_closed_while_idle") do
      seen = database_program("idle_program", "sequel", driver, limit: 3)

      assert_equal({ "size" => 3, "answers" => [1, 2, 3] }, seen)
    end
  end
end

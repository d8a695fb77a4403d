# frozen_string_literal: true

require_relative "support/database_programs"
require "support/served_process"

# What the server sets in Sequel when it starts, and what it knows about Sequel's pools.
class SequelBootTest < Minitest::Test
  include DatabasePrograms

  APPLICATION = File.expand_path("sequel.ru", __dir__)

  def test_the_sequel_pool_is_listed_in_status_and_metrics
    pools = database_program("sequel_pool_program", "sequel", "pg", limit: 3)

    assert_equal [["sequel", 3, 1, 1, 0, 0]],
                 pools.map { |pool| pool.values_at("library", "limit", "size", "busy", "idle", "waiting") }
  end

  # The mock has the adapter's name alone; the real one's setter comes with the gem sqlite3.
  def test_sqlite_connection_waits_for_a_lock_with_the_loop_for_as_long_as_sequel_would
    need_gem "sequel"
    output, status = unprotected_program(<<~RUBY)
      require "heddle/server"
      require "sequel"
      require "sequel/adapters/mock"
      Heddle::Databases.start(fibers: true)
      Sequel::Mock::Connection.attr_accessor(:busy_handler_timeout)
      p([{}, { timeout: 1_500 }].map do |options|
        Sequel.mock(host: "sqlite", **options).synchronize(&:busy_handler_timeout)
      end)
    RUBY

    assert_predicate status, :success?, output
    assert_equal "[5000, 1500]", output.lines.last.chomp
  end

  { "fiber" => "Fiber", "thread" => "Thread" }.each do |mode, owner|
    define_method("test_in_mode_#{mode}_a_connection_belongs_to_a_#{mode}") do
      need_gem "sequel"
      served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", APPLICATION, "--port", "0", "--mode", mode])

      assert_equal owner, served.get("/").body
      assert_equal "true", served.get("/enumerator").body, "an Enumerator's block has the request's connection"
    ensure
      served&.stop
    end
  end
end

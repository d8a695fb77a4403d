# frozen_string_literal: true

require_relative "support/database_programs"
require "support/served_process"

# What the server says to Sequel when it starts, and what it knows of its pools.
class SequelBootTest < Minitest::Test
  include DatabasePrograms

  APPLICATION = File.expand_path("sequel.ru", __dir__)

  def test_the_sequel_pool_is_listed_in_status_and_metrics
    pools = database_program("sequel_pool_program", "sequel", "pg", limit: 3)

    assert_equal [["sequel", 3, 1, 1, 0, 0]],
                 pools.map { |pool| pool.values_at("library", "limit", "size", "busy", "idle", "waiting") }
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

# frozen_string_literal: true

require_relative "support/database_programs"
require "support/served_process"

# What the server says to Sequel when it starts.
class SequelBootTest < Minitest::Test
  include DatabasePrograms

  APPLICATION = File.expand_path("sequel.ru", __dir__)

  { "fiber" => "Fiber", "thread" => "Thread" }.each do |mode, owner|
    define_method("test_in_mode_#{mode}_a_connection_belongs_to_a_#{mode}") do
      need_gem "sequel"
      served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", APPLICATION, "--port", "0", "--mode", mode])

      assert_equal owner, served.get("/").body
    ensure
      served&.stop
    end
  end
end

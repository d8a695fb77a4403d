# frozen_string_literal: true

require_relative "support/database_programs"
require "support/served_process"

# Connections that requests of an application without Rails lease permanently.
class LeasesTest < Minitest::Test
  include DatabasePrograms

  APPLICATION = File.expand_path("leases.ru", __dir__)

  def test_a_permanent_lease_ends_with_its_request
    need_gem "activerecord"
    url = address("pg")
    served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", APPLICATION, "--port", "0"],
                               environment: { "DATABASE_URL" => url })
    answers = Array.new(2) { Thread.new { served.get("/").body } }.map(&:value)

    assert_equal %w[42 42], answers
  ensure
    served&.stop
  end
end

# frozen_string_literal: true

require "test_helper"
require "support/served_process"

# Gems that a request loads are changed, too, or named in the log.
class LateAdaptationsTest < Minitest::Test
  FILE = File.expand_path("late.ru", __dir__)
  PATIENCE = 60

  def setup
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", FILE, "-p", "0", "-b", "127.0.0.1", "-w", "0",
                                 "--no-access-log"], environment: { "RACK_ENV" => "production" })
  end

  def teardown = @served.stop

  def eventually
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until yield
      flunk "not within #{PATIENCE} s:\n#{@served.output}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.05
    end
  end

  def test_gems_that_a_request_loads_are_changed
    skip "needs the gem rack-timeout: bin/setup" if Gem::Specification.find_all_by_name("rack-timeout").empty?
    @served.get("/load")
    @served.get("/tenant")
    eventually { @served.get("/tenant").body == "none" } # not what the request before has set

    assert_equal "503", @served.get("/limited").code
  end

  def test_gem_with_a_version_that_is_none_ends_no_server
    @served.get("/odd")
    @served.get("/sequel")
    eventually { @served.output.include?("a request has loaded it") }

    assert_equal "200", @served.get("/").code
  end

  def test_gem_that_is_changed_only_at_the_start_is_named_in_the_log
    @served.get("/sequel")
    eventually { @served.output.include?("a request has loaded it") }

    assert_match(/ sequel [\d.]+ is not adapted, because a request has loaded it\. Load the gem with/, @served.output)
  end
end

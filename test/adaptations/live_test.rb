# frozen_string_literal: true

require "test_helper"
require "support/bundle"
require "support/served_process"

# An action of ActionController::Live has the state of its request, though it runs in a thread.
class LiveAdaptationTest < Minitest::Test
  BUNDLES = File.expand_path("../rails/bundles", __dir__)
  FILE = File.expand_path("live.ru", __dir__)
  REQUESTS = 8
  private_constant :BUNDLES, :FILE, :REQUESTS

  def teardown = @served&.stop

  def serve(rails, *options)
    gemfile = "#{BUNDLES}/#{rails}/Gemfile"
    skip "needs the gems of test/rails/bundles/#{rails}: bin/setup" unless Bundle.installed?(gemfile)
    command = [*ServedProcess::HEDDLE, "serve", FILE, "-b", "127.0.0.1:0", "-e", "production", "--workers", "0",
               "--no-access-log", *options]
    @served = ServedProcess.new(command, environment: Bundle.environment(gemfile))
  end

  def answers(path) = Array.new(REQUESTS) { |i| Thread.new { @served.get("/#{path}?#{i}").body } }.map(&:value)

  [%w[rails_8_1], %w[rails_8_1 --mode thread], %w[rails_7_2]].each do |served|
    define_method("test_live_action_has_the_state_of_its_request_with_#{served.join("_").delete("-")}") do
      serve(*served)

      assert_equal(Array.new(REQUESTS) { |i| "#{i} #{i} #{i} #{i} " }, answers("show").map { |text| text[/[^\[]*/] },
                   @served.output)
      assert_equal(Array.new(REQUESTS) { |i| "\"#{i}\"" }, answers("plain"))
    end
  end
end

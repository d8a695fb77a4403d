# frozen_string_literal: true

# test: each version

require "test_helper"
require "support/bundle"
require "support/served_process"

# Other requests are answered while a request of Rails computes.
class RailsPreemptionTest < Minitest::Test
  GEMFILE = File.expand_path("bundles/rails_8_1/Gemfile", __dir__)
  APPLICATION = File.expand_path("support/deep.ru", __dir__)
  private_constant :GEMFILE, :APPLICATION

  def setup
    skip "needs the gems of test/rails/bundles/rails_8_1: bin/setup" unless Bundle.installed?(GEMFILE)
  end

  def teardown = @served&.stop

  # `Monitor#synchronize` is an extension's, and below it lies all of Rails.
  def test_a_request_is_preempted_400_frames_deep_inside_of_monitors
    environment = Bundle.environment(GEMFILE).merge("RAILS_ENV" => "production", "HEDDLE_WORKERS" => "0")
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "-b", "127.0.0.1", "-p", "0", "--control", "off",
                                 APPLICATION], environment:)
    computing = Thread.new { @served.get("/compute").body }
    @served.get("/other") while computing.alive?
    frames, left = computing.value.split

    assert_operator frames.to_i, :>=, 400
    assert_equal "true", left
  end
end

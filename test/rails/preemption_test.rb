# frozen_string_literal: true

# test: each version

require "test_helper"
require "examples/served_example"

# Other requests are answered while a request of Rails computes.
class RailsPreemptionTest < Minitest::Test
  APPLICATION = File.expand_path("support/deep.ru", __dir__)

  def setup
    skip "needs the gems of examples/rails: bin/setup" unless ServedExample.gems?("rails")
  end

  def teardown = @served&.stop

  # `Monitor#synchronize` is an extension's, and below it lies all of Rails.
  def test_a_request_is_preempted_400_frames_deep_inside_of_monitors
    environment = ServedExample.bundle("rails").merge("RAILS_ENV" => "production", "HEDDLE_WORKERS" => "0")
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "-b", "127.0.0.1", "-p", "0", "--control", "off",
                                 APPLICATION], environment:)
    computing = Thread.new { @served.get("/compute").body }
    @served.get("/other") while computing.alive?
    frames, left = computing.value.split

    assert_operator frames.to_i, :>=, 400
    assert_equal "true", left
  end
end

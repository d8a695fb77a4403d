# frozen_string_literal: true

# test: once

require_relative "cluster_case"
require "support/pods"

# A rolling replacement of the pods behind a balancer loses no request.
class RollingReplacementTest < Minitest::Test
  include ClusterCase

  def setup
    need_program("haproxy")
    super
  end

  def teardown
    @pods&.stop_all
    super
  end

  def test_a_replacement_under_load_loses_no_request
    @pods = Pods.new(@folder, "-w", "2", "--reserve-workers", "0", "--drain-delay", "2",
                     environment: { "RACK_ENV" => "production" })
    load = @pods.load(kept: 3, fresh: 6, pause: 0.005)
    load.wait_for(100)
    printed = @pods.replace
    load.wait_for(100)
    load.stop

    assert_empty load.failures
    assert_equal 6, load.by_worker.size, "two workers of each pod have answered"
    refute_match(/ 503 /, printed)
  end
end

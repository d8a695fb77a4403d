# frozen_string_literal: true

# test: once
# test: nightly

require_relative "cluster_case"
require "support/pods"

# Twenty rolling replacements, with the delay that a server has in Kubernetes.
class RollingReplacementsTest < Minitest::Test
  include ClusterCase

  def setup
    need_program("haproxy")
    super
  end

  def teardown
    @pods&.stop_all
    super
  end

  def test_twenty_rolling_replacements_under_load_lose_no_request
    @pods = Pods.new(@folder, "-w", "2", "--no-access-log",
                     environment: { "RACK_ENV" => "production", "KUBERNETES_SERVICE_HOST" => "10.0.0.1" })
    load = @pods.load(kept: 4, fresh: 4)
    20.times do
      load.wait_for(200)
      @pods.replace

      assert_empty load.failures
    end
    load.stop
  end
end

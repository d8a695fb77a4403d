# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# Who is started and who is not, without processes.
class ClusterFleetTest < Minitest::Test
  Cluster = Heddle::Server::Cluster

  def setup
    @fleet = Cluster::Fleet.new(1, Heddle::Net::Scoreboard.new(4), self, -> { 0.0 })
  end

  def test_nobody_is_started_while_there_is_no_mold
    assert_nil @fleet.start(0)
    assert_nil @fleet.start_missing
    assert_empty @fleet.workers
  end

  def test_nobody_is_started_while_the_mold_loads
    @fleet.mold = Cluster::MoldHandle.new(pid: 1, channel: nil, generation: 1, configuration: nil, now: 0.0)

    assert_nil @fleet.start(0)
    assert_empty @fleet.workers
  end
end

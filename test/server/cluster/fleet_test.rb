# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# Who is started and who is not, without processes.
class ClusterFleetTest < Minitest::Test
  Cluster = Heddle::Server::Cluster

  def setup
    @fleet = Cluster::Fleet.new(1, Heddle::Net::Scoreboard.new(4), self, -> { 0.0 })
    @notices = []
  end

  def event(name, **fields) = @notices << Heddle::Events::TABLE.fetch(name).text(fields)

  def test_resize_beyond_the_scoreboard_is_limited_and_logged
    @fleet.resize(3)

    assert_equal 2, @fleet.size
    assert_equal ["2 workers instead of 3: restart the server (USR2) for more"], @notices
  end

  def test_no_worker_is_started_without_a_mold
    assert_nil @fleet.start(0)
    assert_nil @fleet.start_missing
    assert_empty @fleet.workers
  end

  def test_no_worker_is_started_while_the_mold_loads
    @fleet.mold = Cluster::MoldHandle.new(pid: 1, channel: nil, generation: 1, configuration: nil, now: 0.0)

    assert_nil @fleet.start(0)
    assert_empty @fleet.workers
  end
end

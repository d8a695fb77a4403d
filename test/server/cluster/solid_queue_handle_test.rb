# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# The master's record of the process of jobs, without processes.
class ClusterSolidQueueHandleTest < Minitest::Test
  Mold = Struct.new(:configuration, :spawned) do
    def ready? = true

    def channel = self

    def send_message(what, **) = spawned << what
  end

  def mold = Mold.new(Heddle::Server::Configuration.new(solid_queue: true), [])

  def event(*, **) = nil

  def test_jobs_are_forked_by_the_next_mold_when_one_ends_before_it_has_forked_them
    jobs = Heddle::Server::Cluster::SolidQueueHandle.new(self)
    first, second = mold, mold
    2.times { jobs.follow(first) }
    2.times { jobs.follow(second) }

    assert_equal [["spawn_jobs"], ["spawn_jobs"]], [first.spawned, second.spawned]
    jobs.record_spawn(Process.pid)

    assert_predicate jobs, :running?
  end
end

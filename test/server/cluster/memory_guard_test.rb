# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# Workers that use too much memory are found, and not all at the same moment.
class ClusterMemoryGuardTest < Minitest::Test
  Guard = Heddle::Server::Cluster::MemoryGuard
  Worker = Struct.new(:pid)

  def guard(bytes, random = Random.new(1)) = Guard.new(random:, measure: ->(_pid) { bytes })

  def test_more_than_the_limit_is_too_much
    worker = Worker.new(1)

    assert_equal 1_001, guard(1_001).excess(worker, 1_000)
    assert_nil guard(899).excess(worker, 1_000)
    assert_nil guard(1_000_000).excess(worker, 0), "no limit"
    assert_nil guard(nil).excess(worker, 1_000), "not known"
  end

  def test_each_worker_keeps_a_limit_of_its_own
    guard = guard(950)
    workers = Array.new(100) { |pid| Worker.new(pid) }
    found = workers.select { |worker| guard.excess(worker, 1_000) }

    assert_includes 20..80, found.size
    assert_equal found, workers.select { |worker| guard.excess(worker, 1_000) }, "the same ones again"
  end

  def test_a_process_is_measured
    bytes = Guard.pss(Process.pid)
    skip "this system does not tell" unless File.exist?("/proc/self/smaps_rollup")

    assert_operator bytes, :>, 1_000_000
    assert_nil Guard.pss(0)
  end
end

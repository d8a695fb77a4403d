# frozen_string_literal: true

require_relative "cluster_case"

# A worker that dies takes its own requests with it, and is replaced.
class ClusterWorkerDeathTest < Minitest::Test
  include ClusterCase

  KILLS = 5

  def test_killed_workers_fail_only_the_requests_that_they_serve
    serve
    load = self.load(kept: 4, fresh: 4)
    load.wait_for(50)
    killed = Array.new(KILLS) do |number|
      pid = worker
      signal("KILL", pid)
      wait_for(/worker \d \(pid \d+\) has ended: SIGKILL/, number + 1)
      load.wait_for(100)
      pid
    end
    load.stop
    others = load.failures.reject { |failure| failure.worker.nil? || killed.include?(failure.worker) }

    assert_empty others, "requests on workers that nobody has killed"
    assert_operator load.failures.size, :<=, KILLS * 8, "one a client that the worker was serving"
    assert_match(/has ended: SIGKILL, which Heddle has not sent.*starting another now$/, served.output)
  end

  def test_a_worker_that_gets_term_drains_and_ends
    serve
    load = self.load
    load.wait_for(50)
    before = workers
    before.each do |pid|
      signal("TERM", pid)
      wait_until { !alive?(pid) }
      load.wait_for(50)
    end
    load.stop

    assert_empty load.failures
    assert_empty workers & before
  end

  # As when the terminal closes in which the server was started.
  def test_hup_to_all_processes_ends_no_worker
    serve
    before = workers
    (before | children_of(served.pid)).each { |pid| signal("HUP", pid) }
    3.times { assert_includes before, worker }
    signal("HUP") # the master's reload, after which another death would have been told, too
    wait_until { !workers.intersect?(before) }

    refute_includes served.output, "has ended"
  end

  def test_a_worker_that_dies_repeatedly_is_restarted_with_backoff
    serve(workers: 1)
    4.times do |number|
      assert_equal "", ask("/die").read
      wait_for("SIGKILL", number + 1)

      assert_equal "200", served.get("/").code
    end

    assert_equal ["now", "in 0.5 s", "in 1 s", "in 1 s"], served.output.scan(/starting another (.*)$/).flatten
  end

  def test_a_worker_without_a_heartbeat_is_killed_and_replaced
    serve("--worker-timeout", "3")
    stuck = worker
    signal("STOP", stuck)
    wait_until { !alive?(stuck) }

    assert_match(/killing worker \d \(pid #{stuck}\): no heartbeat for \d+ s$/, served.output)
    # The request that said the worker's number may not have been counted as answered yet.
    wait_for(/has ended: no heartbeat for \d+ s(, with 1 request unanswered)?; starting another now/)
  end

  def test_requests_of_a_stuck_worker_are_logged_before_it_is_killed
    write("config.ru", "run ->(_env) { Fiber.blocking { sleep 60 } }")
    serve("--worker-timeout", "3", workers: 1)
    ask("/slow?a=b")
    wait_for("was serving")

    assert_match(%r{worker 0 \(pid \d+\) was serving GET /slow\?a=b for \d+\.\d s$}, served.output)
    wait_for(/has ended: no heartbeat for \d+ s, with 1 request unanswered; starting another now/)
  end
end

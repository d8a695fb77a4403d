# frozen_string_literal: true

require_relative "cluster_case"

# Workers that have served for long enough are replaced, without processes.
class ClusterWorkerLifetimeTest < Minitest::Test
  Lifetime = Heddle::Server::Cluster::WorkerLifetime
  Worker = Struct.new(:index, :slot, :mold, :ready_at, :started_at, :state, :limit_share) do
    def serving? = state == :serving
    def fields = { role: "worker", worker: index }
  end
  Fleet = Struct.new(:workers, :started, :clock) do
    def start(index, replaces:)
      started << index
      Worker.new(index:, started_at: clock.call, mold: replaces.mold, state: :starting)
    end
  end

  def event(name, **fields) = @lines << Heddle::Events::TABLE.fetch(name).text(fields)

  # => of two workers that have served since second 0
  def lifetime(limit_share: 1.0, **options)
    @now = 0.0
    @lines = []
    @requests = [0, 0]
    mold = Struct.new(:configuration).new(Heddle::Server::Configuration.new(**options))
    workers = [0, 1].map { |i| Worker.new(i, i, mold, 0.0, 0.0, :serving, limit_share) }
    clock = -> { @now }
    @fleet = Fleet.new(workers, [], clock)
    Lifetime.new(@fleet, self, self, clock)
  end

  # As the scoreboard.
  def read(slot) = { requests: @requests[slot] }

  def test_worker_is_replaced_at_its_number_of_requests
    lifetime = lifetime(worker_max_requests: 100)
    @requests = [99, 98]
    lifetime.check

    assert_empty @fleet.started
    @now = 7.5
    @requests = [99, 100]
    lifetime.check

    assert_equal [1], @fleet.started
    assert_equal ["replacing worker 1: it has served 100 requests in 7.50 s (worker_max_requests 100 minus up to " \
                  "a tenth)"], @lines
  end

  def test_worker_is_replaced_at_its_age
    lifetime = lifetime(worker_max_age: 60)
    @now = 59.9
    lifetime.check

    assert_empty @fleet.started
    @now = 60.0
    lifetime.check

    assert_equal [0], @fleet.started, "one at a time"
    assert_match(/worker_max_age 60 s minus up to a tenth\)\z/, @lines.first)
  end

  def test_oldest_worker_is_replaced_first_of_those_that_reached_a_limit
    lifetime = lifetime(worker_max_requests: 100)
    @now = 10.0
    @fleet.workers.first.ready_at = 5.0
    @requests = [200, 100]
    lifetime.check

    assert_equal [1], @fleet.started
  end

  def test_limits_are_lower_than_the_options_by_the_share_of_the_worker
    lifetime = lifetime(worker_max_requests: 1000, limit_share: 0.95)
    @requests = [949, 950]
    lifetime.check

    assert_equal [1], @fleet.started
  end

  def test_without_limits_and_beside_a_worker_that_does_not_serve_none_is_replaced
    lifetime = lifetime()
    @requests = [10**9, 0]
    @now = 1e9
    lifetime.check

    assert_empty @fleet.started
    lifetime = lifetime(worker_max_age: 1)
    @now = 10
    @fleet.workers.last.state = :ending
    lifetime.check

    assert_empty @fleet.started
  end

  def test_after_a_successor_that_could_not_serve_the_next_attempt_waits
    lifetime = lifetime(worker_max_age: 60)
    attempts = [60.0, 61.0, 69.9, 70.0].map do |at|
      @now = at
      lifetime.check
      @fleet.started.size
    end

    assert_equal [1, 1, 1, 2], attempts
  end
end

# … and with processes, no request is lost.
class ClusterWorkerReplacementTest < Minitest::Test
  include ClusterCase

  def test_no_request_is_lost_while_workers_reach_their_number_of_requests
    serve("--worker-max-requests", "300")
    first = workers
    load = self.load(kept: 4, fresh: 4)
    wait_for(/replacing worker \d \(pid \d+\): it has served \d+ .* \(worker_max_requests 300 /, 4)
    wait_until("the first workers live on") { first.none? { |pid| alive?(pid) } }
    load.stop

    assert_empty load.failures
    assert_operator load.answered, :>, 1000
    assert_equal 0, said("ended: ")
  end

  def test_old_worker_serves_until_its_successor_is_ready
    write("config/heddle.rb", "worker_max_age 1\nworker_boot { sleep 0.5 }\n")
    serve(workers: 2)
    load = self.load(kept: 2, fresh: 2)
    wait_for("(worker_max_age 1 s", 3)
    load.stop

    assert_empty load.failures
  end
end

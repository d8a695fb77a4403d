# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# When a reserve worker is started, kept ready and ended, without processes.
class ClusterReserveDemandTest < Minitest::Test
  Cluster = Heddle::Server::Cluster
  Mold = Struct.new(:ready, :configuration) do
    def ready? = ready
  end
  Fleet = Struct.new(:mold, :size, :reserves, :workers) do
    def serving = workers.select(&:serving?)
    def resize(_size, reserves) = self.reserves = reserves
  end
  # The slots of workers that are stuck: {slot => seconds}.
  Scoreboard = Struct.new(:stuck) do
    def read(slot) = { stuck_for: stuck[slot] }
  end

  attr_writer :short

  def setup
    @now = 1_000.0
    @lines = []
    @short = false
    @stuck = {}
  end

  def event(name, **fields) = @lines << Heddle::Events::TABLE.fetch(name).text(fields)

  def short? = @short

  def demand(reserve_workers: 1, boot: 0.05)
    configuration = Heddle::Server::Configuration.new(environment: "production", workers: 2, reserve_workers:)
    @fleet = Fleet.new(Mold.new(true, configuration), 2, 0, [])
    2.times { |index| start(index, boot:) }
    @demand = Cluster::ReserveDemand.new(@fleet, Scoreboard.new(@stuck), self, -> { @now }, memory: self)
    check
  end

  # A worker that was forked at once, and has begun to serve after so many seconds; nil: it has not.
  def start(index, rank: 0, fork: 0.01, boot: 0.05)
    worker = Cluster::WorkerHandle.new(index:, rank:, slot: index, channel: nil, mold: @fleet.mold, replaces: nil,
                                       now: @now)
    @fleet.workers << worker
    worker.forked_at = @now += fork if fork
    worker.mark_serving(@now += boot) if boot
    worker
  end

  def check(after = 0)
    @now += after
    @demand.check
    @fleet.reserves
  end

  def stall
    @demand.record_stall
    check
  end

  def test_none_is_there_before_a_worker_is_stuck
    assert_equal 0, demand
  end

  def test_one_is_started_at_the_first_stall_and_ends_30_s_after_the_last_one
    demand

    assert_equal 1, stall
    start(2, rank: 1)

    assert_equal [1, 1], [check(20), stall], "another stall"
    assert_equal [1, 0], [check(29), check(2)]
    assert_empty @lines
  end

  def test_it_stays_while_a_worker_is_stuck
    demand
    stall
    @stuck[0] = 29.0

    assert_equal [1, 1, 1], [check(29), check(29), check(29)]
    @stuck.clear

    assert_equal 0, check(31)
  end

  def test_a_reserve_that_is_stuck_needs_another_one_as_far_as_allowed
    { 1 => 1, 2 => 2, 3 => 2 }.each do |allowed, wanted|
      @stuck.clear
      demand(reserve_workers: allowed)
      stall
      start(2, rank: 1)
      @stuck.update(0 => 0.3, 1 => 0.3, 2 => 0.2)

      assert_equal wanted, stall
    end
  end

  def test_none_is_started_without_a_ready_mold_or_where_none_is_allowed
    demand(reserve_workers: 0, boot: 0.5)

    assert_equal 0, stall
    assert_empty @lines
    demand
    @fleet.mold.ready = false

    assert_equal 0, stall
  end

  def test_none_is_started_while_memory_is_short
    demand
    @short = true

    assert_equal [0, 0], [stall, check(1)]
    assert_equal ["not starting a reserve worker, because memory is short"], @lines
    @short = false

    assert_equal 1, check(1)
    @short = true

    assert_equal 1, check(1), "it stays"
  end

  def test_one_is_kept_ready_where_a_worker_takes_long_to_start
    assert_equal 1, demand(boot: 0.2)
    assert_equal 1, check(100)
    assert_equal ["keeping a reserve worker ready, because one started on demand would be too late: the last " \
                  "worker took 0.2 s to start"], @lines
  end

  def test_the_last_start_counts
    demand(boot: 0.2)
    start(2, rank: 1)

    assert_equal 0, check
    start(0, boot: 0.2)

    assert_equal 1, check
    assert_equal 2, @lines.size
  end

  def test_one_is_kept_ready_where_the_mold_does_not_answer_in_time
    demand
    stall
    worker = start(2, rank: 1, fork: nil, boot: nil)

    assert_equal 1, check(0.09)
    assert_empty @lines
    check(0.02)

    assert_equal ["keeping a reserve worker ready, because one started on demand would be too late: worker 2 " \
                  "was not forked within 0.1 s"], @lines
    worker.forked_at = @now
    worker.mark_serving(@now += 0.05)

    assert_equal 1, check(100)
  end
end

# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# The memory of all processes is measured, and workers that use too much are replaced, without processes.
class ClusterMemoryGuardTest < Minitest::Test
  Guard = Heddle::Server::Cluster::MemoryGuard
  MIB = 1 << 20
  MASTER = 1
  MOLD = 2
  Worker = Data.define(:index, :pid, :mold, :state, :limit_share) do
    def fields = { role: "worker", worker: index }

    def serving? = state.first == :serving
    def name = "worker #{index}"
  end
  Fleet = Struct.new(:workers, :started) do
    def start(index, replaces:) = started << [index, replaces]
  end

  # The readings of a machine: {pid => bytes}, and how often each kind was read.
  class Readings
    attr_reader :sizes, :measured

    def initialize(sizes)
      @sizes = sizes
      @measured = 0
    end

    def used(pid) = @sizes[pid]

    def proportional(pid)
      @measured += 1
      @sizes[pid]
    end
  end

  def setup
    @now = 0.0
    @lines = []
    @published = []
  end

  def event(name, **fields) = @lines << Heddle::Events::TABLE.fetch(name).text(fields)

  # => [guard, fleet, readings] of a master and two workers of 100 MiB
  def guard(budget: nil, sizes: { MASTER => 20, MOLD => 100, 10 => 100, 11 => 100 }, limit_share: 1.0, **options)
    mold = Struct.new(:pid, :configuration).new(MOLD, Heddle::Server::Configuration.new(**options))
    workers = [10, 11].map.with_index { |pid, index| Worker.new(index:, pid:, mold:, state: [:serving], limit_share:) }
    readings = Readings.new(sizes.transform_values { |size| size * MIB })
    fleet = Fleet.new(workers, [])
    guard = Guard.new(fleet, self, -> { @now }, budget: -> { budget && (budget * MIB) }, others: -> { [MASTER] },
                                                memory: readings) { |bytes| @published << (bytes / MIB) }
    [guard, fleet, readings]
  end

  def check(guard, at)
    @now = at
    guard.check
  end

  def test_the_sum_of_all_processes_is_published_every_ten_seconds
    guard, = guard(budget: 1_000)
    [0, 1, 9, 10].each { |at| check(guard, at) }

    assert_equal [220, 220], @published
    assert_equal 220 * MIB, guard.used
  end

  def test_memory_is_measured_at_each_check_when_the_budget_is_near
    guard, = guard(budget: 290)
    [0, 1, 2].each { |at| check(guard, at) }

    assert_equal [220] * 3, @published
  end

  def test_a_process_that_has_ended_counts_nothing
    guard, = guard(sizes: { MASTER => 20, 10 => 100 })
    check(guard, 0)

    assert_equal [120], @published
  end

  def test_a_worker_over_its_own_limit_is_replaced_one_at_a_time
    guard, fleet, = guard(sizes: { MASTER => 20, 10 => 900, 11 => 900 }, worker_memory_limit: 600 * MIB)
    check(guard, 0)

    assert_equal [[0, fleet.workers.first]], fleet.started
    assert_equal ["replacing worker 0: it uses 900 MiB of memory (its limit is worker_memory_limit, 600 MiB, " \
                  "minus up to a tenth)"], @lines
    fleet.workers.first.state[0] = :starting
    check(guard, 10)

    assert_equal 1, fleet.started.size, "not while another one starts"
  end

  def test_a_worker_over_its_limit_stays_while_no_other_can_be_started
    guard, fleet, = guard(sizes: { 10 => 900 }, worker_memory_limit: 600 * MIB)
    fleet.define_singleton_method(:start) { |*, **| nil }
    check(guard, 0)

    assert_empty @lines
  end

  def test_the_limit_is_lower_than_the_option_by_the_share_of_the_worker
    replaced = [0.96, 0.94].map do |limit_share|
      guard, fleet, = guard(sizes: { 10 => 950 }, worker_memory_limit: 1_000 * MIB, limit_share:)
      check(guard, 0)
      fleet.started.size
    end

    assert_equal [0, 1], replaced
  end

  def test_the_limits_of_workers_are_up_to_a_tenth_lower_than_the_options
    shares = Array.new(100) { |index| Heddle::Server::Cluster::WorkerHandle.new(index:, now: 0.0).limit_share }

    assert_operator shares.uniq.size, :>, 50
    assert_empty shares.grep_v(0.9..1.0)
  end

  def test_the_largest_worker_is_replaced_when_all_together_use_too_much
    guard, fleet, readings = guard(budget: 300)
    check(guard, 0)
    readings.sizes.update(10 => 130 * MIB, 11 => 140 * MIB)
    check(guard, 1)

    assert_empty fleet.started, "290 of 300 MiB"
    readings.sizes[10] = 160 * MIB
    check(guard, 2)

    assert_equal [[0, fleet.workers.first]], fleet.started
    assert_equal ["replacing worker 0: it uses 160 MiB of memory, and all processes together use 320 MiB of 300 MiB"],
                 @lines
  end

  def test_workers_that_have_not_grown_stay_and_the_log_says_every_ten_minutes_that_memory_is_short
    guard, fleet, = guard(budget: 200)
    [0, 1, 599, 600, 601].each { |at| check(guard, at) }

    assert_empty fleet.started
    assert_equal 2, @lines.size
    assert_match(/\Aall processes together use 220 MiB of 200 MiB of memory. Replacing a worker would not help:/,
                 @lines.first)
  end

  def test_a_large_worker_stays_while_all_together_fit
    guard, fleet, readings = guard(budget: 1_000)
    check(guard, 0)
    readings.sizes[10] = 800 * MIB
    check(guard, 1)

    assert_equal [220, 920], @published
    assert_empty fleet.started
  end

  def test_nothing_is_replaced_where_nothing_is_known
    guard, fleet, = guard(sizes: {}, worker_memory_limit: MIB)
    check(guard, 0)

    assert_equal [0], @published
    assert_empty fleet.started
  end
end

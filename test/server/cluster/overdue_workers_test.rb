# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "io/nonblock"
require "timeout"

# Which workers are checked, without processes.
class ClusterOverdueWorkersTest < Minitest::Test
  Cluster = Heddle::Server::Cluster

  Mold = Struct.new(:configuration, :pid, :killed) do
    def kill_stuck(reason) = self.killed = reason
  end

  # Serves, and remembers what is done to it.
  class FakeWorker < Cluster::WorkerHandle
    attr_reader :signals, :said

    def initialize(index, configuration)
      mold = Mold.new(configuration, 900)
      @signals = []
      @said = []
      said = @said
      channel = Object.new
      channel.define_singleton_method(:send_message) { |what, **| said << what }
      super(index:, slot: index, channel:, mold:, replaces: nil, now: 0.0)
      self.pid = 1_000 + index
      self.state = :serving
    end

    def kill(why = nil)
      self.reason ||= why
      @signals << "KILL"
    end
  end

  Fleet = Struct.new(:workers) do
    def unanswered(_worker) = 2
    def serving = workers.select(&:serving?)
  end

  def setup
    @now = 0.0
    @lines = []
  end

  def event(name, **fields) = @lines << Heddle::Events::TABLE.fetch(name).text(fields)

  def watch(**options)
    configuration = Heddle::Server::Configuration.new(**options)
    @fleet = Fleet.new(Array.new(2) { |index| FakeWorker.new(index, configuration) })
    Cluster::OverdueWorkers.new(@fleet, self, -> { @now })
  end

  def look(watched, at)
    @now = at
    watched.check
  end

  def test_workers_are_pinged
    watched = watch(worker_timeout: 60)
    look(watched, 0.0)
    look(watched, 4.0)
    look(watched, 5.0)

    assert_equal [%w[ping ping]] * 2, @fleet.workers.map(&:said)
  end

  def test_no_worker_is_pinged_or_killed_without_a_timeout
    watched = watch(worker_timeout: 0)
    look(watched, 10_000.0)

    assert_empty @fleet.workers.flat_map(&:said) + @fleet.workers.flat_map(&:signals) + @lines
  end

  def test_only_a_worker_that_is_asked_for_its_requests_is_killed_when_it_reports_them
    watched = watch(worker_timeout: 60)
    watched.handle_report(@fleet.workers.first, nil)

    assert_empty @fleet.workers.first.signals
  end

  def test_a_silent_one_is_asked_what_it_does_and_killed_when_it_has_said_so
    watched = watch(worker_timeout: 60)
    @fleet.workers.last.last_message_at = 50.0
    look(watched, 61.0)
    silent, other = @fleet.workers

    assert_empty silent.signals
    assert_equal ["killing worker 0 (pid 1000): no heartbeat for 61 s"], @lines
    watched.handle_report(silent, "GET /6 for 6.0 s")

    assert_equal "worker 0 (pid 1000) was serving GET /6 for 6.0 s", @lines.last
    assert_equal [["KILL"], []], [silent.signals, other.signals]
  end

  def test_a_booting_worker_has_at_least_a_minute
    watched = watch(worker_timeout: 5)
    worker = @fleet.workers.first
    @fleet.workers.last.last_message_at = 60.0
    worker.state = :starting
    look(watched, 59.0)

    assert_empty @lines
    look(watched, 61.0)

    assert_equal ["killing worker 0 (pid 1000): not ready after 61 s"], @lines
  end

  def test_mold_that_does_not_fork_a_worker_is_killed
    watched = watch(worker_timeout: 5)
    worker = @fleet.workers.first
    @fleet.workers.last.last_message_at = 60.0
    worker.state = :starting
    worker.pid = nil
    look(watched, 61.0)
    look(watched, 62.0)

    assert_equal ["killing worker 0: its mold (pid 900) is killed: it has not forked this worker for 61 s"], @lines
    assert_equal "it was killed, because it had not forked worker 0 for 61 s", worker.mold.killed
    assert_empty worker.signals
  end

  def test_a_stuck_worker_that_reports_no_requests_is_killed
    watched = watch(worker_timeout: 60)
    look(watched, 61.0)
    look(watched, 62.0)

    assert_equal [["KILL"]] * 2, @fleet.workers.map(&:signals)
    assert_equal 2, @lines.size
  end

  def test_a_worker_whose_report_of_a_crash_hangs_is_killed_as_crashed
    watched = watch(worker_timeout: 60)
    @fleet.workers.each { |worker| worker.pid = Process.pid }
    @fleet.workers.first.pid = crashed = crash_without_a_reader
    look(watched, 10.0)

    assert_empty @fleet.workers.flat_map(&:signals)
    2.times { look(watched, 11.0) }

    assert_equal [["KILL"], []], @fleet.workers.map(&:signals)
    assert_equal ["BUS", nil], @fleet.workers.map(&:crash)
  ensure
    Process.kill("KILL", crashed) if crashed
    Process.wait(crashed) if crashed
  end

  # @return [Integer] a process that hangs in the report of its crash, because nobody reads it
  def crash_without_a_reader
    @reader, writer = IO.pipe
    nil until writer.write_nonblock("." * 65_536, exception: false) == :wait_writable
    writer.nonblock = false
    pid = spawn(RbConfig.ruby, "--disable=gems", "-e", "Process.kill(:BUS, $$)", err: writer)
    writer.close
    Timeout.timeout(60) { sleep 0.001 until Cluster::ExitReason.find_handled_crash(pid) }
    pid
  end

  def test_a_worker_that_does_not_end_in_time_is_killed
    watched = watch
    worker = @fleet.workers.first
    worker.state = :ending
    worker.deadline = 5.0
    look(watched, 6.0)

    assert_equal ["KILL"], worker.signals
    assert_equal ["killing worker 0 (pid 1000): it has not stopped in time, with 2 requests unanswered"], @lines
  end
end

# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# Which workers are started and which are not, without processes.
class ClusterFleetTest < Minitest::Test
  Cluster = Heddle::Server::Cluster

  def setup
    @now = 0.0
    @fleet = Cluster::Fleet.new(1, Heddle::Net::Scoreboard.new(8), self, -> { @now })
    @notices = []
  end

  def event(name, **fields) = @notices << Heddle::Events::TABLE.fetch(name).text(fields)

  def test_resize_beyond_the_scoreboard_is_limited_and_logged
    @fleet.resize(5)

    assert_equal 4, @fleet.size
    assert_equal ["running 4 workers instead of 5: to run more, restart the server (heddle restart or USR2)"], @notices
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

  def test_closed_channel_of_a_worker_that_was_not_forked_is_reported_with_the_molds_reason
    with_starting_worker do |worker|
      @fleet.handle_closed_channel(worker) { @fleet.record_failed_spawn(worker.slot, "no memory") }
    end

    assert_equal 1, @notices.size
    assert_match(/\Aworker 0 has ended before it could serve: it could not be forked: no memory;/, @notices.first)
    assert_empty @fleet.workers
  end

  def test_closed_channel_of_a_worker_without_a_report_means_the_end_of_its_mold
    with_starting_worker { |worker| @fleet.handle_closed_channel(worker) { nil } }

    assert_match(/\Aworker 0 has ended before it could serve: its mold has ended;/, @notices.first)
    assert_empty @fleet.workers
  end

  # A process between the mold and the worker may hang, and keep the channel open.
  def test_worker_that_its_ended_mold_has_not_forked_is_removed_although_its_channel_is_open
    with_starting_worker { @fleet.remove_unforked(@fleet.mold) }

    assert_match(/\Aworker 0 has ended before it could serve: its mold has ended;/, @notices.first)
    assert_empty @fleet.workers
  end

  def test_worker_with_the_process_id_of_an_orphan_that_ended_before_stays
    @fleet.handle_exit(Process.pid, Process::Status.wait(spawn("true")))
    with_starting_worker { |worker| @fleet.record_spawn(worker.slot, Process.pid) }

    assert_equal 1, @fleet.workers.size
  end

  def test_worker_that_ends_before_its_mold_has_reported_it_is_removed
    with_starting_worker do |worker|
      @fleet.handle_exit(Process.pid, Process::Status.wait(spawn("true")))
      @fleet.record_spawn(worker.slot, Process.pid)
    end

    assert_empty @fleet.workers
  end

  def test_worker_that_its_ended_mold_has_forked_stays
    with_starting_worker do |worker|
      @fleet.record_spawn(worker.slot, 1)
      @fleet.remove_unforked(@fleet.mold)
    end

    assert_equal 1, @fleet.workers.size
  end

  def test_workers_that_wait_for_a_mold_that_forks_others_are_not_late
    with_starting_worker do |worker|
      @fleet.resize(2)
      waiting = @fleet.start(1)
      @now = 50.0
      @fleet.record_spawn(worker.slot, 1)

      assert_in_delta 50.0, waiting.last_message_at
    end
  end

  def test_ending_worker_that_a_foreign_signal_ends_is_reported_with_its_unanswered_requests
    end_retired_worker("kill -KILL $$") { nil }

    assert_equal ["worker 0 (pid 1) has ended: SIGKILL, which Heddle has not sent (the system may be out of memory: " \
                  "see dmesg)"], @notices
    assert_predicate @fleet, :unclean?
  end

  def test_ending_worker_that_the_master_has_killed_is_not_reported_again
    end_retired_worker("kill -KILL $$") { |worker| worker.reason = "it has not stopped in time" }

    assert_empty @notices
  end

  # As `heddle stop --now` does with those that are stuck.
  def test_ending_worker_that_the_master_kills_at_once_is_not_reported_as_lost
    with_starting_worker do |worker|
      pid = spawn("sleep", "60")
      @fleet.record_spawn(worker.slot, pid)
      @fleet.retire(worker, "now")
      worker.kill("it was told to stop at once")
      @fleet.handle_exit(pid, Process::Status.wait(pid))
    end

    assert_empty @notices
    assert_predicate @fleet, :unclean?
  end

  def test_ending_worker_whose_crash_report_hangs_is_reported
    end_retired_worker("kill -KILL $$") do |worker|
      worker.crash = "SEGV"
      worker.reason = "SIGSEGV: native code has crashed, and Ruby's report of the crash hangs"
    end

    assert_equal ["worker 0 (pid 1) has ended: SIGSEGV: native code has crashed, and Ruby's report of the crash hangs"],
                 @notices
  end

  def test_ending_worker_that_ends_by_itself_is_not_reported
    end_retired_worker("exit 1") { nil }

    assert_empty @notices
    assert_predicate @fleet, :unclean?
  end

  def end_retired_worker(command)
    with_starting_worker do |worker|
      @fleet.record_spawn(worker.slot, 1)
      @fleet.retire(worker, "stop")
      yield worker
      @fleet.handle_exit(1, Process::Status.wait(spawn("sh", "-c", command)))
    end

    assert_empty @fleet.workers
  end

  def with_starting_worker
    ours, theirs = Cluster::MessageSocket.pair
    configuration = Heddle::Server::Configuration.new(workers: 1, environment: "test")
    @fleet.mold = Cluster::MoldHandle.new(pid: 1, channel: ours, generation: 1, configuration:, now: 0.0)
    @fleet.mold.state = :ready
    yield @fleet.start(0)
  ensure
    [ours, theirs].each(&:close)
  end
end

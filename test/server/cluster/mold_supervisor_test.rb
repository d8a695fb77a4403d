# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# No process can be started for a new mold: the server keeps its present one.
class ClusterMoldSupervisorTest < Minitest::Test
  Cluster = Heddle::Server::Cluster

  Configuration = Struct.new(:worker_timeout) do
    def reload = self
    def needing_restart(_) = []
    def check_selector = nil
    def web_socket_origins = nil
  end
  SharedResources = Struct.new(:tls) do
    def renew_tls(*) = nil
    def roll_back = nil
  end
  Folder = Struct.new(:at) do
    def enter = self.at = :new
    def roll_back = self.at = :old
    def commit = nil
  end
  Master = Struct.new(:fleet, :resources, :folder)
  Systemd = Struct.new(:heard) do
    def reloading = heard << :reloading
    def reloaded(problem) = heard << problem
  end
  MoldSpawner = Struct.new(:all, :tries) do
    def fork_mold(_setting)
      self.tries += 1
      raise Errno::EAGAIN, "fork(2)"
    end

    def each(&) = all.each(&)
    def remove(mold) = all.delete(mold)
  end
  Fleet = Struct.new(:mold) { def empty? = false }

  def setup
    @lines = []
    @fleet = Fleet.new
    @systemd = Systemd.new([])
    master = Master.new(@fleet, SharedResources.new, Folder.new)
    @spawner = MoldSpawner.new([], 0)
    @mold_supervisor = Cluster::MoldSupervisor.new(master, @spawner, @systemd, Configuration.new, self)
  end

  def event(name, **fields) = @lines << Heddle::Events::TABLE.fetch(name).text(fields)

  def test_a_failed_fork_of_the_first_mold_raises_a_boot_error
    error = assert_raises(Heddle::Server::BootError) { @mold_supervisor.load_first }

    assert_match(/can't be forked: .*fork\(2\)/, error.message)
  end

  def test_a_failed_fork_at_a_reload_is_logged_and_reported_to_systemd
    @mold_supervisor.reload

    assert_match(/\Areload failed: .*fork\(2\); keeping the current workers\z/, @lines.first)
    assert_equal :reloading, @systemd.heard.first
    assert_match(/fork\(2\)\z/, @systemd.heard.last)
  end

  def test_a_failed_reload_in_a_folder_whose_name_is_not_utf8_is_reported
    folder = Folder.new
    folder.define_singleton_method(:enter) { raise Errno::ENOENT, "/srv/caf\xE9" }
    master = Master.new(@fleet, SharedResources.new, folder)
    Cluster::MoldSupervisor.new(master, @spawner, @systemd, Configuration.new, self).reload

    assert_match(%r{\Areload failed: .*/srv/caf\\xE9; keeping}, @lines.first)
    assert_match(%r{/srv/caf\\xE9\z}, @systemd.heard.last)
  end

  def mold(pid, state: :ready, age: 0, worker_timeout: 60)
    channel, = Cluster::MessageSocket.pair.each(&:close)
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC) - age
    configuration = Configuration.new(worker_timeout)
    Cluster::MoldHandle.new(pid:, channel:, generation: 1, configuration:, now:).tap { |mold| mold.state = state }
  end

  def test_another_mold_is_loaded_in_place_of_a_stuck_one
    pid = spawn("sleep", "60")
    stuck = mold(pid)
    stuck.kill_stuck("it was killed, because it had not forked worker 0 for 61 s")
    @mold_supervisor.handle_exit(stuck, Process.wait2(pid).last)

    assert_equal "the mold (the process that forks the workers, pid #{pid}) has ended: it was killed, because it " \
                 "had not forked worker 0 for 61 s; loading the application again now", @lines.last
  end

  def test_a_mold_that_has_not_loaded_after_ten_minutes_is_killed
    pid = spawn("sleep", "60")
    @spawner.all << mold(pid, state: :loading, age: 601)
    @mold_supervisor.advance
    @mold_supervisor.handle_exit(@spawner.all.first, Process.wait2(pid).last)

    assert_match(/\Acould not load .* again: loading the application took longer than 600 s; next/, @lines.last)
  end

  def test_a_mold_is_not_killed_when_it_is_ready_or_loads_for_less_or_without_a_worker_timeout
    pid = Process.wait2(spawn("true")).first
    @spawner.all << mold(pid, age: 601) << mold(pid, state: :loading, age: 599) <<
      mold(pid, state: :loading, age: 601, worker_timeout: 0) << mold(nil, state: :loading, age: 601)
    @mold_supervisor.advance

    assert_empty @spawner.all.filter_map(&:failure)
  end

  def test_a_failed_fork_after_a_molds_death_is_retried_with_backoff
    @mold_supervisor.handle_exit(mold(1), Process.wait2(spawn("true")).last)
    @mold_supervisor.advance

    assert_equal 1, @spawner.tries
    assert_match(/could not load the application again: .*fork\(2\); next attempt in 0\.5 s\z/, @lines.last)
    refute_nil @mold_supervisor.next_attempt_at
  end
end

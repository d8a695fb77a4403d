# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# Signals of the master, and what they do in its children.
class ClusterSignalsTest < Minitest::Test
  FORKS = 60

  # As the master and its log: counts the reloads.
  def setup
    @reloads = 0
    @size = 4
    @signals = Heddle::Server::Cluster::Signals.new(self, self)
  end

  def teardown
    @signals.close
  end

  attr_reader :size

  def fleet = self

  def resize(size) = @size = size

  def reload = @reloads += 1

  def event(*, **) = nil

  def test_signals_are_something_to_read_and_run_their_commands
    Process.kill("HUP", Process.pid)

    assert @signals.io.wait_readable(10)
    2.times { @signals.handle }

    assert_equal 1, @reloads
  end

  # Ruby runs the trap of a signal that the process sends itself before it continues.
  def test_signals_of_a_kind_that_arrive_together_change_the_workers_each_time_and_reload_once
    { "TTIN" => 2, "TTOU" => 3, "HUP" => 2 }.each { |name, times| times.times { Process.kill(name, Process.pid) } }
    @signals.handle

    assert_equal [3, 1], [@size, @reloads]
  end

  # Ruby copies what it has not handled yet into the child.
  def test_a_signal_that_comes_before_a_fork_ends_no_child
    parent = Process.pid
    sender = fork { loop { Process.kill("HUP", parent) } }
    statuses = Array.new(FORKS) do
      @signals.handle
      child = fork do
        @signals.close_in_child
        100.times { Thread.pass }
        exit!(0)
      end
      Process.wait2(child).last
    end

    assert_empty statuses.reject(&:success?)
  ensure
    Process.kill("KILL", sender)
    Process.wait(sender)
    Process.kill("HUP", Process.pid) # Ruby handles at once what is left, which would end this process later
  end
end

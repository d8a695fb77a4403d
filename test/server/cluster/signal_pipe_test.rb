# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# Signals of the master, and what becomes of them in its children.
class ClusterSignalPipeTest < Minitest::Test
  FORKS = 60

  def setup
    @pipe = Heddle::Server::Cluster::SignalPipe.new(%w[HUP])
  end

  def teardown
    @pipe.close
  end

  def test_signals_are_something_to_read
    Process.kill("HUP", Process.pid)

    assert @pipe.io.wait_readable(10)
    assert_equal ["HUP"], @pipe.take
    assert_empty @pipe.take
  end

  # Ruby copies what it has not handled yet into the child.
  def test_a_signal_that_comes_before_a_fork_ends_no_child
    parent = Process.pid
    sender = fork { loop { Process.kill("HUP", parent) } }
    statuses = Array.new(FORKS) do
      @pipe.take
      child = fork do
        @pipe.forget
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

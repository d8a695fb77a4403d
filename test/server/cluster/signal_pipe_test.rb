# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# Signals of the master, and what they do in its children.
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
    assert_equal ["HUP"], @pipe.read
    assert_empty @pipe.read
  end

  # Ruby copies what it has not handled yet into the child.
  def test_a_signal_that_comes_before_a_fork_ends_no_child
    parent = Process.pid
    sender = fork { loop { Process.kill("HUP", parent) } }
    statuses = Array.new(FORKS) do
      @pipe.read
      child = fork do
        @pipe.close_in_child
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

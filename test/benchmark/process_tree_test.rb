# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class ProcessTreeTest < Minitest::Test
  def setup
    skip("this system has no /proc") unless File.exist?("/proc/self/smaps_rollup")
  end

  def test_the_tree_includes_grandchildren
    family do |eldest|
      tree = Bench::ProcessTree.new(eldest)

      assert_equal 3, tree.pids.size
      assert_equal eldest, tree.pids.first
    end
  end

  def test_memory_and_time_are_those_of_all
    family do |eldest|
      tree = Bench::ProcessTree.new(eldest)
      alone = Bench::ProcessUsage.megabytes_of(eldest)

      assert_operator tree.rss_megabytes, :>, alone
      assert_operator tree.pss_megabytes, :<, tree.rss_megabytes
      assert_operator tree.cpu_seconds, :>=, Bench::ProcessUsage.cpu_seconds_of(eldest)
    end
  end

  def test_an_ended_process_has_no_memory_or_time
    pid = Process.spawn("true")
    Process.wait(pid)
    tree = Bench::ProcessTree.new(pid)

    assert_nil tree.cpu_seconds
    assert_nil tree.pss_megabytes
  end

  private

  # A process, its child and its grandchild, which live as long as the block.
  def family
    reader, writer = IO.pipe
    program = 'fork { fork { puts("born"); $stdout.flush; sleep }; sleep }; sleep'
    pid = Process.spawn(RbConfig.ruby, "--disable=gems", "-e", program, out: writer, pgroup: true)
    writer.close

    assert_equal "born\n", reader.gets
    yield pid
  ensure
    Process.kill(:KILL, -pid)
    Process.wait(pid)
    reader.close
  end
end

# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "../../benchmark/support/bench"

class ChildTest < Minitest::Test
  def test_each_line_of_the_child_is_yielded
    child('puts %({"port":1}); puts %({"value":2.5,"note":"x"})') do |child|
      assert_equal({ port: 1 }, child.message)
      assert_equal({ value: 2.5, note: "x" }, child.result)
    end
  end

  def test_a_failure_has_the_childs_message
    child('puts %({"failure":"FiberError: no more"})') do |child|
      assert_equal "FiberError: no more", assert_raises(Bench::Child::Failed) { child.result }.message
    end
  end

  def test_a_child_that_ends_without_a_result_is_a_failure_without_a_path_of_this_machine
    child('raise("error in " + __FILE__)') do |child|
      message = assert_raises(Bench::Child::Failed) { child.result }.message

      assert_match(/\Aended without a result \(status 1\): .*error in child\.rb/, message)
      refute_includes message, Dir.tmpdir
    end
  end

  def test_the_error_names_the_signal_that_killed_the_child
    child("Process.kill(:KILL, Process.pid)") do |child|
      assert_match(/signal KILL/, assert_raises(Bench::Child::Failed) { child.result }.message)
    end
  end

  def test_a_child_that_does_not_answer_is_ended
    pid = nil
    child("sleep", time_limit: 0.2) do |child|
      pid = child.pid

      assert_match(/no answer within 0.2 s/, assert_raises(Bench::Child::Failed) { child.result }.message)
    end
    assert_raises(Errno::ESRCH) { Process.kill(0, pid) }
  end

  def test_explain_prefers_the_childs_own_failure
    outside = Bench::Child::Failed.new("connection refused")

    child(%q(puts '{"failure":"TypeError"}'; File.write("#{__FILE__}.said", ""))) do |child, path|
      sleep 0.001 until File.exist?("#{path}.said") # explain waits for a second, a busy machine may need more

      assert_equal "TypeError", child.explain(outside).message
    end
  end

  private

  def child(program, time_limit: 60)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "child.rb")
      File.write(path, "$stdout.sync = true\n#{program}\n")
      child = Bench::Child.new([], program: path, time_limit:)
      begin
        yield child, path
      ensure
        child.close
      end
    end
  end
end

# frozen_string_literal: true

require_relative "support/loop_helpers"

class SuperviseTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_failing_task_does_not_cancel_the_others
    log = []
    failures = []
    in_loop do
      value = Heddle.supervise(on_failure: ->(task, error) { failures << [task.name, error.message] }) do
        Heddle.async(name: "bad") { raise "broken" }
        Heddle.async { turns && log << :good }
        turns
        :value
      end
      assert_equal :value, value
    end

    assert_equal [:good], log
    assert_equal [%w[bad broken]], failures
  end

  def test_failure_of_an_unawaited_task_is_reported
    _, err = capture_io do
      in_loop { Heddle.supervise { Heddle.async(name: "bad") { raise "broken" } } }
    end

    assert_match(/task "bad" failed, and no fiber waits for it:.*supervise_test\.rb.*broken \(RuntimeError\)/m, err)
  end

  def test_failure_that_a_task_waits_for_is_raised_there_and_not_reported
    _, err = capture_io do
      in_loop do
        Heddle.supervise do
          error = assert_raises(RuntimeError) { Heddle.async { raise "broken" }.value }
          assert_equal "broken", error.message
          turns
        end
      end
    end

    assert_empty err
  end

  def test_error_of_the_block_cancels_the_tasks_and_is_raised
    log = []
    assert_raises(KeyError) do
      in_loop do
        Heddle.supervise do
          Heddle.async do
            forever
          ensure
            log << :cancelled
          end
          turns
          raise KeyError
        end
      end
    end

    assert_equal [:cancelled], log
  end

  def test_exception_outside_standard_error_ends_the_scope
    assert_raises(SystemExit) do
      in_loop do
        Heddle.supervise do
          Heddle.async { exit 3 }
          forever
        end
      end
    end
  end

  def test_error_of_on_failure_cancels_the_tasks_and_is_raised
    log = []
    error = assert_raises(IndexError) do
      in_loop do
        Heddle.supervise(on_failure: ->(*) { raise IndexError, "callback" }) do
          Heddle.async do
            forever
          ensure
            log << :cancelled
          end
          turns
          Heddle.async { raise "broken" }
        end
      end
    end

    assert_equal ["callback", [:cancelled]], [error.message, log]
  end

  def test_grandchildren_still_fail_together
    log = []
    in_loop do
      Heddle.supervise(on_failure: ->(task, _) { log << task.name }) do
        Heddle.async(name: "group") do
          Heddle.async(name: "one") do
            forever
          ensure
            log << "one is cancelled"
          end
          Heddle.async(name: "two") { turns && raise("broken") }
        end
        Heddle.async { turns(20) && log << "other" }
      end
    end

    assert_equal ["one is cancelled", "group", "other"], log
  end
end

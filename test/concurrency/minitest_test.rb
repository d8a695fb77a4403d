# frozen_string_literal: true

require_relative "support/loop_helpers"
require "heddle/minitest"

class MinitestHelperTest < Minitest::Test
  # Tests that are run by the tests below, not by Minitest itself.
  def self.test_class(&)
    Class.new(Minitest::Test) do
      include Heddle::Minitest

      def self.runnable_methods = []

      class_eval(&)
    end
  end

  EXAMPLES = test_class do
    def setup
      @loop = Fiber.current_scheduler
    end

    def teardown
      Fiber.scheduler.yield
    end

    def time_limit = name == "test_hangs" ? 0.01 : 5

    def test_passes
      assert_same @loop, Fiber.current_scheduler
      assert_equal [1, 2], Heddle.map([1, 2]) { |n| n }
      Heddle.async(background: true) { Fiber.scheduler.park }
    end

    def test_fails = assert_equal(1, 2)

    def test_hangs = Fiber.scheduler.park

    def test_leaks_a_task
      Heddle.async(name: "leaking") { Fiber.scheduler.park }
      Fiber.scheduler.yield
    end

    def test_leaks_a_fiber
      Fiber.schedule { Fiber.scheduler.park }
    end

    def test_task_fails
      Heddle.async { raise KeyError, "in the task" }
      Fiber.scheduler.park
    end
  end

  def test_passing_test_runs_in_a_loop_with_setup_and_teardown
    result = run_example("test_passes")

    assert_predicate result, :passed?
    assert_equal 2, result.assertions
    assert_nil Fiber.scheduler
  end

  def test_failing_test_fails_as_ever
    result = run_example("test_fails")

    assert_match(/Expected: 1/, failure(result))
  end

  def test_time_limit_names_the_line_where_the_test_waited
    line = EXAMPLES.instance_method(:test_hangs).source_location.last
    assert_match(/did not end within 0.01 s.*#{__FILE__}:#{line}/m,
                 failure(run_example("test_hangs")))
  end

  def test_leaked_task_fails_the_test_and_is_named
    assert_match(/the test has ended.*leaking \(waiting\).*#{__FILE__}/m, failure(run_example("test_leaks_a_task")))
  end

  def test_leaked_fiber_fails_the_test
    assert_match(/the test has ended.*not a task/m, failure(run_example("test_leaks_a_fiber")))
  end

  def test_failed_task_fails_the_test
    assert_match(/KeyError: in the task/, failure(run_example("test_task_fails")))
  end

  private

  def run_example(name) = EXAMPLES.new(name).run

  def failure(result)
    assert_equal 1, result.failures.size, result.failures.inspect
    failure = result.failures.first
    "#{failure.message}\n#{failure.backtrace&.join("\n")}"
  end
end

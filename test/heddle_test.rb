# frozen_string_literal: true

# test: smoke

require_relative "concurrency/support/loop_helpers"
require "English"
require "open3"
require "rbconfig"

class HeddleTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_run_returns_the_value_of_its_block
    assert_equal 42, in_loop { 42 }
    assert_nil Fiber.scheduler
  end

  def test_run_raises_what_the_block_raises
    assert_raises(KeyError) { in_loop { raise KeyError } }
    assert_nil Fiber.scheduler
  end

  def test_fibers_outside_the_tree_do_not_delay_an_error
    log = []
    error = assert_raises(KeyError) do
      in_loop do
        Fiber.schedule do
          sleep
        ensure
          log << :cancelled
        end
        raise KeyError
      end
    end

    assert_equal [:cancelled], log
    refute_kind_of Heddle::FurtherFailures, error
  end

  def test_nested_run_starts_no_second_loop_and_waits_for_its_own_tasks
    log = []
    in_loop do
      outer = Fiber.scheduler
      Heddle.run do
        assert_same outer, Fiber.scheduler
        Heddle.async { turns && log << :inner }
      end
      log << :after
    end

    assert_equal %i[inner after], log
  end

  def test_run_waits_for_everything_that_was_started
    log = []
    in_loop { Heddle.async { Heddle.async { turns && log << :deep } } }

    assert_equal [:deep], log
  end

  def test_tasks_run_at_the_same_time
    begun = 0
    seen = []
    in_loop do
      20.times do
        Heddle.async do
          begun += 1
          turns(1) until begun == 20
          seen << begun
        end
      end
    end

    assert_equal [20] * 20, seen
  end

  def test_async_outside_a_loop_says_how_to_start_one
    error = assert_raises(Heddle::NoLoopError) { Heddle.async {} }

    assert_equal "Heddle.async: this thread runs no event loop. Call it inside Heddle.run { ... }", error.message
  end

  def test_run_needs_a_block
    assert_raises(ArgumentError) { Heddle.run }
  end

  def test_selector_can_be_named
    name = Heddle::Selector.available.last

    assert_equal(name, Heddle.run(selector: name) { Fiber.scheduler.selector })
    assert_raises(ArgumentError) { Heddle.run(selector: :wheel) {} }
  end

  def test_every_thread_has_its_own_loop
    loops = Array.new(3) { Thread.new { Heddle.run { Heddle.async { turns && Fiber.scheduler }.value } } }.map(&:value)

    assert_equal 3, loops.uniq(&:object_id).size
  end

  def test_scheduler_of_another_kind_is_refused_with_the_way_out
    Thread.new do
      other = Class.new(Object) do
        %i[block unblock kernel_sleep io_wait fiber_interrupt close].each { |name| define_method(name) { |*| nil } }
      end
      Fiber.set_scheduler(other.new)
      error = assert_raises(Heddle::NoLoopError) { Heddle.run {} }
      assert_match(/another scheduler.*Thread\.new \{ Heddle\.run/, error.message)
    ensure
      Fiber.set_scheduler(nil)
    end.join
  end

  def test_exit_in_a_task_ends_everything_in_order
    log = []
    error = assert_raises(SystemExit) do
      in_loop do
        Heddle.async do
          forever
        ensure
          turns
          log << :cleaned_up
        end
        Heddle.async { exit 3 }
        forever
      end
    end

    assert_equal 3, error.status
    assert_equal [:cleaned_up], log
  end

  def test_exception_raised_into_the_thread_cancels_everything_and_is_raised
    log = []
    ready = Thread::Queue.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run do
        Heddle.async do
          forever
        ensure
          turns
          log << :task
        end
        Fiber.schedule do
          forever
        ensure
          log << :fiber
        end
        begin
          turns
          ready << true
          sleep
        ensure
          log << :block
        end
      end
    end
    ready.pop
    nil until thread.stop?
    thread.raise(KeyError, "stop")

    assert_equal "stop", assert_raises(KeyError) { thread.value }.message
    assert_equal %i[block fiber task], log.sort
  end

  def test_loading_it_loads_no_rack_and_nothing_that_is_not_used
    out, status = Open3.capture2e(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", <<~RUBY)
      require "heddle"
      Heddle.run { Heddle.async { 1 }.value }
      features = $LOADED_FEATURES.grep(%r{/heddle/|/rack|/net/http|/socket\\.rb|/timeout\\.rb})
      puts features.map { |path| path[%r{(heddle/.*)}, 1] || path }
      puts defined?(Rack).inspect
    RUBY

    assert_predicate status, :success?, out
    assert_match(/^nil$/, out)
    refute_match(%r{/rack|heddle/(http|rack|server|cli)|concurrency/(channel|pool|map|race)|/timeout\.rb}, out)
  end

  INTERRUPTED = <<~RUBY
    require "heddle"
    begin
      Heddle.run do
        Heddle.async do
          Fiber.scheduler.park
        ensure
          sleep 0.01
          # without Ruby's buffer: a signal right after the write would leave the line there
          $stdout.syswrite("cleaned up\n")
          ARGV.first == "stubborn" && sleep
        end
        Heddle.async { sleep 0.001; $stdout.syswrite("ready\n") }
        sleep
      end
    rescue Interrupt
      puts "interrupted"
    end
  RUBY

  def test_ctrl_c_ends_everything_in_order
    with_program(INTERRUPTED) do |output, pid|
      assert_equal "ready\n", output.gets
      Process.kill(:INT, pid)
      assert_equal "cleaned up\ninterrupted\n", output.read
    end
  end

  def test_second_ctrl_c_ends_it_at_once
    with_program(INTERRUPTED, "stubborn") do |output, pid|
      assert_equal "ready\n", output.gets
      Process.kill(:INT, pid)
      assert_equal "cleaned up\n", output.gets
      took = seconds do
        Process.kill(:INT, pid)
        assert_equal "interrupted\n", output.read
      end
      assert_operator took, :<, Heddle::Concurrency::Frame::DEFAULT_GRACE, "it did not wait for the grace"
    end
  end

  # The signal reaches the main thread while it runs a task, twice.
  def test_ctrl_c_amid_a_computing_task_does_the_same
    with_program(<<~RUBY) do |output, _pid|
      require "heddle"
      begin
        Heddle.run do
          Heddle.async do
            Fiber.scheduler.park
          ensure
            puts "cleaned up"
          end
          Heddle.async do
            Fiber.scheduler.yield
            Process.kill(:INT, Process.pid)
            loop { }
          end
          Heddle.scope { Heddle.async { Fiber.scheduler.park } }
        end
      rescue Interrupt
        puts "interrupted"
      end
      begin
        Heddle.run do
          Heddle.async do
            Fiber.scheduler.park
          ensure
            Fiber.scheduler.park
          end
          Heddle.async do
            Fiber.scheduler.park
          ensure
            Process.kill(:INT, Process.pid)
            loop { }
          end
          Fiber.scheduler.yield
          Process.kill(:INT, Process.pid)
          loop { }
        end
      rescue Interrupt
        puts "at once"
      end
    RUBY
      took = seconds { assert_equal "cleaned up\ninterrupted\nat once\n", output.read }
      assert_operator took, :<, 2 * Heddle::Concurrency::Frame::DEFAULT_GRACE, "it did not wait for the grace"
    end
  end

  def test_starts_a_loop_in_any_fiber
    in_fiber = -> { Heddle.run { Heddle.async { turns && :value }.value } }

    assert_equal :value, Fiber.new { in_fiber.call }.resume
    assert_equal :value, Enumerator.new { |results| results << in_fiber.call }.next
  end

  def test_works_in_a_child_after_fork
    in_loop do
      Heddle.async { turns(20) }
      pid = fork do
        value = Heddle.run { Heddle.map([1, 2]) { |n| turns && n } }
        exit!(value == [1, 2] ? 0 : 1)
      end
      Process.wait(pid)
      assert_equal 0, $CHILD_STATUS.exitstatus
    end
  end

  def test_every_ractor_has_its_own_loop
    command = [RbConfig.ruby, "-W0", "-I#{File.join(ROOT, "lib")}"]
    # io_uring, should this run be for it, is nothing for a Ractor.
    out, = Open3.capture2e({ "HEDDLE_SELECTOR" => nil }, *command, "-e", <<~RUBY)
      require "heddle"
      Heddle.eager_load
      ractors = Array.new(2) do |number|
        Ractor.new(number) do |n|
          Heddle.run { Heddle.map(1..3) { |i| Heddle.timeout(5) { sleep(0.001) && (n * 10) + i } } }
        end
      end
      p(ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take })
    RUBY

    assert_equal "[[1, 2, 3], [11, 12, 13]]\n", out
  end

  private

  def with_program(program, *arguments)
    command = [RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", program, *arguments]
    IO.popen(command, err: %i[child out]) { |output| yield output, output.pid }
  end
end

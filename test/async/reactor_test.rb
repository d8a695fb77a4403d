# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# Scripts for async's own reactor, on Heddle's loop by one require.
class AsyncReactorTest < Minitest::Test
  BEGINNING = <<~RUBY.freeze
    require #{File.join(Heddle::TestHelpers::ROOT, "bin/support/gem_paths.rb").dump}
    require "heddle/async/reactor"
    def until_the_end(&block)
      sleep
    ensure
      block.call
    end
  RUBY

  def test_a_script_runs_on_heddles_loop
    assert_equal "[Heddle::Scheduler, :inner, :outer]\n", script(<<~RUBY)
      task = Async do |outer|
        found = outer.async { sleep 0.001; :inner }
        [Fiber.scheduler.class, found.wait, :outer]
      end
      p task.wait
    RUBY
  end

  def test_the_loop_ends_when_only_transient_tasks_are_left
    assert_equal ":waited\n:cleaned_up\n", script(<<~RUBY)
      Async do |task|
        task.async(transient: true) { until_the_end { p(:cleaned_up) } }
        task.async { sleep 0.001; p :waited }
      end
    RUBY
  end

  def test_ctrl_c_cancels_the_tasks_and_is_raised_again
    assert_equal ":cleaned_up\nInterrupt\n", script(<<~RUBY)
      begin
        Sync do
          Process.kill(:INT, Process.pid)
          sleep
        ensure
          p :cleaned_up
        end
      rescue Interrupt => e
        puts e.class
      end
    RUBY
  end

  def test_a_reactor_is_run_by_hand_and_closed
    assert_equal "[:begun, :turned, :cancelled]\n", script(<<~RUBY)
      log = []
      reactor = Async::Reactor.new
      reactor.async { log << :begun; Fiber.scheduler.yield; log << :turned; until_the_end { log << :cancelled } }
      2.times { reactor.run_once(0) }
      reactor.close
      p log
    RUBY
  end

  def test_run_once_waits_for_one_event
    assert_equal "[:first, :second, false]\n", script(<<~RUBY)
      log = []
      reactor = Async::Reactor.new
      [[:first, 0.01], [:second, 0.02]].each { |name, seconds| reactor.async { sleep seconds; log << name } }
      turns = 0
      turns += 1 while reactor.run_once
      p [*log, turns > 10]
    RUBY
  end

  def test_run_once_returns_at_an_event_at_its_limit_and_when_interrupted
    assert_equal "[[:done], [:done], [:done]]\n", script(<<~RUBY)
      log = []
      reactor = Async::Reactor.new
      reactor.async { sleep 0.01; log << :done }
      reactor.async { sleep 10; log << :late }
      logs = [20, 0.01, nil].map do |limit|
        Thread.new { loop { Thread.pass; reactor.interrupt } } unless limit
        reactor.run_once(limit)
        log.dup
      end
      reactor.close
      p logs
    RUBY
  end

  # It would wait forever; without other fibers that is a DeadlockError.
  def test_a_heddle_task_or_a_plain_fiber_that_asked_for_its_task_keeps_no_loop_running
    assert_equal "[:task, :fiber, :cancelled]\n", script(<<~RUBY)
      log = []
      Sync do
        Heddle.async do
          Async::Task.current.with_timeout(5) { log << :task }
          Fiber.schedule { Async::Task.current && log << :fiber }
        end.wait
        cancelled = Heddle.async { Async::Task.current && sleep(100) }
        sleep 0
        cancelled.cancel
        log << cancelled.wait.state
      end
      p log
    RUBY
  end

  private

  def script(code)
    output, status = Open3.capture2e(RbConfig.ruby, "-e", BEGINNING + code)

    assert_predicate status, :success?, output
    output
  end
end

# frozen_string_literal: true

require "test_helper"
require "support/forbidden_io_uring"
require "support/scheduled"
require "open3"

# R3: the best selector that the machine allows is chosen at run time, and a user can name one.
class SelectorTest < Minitest::Test
  include Scheduled

  def test_select_is_built_in_everywhere_and_works
    assert_includes Heddle::Selector.built, :select
    assert_nil Heddle::Selector.unavailable_reason(:select)
  end

  def test_the_best_is_the_first_that_works_here
    out, = ruby('require "heddle/scheduler"; p Heddle::Selector.best == Heddle::Selector.available.first',
                env: { "HEDDLE_SELECTOR" => nil })

    assert_equal "true\n", out.lines.last
  end

  def test_a_loop_of_another_thread_is_cheap_to_open
    program = 'require "heddle"; chosen = -> { Heddle.run { Fiber.scheduler.selector } }; ' \
              "p [chosen.call == Heddle::Selector.best, Thread.new(&chosen).value]"
    out, = ruby(program, env: { "HEDDLE_SELECTOR" => nil })
    expected = Heddle::Selector.available.include?(:epoll) ? :epoll : Heddle::Selector.best

    assert_equal [true, expected].inspect, out.lines.last.chomp
    out, = ruby(program, env: { "HEDDLE_SELECTOR" => "select" })

    assert_equal "[true, :select]", out.lines.last.chomp
  end

  def test_a_user_can_name_one
    Heddle::Selector.available.each do |name|
      assert_equal name, Heddle::Scheduler.new(selector: name).selector
      out, = ruby('require "heddle/scheduler"; p Heddle::Scheduler.new.selector',
                  env: { "HEDDLE_SELECTOR" => name.to_s })

      assert_equal "#{name.inspect}\n", out
    end
  end

  def test_a_wrong_name_is_an_error_that_lists_the_right_ones
    error = assert_raises(ArgumentError) { Heddle::Scheduler.new(selector: :epol) }

    assert_match(/:epol, but .* supports only .*select/, error.message)
    out, = ruby('require "heddle/scheduler"; Heddle::Scheduler.new rescue puts $!.message',
                env: { "HEDDLE_SELECTOR" => "nonsense" })

    assert_match(/HEDDLE_SELECTOR.*nonsense/, out)
  end

  # Needs no privileges: the kernel itself refuses the call.
  def test_a_refused_io_uring_falls_back_to_epoll_with_one_line
    program = <<~RUBY
      require "heddle/scheduler"
      2.times do
        scheduler = Heddle::Scheduler.new
        Fiber.set_scheduler(scheduler)
        Fiber.schedule { sleep 0.001; puts scheduler.selector }
        Fiber.set_scheduler(nil)
      end
    RUBY
    ForbiddenIOUring::CALLS.each do |name, call|
      launcher = ForbiddenIOUring.launcher(call) or skip ForbiddenIOUring::NEEDS
      out, status = Open3.capture2e({ "HEDDLE_SELECTOR" => nil, "RUBYOPT" => nil }, *launcher, RbConfig.ruby,
                                    "-I#{File.join(ROOT, "lib")}", "-e", program)

      assert_predicate status, :success?, "#{name}: #{out}"
      assert_equal %w[epoll epoll], out.lines(chomp: true).grep_v(/heddle:/), name
      assert_equal 1, out.scan("io_uring can't run here: io_uring is forbidden").size, "#{name}: #{out}"
    end
  end

  # A ring needs more of it than the probe. With 8 MiB, which systemd allows, a user has about forty loops.
  def test_a_loop_that_finds_too_little_locked_memory_falls_back_with_one_line
    skip "io_uring is not built in" unless Heddle::Selector.built.include?(:io_uring)
    program = <<~RUBY
      require "heddle/scheduler"
      selectors = (64..320).step(8).map do |kilobytes|
        Process.setrlimit(:MEMLOCK, kilobytes * 1_024, 320 * 1_024)
        scheduler = Heddle::Scheduler.new
        Fiber.set_scheduler(scheduler)
        Fiber.schedule { sleep 0.001 }
        scheduler.selector.tap { Fiber.set_scheduler(nil) }
      end
      puts selectors.include?(:epoll)
    RUBY
    # Root has no such limit, and the programs of a user share one.
    user = Process.uid.zero? ? %w[setpriv --reuid 54321 --clear-groups] : []
    out, status = Open3.capture2e({ "HEDDLE_SELECTOR" => nil, "RUBYOPT" => nil }, *user, RbConfig.ruby,
                                  "-I#{File.join(ROOT, "lib")}", "-e", program)

    assert_predicate status, :success?, out
    assert_match(/\A[^\n]*using epoll, because io_uring can't run here: the limit of locked memory.*\ntrue\n\z/, out)
  end

  def test_where_threads_migrate_io_uring_is_not_used
    skip "io_uring is not built in" unless Heddle::Selector.built.include?(:io_uring)
    out, = ruby('require "heddle/scheduler"; p Heddle::Selector.best, Heddle::Selector.unavailable_reason(:io_uring)',
                env: { "HEDDLE_SELECTOR" => nil, "RUBY_MN_THREADS" => "1" })

    assert_match(/:epoll\n.*RUBY_MN_THREADS/, out)
  end
end

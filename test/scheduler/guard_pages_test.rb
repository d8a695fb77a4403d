# frozen_string_literal: true

# test: once
# test: not sanitized
require "test_helper"
require "heddle/scheduler"
require "open3"
require "rbconfig"

# Each test in a process of its own: how many mappings a process has is what is tested.
class GuardPagesTest < Minitest::Test
  MAXIMUM_MAPPINGS = "/proc/sys/vm/max_map_count"

  PREAMBLE = <<~RUBY
    require "heddle/scheduler"

    SCHEDULER = Heddle::Scheduler.new
    Fiber.set_scheduler(SCHEDULER)

    def waiting_fibers(count) = count.times { Fiber.schedule { SCHEDULER.park } }
    def end_waiting_fibers = SCHEDULER.each_fiber { |fiber, *| SCHEDULER.unpark(fiber) }
    def mappings = File.foreach("/proc/self/maps").count

    def recurse(depth = 0) = recurse(depth + 1)

    # Ruby's own functions for arrays call each other on the machine stack.
    def recurse_in_c = 300_000.times.inject([]) { |inner, _| [inner] }.inspect

    def overflow(method)
      error = nil
      Fiber.new { send(method) rescue error = $!.class }.resume
      error
    rescue SystemStackError => e
      e.class
    end
  RUBY

  # Stacks with a mapping for each guard would be 32,000 at most. The nightly run has 100,000.
  def test_more_fibers_than_half_of_the_default_limit_wait_at_once
    need_guard_pages
    need_memory(3)
    count = [repetitions(40_000), 100_000].min
    output = ruby(<<~RUBY)
      waiting_fibers(#{count})
      puts SCHEDULER.fiber_count, mappings
      end_waiting_fibers
      SCHEDULER.run
      puts SCHEDULER.fiber_count
    RUBY
    assert_equal count, output[0].to_i
    assert_operator output[1].to_i, :<, 5_000
    assert_equal 0, output[2].to_i
  end

  def test_a_few_stacks_keep_their_memory_and_many_give_it_back
    need_guard_pages
    given_back = <<~'RUBY'
      def given_back = File.foreach("/proc/self/smaps").sum { |line| line[/\ALazyFree: +(\d+)/, 1].to_i }

      100.times { Fiber.schedule { sleep 0.01 } }
      SCHEDULER.run
      puts given_back
      waiting_fibers(2_000)
      odd = false
      SCHEDULER.each_fiber { |fiber, *| SCHEDULER.unpark(fiber) if (odd = !odd) }
      Fiber.schedule do
        sleep 0.01
        puts given_back
        end_waiting_fibers
      end
      SCHEDULER.run
    RUBY
    few, many = ruby(given_back).map(&:to_i)
    assert_operator few, :<, 100 * 4 # KiB: less than a page of each; musl's malloc gives some of its own back
    assert_operator many, :>, 0 if RUBY_VERSION >= "3.4" # 3.3 keeps them all
  end

  def test_a_stack_that_overflows_raises_as_before
    need_guard_pages
    output = ruby(<<~RUBY)
      waiting_fibers(500)
      3.times { puts overflow(:recurse), overflow(:recurse_in_c) }
      end_waiting_fibers
    RUBY
    assert_equal ["SystemStackError"] * 6, output
  end

  def test_a_child_has_the_guards_too
    need_guard_pages
    output = ruby(<<~RUBY)
      waiting_fibers(500)
      end_waiting_fibers
      SCHEDULER.run # the child takes over their stacks
      child = fork do
        Fiber.set_scheduler(nil)
        2.times { puts overflow(:recurse), overflow(:recurse_in_c) }
        fibers = Array.new(2_000) { Fiber.new { Fiber.yield; 1 }.tap(&:resume) }
        puts overflow(:recurse_in_c), fibers.sum(&:resume)
        $stdout.flush
      end
      puts Process.wait2(child).last.success?
    RUBY
    assert_equal [*["SystemStackError"] * 5, "2000", "true"], output
  end

  def test_compaction_moves_what_waiting_fibers_hold
    need_guard_pages
    output = ruby(<<~RUBY)
      results = []
      1_000.times { |i| Fiber.schedule { held = ["fiber", i.to_s * 30]; SCHEDULER.park; results << held.last } }
      GC.verify_compaction_references(expand_heap: true, toward: :empty)
      end_waiting_fibers
      SCHEDULER.run
      puts results.sort == Array.new(1_000) { |i| i.to_s * 30 }.sort
    RUBY
    assert_equal ["true"], output
  end

  def test_without_guard_pages_the_error_names_the_limit
    limit = Integer(File.read(MAXIMUM_MAPPINGS)) if File.exist?(MAXIMUM_MAPPINGS)
    skip "needs Linux" unless limit
    skip "vm.max_map_count is #{limit}: too many fibers to reach it" if limit > 100_000
    output = ruby(<<~RUBY, "HEDDLE_GUARD_PAGES" => "0")
      puts Heddle::Scheduler.guard_pages
      begin
        waiting_fibers(#{limit})
      rescue FiberError => e
        puts e.message
      end
      puts SCHEDULER.fiber_count
      end_waiting_fibers
      SCHEDULER.run
      puts SCHEDULER.fiber_count
    RUBY
    assert_equal "switched off by HEDDLE_GUARD_PAGES=0", output[0]
    assert_includes output[1], "vm.max_map_count = #{limit}"
    assert_includes output[1], "sysctl -w vm.max_map_count="
    assert_operator output[2].to_i, :>, (limit / 2) - 3_000
    assert_operator output[2].to_i, :<, limit / 2
    assert_equal "0", output[3]
  end

  private

  def need_guard_pages
    reason = Heddle::Scheduler.guard_pages
    skip "needs guard pages by madvise: #{reason}" unless reason == :on
  end

  def need_memory(gibibytes)
    available = File.read("/proc/meminfo")[/^MemAvailable:\s+(\d+)/, 1].to_i
    skip "needs #{gibibytes} GiB of memory" if available < gibibytes * 1024 * 1024
  end

  # @return [Array<String>] the lines that the program printed
  def ruby(program, environment = {})
    lib = File.join(ROOT, "lib")
    output, status = Open3.capture2e(environment, RbConfig.ruby, "-W0", "-I#{lib}", stdin_data: PREAMBLE + program)
    assert_predicate status, :success?, output
    output.lines(chomp: true)
  end
end

# frozen_string_literal: true

# test: one selector

require "test_helper"
require "support/scheduled"
require "heddle"
require_relative "../offload/support/native_calls"

require NativeCallsLibrary.path

# Each cause that can block a loop is told apart from the others, with its place.
class StallsTest < Minitest::Test
  include Scheduled

  THRESHOLD = 0.04
  LONG = 0.16

  def setup
    @told = []
    Heddle::Stalls.reset
    Heddle.enable :stall_report, threshold: THRESHOLD
  end

  def teardown
    Heddle.disable :stall_report
  end

  # Of processor time: what a busy machine takes is no stall. Preemption would prevent the stall.
  def compute(seconds)
    deadline = computed + seconds
    Heddle.without_preemption { nil until computed > deadline }
  end

  def computed = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

  # The stalls of a loop in which the block is called: with a longer time each time until one has the cause. Which it is
  # is found out by looking now and then, for which a busy machine leaves little time.
  # @param share [Numeric] how much of that time the stall has to take
  def until_stall(cause, share: 0.8)
    6.times do |power|
      seconds = LONG * (2**power)
      found = stalls_of(patience: 5) { yield seconds }.find do |stall|
        stall.cause == cause && stall.seconds >= seconds * share && stall.place
      end
      return found if found
    end
    flunk "none of #{Heddle::Stalls.recent.map(&:to_s)}"
  end

  # The stalls of a loop in which the block is called.
  # @param patience [Numeric] seconds after which a stall that was not told is taken to have been missed
  def stalls_of(patience: LIMIT, &block)
    Heddle::Protection.reporting_to(@told.method(:push)) do
      scheduled do
        sleep 0.001
        block.call
        sleep 0.001
        deadline = now + patience
        sleep 0.001 until @told.any? || now > deadline
      end
    end
    Heddle::Stalls.recent
  end

  def test_a_native_call_that_releases_rubys_lock
    skip "it is offloaded (HEDDLE_TEST_PROTECT)" if Heddle.enabled.include?(:offload)

    line = nil
    stall = until_stall(:native) { |seconds| (line = __LINE__) && NativeCalls.sleep_for(seconds) }

    assert_match(/stalls_test.rb:#{line}/, stall.place)
  end

  def test_a_native_call_that_holds_rubys_lock
    line = nil
    stall = until_stall(:native_with_gvl) { |seconds| (line = __LINE__) && NativeCalls.hold(seconds) }

    assert_match(/stalls_test.rb:#{line}/, stall.place)
  end

  # As it starts a thread, for one.
  def test_a_stall_in_heddles_own_fiber_is_reported_with_the_callers_line
    path = File.expand_path("../../lib/heddle/concurrency/made_up.rb", __dir__)
    own = Module.new.module_eval(<<~RUBY, path, 1) # rubocop:disable Style/EvalWithLocation
      def self.hold_apart(seconds)
        Fiber.new(blocking: true) { NativeCalls.hold(seconds) }.resume
      end
      self
    RUBY
    line = nil
    stall = until_stall(:native_with_gvl) { |seconds| (line = __LINE__) && own.hold_apart(seconds) }

    assert_match(/stalls_test.rb:#{line} in test_a_stall/, stall.place)
  end

  def test_ruby_code
    stall = until_stall(:ruby) { |seconds| compute(seconds) }

    assert_match(/compute/, stall.backtrace.join("\n"))
    assert_match(/stalls_test.rb/, stall.place)
  end

  def test_another_thread_with_rubys_lock
    stall = until_stall(:waiting_for_gvl, share: 0.5) do |seconds|
      thread = Thread.new { NativeCalls.hold(seconds) }
      sleep 0.001 while thread.alive?
    end

    assert_match(/stalls_test.rb/, stall.place)
  end

  def test_the_garbage_collector
    stall = until_stall(:garbage_collection) do |seconds|
      deadline = computed + seconds
      Heddle.without_preemption { GC.start until computed > deadline }
    end

    assert_match(/stalls_test.rb/, stall.place)
    assert_match(/garbage collection/, stall.to_s)
    assert_match(/RUBY_GC/, stall.advice)
  end

  # A busy machine may stop what computes for some time.
  def test_a_quick_call_is_not_a_stall
    Heddle.enable :stall_report, threshold: 2
    scheduled do
      50.times do
        sleep 0.001
        compute(0.001)
      end
    end

    assert_empty(Heddle::Stalls.recent.reject { |stall| stall.cause == :waiting_for_gvl })
  end

  def test_a_line_tells_what_and_where_and_what_to_do
    until_stall(:ruby) { |seconds| compute(seconds) }
    stall = @told.find { |one| one.cause == :ruby && one.place }

    assert_match(/\Astall of \d+ ms: Ruby code, at .*stalls_test.rb:\d+/, stall.to_s)
    preempted = Heddle.enabled.include?(:preempt) # HEDDLE_TEST_PROTECT
    assert_match(preempted ? /without_preemption/ : /Heddle.enable :preempt/, stall.advice)
  end

  # @return [Array<Heddle::Stall>] those that get a line
  def told_of(requests, place = "/app/x.rb:3:show")
    stalls = requests.map { |request| Heddle::Stall.new([:native, 1.0, 0.5, request, place]) }
    stalls.select { |stall| Heddle::Stalls.send(:line_for?, stall) }
  end

  def test_an_endpoint_gets_a_line_a_minute_which_counts_those_without
    assert_equal ["GET /pages/1", "GET /other"], told_of(["GET /pages/1", "GET /pages/2", "GET /other", "GET /pages/3"])
      .map(&:request)
    Heddle::Stalls.instance_variable_get(:@lines).each_value { |line| line.at -= Heddle::Stalls.const_get(:INTERVAL) }
    later, = told_of(["GET /pages/4"])

    assert_equal 2, later.unreported
    assert_match(%r{in GET /pages/4, at .* \(2 more stalls of GET /pages/:id since the previous line about it\)\z},
                 later.to_s)
    assert_empty told_of(["GET /pages/5"])
  end

  def test_outside_of_requests_a_place_gets_a_line_a_minute
    assert_equal 1, told_of(["", ""]).size
    assert_equal 1, told_of([""], "/app/y.rb:4:other").size
  end

  # It would be printed into the prompt.
  def test_stall_in_a_debugger_is_counted_and_gets_no_line
    %w[/usr/lib/ruby/3.4.0/irb.rb:9:irb /gems/irb-1.19.0/lib/irb/color.rb:4:<main> /gems/debug-1.11.0/lib/debug/x.rb:1:y
       /gems/pry-0.16.1/lib/pry/repl.rb:254:read /lib/reline/io/ansi.rb:1:raw].each do |place|
      assert_empty told_of(["GET /debug"], "/app/z.rb:1:show\n#{place}"), place
    end
    assert_equal 1, told_of(["GET /debug"], "/app/app/debug/irbis.rb:1:show").size
  end

  # Such as the thread that writes a trace: the advice would be about a thread of the application.
  def test_stall_by_a_thread_of_heddles_own_is_counted_and_gets_no_line
    told = lambda do |cause, began|
      Heddle::Stalls.send(:line_for?, Heddle::Stall.new([cause, began, 0.5, "GET /#{cause}#{began}", ""]))
    end
    Heddle::Stalls::Switch.own_work_until = 2.0

    assert_equal [false, true, true], [told[:waiting_for_gvl, 1.0], told[:waiting_for_gvl, 3.0], told[:ruby, 1.0]]
  ensure
    Heddle::Stalls::Switch.own_work_until = 0.0
  end

  def test_a_preempted_computation_is_not_a_stall
    Heddle.enable :stall_report, threshold: 0.4 # far more than what a busy machine stops it for
    Heddle.enable :preempt, slice: 0.005
    scheduled do
      Fiber.schedule { 200.times { sleep 0.005 } }
      compute(1.2)
    end

    assert_empty(Heddle::Stalls.recent.select { |stall| stall.cause == :ruby })
  ensure
    Heddle.disable :preempt
  end

  def test_the_place_is_the_applications_else_a_gems_and_never_heddles_own
    gem = "#{Gem.dir}/gems/slow-1.0/lib/slow.rb:3:slow"
    own = "#{File.expand_path("../../lib/heddle", __dir__)}/offload.rb:88:start_thread"
    place = ->(*lines) { Heddle::Stall.new([:ruby, 1.0, 0.2, "", lines.join("\n")]).place }
    ruby = "<internal:kernel>:187:loop"

    assert_equal "/app/x.rb:3 in show", place.call(ruby, own, gem, "/app/x.rb:3:show", own)
    assert_match(%r{/slow-1\.0/lib/slow\.rb:3 in slow\z}, place.call(ruby, own, gem, own))
    assert_nil place.call(ruby, own)
    demo = File.expand_path("../../lib/heddle/cli/demo/slow.rb", __dir__)

    assert_match(%r{demo/slow.rb:1 in x}, place.call(own, "#{demo}:1:x"))
  end

  def test_endpoints_are_counted_by_method_and_path_without_ids_and_no_more_than_a_few
    stall = Heddle::Stall.new([:ruby, 1.0, 0.2, "GET /users/1/edit", "/app/x.rb:3:show\n"])

    assert_equal ["GET /users/:id/edit", "/app/x.rb:3 in show"], [stall.endpoint, stall.place]
    assert_equal ["POST /users", "(no request)"],
                 ["POST /users", ""].map { |request| Heddle::Stall.new([:ruby, 1.0, 0.2, request, ""]).endpoint }
    found = Array.new(Heddle::Stalls.const_get(:ENDPOINTS) + 50) { |i| [:native, 1.0, 0.5, "GET /page#{i}", ""] }
    found.each { |one| Heddle::Stalls.send(:count, Heddle::Stall.new(one)) }
    endpoints = Heddle::Stalls.statistics[:by_endpoint]

    assert_equal Heddle::Stalls.const_get(:ENDPOINTS) + 1, endpoints.size
    assert_equal 50, endpoints[Heddle::Stalls.const_get(:OTHERS)][:count]
  end

  def test_any_number_of_stalls_of_any_endpoints_take_no_more_than_so_much_memory
    2_000.times do |i|
      stall = Heddle::Stall.new([:native, 1.0, 0.5, "GET /page#{i}/#{"x" * 200}", "/app/x#{i}.rb:3:show\n" * 20])
      Heddle::Stalls.send(:count, stall)
      Heddle::Stalls.send(:line_for?, stall)
    end
    kept = %i[@recent @unreported @lines @by_endpoint].to_h { |name| [name, Heddle::Stalls.instance_variable_get(name).size] }

    assert_equal 2_000, Heddle::Stalls.statistics[:count]
    assert_equal({ "@recent": 100, "@unreported": 0, "@lines": Heddle::Stalls.const_get(:PLACES),
                   "@by_endpoint": Heddle::Stalls.const_get(:ENDPOINTS) + 1 }, kept)
  end

  def test_reading_statistics_in_other_threads_counts_no_stall_twice
    counts = Array.new(2) { Thread.new { 50.times.map { Heddle::Stalls.statistics[:count] } } }
    stalls_of { 3.times { NativeCalls.hold(THRESHOLD * 2) && sleep(0.001) } }
    counts.each(&:join)

    assert_equal Heddle::Stalls.recent.size, Heddle::Stalls.statistics[:count]
  end

  FORKED = <<~RUBY
    require "heddle"
    watched = lambda do
      Dir.children("/proc/self/fd").count { File.readlink("/proc/self/fd/\#{_1}").end_with?("/schedstat") rescue false }
    end
    Heddle.run do
      puts watched.call
      $stdout.flush
      child = fork do
        Heddle.enable :stall_report
        Heddle.run { puts watched.call }
      end
      Process.wait(child)
    end
  RUBY

  # The parent has no watch thread, as the process from which workers are forked.
  def test_forked_child_does_not_watch_loops_of_its_parent
    skip "Linux has a file for each thread that is watched" unless RUBY_PLATFORM.include?("linux")

    counts = ruby(FORKED, flags: %w[--enable=gems]).first.lines.map { |line| Integer(line) }

    assert_equal 1, counts.first
    assert_operator counts.last, :<=, 1
  end
end

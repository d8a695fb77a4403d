# frozen_string_literal: true

require_relative "support/offloaded"
require "fileutils"
require "tmpdir"

# Only calls in fibers of Heddle's loops are offloaded, and none that must stay on its thread.
class OffloadPassThroughTest < Minitest::Test
  include Offloaded

  # A scheduler of another kind, of which nothing is asked but a non-blocking fiber.
  class Other
    def block(*) = raise
    alias kernel_sleep block
    alias io_wait block
    def unblock(*) = nil
    def fiber(&) = Fiber.new(blocking: false, &).tap(&:resume)
  end

  def test_threads_without_a_loop_call_as_ever
    assert_predicate NativeCalls, :same_thread?
    assert(Thread.new { NativeCalls.same_thread? }.value)
  end

  def test_fibers_of_another_scheduler_call_as_ever
    same = nil
    in_thread do
      Fiber.set_scheduler(Other.new)
      Fiber.schedule { same = NativeCalls.same_thread? }
    end

    assert same
  end

  # Who waits for the threads of a group must not wait for threads that it did not start.
  def test_offload_threads_are_in_no_group_of_the_program
    output = offloading(<<~RUBY)
      group = ThreadGroup.new
      Thread.new do
        group.add(Thread.current)
        Heddle.run { NativeCalls.same_thread? && abort }
        p group.list == [Thread.current]
        group.enclose
        Heddle.run { Heddle.map(1..9) { NativeCalls.meet(9) }.uniq.then { |met| p met } }
      end.join
    RUBY

    assert_equal "true\n[:met]\n", output
  end

  def test_a_blocking_fiber_calls_on_its_own_thread
    assert(in_loop { Fiber.blocking { NativeCalls.same_thread? } })
  end

  def test_without_offload_calls_stay_on_their_thread
    inside, after, nested = in_loop do
      inside = Heddle.without_offload do
        [Heddle.without_offload { NativeCalls.same_thread? }, NativeCalls.same_thread?]
      end
      nested = Heddle.without_offload { Heddle.async { NativeCalls.same_thread? } }.value
      [inside, NativeCalls.same_thread?, nested]
    end

    assert_equal [true, true], inside
    refute after
    refute nested, "another task is not concerned"
    assert(Heddle.without_offload { NativeCalls.same_thread? })
  end

  def test_without_offload_ends_when_the_block_fails
    in_loop do
      assert_raises(IndexError) { Heddle.without_offload { raise IndexError } }
      refute_predicate NativeCalls, :same_thread?
    end
  end

  def test_switched_off_it_leaves_calls_alone
    Heddle.disable(:offload)

    assert(in_loop { NativeCalls.same_thread? })
    Heddle.enable(:offload)

    refute(in_loop { NativeCalls.same_thread? })
  end

  def test_a_block_is_offloaded_where_there_is_a_loop
    assert_same(Thread.current, Heddle.offload { Thread.current })
    in_loop { refute_same(Thread.current, Heddle.offload { Thread.current }) }
    assert_match(/needs a block/, assert_raises(ArgumentError) { Heddle.offload }.message)
    assert_match(/needs a block/, assert_raises(ArgumentError) { Heddle.without_offload }.message)
  end

  def test_the_handler_of_a_signal_calls_on_its_own_thread
    offloading <<~RUBY
      in_trap = nil
      trap(:USR1) { in_trap = NativeCalls.same_thread? }
      Heddle.run do
        10.times do
          Process.kill(:USR1, Process.pid)
          100.times { } # in Ruby code of this fiber, not in the loop
          sleep 0
        end
        sleep 0.001 while in_trap.nil?
        abort "offloaded in a trap" unless in_trap
        abort "not offloaded after it" if NativeCalls.same_thread?
      end
    RUBY
  end

  def test_another_ractor_calls_as_ever
    offloading <<~RUBY
      calls = -> { Heddle::Offload.functions.sum { |function| function[:calls] } }
      before = calls.call
      ractor = Ractor.new do
        Fiber.set_scheduler(Heddle::Scheduler.new(selector: :epoll))
        Fiber.schedule { File.stat("/"); $stdout.write("in a ractor") }
        Fiber.set_scheduler(nil)
        1
      end
      abort unless (ractor.respond_to?(:value) ? ractor.value : ractor.take) == 1
      abort "noted in the main Ractor's list" if calls.call > before
    RUBY
  end

  # What it calls there makes threads of its own, and must not share what is known of functions.
  def test_native_calls_of_another_ractors_loop_stay_on_its_thread
    Dir.mktmpdir do |folder|
      offloading(<<~RUBY, File.join(folder, "file"))
        ractor = Ractor.new(ARGV[0]) do |path|
          Fiber.set_scheduler(Heddle::Scheduler.new(selector: :epoll))
          Fiber.schedule { File.open(path, "w") { |file| file.flock(File::LOCK_EX) && file.fsync } }
          Fiber.set_scheduler(nil)
          1
        end
        ractor.respond_to?(:value) ? ractor.value : ractor.take
        abort Heddle::Offload.threads.inspect unless Heddle::Offload.threads[:calls] == 0
      RUBY
    end
  end

  # Ruby 3.3 makes no such call there: what waits to be done comes first, and it must not.
  if RUBY_VERSION >= "3.4"
    def test_calls_during_garbage_collection_stay_on_their_thread
      offloading <<~RUBY
        Heddle.run do
          NativeCalls.set_errno(1)
          GC.start # a file among what is freed would interrupt the thread, and Ruby itself skips such calls then
          10.times { NativeCalls.call_when_freed }
          GC.start
          freed, elsewhere = NativeCalls.freed
          abort "\#{freed} freed, \#{elsewhere} elsewhere" unless freed > 0 && elsewhere == 0
        end
      RUBY
    end
  end

  def test_libraries_that_need_their_own_thread_are_denied_by_default
    Dir.mktmpdir do |folder|
      FileUtils.cp(NativeCallsLibrary.path, "#{folder}/rugged.so")
      output, = ruby(<<~RUBY, "#{folder}/rugged.so")
        require "heddle"
        Heddle.enable(:offload)
        require ARGV[0]
        Heddle.run { p NativeCalls.same_thread? }
        p Heddle::Offload.functions.map { |function| [function[:library], function[:class]] }.last
      RUBY

      assert_equal "true\n[\"rugged.so\", :denied]\n", output
    end
  end

  def test_libraries_that_are_denied_call_as_ever
    output = offloading(<<~RUBY, options: ", deny: 'native_calls'")
      Heddle.run { p NativeCalls.same_thread? }
      Heddle.enable(:offload)
      Heddle.run { p NativeCalls.same_thread? }
      $stdin.reopen(File::NULL)
      Heddle.run { p NativeCalls.region_on_same_thread?(0) } if RUBY_VERSION < "4"
    RUBY

    assert_equal "true\n" * (RUBY_VERSION < "4" ? 3 : 2), output
    program = "Heddle.run { p NativeCalls.same_thread? }; p Heddle::Offload.functions.first[:class]"

    assert_equal "true\n:denied\n", offloading(program, env: { "HEDDLE_OFFLOAD_DENY" => "other, native_calls" })
  end

  # Another fiber that asks for the same file meanwhile would be told of a circle, and continue without the file.
  def test_loading_a_file_does_not_let_others_run
    Dir.mktmpdir do |folder|
      File.write("#{folder}/loaded_once.rb", "LOADED_ONCE = true\n")
      offloading(<<~RUBY, folder)
        $LOAD_PATH.unshift(ARGV[0])
        Heddle.run do
          10.times { Heddle.async { require "loaded_once"; LOADED_ONCE } }
        end
        abort "a thread loaded" if Heddle::Offload.functions.any? { |f| f[:method] == :require && f[:offloaded] > 0 }
      RUBY
    end
  end

  def test_calls_of_heddles_own_library_are_never_intercepted
    libraries = Heddle::Offload.libraries.map { |library| File.basename(library[:path]) }

    assert_empty libraries.grep(/heddle/)
    assert_includes libraries.map { |file| file[/\A\w+/] }, "native_calls"
  end

  def test_a_library_is_intercepted_before_its_init_runs
    output = offloading("Heddle.run { p NativeCalls.same_thread? }")

    assert_equal "false\n", output
    Dir.mktmpdir do |folder|
      copy = "#{folder}/native_calls.so"
      FileUtils.cp(NativeCallsLibrary.path, copy)
      output, status = ruby("require 'heddle'; Heddle.enable(:offload, allow: 'native_calls'); " \
                            "Heddle.run { Heddle::Native; require ARGV[0] }; p NativeCalls::INIT_ON_SAME_THREAD", copy)

      assert_predicate status, :success?, output
      assert_equal "false\n", output
    end
  end

  def test_a_library_loaded_before_heddle_is_intercepted
    output, = ruby("require 'heddle'; require ARGV[0]; Heddle.enable(:offload, allow: 'native_calls'); " \
                   "Heddle.run { p NativeCalls.same_thread? }", NativeCallsLibrary.path)

    assert_equal "false\n", output
  end
end

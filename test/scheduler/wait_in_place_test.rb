# frozen_string_literal: true

# test: each selector

require "test_helper"
require "support/native_library"
require "support/scheduled"
require "heddle"
require "socket"
require "tempfile"
require "timeout"
require "tmpdir"
require "zlib"

# In Ruby code that a library calls which no other fiber may enter meanwhile, a fiber waits without a switch.
class WaitInPlaceTest < Minitest::Test
  include Scheduled

  CALLBACKS = NativeLibrary.new(File.expand_path("../preemption/support/callbacks.c", __dir__))
  require CALLBACKS.path

  def setup
    Heddle::NativeLibraries.not_reentrant = [*Heddle::NativeLibraries::NOT_REENTRANT, "callbacks"]
  end

  def teardown
    Heddle::NativeLibraries.not_reentrant = Heddle::NativeLibraries::NOT_REENTRANT
  end

  # How many turns another fiber of the loop has had while the block was called.
  # @param call [Proc] given what it is to call
  def turns_during(waiting, call: ->(block) { CallingBack.call(block) })
    turns = 0
    value = during = nil
    scheduled(Heddle::Scheduler.new(selector: selector_under_test)) do
      done = false
      Fiber.schedule { (turns += 1) && sleep(0.0005) until done }
      sleep 0 until turns > 1
      call.call(lambda do
        before = turns
        value = waiting.call
        during = turns - before
      end)
    ensure
      done = true
    end
    [during, value]
  end

  # What a thread of its own does after a while.
  def later(seconds = 0.03, &block)
    Thread.new do
      sleep seconds
      block.call
    end
  end

  def piped(read)
    reader, writer = IO.pipe
    lambda do
      later { writer << "line\n" && writer.close }
      read.call(reader)
    end
  end

  def connected
    own, peer = UNIXSocket.pair
    lambda do
      later { peer << "line\n" }
      own.readpartial(100)
    end
  end

  def test_io_is_waited_for_in_place
    [[piped(:gets.to_proc), "line\n"], [piped(:read.to_proc), "line\n"], [connected, "line\n"],
     [piped(->(io) { io.wait_readable(LIMIT).equal?(io) }), true],
     [piped(->(io) { IO.select([io], nil, nil, LIMIT) && io.gets }), "line\n"],
     [-> { `echo line` }, "line\n"], [-> { Process.wait2(spawn("exit 3")).last.exitstatus }, 3],
     [-> { File.read(__FILE__).size }, File.size(__FILE__)]].each do |waiting, expected|
      assert_equal [0, expected], turns_during(waiting), waiting.source_location.last.to_s
    end
  end

  def test_a_sleep_is_slept_in_place
    began = now

    assert_equal [0, :slept], turns_during(-> { sleep(0.05) && :slept })
    assert_operator now - began, :>=, 0.05
    assert_equal 0, turns_during(-> { sleep 0 }).first
  end

  def test_a_call_that_could_be_offloaded_is_made_in_place
    data = Random.new(1).bytes(3_000_000)
    Heddle.enable :offload

    assert_equal 0, turns_during(-> { Zlib::Deflate.deflate(data, 9).size.positive? }).first
  ensure
    Heddle.disable :offload
  end

  def test_time_is_up_in_place_as_elsewhere
    silent, writer = IO.pipe # without a reference the collector would close it
    silent.timeout = 0.02

    assert_nil turns_during(-> { silent.wait_readable(0.02) }).last
    assert_nil turns_during(-> { IO.select([silent], nil, nil, 0.02) }).last
    assert_raises(IO::TimeoutError) { turns_during(-> { silent.read(1) }) }
    assert_raises(Timeout::Error) { turns_during(-> { Timeout.timeout(0.02) { sleep 5 } }) }
    writer.close
  end

  def test_an_io_that_is_closed_meanwhile_raises
    reader, writer = IO.pipe # without a reference the collector would close it
    assert_raises(IOError) do
      turns_during(lambda do
        later { reader.close }
        reader.wait_readable
      end)
    end
    writer.close
  end

  # What a parser reads, slow to come: no other parser runs in between.
  def test_fiber_interrupt_raises_in_a_sleep_in_place
    assert_raises(IndexError) do
      turns_during(lambda do
        scheduler = Fiber.scheduler
        fiber = Fiber.current
        later { scheduler.fiber_interrupt(fiber, IndexError.new) }
        sleep 5
      end)
    end
  end

  # @return [Symbol, nil] nil: the close came when the wait had ended already
  def sleep_after_close_and_timeout
    fiber, scheduler = Fiber.current, Fiber.scheduler
    over = late = false
    begun = Thread::Queue.new # the time by which the limit has passed
    thread = Thread.new do
      passed = begun.pop
      nil until now > passed # with Ruby's lock: the fiber sees both at once
      late = over
      scheduler.fiber_interrupt(fiber, IOError.new("stream closed in another thread").freeze) unless late
    end
    assert_raises(Timeout::Error) { Timeout.timeout(0.02) { begun << (now + 0.03) && sleep(5) } }
    over = true
    sleep 0.001
    thread.join
    :slept unless late
  end

  def test_exception_of_a_close_is_not_raised_after_a_timeout_has_ended_the_wait_in_place
    slept = turns_during(lambda do
      result = nil
      result = sleep_after_close_and_timeout until result
      result
    end).last

    assert_equal :slept, slept
  end

  def test_nokogiri_reads_in_place
    Gem::Specification.find_by_name("nokogiri")
    require "nokogiri"
    reader, writer = IO.pipe
    during, names = turns_during(lambda do
      Nokogiri::XML::Reader(reader).map(&:name)
    end, call: lambda do |block|
      writer << "<a><b/>"
      later { writer << "</a>" && writer.close }
      block.call
    end)

    assert_equal [0, %w[a b a]], [during, names]
  rescue Gem::MissingSpecError
    skip("needs the gem nokogiri: bin/setup")
  end

  # Another fiber may be who gives what they wait for.
  def test_locks_and_queues_are_waited_for_by_a_switch
    queue = Thread::Queue.new
    scheduled do
      Fiber.schedule { (sleep 0.001) && queue << :item }

      assert_equal(:item, CallingBack.call(-> { queue.pop }))
    end
  end

  def test_fibers_switch_outside_of_callbacks
    [:call.to_proc, ->(block) { CallingBack.call(-> { 1 }) && block.call },
     ->(block) { Fiber.new { block.call }.resume }].each do |call|
      assert_operator turns_during(-> { sleep 0.05 }, call:).first, :>, 0
    end
    Heddle::NativeLibraries.not_reentrant = []

    assert_operator turns_during(-> { sleep 0.05 }).first, :>, 0
  end

  # The wait lasts for long: time in which the machine lets neither the loop nor its watch run is no part of a stall.
  def test_a_stall_by_a_wait_in_place_is_reported_with_library_and_line
    told = []
    line = nil
    Heddle.enable(:stall_report, threshold: 0.02)
    Heddle::Protection.reporting_to(->(stall) { told << stall if stall.library }) do
      turns_during(-> { (line = __LINE__) && sleep(0.5) })
      scheduled { sleep 0.01 }
    end

    assert_equal ["callbacks.#{RbConfig::CONFIG["DLEXT"]}"], told.map(&:library)
    assert_includes told.first.place, "wait_in_place_test.rb:#{line}"
    assert_includes told.first.to_s, "in a callback of callbacks"
  ensure
    Heddle.disable(:stall_report)
  end

  # nokogiri/3.4/nokogiri.so
  def test_stall_by_ruby_code_after_a_short_wait_in_place_names_no_library
    stalls = []
    line = nil
    Heddle.enable :stall_report
    Heddle::Protection.reporting_to(->(stall) { stalls << stall if stall.seconds > 0.2 }) do
      scheduled do
        Fiber.schedule do
          sleep 0.001 # from here on the loop runs it
          CallingBack.call(-> { sleep 0.02 })
          clock = Process::CLOCK_THREAD_CPUTIME_ID # time without a core is no part of a stall
          ending = Process.clock_gettime(clock) + 0.5
          (line = __LINE__) && nil until Process.clock_gettime(clock) > ending
          sleep 0.01 # meanwhile it is reported
        end
      end
    end

    assert_equal [[:ruby, nil]], stalls.map { |stall| [stall.cause, stall.library] }
    assert_includes stalls.first.place, "wait_in_place_test.rb:#{line}"
  ensure
    Heddle.disable :stall_report
  end

  def test_library_of_a_precompiled_gem_is_known_without_the_version_in_its_path
    Dir.mktmpdir do |folder|
      path = File.join(folder, "gem", RUBY_VERSION[/\A\d+\.\d+/], File.basename(CALLBACKS.path))
      FileUtils.mkdir_p(File.dirname(path))
      FileUtils.cp(CALLBACKS.path, path)
      require path
      Heddle::NativeLibraries.not_reentrant = ["gem/callbacks"]

      assert_equal [0, :slept], turns_during(-> { sleep(0.01) && :slept })
    end
  end

  def test_names_that_name_no_library_are_refused
    ["", "/usr/lib/x", "nokogiri.so", :ffi_c].each do |name|
      error = assert_raises(ArgumentError) { Heddle::NativeLibraries.not_reentrant = [name] }

      assert_includes error.message, name.inspect
    end
  end
end

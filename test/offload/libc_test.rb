# frozen_string_literal: true

require_relative "support/offloaded"
require "fileutils"
require "support/private_postgresql"
require "tmpdir"

# Waits that a library makes in libc while it holds Ruby's lock, for libraries that were named.
class OffloadLibcTest < Minitest::Test
  include Offloaded

  HOOKED = ", libc: ['native_calls']"

  # One after the other the second call would never come to write.
  def test_a_poll_with_the_lock_held_waits_for_its_own_fiber
    output = offloading(<<~RUBY, options: HOOKED)
      reader, writer = IO.pipe
      Heddle.run do
        waiting = Heddle.async { NativeCalls.hold_poll(reader.fileno, -1) }
        sleep 0.001 until Heddle::Offload.threads[:running] == 1
        writer.syswrite("x")
        p waiting.value
        p NativeCalls.hold_poll(reader.fileno, 0), NativeCalls.hold_poll(reader.fileno, 60_000)
      end
      p File.basename(Heddle::Offload.libc_libraries.first)
    RUBY

    assert_equal "1\n1\n1\n\"native_calls.so\"\n", output
  end

  # In Ruby a mask is the thread's, and so holds for every fiber as long as one is within it.
  def test_a_timeout_that_another_fibers_mask_delays_is_not_raised_there_when_its_own_waits_in_a_call
    output = offloading(<<~RUBY, options: HOOKED)
      require "timeout"
      Heddle.enable :preempt, slice: 0.002
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Heddle.run do
        over = Thread::Queue.new
        ended = false
        Fiber.schedule { sleep 0 until ended }
        Fiber.schedule do
          Thread.handle_interrupt(Exception => :never) { over.pop }
        rescue ArgumentError
          puts "the other"
        end
        begin
          Timeout.timeout(0.01, ArgumentError) do
            computed = now + 0.1
            nil until now > computed
            over << true
            NativeCalls.hold(0.01)
            sleep 0
          end
        rescue ArgumentError
          puts "its own"
        end
        ended = true
      end
    RUBY

    assert_equal "its own\n", output
  end

  def test_sleeps_with_the_lock_held_overlap
    offloading(<<~RUBY, options: HOOKED)
      most = 0
      Heddle.run do
        sleeps = Array.new(4) { Heddle.async { NativeCalls.hold(1.5) } }
        while !sleeps.all?(&:ended?)
          most = [most, Heddle::Offload.threads[:running]].max
          sleep 0.001
        end
      end
      abort most.to_s unless most == 4
    RUBY
  end

  # Each waits for what another fiber of the loop does, or is counted.
  def test_every_wait_of_libc_with_the_lock_held_waits_for_its_own_fiber
    output = offloading(<<~RUBY, options: HOOKED)
      require "fcntl"
      require "socket"
      def offloaded(before = Heddle::Offload.threads[:calls]) = [yield, Heddle::Offload.threads[:calls] - before]
      reader, writer = UNIXSocket.pair
      reader.setsockopt(:SOCKET, :RCVTIMEO, [8, 0].pack("l!l!"))
      reader.fcntl(Fcntl::F_SETFL, 0)
      Heddle.run do
        %i[hold_select hold_poll_chk hold_recv hold_recv_chk hold_recv_all].each do |wait|
          got = offloaded do
            waiting = Heddle.async { NativeCalls.public_send(wait, reader.fileno) }
            sleep 0.001 until Heddle::Offload.threads[:running] == 1 || waiting.ended?
            writer.syswrite("xy")
            waiting.value
          end
          reader.read_nonblock(2, exception: false)
          reader.fcntl(Fcntl::F_SETFL, 0)
          puts [wait, *got].join(" ")
        end
        p offloaded { NativeCalls.hold_usleep(1) }, offloaded { NativeCalls.hold_sleep(0) }
        server = TCPServer.new("127.0.0.1", 0)
        address = server.connect_address.to_sockaddr
        clients = Array.new(2) { Socket.new(:INET, :STREAM).tap { |client| client.fcntl(Fcntl::F_SETFL, 0) } }
        p offloaded { NativeCalls.hold_connect(clients[0].fileno, address) }
        server.close
        result, calls = offloaded { NativeCalls.hold_connect(clients[1].fileno, address) }
        p [-result == Errno::ECONNREFUSED::Errno, calls]
      end
    RUBY

    assert_equal <<~TEXT, output
      hold_select 1 1
      hold_poll_chk 1 1
      hold_recv 2 1
      hold_recv_chk 2 1
      hold_recv_all 2 1
      [0, 1]
      [0, 1]
      [0, 1]
      [true, 1]
    TEXT
  end

  # The library would not know what to make of being left in the middle.
  def test_such_a_wait_is_not_cut_short_and_the_exception_comes_at_the_next_wait
    output = offloading(<<~RUBY, options: HOOKED)
      reader, writer = IO.pipe
      events = []
      Heddle.run do
        task = Heddle.async do
          events << NativeCalls.hold_poll(reader.fileno, -1)
          sleep 0
          events << :not_reached
        end
        sleep 0.001 until Heddle::Offload.threads[:running] == 1
        task.cancel
        20.times { sleep 0 }
        events << :told
        writer.syswrite("x")
        task.wait
      end
      p events
    RUBY

    assert_equal "[:told, 1]\n", output
  end

  def test_calls_of_a_library_loaded_later_by_fiddle_are_intercepted
    output, status = ruby(<<~RUBY, NativeCallsLibrary.path)
      require "heddle"
      require "fiddle"
      Heddle.enable(:offload, libc: ["native_calls"])
      Fiddle.dlopen(ARGV[0])
      puts Heddle::Offload.libc_libraries
    RUBY

    assert_predicate status, :success?, output
    assert_equal "#{NativeCallsLibrary.path}\n", output
  end

  # It is for other libraries to say what they load.
  def test_calls_of_a_library_loaded_later_by_ffi_are_intercepted
    Dir.mktmpdir do |folder|
      names = %w[ffi_c native_calls_a native_calls_b].map { |name| "#{folder}/#{name}.so" }
      names.each { |name| FileUtils.cp(NativeCallsLibrary.path, name) }
      program = <<~RUBY
        NativeCalls.open_library(ARGV[2])
        before = Heddle::Offload.libc_libraries
        $VERBOSE = nil # what follows defines the same once more
        require ARGV[0]
        NativeCalls.open_library(ARGV[1])
        p before, Heddle::Offload.libc_libraries.map { |path| File.basename(path) }.sort
      RUBY
      output = offloading(program, *names, options: ", libc: ['native_calls_']")

      assert_equal "[]\n[\"native_calls_a.so\", \"native_calls_b.so\"]\n", output
    end
  end

  # The second time it may come to lie at the place of the first one.
  def test_calls_of_a_reloaded_library_are_intercepted_again
    output, status = ruby(<<~RUBY, NativeCallsLibrary.path)
      require "heddle"
      require "fiddle"
      Heddle.enable(:offload, libc: ["native_calls"], allow: ["native_calls"])
      2.times do
        library = Fiddle.dlopen(ARGV[0])
        wait = Fiddle::Function.new(library["plain_poll"], [Fiddle::TYPE_INT] * 2, Fiddle::TYPE_INT, need_gvl: true)
        same_thread = Fiddle::Function.new(library["plain_same_thread"], [], Fiddle::TYPE_INT, need_gvl: true)
        Heddle.run { wait.call(-1, 1) }
        p Heddle::Offload.threads[:calls], Heddle.run { same_thread.call }
        library.close
      end
      puts Heddle::Offload.libc_libraries
    RUBY

    assert_predicate status, :success?, output
    assert_equal "1\n0\n3\n0\n#{NativeCallsLibrary.path}\n", output
  end

  def test_a_library_that_was_not_named_holds_the_lock_as_ever
    offloading(<<~RUBY)
      Heddle.run { NativeCalls.hold(0.001) }
      abort if Heddle::Offload.threads[:calls] != 0 || !Heddle::Offload.libc_libraries.empty?
    RUBY
  end

  def test_without_the_lock_and_without_a_loop_they_wait_as_ever
    offloading(<<~RUBY, options: HOOKED)
      NativeCalls.hold(0.001)
      Thread.new { NativeCalls.hold(0.001); NativeCalls.sleep_for(0.001) }.join
      abort unless Heddle::Offload.threads[:calls] == 0
      Heddle.run { NativeCalls.sleep_for(0.001) } # on its thread it sleeps by the same function
      abort unless Heddle::Offload.threads[:calls] == 1
    RUBY
  end

  def test_on_a_thread_of_the_librarys_own_they_wait_as_ever
    offloading(<<~RUBY, options: HOOKED)
      Heddle.run { abort unless NativeCalls.hold_elsewhere == 0 }
      abort unless Heddle::Offload.threads[:calls] == 0
    RUBY
  end

  # A library of which only the first call is offloaded: the others are quick.
  def test_in_a_call_without_the_lock_on_the_loops_own_thread_they_wait_as_ever
    Dir.mktmpdir do |folder|
      FileUtils.cp(NativeCallsLibrary.path, "#{folder}/zlib.so")
      output, = ruby(<<~RUBY, "#{folder}/zlib.so")
        require "heddle"
        Heddle.enable(:offload, libc: "zlib.")
        require ARGV[0]
        calls = lambda do |&call|
          Heddle.run(&call)
          Heddle::Offload.threads[:calls]
        end
        p Heddle::Offload.libc_libraries.size, calls.call { 3.times { NativeCalls.sleep_for(0) } }
        p calls.call { NativeCalls.hold(0) }
      RUBY

      assert_equal "1\n1\n2\n", output
    end
  end

  # The way to leave libpq alone, too.
  def test_a_library_that_is_denied_holds_the_lock_as_ever
    output = offloading(<<~RUBY, options: HOOKED, env: { "HEDDLE_OFFLOAD_DENY" => "native_calls" })
      Heddle.run { NativeCalls.hold(0.001) }
      p Heddle::Offload.threads[:calls], Heddle::Offload.libc_libraries
    RUBY

    assert_equal "0\n[]\n", output
  end

  def test_a_library_that_holds_locks_of_its_own_is_refused
    [["sqlite3"], [:sqlite3_native]].each do |names|
      error = assert_raises(ArgumentError) { Heddle.enable(:offload, libc: names) }

      assert_match(/can't be offloaded/, error.message)
    end
    error = assert_raises(ArgumentError) { Heddle.enable(:offload, libc: ["ok", ""]) }

    assert_equal "offload: the name of a library is empty", error.message
  end

  # -- a real PostgreSQL, by the calls of the gem pg that hold the lock ----------------------------------------------

  def database(&)
    need_program("postgres") unless PrivatePostgresql.programs
    skip "needs the gem pg: bin/setup" if Gem::Specification.find_all_by_name("pg").empty?
    require "pg"
    with_server(&)
  end

  def with_server
    server = PrivatePostgresql.new
    yield server
  ensure
    server&.stop
  end

  # The second one waits for the first, which another fiber of the same loop ends.
  def test_synchronous_queries_of_a_loop_wait_for_each_other
    database do |server|
      in_loop do
        first = server.connect
        second = server.connect
        first.sync_exec("SELECT pg_advisory_lock(1)")
        waiting = Heddle.async { second.sync_exec("SELECT pg_advisory_lock(1), 7").getvalue(0, 1) }
        until_true { Heddle::Offload.threads[:running] == 1 }
        first.sync_exec("SELECT pg_advisory_unlock(1)")

        assert_equal "7", waiting.value
        [first, second].each(&:close)
      end
    end
  end

  def test_notices_and_errors_of_a_synchronous_query_come_to_its_own_fiber
    database do |server|
      in_loop do
        notices = Heddle.map(1..5) do |number|
          connection = server.connect
          heard = nil
          here = Fiber.current
          connection.set_notice_processor { |text| heard = text[/number \d/] if Fiber.current.equal?(here) }
          connection.sync_exec("DO $$ BEGIN PERFORM pg_sleep(0.05); RAISE NOTICE 'number #{number}'; END $$")
          error = assert_raises(PG::DivisionByZero) { connection.sync_exec("SELECT pg_sleep(0.02), 1/0") }

          assert_match(/division by zero/, error.message)
          connection.close
          heard
        end

        assert_equal((1..5).map { |number| "number #{number}" }, notices)
      end
    end
  end
end

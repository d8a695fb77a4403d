# frozen_string_literal: true

require_relative "support/offloaded"
require "tmpdir"

# Which libraries' calls may run on another thread: those that are known good, judged to be safe or allowed. The others'
# run in place, so that they do what they do in plain Ruby.
class OffloadTrustTest < Minitest::Test
  include Offloaded

  # A program in a process of its own, with the extension of that name loaded as a gem's would be.
  def trusting(name, program, options: "", env: {})
    head = "require 'heddle'; Heddle.enable(:offload#{options}); Heddle.enable :callback_report; " \
           "require #{NativeCallsLibrary.path(name).dump}; " \
           "offloaded = -> { Heddle::Offload.functions.sum { |f| f[:offloaded] } }; "
    output, status = ruby(head + program, env:)

    assert_predicate status, :success?, output
    output
  end

  def library(name)
    "p Heddle::Offload.libraries.find { |library| library[:path].end_with?('#{name}') }.values_at(:class, :reason)"
  end

  # -- the classes ---------------------------------------------------------------------------------------------------

  def test_a_library_without_thread_imports_is_judged_safe_and_offloaded
    output = trusting("plain_calls", <<~RUBY)
      Heddle.run { PlainCalls.sleep_for(0.001) }
      #{library("plain_calls.so")}
      p offloaded.call
    RUBY

    assert_equal "[:judged_safe, nil]\n1\n", output
  end

  def test_a_library_with_owned_locks_runs_in_place_with_a_reason
    output = trusting("thread_bound", <<~RUBY)
      Heddle.run { ThreadBound.lock }
      #{library("thread_bound.so")}
      p Heddle::Offload.functions.find { |f| f[:method] == :lock }.values_at(:class, :trust, :offloaded)
    RUBY

    assert_match(/\A\[:in_place, "thread_bound\.so imports pthread_mutex\w+"\]$/, output)
    assert_match(/^\[:in_place, :in_place, 0\]$/, output)
  end

  def test_shipped_libraries_are_known_good
    libraries = "#{library("openssl.so")}; #{library("zlib.so")}"
    output = trusting("plain_calls", "require 'openssl'; require 'zlib'; #{libraries}")

    assert_equal "[:known_good, nil]\n" * 2, output
  end

  def test_the_user_allows_and_denies_and_a_denial_wins
    program = "Heddle.run { ThreadBound.lock }; #{library("thread_bound.so")}; p offloaded.call"

    assert_equal "[:allowed, nil]\n1\n", trusting("thread_bound", program, options: ", allow: ['thread_bound.']")
    assert_equal "[:allowed, nil]\n1\n",
                 trusting("thread_bound", program, env: { "HEDDLE_OFFLOAD_ALLOW" => "x, thread_bound" })
    assert_equal "[:denied, nil]\n0\n",
                 trusting("thread_bound", program, options: ", allow: 'thread_bound', deny: 'thread_bound'")
    assert_equal "[:denied, nil]\n0\n", trusting("plain_calls", <<~RUBY, options: ", deny: 'plain'")
      Heddle.run { PlainCalls.sleep_for(0.001) }
      #{library("plain_calls.so")}
      p offloaded.call
    RUBY
  end

  # Once a function, with the line that allows it.
  def test_a_slow_call_in_place_is_reported_with_the_line_that_allows_it
    output = trusting("native_calls", <<~RUBY)
      Heddle.enable(:stall_report, threshold: 0.03)
      $stderr = $stdout
      Heddle.run do
        # A busy machine may leave the watch no time to see each of them.
        (NativeCalls.sleep_for(0.1); sleep 0.02) until Heddle::Stalls.statistics[:count] >= 2
      end
    RUBY
    lines = output.lines.grep(/blocked the event loop/)

    assert_equal 1, lines.size, output
    assert_match(/native_calls\.so \+0x\h+ \(called by the method sleep_for\) blocked the event loop for \d+ ms/,
                 lines.first)
    assert_match(/native_calls\.so (imports \w+|has .+)$/, lines.first.chomp)
    told = Heddle::Offload::InPlace.new(function: { library: "mine.so", function: "f", trust: :in_place }, seconds: 1)

    assert_includes told.advice, 'offload_allow "mine."'
    assert_includes told.advice, "HEDDLE_OFFLOAD_ALLOW=mine."
  end

  # -- what is as in plain Ruby ----------------------------------------------------------------------------------------

  def test_a_lock_is_given_back_by_the_thread_that_took_it
    output = trusting("thread_bound", "Heddle.run { p [ThreadBound.lock, ThreadBound.unlock, ThreadBound.lock] }")

    assert_equal "[0, 0, 0]\n", output
  end

  def test_a_recursive_lock_is_taken_again_in_a_callback
    assert_equal ":again\n", trusting("thread_bound", "Heddle.run { p ThreadBound.locked { ThreadBound.lock_again } }")
  end

  def test_lmdb_writes
    skip "needs the gem lmdb: bin/setup" if Gem::Specification.find_all_by_name("lmdb").empty?
    Dir.mktmpdir do |folder|
      output = trusting("plain_calls", <<~RUBY)
        require "lmdb"
        Heddle.run do
          env = LMDB.new(#{folder.dump})
          db = env.database
          4.times { |i| env.transaction { db["k\#{i}"] = "v\#{i}" } }
          p 4.times.map { |i| db["k\#{i}"] }
        end
      RUBY

      assert_equal "[\"v0\", \"v1\", \"v2\", \"v3\"]\n", output
    end
  end

  def test_ffi_raises_what_a_callback_of_a_blocking_call_raised
    skip "needs the gem ffi: bin/setup" if Gem::Specification.find_all_by_name("ffi").empty?
    output = trusting("plain_calls", <<~RUBY)
      require "ffi"
      module C
        extend FFI::Library
        ffi_lib "c"
        callback :compare, [:pointer, :pointer], :int
        attach_function :qsort, [:pointer, :size_t, :size_t, :compare], :void, blocking: true
        attach_function :usleep, [:uint], :int, blocking: true
      end
      Heddle.run do
        [20_000, 1_000].map { |microseconds| Heddle.async { C.usleep(microseconds) } }.each(&:wait)
        numbers = FFI::MemoryPointer.new(:int, 2).write_array_of_int([2, 1])
        C.qsort(numbers, 2, 4, ->(_, _) { raise "from the callback" })
      rescue RuntimeError => e
        puts e.message
      end
      require "fiddle"
      ffi = Fiddle.dlopen($LOADED_FEATURES.grep(/ffi_c\\.so/).first)
      p Fiddle::Function.new(ffi["rbffi_frame_current"], [], Fiddle::TYPE_VOIDP, need_gvl: true).call.to_i
      #{library("ffi_c.so")}
    RUBY

    assert_equal "from the callback\n0\n[:denied, nil]\n", output
  end

  # -- what an allowed library may rely on -----------------------------------------------------------------------------

  ALLOWED = ", allow: ['thread_bound']"

  # Of a string that only the native function's frame holds, as Ruby looks for values there, too.
  def test_values_that_a_native_frame_keeps_across_callbacks_are_not_collected
    output = trusting("thread_bound", <<~RUBY, options: ALLOWED)
      collect = -> { GC.start && 20_000.times { "x" * 80 } && GC.start }
      Heddle.run { p 5.times.map { ThreadBound.keep(&collect) }, offloaded.call }
    RUBY

    assert_equal "[true, true, true, true, true]\n5\n", output
  end

  # It would ask without an end: in plain Ruby the exception ends it.
  def test_a_callback_that_raises_leaves_the_native_function
    output = trusting("thread_bound", <<~RUBY, options: ALLOWED)
      asked = 0
      Heddle.run do
        ThreadBound.until_answered { (asked += 1) && raise(IndexError) }
      rescue IndexError
        p [:raised, asked, offloaded.call]
        p ThreadBound.until_answered { asked += 1 }
      end
    RUBY

    assert_equal "[:raised, 1, 1]\ntrue\n", output
  end

  def test_openssl_error_messages_are_complete_after_an_offloaded_call
    output = trusting("plain_calls", <<~'RUBY')
      require "openssl"
      message = -> do
        OpenSSL::PKey.generate_key("RSA", "rsa_keygen_bits" => 1024, "rsa_keygen_pubexp" => 4)
      rescue StandardError => e
        [e.message, OpenSSL.errors]
      end
      plain = message.call
      loop = Heddle.run { 3.times.map { Heddle.async(&message) }.map(&:value) }
      p offloaded.call > 0, plain.first.match?(/: \S/), loop.uniq == [plain], OpenSSL.errors
    RUBY

    assert_equal "true\ntrue\ntrue\n[]\n", output
  end

  # -- Fiddle: the library of the function that is called decides ------------------------------------------------------

  FIDDLE = <<~RUBY
    require "fiddle"
    libc = Fiddle.dlopen(nil)
    function = ->(name, *types) { Fiddle::Function.new(libc[name], types, Fiddle::TYPE_INT) }
    usleep = function.call("usleep", Fiddle::TYPE_INT)
    trust = ->(name) { Heddle::Offload.functions.find { |f| f[:function] == name }&.values_at(:trust, :offloaded) }
  RUBY

  # PR_SET_NAME and PR_GET_NAME are about the calling thread, as sandboxes are.
  def test_a_system_call_about_the_thread_is_made_on_the_calling_thread
    output = trusting("plain_calls", <<~RUBY)
      #{FIDDLE}
      prctl = function.call("prctl", Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP)
      Heddle.run do
        3.times.map { Heddle.async { usleep.call(5000) } }.each(&:wait)
        prctl.call(15, "my own name")
      end
      puts File.read("/proc/self/task/\#{Process.pid}/comm")
      p trust.call("prctl"), trust.call("usleep")
    RUBY

    assert_equal "my own name\n[:in_place, 0]\n[:judged_safe, 3]\n", output
  end

  def test_denying_libc_reaches_what_fiddle_calls
    output = trusting("plain_calls", <<~RUBY, options: ", deny: ['libc']")
      #{FIDDLE}
      Heddle.run { usleep.call(1000) }
      p trust.call("usleep")
    RUBY

    assert_equal "[:denied, 0]\n", output
  end

  def test_denying_fiddle_leaves_all_of_its_calls_alone
    output = trusting("plain_calls", <<~RUBY, options: ", deny: ['fiddle']")
      #{FIDDLE}
      Heddle.run { usleep.call(1000) }
      p trust.call("usleep"), offloaded.call
    RUBY

    assert_equal "nil\n0\n", output
  end

  # Two functions by the same way: each is judged, and measured, by itself.
  def test_a_library_that_fiddle_calls_is_judged_and_a_closure_stays_in_place
    output = trusting("plain_calls", <<~RUBY)
      #{FIDDLE}
      bound = Fiddle.dlopen(#{NativeCallsLibrary.path("thread_bound").dump})
      closure = Class.new(Fiddle::Closure) { def call = 7 }.new(Fiddle::TYPE_INT, [])
      Heddle.run do
        usleep.call(1000)
        p Fiddle::Function.new(closure.to_i, [], Fiddle::TYPE_INT).call
        Fiddle::Function.new(bound["Init_thread_bound"], [], Fiddle::TYPE_VOID, need_gvl: true).call
      end
      p trust.call("usleep"), offloaded.call
    RUBY

    assert_equal "7\n[:judged_safe, 1]\n1\n", output
  end
end

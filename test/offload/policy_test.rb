# frozen_string_literal: true

require_relative "support/offloaded"
require "etc"
require "fcntl"
require "socket"
require "tempfile"
require "tmpdir"

# Which calls are offloaded, and how many at once.
class OffloadPolicyTest < Minitest::Test
  include Offloaded

  # -- the pool never starves -----------------------------------------------------------------------------------------

  # What is queued may be what ends the calls under way: no number of threads is enough.
  def test_more_calls_than_threads_are_meant_for_wait_for_each_other
    limit = 64 + Etc.nprocessors
    number = limit + 8
    values = in_loop { Array.new(number) { Heddle.async { NativeCalls.meet(number) } }.map(&:value) }

    assert_equal [:met], values.uniq
    assert_operator Heddle::Offload.threads[:grown], :>=, 1
  end

  def test_calls_that_were_taken_for_computing_ones_but_wait_give_their_cores_back
    number = Etc.nprocessors + 2
    values = in_loop do
      3.times { NativeCalls.burn_or_meet(0.002, 0) }
      assert_equal :computes, known(:burn_or_meet)[:class]
      Array.new(number) { Heddle.async { NativeCalls.burn_or_meet(0, number) } }.map(&:value)
    end

    assert_equal [:met], values.uniq
  end

  def test_no_more_computing_calls_run_than_there_are_cores
    in_loop do
      3.times { NativeCalls.burn(0.002) }
      NativeCalls.reset_burning
      Heddle.map(1..8) { NativeCalls.burn(0.005) }
    end

    assert_equal :computes, known(:burn)[:class]
    assert_operator NativeCalls.most_burning, :<=, Etc.nprocessors
  end

  # -- what waits for another fiber -----------------------------------------------------------------------------------

  def test_two_fibers_of_a_loop_lock_the_same_file
    Tempfile.create("lock") do |file|
      order = []
      in_loop do
        3.times do |i|
          Heddle.async do
            File.open(file.path) do |own|
              own.flock(File::LOCK_EX)
              order << i
              sleep 0.001
              order << i
            end
          end
        end
      end

      assert_equal order.each_slice(2).map(&:first), order.each_slice(2).map(&:last)
      assert_equal [0, 1, 2], order.uniq.sort
    end
  end

  def test_a_lock_of_fcntl_is_waited_for_by_its_own_fiber
    Tempfile.create("lock") do |file|
      lock = [Fcntl::F_WRLCK, IO::SEEK_SET, 0, 0, 0].pack("ssx4qqlx4") # struct flock
      child = IO.popen([RbConfig.ruby, "-rfcntl", "-e", <<~RUBY, file.path], "r+")
        file = File.open(ARGV[0], "r+")
        file.fcntl(Fcntl::F_SETLKW, #{lock.inspect})
        puts "locked"
        $stdout.flush
        $stdin.gets
      RUBY
      child.gets
      in_loop do
        waiting = Heddle.async { File.open(file.path, "r+") { |own| own.fcntl(Fcntl::F_SETLKW, lock) } }
        until_true { Heddle::Offload.threads[:running] == 1 }
        child.puts # by another fiber of the same loop
        waiting.wait
      end

      assert_nil child.close
    end
  end

  if RUBY_VERSION >= "3.4"
    def test_a_fifo_is_opened_from_both_ends
      Dir.mktmpdir do |folder|
        File.mkfifo("#{folder}/fifo")
        heard = in_loop do
          reader = Heddle.async { File.read("#{folder}/fifo") }
          File.write("#{folder}/fifo", "through")
          reader.value
        end

        assert_equal "through", heard
      end
    end

    # A process of its own: the first calls of a function are inline, however slow they are.
    def test_files_and_folders_are_opened_inline
      Dir.mktmpdir do |folder|
        assert_equal "0\n", offloading(<<~RUBY, folder)
          Heddle.run do
            File.open(ARGV[0] + "/new", File::CREAT | File::EXCL | File::WRONLY).close
            File.read(ARGV[0] + "/new")
            Dir.children(ARGV[0])
            puts Heddle::Offload.threads[:calls]
          end
        RUBY
      end
    end

    # Like a FIFO, which has another test: a device may wait.
    def test_devices_are_opened_on_a_thread
      assert_equal "1\n", offloading("Heddle.run { File.open(File::NULL) { puts(Heddle::Offload.threads[:calls]) } }")
    end

    # Rubies before 3.4 don't say which of their own calls may run elsewhere.
    def test_rubys_quick_calls_stay_inline
      in_loop do
        before = Heddle::Offload.threads[:calls]
        20.times { File.stat(__FILE__) && File.exist?("/none") && Dir.children("/") }
        File.stat(__FILE__)

        assert_equal before, Heddle::Offload.threads[:calls]
      end
    end
  end

  if RUBY_VERSION >= "3.4"
    # A path through links that lead through links: the kernel walks for a while.
    def test_rubys_quick_calls_are_offloaded_once_they_are_slow
      Dir.mktmpdir do |folder|
        path = folder
        30.times { |i| File.symlink("/#{"./" * 1900}#{path[1..]}", path = "#{folder}/#{i}") }
        offloading(<<~RUBY, path)
          stat = -> { Heddle::Offload.functions.find { |function| function[:method] == :lstat } }
          Heddle.run { 40.times { File.lstat(ARGV[0] + "/.") } }
          abort stat.call.inspect unless stat.call[:offloaded].between?(1, stat.call[:calls] - 2)
        RUBY
      end
    end
  end

  # Compressing little is quicker than another thread; compressing much is not.
  def test_compression_is_inline_while_it_is_quick
    offloading(<<~RUBY)
      require "zlib"
      packed = Zlib::Deflate.deflate("little")
      much = Random.new(1).bytes(1_000_000)
      calls = ->(&block) { before = Heddle::Offload.threads[:calls]; block.call; Heddle::Offload.threads[:calls] - before }
      Heddle.run do
        little = calls.call { 100.times { Zlib::Inflate.inflate(packed) } }
        abort "little: \#{little}" unless little < 50
        abort "much" unless calls.call { 20.times { Zlib::Deflate.deflate(much, 1) } } > 10
      end
    RUBY
  end

  if RUBY_VERSION < "4"
    # Like flock; a socket that doesn't block returns at once.
    def test_an_extensions_call_on_a_descriptor_is_offloaded_where_it_may_block
      IO.pipe do |reader, _|
        reader.fcntl(Fcntl::F_SETFL, 0)

        refute(in_loop { NativeCalls.region_on_same_thread?(reader.fileno) })
        reader.fcntl(Fcntl::F_SETFL, Fcntl::O_NONBLOCK)

        assert(in_loop { NativeCalls.region_on_same_thread?(reader.fileno) })
        assert NativeCalls.region_on_same_thread?(reader.fileno)
      end
    end
  end

  # Of its own calls Ruby says itself which may run elsewhere: what waits for another Ractor holds a lock meanwhile.
  # Ruby says of a call of its own whether another thread may make it, from 3.4 on. Before, it says so of none.
  def test_rubys_calls_stay_on_their_thread_unless_it_says_that_they_may_leave_it
    Dir.mktmpdir do |folder|
      in_loop { File.mkfifo("#{folder}/fifo") }
    end
    noted = Heddle::Offload.functions.select { |function| function[:method] == :mkfifo }

    assert_equal RUBY_VERSION >= "3.4" ? 1 : 0, noted.size
  end

  def test_a_socket_that_would_not_block_is_not_offloaded
    in_loop do
      server = TCPServer.new("127.0.0.1", 0)
      port = server.addr[1]
      offloaded = -> { Heddle::Offload.functions.sum { |one| one[:method] == :accept ? one[:offloaded] : 0 } }
      before = offloaded.call
      5.times do
        accepted = Heddle.async { server.accept }
        client = TCPSocket.new("127.0.0.1", port)
        accepted.value.close
        client.close
      end

      assert_equal before, offloaded.call
    end
  end

  # -- what is told ---------------------------------------------------------------------------------------------------

  def test_functions_are_known_with_library_method_calls_and_time
    in_loop { 3.times { NativeCalls.sleep_for(0.002) } }
    sleeping = known(:sleep_for)

    assert_match(/native_calls/, sleeping[:library])
    assert_match(/\A\+0x\h+\z/, sleeping[:function])
    assert_operator sleeping[:calls], :>=, 3
    assert_equal sleeping[:calls], sleeping[:offloaded]
    assert_operator sleeping[:wall], :>=, 0.001
    assert_equal :waits, sleeping[:class]
  end

  def test_the_status_names_the_enabled_parts_and_libraries
    status = Heddle::Offload.status

    assert status[:on]
    assert_same true, status[:core]
    assert_operator status[:extensions], :>=, 1
    refute Heddle.disable(:offload) && Heddle::Offload.status[:on]
  end
end

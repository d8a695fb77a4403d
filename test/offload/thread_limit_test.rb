# frozen_string_literal: true

require_relative "support/offloaded"
require "fileutils"
require "tempfile"
require "tmpdir"

# There are as many offload threads as the limit allows, and no more.
class OffloadThreadLimitTest < Minitest::Test
  include Offloaded

  # The holder lets go by closing its file, which needs no thread: to unlock it would queue behind those who wait.
  def test_calls_beyond_the_limit_queue_while_the_loop_lives
    output = offloading(<<~RUBY, options: ", threads: 16")
      require "tempfile"
      $stderr = $stdout
      path = Tempfile.create("lock").path
      holder = File.open(path)
      holder.flock(File::LOCK_EX)
      Heddle.run do
        tasks = Array.new(400) { Heddle.async { File.open(path) { |file| file.flock(File::LOCK_EX) } } }
        sleep 0.001 until Heddle::Offload.threads.values_at(:running, :queued) == [16, 384]
        sleep 0.1 # in which 0.1 started more
        p Heddle::Offload.threads.values_at(:running, :queued, :limit)
        p Heddle::Offload.threads[:threads] <= 16 + 8
        begin
          Heddle.timeout(0.01) { File.open(path) { |file| file.flock(File::LOCK_EX) } }
        rescue Heddle::TimeoutError
          puts "taken back"
        end
        p Heddle::Offload.threads[:queued]
        holder.close
        p tasks.map(&:value).uniq
      end
      File.unlink(path)
    RUBY

    assert_equal "heddle: all 16 offload threads are busy: further native calls are queued " \
                 "(Heddle::Offload.thread_limit, docs/offload.md#how-many-threads)\n[16, 384, 16]\ntrue\ntaken " \
                 "back\n384\n[0]\n", output
  end

  # The deadlock of docs/offload.md: all threads wait for a lock, and its holder's next call queues behind them.
  DEADLOCK = <<~RUBY
    require "tempfile"
    $stderr = File.open(File::NULL, "w")
    path = Tempfile.create("lock").path
    holder = File.open(path)
    lock = -> { File.open(path) { |file| file.flock(File::LOCK_EX) } }
    until_all_wait = -> { sleep 0.001 until Heddle::Offload.threads[:running] == 4 }
    until_queued = -> { sleep 0.001 until Heddle::Offload.threads[:queued] == 1 }
    at_exit { File.unlink(path) }
  RUBY

  def test_in_a_deadlock_of_all_threads_a_time_limit_takes_the_holders_call_back
    output = offloading(DEADLOCK + <<~RUBY, options: ", threads: 4")
      Heddle.run do
        holder.flock(File::LOCK_EX)
        waiters = Array.new(4) { Heddle.async(&lock) }
        until_all_wait.call
        call = Heddle.async do
          Heddle.timeout(0.1) { NativeCalls.same_thread? }
        rescue Heddle::TimeoutError
          "taken back"
        end
        until_queued.call # the loop runs
        p waiters.map(&:state), call.value
        holder.flock(File::LOCK_UN) # in place
        p waiters.map(&:value), NativeCalls.same_thread?
      end
    RUBY

    assert_equal "[:waiting, :waiting, :waiting, :waiting]\n\"taken back\"\n[0, 0, 0, 0]\nfalse\n", output
  end

  def test_in_a_deadlock_of_all_threads_the_end_of_a_waiting_call_lets_the_holder_continue
    output = offloading(DEADLOCK + <<~RUBY, options: ", threads: 4")
      Heddle.run do
        holder.flock(File::LOCK_EX)
        waiters = Array.new(3) { Heddle.async(&lock) }
        impatient = Heddle.async(&lock)
        until_all_wait.call
        call = Heddle.async { NativeCalls.same_thread? }
        until_queued.call
        p call.state
        impatient.cancel
        p call.value, waiters.map(&:state)
        holder.close
        p waiters.map(&:value)
      end
    RUBY

    assert_equal ":waiting\nfalse\n[:waiting, :waiting, :waiting]\n[0, 0, 0]\n", output
  end

  def test_a_limit_is_a_whole_number_of_one_or_more
    [0, -1, 1.5, "8", 100_001].each do |threads|
      error = assert_raises(ArgumentError) { Heddle::Offload.thread_limit = threads }

      assert_includes error.message, threads.inspect
    end
  end

  def test_workers_share_the_limit_where_the_application_enables_offloading_first
    output = offloading(<<~RUBY)
      Heddle::Offload::ThreadLimit.define_singleton_method(:default) { |workers: 1, **| 400 / workers }
      Heddle::Offload::Switch.share_threads(4)
      Heddle.enable(:offload)
      p Heddle::Offload.status[:limit]
      Heddle::Offload.thread_limit = 7
      Heddle::Offload::Switch.share_threads(8)
      p Heddle::Offload.status[:limit]
    RUBY

    assert_equal "100\n7\n", output
  end

  # A system with these files.
  def limit_of(files, **options)
    Dir.mktmpdir do |root|
      files.each do |path, text|
        FileUtils.mkdir_p(File.dirname(File.join(root, path)))
        File.write(File.join(root, path), text)
      end
      Heddle::Offload::ThreadLimit.default(root:, **options)
    end
  end

  def test_the_default_is_512_or_a_workers_share_of_the_containers_tasks
    v2 = { "proc/self/cgroup" => "0::/app/one\n", "sys/fs/cgroup/app/pids.max" => "200\n",
           "sys/fs/cgroup/app/one/pids.max" => "max\n" }
    v1 = { "proc/self/cgroup" => "12:cpu:/x\n7:pids:/docker/1\n", "sys/fs/cgroup/pids/pids.max" => "100\n" }

    assert_equal 200, limit_of(v2)
    assert_equal 50, limit_of(v2, workers: 4)
    assert_equal 50, limit_of(v1, workers: 2)
    assert_equal 1, limit_of(v1, workers: 1000)
    assert_equal 512, limit_of({})
    assert_equal 512, limit_of({ "proc/self/cgroup" => "0::/\n", "sys/fs/cgroup/pids.max" => "max\n" })
    assert_equal 512, limit_of({ "proc/self/cgroup" => "0::/\n", "sys/fs/cgroup/pids.max" => "20000\n" })
  end
end

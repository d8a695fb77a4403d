# frozen_string_literal: true

require_relative "support/offloaded"
require "fileutils"
require "tempfile"
require "tmpdir"

# There are as many offload threads as there may be, and no more.
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
        sleep 0.001 until Heddle::Offload.threads[:running] == 16
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

    assert_equal "heddle: all 16 offload threads are at work: native calls queue until others end " \
                 "(offload_threads, docs/offload.md#how-many-threads)\n" \
                 "[16, 384, 16]\ntrue\ntaken back\n384\n[0]\n", output
  end

  def test_a_limit_is_a_whole_number_of_one_or_more
    [0, -1, 1.5, "8", 100_001].each do |threads|
      error = assert_raises(ArgumentError) { Heddle::Offload.thread_limit = threads }

      assert_includes error.message, threads.inspect
    end
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

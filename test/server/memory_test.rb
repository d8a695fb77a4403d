# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require "heddle/server"

# How much memory there is for a worker.
class MemoryTest < Minitest::Test
  Memory = Heddle::Server::Memory

  def limit(files) = with(files) { |root| Memory.limit(root) }

  def with(files)
    Dir.mktmpdir do |root|
      files.each do |path, text|
        FileUtils.mkdir_p(File.dirname(File.join(root, path)))
        File.write(File.join(root, path), text)
      end
      yield root
    end
  end

  MACHINE = { "proc/meminfo" => "MemTotal:        1000 kB\nMemFree: 5 kB\n" }.freeze

  def test_nine_tenths_of_the_machine
    assert_equal 921_600, limit(MACHINE)
  end

  def test_the_least_of_all_groups_around_the_process
    groups = { "proc/self/cgroup" => "0::/outer/inner\n", "sys/fs/cgroup/outer/inner/memory.max" => "max\n",
               "sys/fs/cgroup/outer/memory.max" => "500000\n", "sys/fs/cgroup/memory.max" => "600000\n" }

    assert_equal 450_000, limit(MACHINE.merge(groups))
    assert_equal 921_600, limit(MACHINE.merge("proc/self/cgroup" => "0::/\n", "sys/fs/cgroup/memory.max" => "max\n"))
  end

  def test_groups_of_the_older_kind
    groups = { "proc/self/cgroup" => "3:cpu,memory:/a\n2:cpu:/b\n",
               "sys/fs/cgroup/memory/a/memory.limit_in_bytes" => "10000" }

    assert_equal 9_000, limit(MACHINE.merge(groups))
  end

  def test_where_nothing_is_known
    assert_nil limit({})
  end

  def test_pages_that_are_freed_lazily_are_not_counted
    rollup = "Rss:     9000 kB\nPss:     7000 kB\nPss_Dirty:   6000 kB\n"
    with("proc/7/smaps_rollup" => "#{rollup}LazyFree:    5000 kB\n", "proc/8/smaps_rollup" => rollup) do |root|
      assert_equal([2_000, 7_000, nil], [7, 8, 9].map { |pid| Memory.proportional(pid, root:)&.div(1_024) })
    end
  end

  def test_freed_pages_count_only_while_resident_memory_is_below_the_limit
    page = Etc.sysconf(Etc::SC_PAGESIZE)
    with("proc/7/statm" => "90 9 1 1 0 1 0\n",
         "proc/7/smaps_rollup" => "Pss:     7 kB\nLazyFree:    5 kB\n") do |root|
      limits = [nil, 9 * page, (9 * page) - 1]

      assert_equal([9 * page, 9 * page, 2_048], limits.map { |limit| Memory.compared(limit, 7, root:) })
      assert_nil Memory.compared(1, 8, root:)
    end
  end

  def test_used_memory_is_near_the_resident_size_and_below_the_limit
    skip "only Linux tells" unless File.exist?("/proc/self/statm")

    assert_in_delta File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i * 1_024, Memory.used, 20_000_000
    assert_operator Memory.limit, :>, Memory.used
  end
end

# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "etc"
require "fileutils"
require "tmpdir"

class CoresTest < Minitest::Test
  def available(files)
    Dir.mktmpdir do |root|
      files.each do |name, text|
        path = File.join(root, name)
        FileUtils.mkdir_p(File.dirname(path))
        File.write(path, text)
      end
      Heddle::Server::Cores.available(root)
    end
  end

  def test_without_a_container_it_is_what_the_process_may_use
    assert_equal Etc.nprocessors, available({})
    unlimited = { "proc/self/cgroup" => "0::/a\n", "sys/fs/cgroup/a/cpu.max" => "max 100000\n" }

    assert_equal Etc.nprocessors, available(unlimited)
  end

  def test_the_least_quota_of_the_group_and_of_those_around_it_counts
    assert_equal 1, available("proc/self/cgroup" => "0::/a/b\n", "sys/fs/cgroup/a/cpu.max" => "50000 100000\n",
                              "sys/fs/cgroup/a/b/cpu.max" => "900000 100000\n")
    assert_equal 1, available("proc/self/cgroup" => "4:cpu,cpuacct:/x\n1:memory:/y\n",
                              "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us" => "20000\n",
                              "sys/fs/cgroup/cpu/x/cpu.cfs_period_us" => "100000\n")
    assert_equal [Etc.nprocessors, 2].min,
                 available("proc/self/cgroup" => "0::/\n", "sys/fs/cgroup/cpu.max" => "150000 100000\n")
  end
end

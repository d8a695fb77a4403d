# frozen_string_literal: true

require "test_helper"

# What a process does when its parent ends (ext/heddle/processes).
class ProcessesTest < Minitest::Test
  # The outer process is the master; the child's first parent ends after the kernel's signal, as if other threads of it
  # had ended before.
  PROGRAM = <<~RUBY
    require "heddle/server"
    exit!(3) unless Heddle::Native::Processes.adopt_orphans
    MASTER = Process.pid
    told, tell = IO.pipe
    between = fork do
      fork do
        trap("ALRM") { tell.write("not ended") && exit!(0) }
        Heddle::Native::Processes.end_after_master(60)
        Process.kill(:PWR, Process.pid)
        tell.write("pending ")
        sleep 0.01 until Process.ppid == MASTER
        Process.kill(:ALRM, Process.pid)
        sleep
      end
      told.readpartial(8)
      exit!(0)
    end
    tell.close
    Process.wait(between)
    print told.read
  RUBY

  def test_process_whose_parent_ended_in_two_steps_does_not_end_while_the_master_lives
    skip "only Linux tells a process that its parent has ended" unless RUBY_PLATFORM.include?("linux")

    assert_equal "not ended", IO.popen([RbConfig.ruby, "-Ilib", "-e", PROGRAM], &:read)
  end
end

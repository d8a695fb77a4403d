# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "support/scheduled"

# When the system refuses a thread or a process, and only then, the message names the limit to raise.
class ProcessLimitTest < Minitest::Test
  include Scheduled

  Limit = Heddle::Server::ProcessLimit

  def explained(error) = Limit.explain(error)&.slice(/.*?: /)

  def test_a_refused_process_is_explained
    error = assert_raises(Limit::NoProcessError) { Limit.forking { raise Errno::EAGAIN, "fork(2)" } }

    assert_equal "fork(2): ", explained(error)
    assert_equal "fork(2): ", explained(Limit.failed_fork(Errno::EAGAIN::Errno))
    assert_kind_of Errno::EAGAIN, error
  end

  def test_forking_passes_on_the_childs_exit_status
    assert_equal 4, Process.wait2(Limit.forking { fork { exit!(4) } }).last.exitstatus
  end

  def test_another_error_of_a_fork_is_that_error
    error = Limit.failed_fork(Errno::ENOMEM::Errno)

    assert_instance_of Errno::ENOMEM, error
    assert_nil explained(error)
  end

  def test_a_thread_that_ruby_cannot_make_is_explained
    refused = ThreadError.new("can't create Thread: Resource temporarily unavailable")

    assert_equal "can't create Thread: ", explained(refused)
    assert_nil explained(assert_raises(ThreadError) { Thread.new })
  end

  # The words alone make nothing of it.
  def test_other_errors_are_not_explained
    [Errno::EAGAIN.new("fork(2)"), Errno::EAGAIN.new("starting the watch thread"),
     RuntimeError.new("can't create Thread"), IO::EAGAINWaitReadable.new].each { |error| assert_nil explained(error) }
  end

  def test_a_refused_watch_thread_is_explained
    output, status = ruby(<<~RUBY)
      require "heddle/server"
      Heddle::Native.define_singleton_method(:watch) { |*| raise Errno::EAGAIN, "starting the watch thread" }
      begin
        Heddle.enable :preempt
      rescue SystemCallError => e
        puts Heddle::Server::ProcessLimit.explain(e), e.cause.inspect, Heddle::WatchThread.slice.inspect
      end
    RUBY

    assert_predicate status, :success?, output
    assert_match(/\Astarting the watch thread: the system allows .*\nnil\nnil\n\z/, output)
  end
end

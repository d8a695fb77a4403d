# frozen_string_literal: true

# test: each selector

require_relative "support/offloaded"
require "tempfile"

# Files that are closed while offloaded calls use them: IOError in each, before the descriptor's number is reused.
class OffloadDescriptorsTest < Minitest::Test
  include Offloaded

  CLOSED = [IOError, "stream closed in another thread"].freeze

  # A locked file, and another opening of it.
  def locked
    Tempfile.create("lock") do |holder|
      holder.flock(File::LOCK_EX)
      yield File.open(holder.path), holder
    end
  end

  def outcome_of
    yield
  rescue IOError => e
    [e.class, e.message]
  end

  def wait_for_lock(file)
    Heddle.async { outcome_of { file.flock(File::LOCK_EX) } }
  end

  # Without the lock's holder ever letting go.
  def outcomes(*waiters)
    Heddle.timeout(LIMIT) { waiters.map(&:value) }
  end

  def until_running(calls)
    until_true { Heddle::Offload.threads[:running] == calls }
  end

  def test_closing_a_file_ends_the_wait_for_its_lock
    locked do |file|
      in_loop do
        waiter = wait_for_lock(file)
        until_running 1
        file.close

        assert_equal [CLOSED], outcomes(waiter)
      end
    end
  end

  def test_each_of_several_waiters_is_woken_by_the_close
    locked do |file|
      in_loop do
        waiters = Array.new(3) { wait_for_lock(file) }
        until_running 3
        file.close

        assert_equal [CLOSED] * 3, outcomes(*waiters)
      end
    end
  end

  def test_a_thread_may_close_it
    locked do |file|
      in_loop do
        waiter = wait_for_lock(file)
        until_running 1
        Thread.new { file.close }.join

        assert_equal [CLOSED], outcomes(waiter)
      end
    end
  end

  # From Ruby 4.0 on close itself waits for the calls on its IO.
  if RUBY_VERSION >= "4.0"
    def test_close_returns_when_the_waiters_have_left
      locked do |file, holder|
        in_loop do
          number = file.fileno
          waiters = Array.new(2) { wait_for_lock(file) }
          until_running 2
          Heddle.timeout(LIMIT) { file.close }

          assert_equal 0, Heddle::Offload.threads[:running]
          late = holder.dup

          assert_equal number, late.fileno
          assert_equal [CLOSED] * 2, outcomes(*waiters)
          late.close
        end
      end
    end
  else
    def test_the_number_is_free_when_the_waiters_have_left_and_not_before
      locked do |file, holder|
        in_loop do
          number = file.fileno
          waiters = Array.new(2) { wait_for_lock(file) }
          until_running 2
          file.close
          early = holder.dup # lets nobody else run, as opening a file does

          refute_equal number, early.fileno
          assert_equal [CLOSED] * 2, outcomes(*waiters)
          late = holder.dup

          assert_equal number, late.fileno
          [early, late].each(&:close)
        end
      end
    end
  end

  # The only thread waits for a lock.
  BUSY = <<~RUBY
    require "tempfile"
    lock = Tempfile.create("lock")
    lock.flock(File::LOCK_EX)
    $stderr = File.open(File::NULL, "w")
    Heddle.run do
      busy = Heddle.async { File.open(lock.path) { |file| file.flock(File::LOCK_EX) } }
      sleep 0.001 until Heddle::Offload.threads[:running] == 1
  RUBY

  def test_a_queued_call_never_acts_on_a_file_that_got_its_number
    output = offloading(<<~RUBY, options: ", threads: 1")
      #{BUSY}
        first, second = Tempfile.create("first"), Tempfile.create("second")
        file, other = File.open(first.path), File.open(second.path)
        number = file.fileno
        queued = Heddle.async do
          file.flock(File::LOCK_EX)
        rescue IOError => e
          e.message
        end
        sleep 0.001 until Heddle::Offload.threads[:queued] == 1
        file.close
        copy = other.dup # lets nobody else run, as opening a file does
        p copy.fileno == number
        lock.close
        p queued.value
        busy.value
        File.open(second.path) { |another| p another.flock(File::LOCK_EX | File::LOCK_NB) }
        [lock, first, second].each { |each| File.unlink(each.path) }
      end
    RUBY

    # From Ruby 4.0 on close withdraws the call before the number is free.
    assert_equal "#{RUBY_VERSION >= "4.0"}\n\"stream closed in another thread\"\n0\n", output
  end

  def test_unlock_and_trylock_never_wait_behind_blocked_calls
    output = offloading(<<~RUBY, options: ", threads: 1")
      #{BUSY}
        other = File.open(lock.path)
        Heddle.timeout(#{LIMIT}) do
          p other.flock(File::LOCK_EX | File::LOCK_NB)
          p lock.flock(File::LOCK_UN)
        end
        p busy.value
        File.unlink(lock.path)
      end
    RUBY

    assert_equal "false\n0\n0\n", output
  end

  def test_descriptors_closed_in_a_child_stay_open_in_the_parent
    locked do |file, holder|
      in_loop do
        waiter = wait_for_lock(file)
        until_running 1
        Process.wait(spawn("true", file.fileno => :close))
        number = file.fileno
        child = fork do
          file.close
          IO.for_fd(number, autoclose: false)
          exit! 1
        rescue Errno::EBADF
          exit! 0
        end
        Process.wait(child)

        assert_predicate Process.last_status, :success?
        holder.flock(File::LOCK_UN)

        assert_equal 0, waiter.value
        file.close
      end
    end
  end
end
